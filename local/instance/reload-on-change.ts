import { join } from 'node:path';
import { inspectApp } from './inspect-app.ts';
import type { Product } from './start-product.ts';
import { watchFiles } from './watch-files.ts';

/** Files that decide how an app is loaded, and that it does not import. */
const MANIFESTS = ['package.json', 'host.json'];

interface ReloadOptions {
  readonly folder: string;
  /** The data folder of the running instance. */
  readonly data: string;
  /** The files of the running app. */
  readonly files: readonly string[];
  readonly product: Pick<Product, 'reload'>;
  readonly log: (line: string) => void;
}

/**
 * Starts the host of an app anew whenever a file that the app imports changes. An app with a mistake, or whose model the stored data does not
 * allow, is not loaded: the former one continues, and the log says what is wrong. Returns a function that ends this.
 */
export function reloadOnChange({ folder, data, files: loaded, product, log }: ReloadOptions): () => Promise<void> {
  const manifests = MANIFESTS.map((file) => join(folder, file));
  let isChanged = false;
  let isEnding = false;
  let reloading: Promise<void> | undefined;
  let known = loaded;

  const look = async () => {
    const inspected = await inspectApp(folder, data);
    // A module with a mistake keeps others from being loaded.
    known = inspected.problem === undefined ? inspected.files : [...new Set([...known, ...inspected.files])];
    files.watch([...manifests, ...known]);
    return inspected;
  };
  const reload = async () => {
    while (isChanged && !isEnding) {
      isChanged = false;
      const { app, problem } = await look();
      if (isEnding) return;
      if (!app) {
        log(
          `The former app continues, because the changed one is rejected:\n${problem}\nSave a file of the app to try again.`,
        );
        continue;
      }
      await product.reload(app).then(
        () => log('The changed app is loaded.'),
        (error: Error) => log(`The changed app does not start: ${error.message}`),
      );
    }
  };
  const files = watchFiles(() => {
    isChanged = true;
    reloading ??= reload().finally(() => {
      reloading = undefined;
    });
  });
  files.watch([...manifests, ...known]);
  return async () => {
    isEnding = true;
    files.close();
    await reloading;
  };
}
