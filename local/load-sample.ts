import { access, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pMap from 'p-map';
import { sampleDepartments, sampleEmployees, sampleEvents, sampleLogins } from './sample-company.ts';

const MARKER = 'sample-loaded';
const AT_ONCE = 8;

/** Loads the sample company through the API, at the first start on a data folder and never again. */
export async function loadSample({
  folder,
  url,
  token,
}: {
  folder: string;
  url: string;
  token: string;
}): Promise<boolean> {
  const marker = join(folder, MARKER);
  if (
    await access(marker).then(
      () => true,
      () => false,
    )
  )
    return false;
  const post = async (path: string, body: unknown) => {
    const response = await fetch(`${url}/api/${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    // 409: an earlier start was ended halfway.
    if (!response.ok && response.status !== 409)
      throw new Error(`The sample data could not be loaded (${response.status} from ${path}).`);
  };
  await pMap(sampleEmployees, (employee) => post('employees', employee), { concurrency: AT_ONCE });
  await pMap(sampleDepartments, (department) => post('departments', department), { concurrency: AT_ONCE });
  await pMap(sampleLogins(Date.now()), (login) => post('logins', login), { concurrency: AT_ONCE });
  const { reviews, expenses, doorevents } = sampleEvents(Date.now());
  await pMap(reviews, (review) => post('reviews', review), { concurrency: AT_ONCE });
  await pMap(expenses, (claim) => post('expenses', claim), { concurrency: AT_ONCE });
  await pMap(doorevents, (event) => post('doorevents', event), { concurrency: AT_ONCE });
  await writeFile(marker, '');
  return true;
}
