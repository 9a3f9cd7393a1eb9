import { randomBytes } from 'node:crypto';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { readJsonFile } from './json-file.ts';

const FILE = 'secrets.json';

/** What a local instance keeps from web pages and from other users of this machine. */
const Secrets = z.object({
  /** The key of the storage emulator's account, in base64. */
  storageKey: z.base64(),
  /** What the functions host asks for on its admin route. */
  hostKey: z.string().min(1),
});
export type Secrets = z.infer<typeof Secrets>;

/**
 * The secrets of a data folder, made at first use for its owner alone to read. The emulator's usual key is published: with
 * it any web page could put messages on the queues. Throws one sentence for a file that is not usable.
 */
export async function readSecrets(folder: string): Promise<Secrets> {
  const file = join(folder, FILE);
  const known = await readJsonFile(file, Secrets, 'is not usable: delete it, and a new one is made at the next start.');
  if (known) return known;
  const secrets = { storageKey: randomBytes(64).toString('base64'), hostKey: randomBytes(32).toString('base64url') };
  await makePrivate(folder);
  await writeFile(file, JSON.stringify(secrets), { mode: 0o600, flag: 'wx' });
  return secrets;
}

/** Makes a folder, if there is none, and keeps everybody but its owner out. */
export async function makePrivate(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  await chmod(folder, 0o700);
}
