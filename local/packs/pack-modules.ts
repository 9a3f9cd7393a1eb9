import { glob } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { deployedApp } from '../instance/deployed-app.ts';

/** Imports the file of this name from every pack that has one, in the order of the packs' names. */
export async function importFromPacks(file: string): Promise<unknown[]> {
  const { packs } = deployedApp;
  if (packs === undefined) return [];
  const files = (await Array.fromAsync(glob(`*/${file}`, { cwd: packs }))).toSorted();
  return Promise.all(files.map((each) => import(pathToFileURL(join(packs, each)).href)));
}
