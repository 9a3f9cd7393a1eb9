import { once } from 'node:events';
import { join } from 'node:path';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { requireFreePort } from '../instance/functions-host.ts';
import { signToken } from '../instance/identity-provider.ts';
import { inspectApp } from '../instance/inspect-app.ts';
import { loadLocalApp } from '../instance/load-local-app.ts';
import type { LocalApp } from '../instance/local-app.ts';
import { reloadOnChange } from '../instance/reload-on-change.ts';
import { type Product, type ProductOptions, startProduct } from '../instance/start-product.ts';
import { MAX_ACCOUNTS } from '../instance/storage-accounts.ts';
import { makeExampleRequests } from '../packs/example-requests.ts';
import type { SampleRequest } from '../packs/samples.ts';
import { createCommand, DATA_FOLDER } from './command.ts';
import { formatGreeting } from './format-greeting.ts';

interface Options {
  readonly port?: number;
  readonly data: string;
  readonly cors: readonly string[];
  readonly accounts?: number;
  readonly func?: true;
}

/** An app, and what `npm start` of a clone does for it. */
export interface StartedApp {
  readonly app: LocalApp;
  readonly data: string;
  /** True if the files that `main` names are the sources, so that a change can be loaded. */
  readonly isSource: boolean;
  /** Loads sample data, with a token of every role. Returns true if it has loaded them now. */
  readonly loadSamples?: (options: { folder: string; url: string; token: string }) => Promise<boolean>;
  readonly samples?: readonly SampleRequest[];
}

const NPM_LOOKED_FOR_EVERY_MS = 500;

/** The options of `npm start` and of `npx rowkey dev`. */
export function addStartOptions(command: Command): Command {
  return command
    .option(
      '--port <number>',
      'the port of the API; 0 for any free port; default: the port of the last start, or 7071',
      toPort,
    )
    .addOption(
      new Option(
        '--cors <origins>',
        'origins of web pages that may use the API and storage, separated by commas; * for any',
      )
        .argParser(toOrigins)
        .default([], 'none'),
    )
    .option(
      '--accounts <number>',
      `the number of storage accounts, 1 to ${MAX_ACCOUNTS}; default: that of the last start, or 1`,
      toAccounts,
    )
    .option('--func', 'use Azure Functions Core Tools, and fail if they are not installed');
}

/** Creates `npx rowkey dev`. */
export function createDevCommand(): Command {
  return addStartOptions(
    createCommand(
      'Runs an app on this machine, with the storage emulator and an identity provider, and loads it again when a file changes.',
    ).argument('[folder]', 'the folder of the app', '.'),
  ).action(async (folder: string, options: Options) => start(options, () => loadOwnApp(folder, options.data)));
}

/** An app that uses the package keeps its data in its own folder. */
export async function loadOwnApp(folder: string, data: string): Promise<StartedApp> {
  const app = await loadLocalApp(folder);
  return { app, data: dataFolderOf(folder, data), isSource: true };
}

/** The data folder of an app, with the option `--data` of a command. */
export function dataFolderOf(folder: string, data: string): string {
  return data === DATA_FOLDER ? join(folder, DATA_FOLDER) : data;
}

/** Runs an app until it is asked to end. `load` may take long: a port in use is told first. */
export async function start(options: Options, load: () => Promise<StartedApp>): Promise<void> {
  // 0 is any free port.
  if (options.port) await requireFreePort(options.port);
  const started = await load();
  const { app, data, isSource } = started;
  const asking = new AbortController();
  const { signal } = asking;
  const asked = once(signal, 'abort').then(() => undefined);
  // A second signal is ignored: acknowledged data must still be written.
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, () => asking.abort());
  watchNpm(() => asking.abort());

  const log = (line: string) => line && console.log(line);
  // In a process of its own, while storage and the host start.
  const inspecting = isSource ? inspectApp(app.folder) : undefined;
  const product = await startProduct({ ...toProductOptions(options), app, data, signal, log }).catch((error) => {
    if (error !== signal.reason) throw error;
  });
  if (!product) return;
  const end = Promise.race([asked, product.broken]);
  let endReloads = async (): Promise<void> => undefined;
  try {
    // A stop may interrupt the loading of sample data; the next start loads the rest.
    if (inspecting) endReloads = reloadOnChange({ folder: app.folder, data, ...(await inspecting), product, log });
    const why = await Promise.race([end, greet(started, product).then(() => end)]);
    if (why !== undefined) throw new Error(why);
  } finally {
    await endReloads();
    await product.stop();
  }
  console.log(`Stopped. The data is kept in ${data}.`);
}

function toProductOptions({ port, cors, accounts, func }: Options): Partial<ProductOptions> {
  return { port, cors, accounts, func };
}

async function greet({ app: { model }, data, loadSamples, samples = [] }: StartedApp, product: Product): Promise<void> {
  const { instance, url } = product;
  const createToken = (options: { role: readonly string[]; claims?: Record<string, string> }) => {
    const { issuer, audience } = instance;
    return signToken({ folder: data, issuer, audience, ...options });
  };
  const hasLoadedSamples =
    loadSamples !== undefined &&
    (await loadSamples({ folder: data, url, token: await createToken({ role: model.roles }) }));
  const examples = makeExampleRequests(model, samples);
  const { roles: role = model.roles, claims = {} } = examples ?? {};
  const token = await createToken({ role, claims });
  const { ok: hasConsole } = await fetch(`${url}/console`);
  const { prefix } = model;
  console.log(formatGreeting({ prefix, instance, data, examples, token, hasLoadedSamples, hasConsole }));
}

/** npm forwards SIGTERM only to its shell, which ends without forwarding it to this process. So watch the parent. */
function watchNpm(end: () => void): void {
  if (process.env.npm_lifecycle_event === undefined) return;
  const shell = process.ppid;
  setInterval(() => process.ppid === shell || end(), NPM_LOOKED_FOR_EVERY_MS).unref();
}

function toPort(text: string): number {
  const port = Number(text);
  if (/^\d{1,5}$/.test(text) && port <= 65_535) return port;
  throw new InvalidArgumentError('A port must be a number from 0 to 65535.');
}

function toAccounts(text: string): number {
  const count = Number(text);
  if (/^\d{1,2}$/.test(text) && count >= 1 && count <= MAX_ACCOUNTS) return count;
  throw new InvalidArgumentError(`The number of storage accounts must be from 1 to ${MAX_ACCOUNTS}.`);
}

function toOrigins(text: string): readonly string[] {
  const origins = text.split(',');
  const isOrigin = (one: string) => URL.canParse(one) && new URL(one).origin === one;
  if (text === '*' || origins.every(isOrigin)) return origins;
  throw new InvalidArgumentError(
    'An origin must look like http://localhost:5173, without a path; * alone allows any origin.',
  );
}
