import { once } from 'node:events';
import { InvalidArgumentError, Option } from 'commander';
import { command, DATA_FOLDER, run } from '../cli/command.ts';
import { signToken } from '../instance/identity-provider.ts';
import { type Product, startProduct } from '../instance/start-product.ts';
import { loadSample } from '../packs/load-sample.ts';
import { sampleEmployees } from '../packs/sample-company.ts';

interface Options {
  readonly port?: number;
  readonly data: string;
  readonly cors: readonly string[];
  readonly empty?: true;
  readonly func?: true;
}

const NPM_LOOKED_FOR_EVERY_MS = 500;

const program = command('Runs the whole product on this machine.')
  .option('--port <number>', 'where the API listens; 0 for any free port; as before, or 7071, by default', toPort)
  .addOption(
    new Option('--cors <origins>', 'origins of web pages that may use it, separated by commas; * for any')
      .argParser(toOrigins)
      .default([], 'none'),
  )
  .option('--empty', 'without the sample company')
  .option('--func', 'with Azure Functions Core Tools, or not at all')
  .action(start);

async function start(options: Options): Promise<void> {
  const asking = new AbortController();
  const { signal } = asking;
  const asked = once(signal, 'abort').then(() => undefined);
  // Asked twice is asked once: what is being written is written.
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, () => asking.abort());
  whenNpmIsGone(() => asking.abort());

  const product = await startProduct({ ...options, signal, log: (line) => line && console.log(line) }).catch(
    (error) => {
      if (error !== signal.reason) throw error;
    },
  );
  if (!product) return;
  const end = Promise.race([asked, product.broken]);
  try {
    // What a stop leaves of the sample is loaded at the next start.
    const why = await Promise.race([end, greet(options, product).then(() => end)]);
    if (why !== undefined) throw new Error(why);
  } finally {
    await product.stop();
  }
}

async function greet(options: Options, product: Product): Promise<void> {
  const token = await tokenOf(options, product);
  const sampled = !options.empty && (await loadSample({ folder: options.data, url: product.url, token }));
  console.log(greeting(options, product, { sampled, token }));
}

function tokenOf({ data: folder }: Options, { instance: { issuer, audience } }: Product): Promise<string> {
  const [first] = sampleEmployees;
  return signToken({ folder, issuer, audience, role: 'hr', ...(first ? { email: first.email } : {}) });
}

function greeting(
  options: Options,
  { instance }: Product,
  { sampled, token }: { sampled: boolean; token: string },
): string {
  const { url, tables, queues, blobs, issuer } = instance;
  const data = options.data === DATA_FOLDER ? '' : ` --data '${options.data}'`;
  const fresh = `$(npm run -s token -- --role hr --email jonesj@contoso.com${data})`;
  return `
Rowkey is ready${sampled ? ', with a small sample company' : ''}.

  API        ${url}/api   (${url}/api/openapi.json)
  Tables     ${tables}
  Queues     ${queues}
  Blobs      ${blobs}
  Identity   ${issuer}

A token of the role hr, good for eight hours:

${token}

Try, in another terminal:

curl -s -H "Authorization: Bearer ${fresh}" ${url}/api/employees/Sales/000123
curl -s -H "Authorization: Bearer ${fresh}" ${url}/api/employees/by/lastNameCompanyWide/Jones
curl -s -H "Authorization: Bearer ${fresh}" -H 'Content-Type: application/json' -d '{"entity":"employees","scope":"own"}' ${url}/api/grants

Ctrl-C stops it; what it has said it did is kept in ${options.data}.
`;
}

/** npm hands SIGTERM on to its shell alone, which ends without a word to what it runs. */
function whenNpmIsGone(end: () => void): void {
  if (process.env.npm_lifecycle_event === undefined) return;
  const shell = process.ppid;
  setInterval(() => process.ppid === shell || end(), NPM_LOOKED_FOR_EVERY_MS).unref();
}

function toPort(text: string): number {
  const port = Number(text);
  if (/^\d{1,5}$/.test(text) && port <= 65_535) return port;
  throw new InvalidArgumentError('A port is a number from 0 to 65535.');
}

function toOrigins(text: string): readonly string[] {
  const origins = text.split(',');
  const isOrigin = (one: string) => URL.canParse(one) && new URL(one).origin === one;
  if (text === '*' || origins.every(isOrigin)) return origins;
  throw new InvalidArgumentError('An origin is such as http://localhost:5173, with nothing after it; * alone is any.');
}

await run(program);
