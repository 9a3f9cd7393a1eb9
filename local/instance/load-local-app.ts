import { globSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import type { LocalApp } from './deployed-app.ts';
import { importModel } from './import-model.ts';

const Package = z.object({ main: z.string() });

/** Returns the files of an app that `main` of its package.json names, sorted. Empty if the app is not built. */
export async function listMainFiles(folder: string): Promise<string[]> {
  const { main } = Package.parse(JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')));
  return globSync(main, { cwd: folder }).toSorted();
}

/** Imports an app that uses the package. Throws if no file of `main` exports a `model` or a `rowkey`. */
export async function loadLocalApp(folder: string): Promise<LocalApp> {
  for (const file of await listMainFiles(folder)) {
    const model = await importModel(resolve(folder, file));
    if (model) return { model, folder: resolve(folder), packs: undefined };
  }
  throw new Error(`No file that "main" of ${join(folder, 'package.json')} names exports a "model" or a "rowkey".`);
}
