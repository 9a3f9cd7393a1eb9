import { access, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pMap from 'p-map';
import { readSamples, type SampleRequest } from './samples.ts';

const MARKER = 'sample-loaded';
const CONCURRENCY = 8;

/** Loads the packs' sample data through the API at the first start on a data folder. Returns true if it has loaded them now. */
export async function loadSamples({
  folder,
  url,
  token,
}: {
  folder: string;
  url: string;
  token: string;
}): Promise<boolean> {
  const marker = join(folder, MARKER);
  if (await exists(marker)) return false;
  const send = async ({ method, path, body }: SampleRequest) => {
    const isBytes = body instanceof Uint8Array;
    const response = await fetch(`${url}/api/${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, ...(isBytes ? {} : { 'content-type': 'application/json' }) },
      body: isBytes ? body : JSON.stringify(body),
    });
    // 409: an earlier start created this entity before it was interrupted.
    if (!response.ok && response.status !== 409)
      throw new Error(`The sample data could not be loaded: ${method} ${path} returned ${response.status}.`);
  };
  const steps = await readSamples(Date.now());
  for (const step of steps) await pMap(step, send, { concurrency: CONCURRENCY });
  await writeFile(marker, '');
  return steps.some(({ length }) => length > 0);
}

function exists(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  );
}
