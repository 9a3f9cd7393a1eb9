import { pathToFileURL } from 'node:url';
import type { Model } from '../../lib/define/define-model.ts';

/**
 * Imports a file of an app and returns the model that it exports, as `model` or in a `rowkey`, if it does. The app may register
 * functions: without a functions host, @azure/functions warns of each of them, which is not shown.
 */
export async function importModel(file: string): Promise<Model | undefined> {
  const { warn } = console;
  console.warn = () => undefined;
  try {
    const { model, rowkey }: { model?: Model; rowkey?: { model: Model } } = await import(pathToFileURL(file).href);
    const found = model ?? rowkey?.model;
    return found?.list ? found : undefined;
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ERR_UNKNOWN_FILE_EXTENSION')) throw error;
    throw new Error(`Node ${process.version} cannot import ${file}. Use Node 22.18 or newer, or the compiled file.`);
  } finally {
    console.warn = warn;
  }
}
