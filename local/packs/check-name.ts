import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { defineModel } from '../../lib/define-model.ts';
import { createRoutes } from '../../lib/http/routes.ts';
import { formatEntityFile } from './starter.ts';

const LIBRARY = new URL('../../lib/', import.meta.url);

/**
 * Loads the file that `npm run init` would write, from a temporary folder, so that the language and the model judge the name before
 * anything is changed. Throws an error that says why the name cannot be used.
 */
export async function checkName(name: string): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'rowkey-name-'));
  try {
    // The file would hide the global, which it may need, such as `crypto`. The linter rejects some of these names.
    if (Object.hasOwn(globalThis, name)) throw new Error(`"${name}" is a global of JavaScript.`);
    const file = join(folder, `${name}.mjs`);
    const text = formatEntityFile(name)
      .replaceAll("'../lib/", `'${LIBRARY}`)
      .replace("'zod'", `'${import.meta.resolve('zod')}'`);
    await writeFile(file, text);
    const { [name]: entity } = await import(pathToFileURL(file).href);
    createRoutes(defineModel({ roles: ['reader', 'editor'], operatorRole: 'editor', entities: [entity] }));
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`The name "${name}" cannot be used, and nothing was changed: ${reason}`, { cause: error });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
