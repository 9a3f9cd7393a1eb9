import { once } from 'node:events';
import { join } from 'node:path';
import { InvalidArgumentError, Option } from 'commander';
import { createCommand, DATA_FOLDER, run } from '../cli/command.ts';
import { formatGreeting } from '../cli/format-greeting.ts';
import { deployedApp } from '../instance/deployed-app.ts';
import { signToken } from '../instance/identity-provider.ts';
import { loadLocalApp } from '../instance/load-local-app.ts';
import type { LocalApp } from '../instance/local-app.ts';
import { type Product, startProduct } from '../instance/start-product.ts';
import { MAX_ACCOUNTS } from '../instance/storage-accounts.ts';
import { makeExampleRequests } from '../packs/example-requests.ts';
import { loadSamples } from '../packs/load-samples.ts';
import { readSamples } from '../packs/samples.ts';

interface Options {
  readonly app?: string;
  readonly port?: number;
  readonly data: string;
  readonly cors: readonly string[];
  readonly accounts?: number;
  readonly empty?: true;
  readonly func?: true;
}

const NPM_LOOKED_FOR_EVERY_MS = 500;

const program = createCommand('Runs the whole product on this machine.')
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
  .option('--app <folder>', 'run an app that uses the package; its data is kept in its own .rowkey')
  .option('--empty', 'do not load the sample data')
  .option('--func', 'use Azure Functions Core Tools, and fail if they are not installed')
  .action(start);

async function start({ app: folder, ...options }: Options): Promise<void> {
  const app = folder === undefined ? deployedApp : await loadLocalApp(folder);
  const data = folder !== undefined && options.data === DATA_FOLDER ? join(folder, DATA_FOLDER) : options.data;
  const asking = new AbortController();
  const { signal } = asking;
  const asked = once(signal, 'abort').then(() => undefined);
  // A second signal is ignored: acknowledged data must still be written.
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, () => asking.abort());
  watchNpm(() => asking.abort());

  const product = await startProduct({ ...options, app, data, signal, log: (line) => line && console.log(line) }).catch(
    (error) => {
      if (error !== signal.reason) throw error;
    },
  );
  if (!product) return;
  const end = Promise.race([asked, product.broken]);
  try {
    // A stop may interrupt the loading of sample data; the next start loads the rest.
    const why = await Promise.race([
      end,
      greet({ app, data, empty: options.empty === true || app !== deployedApp }, product).then(() => end),
    ]);
    if (why !== undefined) throw new Error(why);
  } finally {
    await product.stop();
  }
  console.log(`Stopped. The data is kept in ${data}.`);
}

async function greet(
  { app: { model }, data, empty }: { readonly app: LocalApp; readonly data: string; readonly empty: boolean },
  product: Product,
): Promise<void> {
  const { instance, url } = product;
  const createToken = (options: { role: readonly string[]; claims?: Record<string, string> }) => {
    const { issuer, audience } = instance;
    return signToken({ folder: data, issuer, audience, ...options });
  };
  const hasLoadedSamples =
    !empty && (await loadSamples({ folder: data, url, token: await createToken({ role: model.roles }) }));
  const samples = empty ? [] : (await readSamples(Date.now())).flat();
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

await run(program);
