import { access, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pMap from 'p-map';
import { deployment } from '../../lib/model/deployment.ts';
import { type SampleRequest, sampleRequests } from './sample-company.ts';

const MARKER = 'sample-loaded';
const CONCURRENCY = 8;

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
  const send = async ({ method, path, body }: SampleRequest) => {
    const isBytes = body instanceof Uint8Array;
    const response = await fetch(`${url}/api/${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, ...(isBytes ? {} : { 'content-type': 'application/json' }) },
      body: isBytes ? body : JSON.stringify(body),
    });
    // 409: an earlier start was ended halfway.
    if (!response.ok && response.status !== 409)
      throw new Error(`The sample data could not be loaded (${response.status} from ${path}).`);
  };
  // A pack that was taken out of the deployment has no sample.
  const isStored = ({ path }: SampleRequest) => deployment.some(({ name }) => name === path.split('/')[0]);
  for (const step of sampleRequests(Date.now())) await pMap(step.filter(isStored), send, { concurrency: CONCURRENCY });
  await writeFile(marker, '');
  return true;
}
