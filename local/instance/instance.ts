import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { START_COMMAND } from '../../lib/command-line.ts';
import { readJsonFile } from './json-file.ts';

const FILE = 'instance.json';

/** The addresses of a running instance, stored in its data folder while it runs. */
const Instance = z.object({
  url: z.url(),
  issuer: z.url(),
  jwksUri: z.url(),
  audience: z.string(),
  tables: z.url(),
  queues: z.url(),
  blobs: z.url(),
  /** The number of storage accounts. The addresses are those of the first. */
  accounts: z.int().positive().default(1),
  /** The folder of the app that it runs. */
  app: z.string(),
  /** The roles of the model. */
  roles: z.array(z.string()),
  pid: z.int().positive(),
});
export type Instance = z.infer<typeof Instance>;

/** Call this once the instance serves: other processes use it as soon as the file exists. */
export async function writeInstance(folder: string, instance: Instance): Promise<void> {
  await mkdir(folder, { recursive: true });
  const file = join(folder, FILE);
  // Other processes wait for the file and must not read a part of it.
  await writeFile(`${file}.new`, JSON.stringify(instance, null, 2));
  await rename(`${file}.new`, file);
}

/** Returns undefined if no instance is running. Also checks the process, because a killed instance leaves its file behind. */
export async function readInstance(folder: string): Promise<Instance | undefined> {
  const file = join(folder, FILE);
  const instance = await readJsonFile(
    file,
    Instance,
    'is not the description of an instance: delete it and start again.',
  );
  return instance && isAlive(instance.pid) ? instance : undefined;
}

/** Returns the running instance. Throws a sentence with the command that starts it if there is none. */
export async function requireInstance(folder: string): Promise<Instance> {
  const instance = await readInstance(folder);
  if (instance) return instance;
  throw new Error(`No instance is running on the data folder ${folder}: run ${START_COMMAND} first.`);
}

/** Call this before the instance stops serving. */
export async function removeInstance(folder: string): Promise<void> {
  await rm(join(folder, FILE), { force: true });
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // EPERM: the process exists, but belongs to another user.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
