import { pathToFileURL } from 'node:url';
import type { Model } from '../../lib/define/define-model.ts';

interface Instance {
  readonly model: Model;
  readonly runtime: { readonly path: string };
}

/**
 * Imports a file of an app and returns the model that it exports, as `model` or in a `rowkey`, if it does; with a path, the model
 * of the instance that has this path, under any name. The app may register functions: without a functions host, @azure/functions
 * warns of each of them, which is not shown.
 */
export async function importModel(file: string, path = ''): Promise<Model | undefined> {
  const { warn } = console;
  console.warn = () => undefined;
  try {
    const exported: Readonly<Record<string, unknown>> = await import(pathToFileURL(file).href);
    if (path !== '')
      return Object.values(exported)
        .filter(isInstance)
        .find(({ runtime }) => runtime.path === path)?.model;
    const { model, rowkey } = exported as { model?: Model; rowkey?: { model: Model } };
    const found = model ?? rowkey?.model;
    return found?.list ? found : undefined;
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ERR_UNKNOWN_FILE_EXTENSION')) throw error;
    throw new Error(`Node ${process.version} cannot import ${file}. Use Node 22.18 or newer, or the compiled file.`);
  } finally {
    console.warn = warn;
  }
}

function isInstance(value: unknown): value is Instance {
  return typeof value === 'object' && value !== null && 'model' in value && 'runtime' in value;
}
