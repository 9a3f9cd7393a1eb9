import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { moduleFile } from './module-file.ts';
import type { ChangedApp } from './start-product.ts';

/** What a process of its own reads of an app, as this process keeps the modules that it has loaded. */
export interface InspectedApp {
  /** The files of the app that were loaded, without packages: those whose change may change the app. */
  readonly files: readonly string[];
  /** What is wrong with the app. Undefined if the rest can be used. */
  readonly problem?: string;
  readonly app?: ChangedApp;
}

const PROCESS = fileURLToPath(moduleFile('./inspect-app-process', import.meta.url));

/** Checks an app as it is on disk now; with the data folder of a running instance, also whether the stored data allows its model. */
export async function inspectApp(folder: string, data?: string): Promise<InspectedApp> {
  const child = fork(PROCESS, [folder, ...(data === undefined ? [] : [data])], {
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  let complaint = '';
  child.stderr?.setEncoding('utf8').on('data', (chunk) => {
    complaint += chunk;
  });
  let inspected: InspectedApp | undefined;
  child.on('message', (message) => {
    inspected = message as InspectedApp;
  });
  await once(child, 'close');
  return inspected ?? { files: [], problem: `The app ended the process that loaded it. ${complaint}`.trim() };
}
