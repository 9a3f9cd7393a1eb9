import { randomBytes } from 'node:crypto';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { readJsonFile } from './json-file.ts';

const FILE = 'secrets.json';

/** The secrets that protect a local instance from web pages and from other users of this machine. */
const Secrets = z.object({
  /** The key of the storage emulator's account, in base64. */
  storageKey: z.base64(),
  /** The key that the functions host requires on its admin route. */
  hostKey: z.string().min(1),
});
type Secrets = z.infer<typeof Secrets>;

/**
 * Reads the secrets of a data folder; the first call creates them, readable only by their owner. The emulator's usual key
 * is not used because it is published: any web page could put messages on the queues. Throws if the file is not valid.
 */
export async function readSecrets(folder: string): Promise<Secrets> {
  const file = join(folder, FILE);
  const known = await readJsonFile(file, Secrets, 'is not valid: delete it, and the next start creates new secrets.');
  if (known) return known;
  const secrets = { storageKey: randomBytes(64).toString('base64'), hostKey: randomBytes(32).toString('base64url') };
  await makePrivate(folder);
  await writeFile(file, JSON.stringify(secrets), { mode: 0o600, flag: 'wx' });
  return secrets;
}

/** Creates a folder if it does not exist, and allows only its owner to open it. */
export async function makePrivate(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  await chmod(folder, 0o700);
}
