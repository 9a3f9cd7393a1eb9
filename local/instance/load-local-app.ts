import { globSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import type { Model } from '../../lib/define/define-model.ts';
import { importModel } from './import-model.ts';
import type { LocalApp } from './local-app.ts';

const Package = z.object({ main: z.string() });

/** Returns the files of an app that `main` of its package.json names, sorted. Empty if the app is not built. */
export async function listMainFiles(folder: string): Promise<string[]> {
  const text = await readFile(join(folder, 'package.json'), 'utf8').catch(() => {
    throw new Error(`The folder ${folder} is not that of an app: it has no package.json.`);
  });
  const { data } = Package.safeParse(JSON.parse(text));
  if (!data)
    throw new Error(
      `"main" of ${join(folder, 'package.json')} must name the files of the app, such as "main": "app.ts".`,
    );
  return globSync(data.main, { cwd: folder }).toSorted();
}

/** Imports an app that uses the package. Throws if no file of `main` exports a `model` or a `rowkey`. */
export async function loadLocalApp(folder: string): Promise<LocalApp> {
  return { model: await loadModel(folder), folder: resolve(folder), packs: undefined };
}

/** Imports an app and returns the model of the instance that has this path; without a path, of the first that the app exports. */
export async function loadModel(folder: string, path = ''): Promise<Model> {
  for (const file of await listMainFiles(folder)) {
    const model = await importModel(resolve(folder, file), path);
    if (model) return model;
  }
  const wanted = path === '' ? 'a "model" or a "rowkey"' : `an instance of createRowkey with the path "${path}"`;
  throw new Error(
    `No file that "main" of ${join(folder, 'package.json')} names exports ${wanted}. Export what createRowkey returns: export const rowkey = createRowkey({ model, … }).`,
  );
}
