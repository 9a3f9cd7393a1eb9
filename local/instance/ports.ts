import { rename, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { readJsonFile } from './json-file.ts';

const FILE = 'ports.json';
const FREE_WITHIN_MS = 5_000;
const LOOK_AGAIN_AFTER_MS = 100;

const port = z.int().min(1).max(65_535);
/** The ports of a data folder's last start. They are kept because tokens, grants and connection strings contain them. */
const Ports = z.object({ api: port, identity: port, blob: port, queue: port, table: port });
export type Ports = z.infer<typeof Ports>;

/**
 * Reads the ports of the last start in a data folder; undefined before the first. Throws one sentence if the file is
 * not usable.
 */
export async function readPorts(folder: string): Promise<Ports | undefined> {
  const file = join(folder, FILE);
  return readJsonFile(file, Ports, 'is not valid: delete it, and the next start chooses ports again.');
}

/** Saves the ports of a start in its data folder. */
export async function writePorts(folder: string, ports: Ports): Promise<void> {
  const file = join(folder, FILE);
  await writeFile(`${file}.new`, JSON.stringify(ports));
  await rename(`${file}.new`, file);
}

/** True if nothing listens on this port of 127.0.0.1. */
export async function isFree(wanted: number): Promise<boolean> {
  const server = createServer();
  const { promise, resolve } = Promise.withResolvers<boolean>();
  server.once('error', () => resolve(false)).listen(wanted, '127.0.0.1', () => server.close(() => resolve(true)));
  return promise;
}

/**
 * Returns the port if it is free, otherwise 0, which stands for any free port. Waits up to five seconds for a remembered
 * port: after a crash, processes of the last start may still be ending.
 */
export async function choosePort(
  wanted: number,
  { isRemembered }: { readonly isRemembered: boolean },
): Promise<number> {
  const until = Date.now() + (isRemembered ? FREE_WITHIN_MS : 0);
  for (;;) {
    if (await isFree(wanted)) return wanted;
    if (Date.now() >= until) return 0;
    await sleep(LOOK_AGAIN_AFTER_MS);
  }
}
