import { globSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { z } from 'zod';
import type { Model } from '../../lib/define/define-model.ts';
import type { LocalApp } from './deployed-app.ts';

const Package = z.object({ main: z.string() });

/** Returns the files of an app that `main` of its package.json names, sorted. Empty if the app is not built. */
export async function listMainFiles(folder: string): Promise<string[]> {
  const { main } = Package.parse(JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')));
  return globSync(main, { cwd: folder }).toSorted();
}

/** Imports an app that uses the package. Throws if no file of `main` exports a `model` or a `rowkey`. */
export async function loadLocalApp(folder: string): Promise<LocalApp> {
  for (const file of await listMainFiles(folder)) {
    const exported = await importQuietly(resolve(folder, file));
    const model = exported.model ?? exported.rowkey?.model;
    if (model?.list) return { model, folder: resolve(folder), packs: undefined };
  }
  throw new Error(`No file that "main" of ${join(folder, 'package.json')} names exports a "model" or a "rowkey".`);
}

/** Without a functions host, @azure/functions warns of each function that the app registers. */
async function importQuietly(file: string): Promise<{ model?: Model; rowkey?: { model: Model } }> {
  const { warn } = console;
  console.warn = () => undefined;
  try {
    return await import(pathToFileURL(file).href);
  } finally {
    console.warn = warn;
  }
}
