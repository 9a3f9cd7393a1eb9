import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { command, run } from './command.ts';
import { signToken } from './identity-provider.ts';
import { loadSample } from './load-sample.ts';
import { type Product, startProduct } from './product.ts';

/** A pattern, a request that shows it, and what it should cost in storage transactions by the guide. */
interface Example {
  readonly pattern: string;
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH';
  readonly path: string;
  readonly body?: object;
  readonly cost: string;
}

const FILE = 'docs/patterns.md';
const SETTLE_MS = 2_000;
const SHOWN = 90;

const someone = {
  department: 'Sales',
  employeeId: '000900',
  email: 'newj@contoso.com',
  firstName: 'New',
  lastName: 'Joiner',
};
const film = { title: 'The Kid', year: 1921, genres: ['Comedy'], cast: ['Charlie Chaplin', 'Jackie Coogan'] };
const customer = { city: 'London', customerId: 'EASTC', companyName: 'Eastern Connection', contactName: 'Ann Devon' };
const everyDay = Object.fromEntries(Array.from({ length: 366 }, (_, day) => [day + 1, day]));

/** What the examples read and is not in the sample company. */
const PREPARED: readonly [path: string, body: object][] = [
  ['movies', film],
  ['customers', customer],
  ['orders', { customerId: 'EASTC', orderId: 11_056, orderDate: '2026-11-20', freight: 278.96 }],
];

const EXAMPLES: readonly Example[] = [
  { pattern: 'Point query', path: 'employees/Sales/000123', cost: '1' },
  { pattern: 'Intra-partition secondary index', path: 'employees/by/email/Sales/jonesj@contoso.com', cost: '1' },
  { pattern: 'Inter-partition secondary index', path: 'employees/by/emailCompanyWide/jonesj@contoso.com', cost: '1' },
  {
    pattern: 'Eventually consistent transaction',
    method: 'POST',
    path: 'employees',
    body: someone,
    cost: '4: intent, claim, transaction, release',
  },
  {
    pattern: 'Index entity in the partition',
    path: 'employees/by/lastName/Sales/Jones',
    cost: '1, and 1 for each member',
  },
  {
    pattern: 'Index entity in another partition',
    path: 'employees/by/lastNameCompanyWide/Jones',
    cost: '1, and 1 for each member',
  },
  { pattern: 'Sparse index', path: 'employees/by/managers/Sales', cost: '1, and 1 for each member' },
  { pattern: 'Full copy, composite key', path: 'customers/by/cityAndLastName/London/Devon', cost: '1' },
  { pattern: 'Reference only', path: 'customers/by/id/EASTC', cost: '2' },
  { pattern: 'Part copy, for each element', path: 'movies/by/actor/Jackie%20Coogan', cost: '1' },
  { pattern: 'Index spread over buckets', path: 'orders/by/date/2026-11-20', cost: '8, at once' },
  { pattern: 'Denormalization', path: 'departments/Sales', cost: '1' },
  { pattern: 'Compound key', path: 'employees/Sales/000123?include=reviews', cost: '1' },
  { pattern: 'Log tail', path: 'expenses/000123?top=10', cost: '1' },
  {
    pattern: 'High volume delete: a write',
    method: 'POST',
    path: 'logins',
    body: { employeeId: '000123', succeeded: true },
    cost: '1',
  },
  {
    pattern: 'Data series: a count',
    method: 'PUT',
    path: 'messagehours/000123/2026-11-20/9',
    body: { count: 7 },
    cost: '1',
  },
  { pattern: 'Data series: a chart', path: 'messagehours/000123/2026-11-20', cost: '1' },
  {
    pattern: 'Data series: an increment',
    method: 'POST',
    path: 'messagehours/000123/2026-11-20/9/increments',
    body: { by: 1 },
    cost: '2',
  },
  {
    pattern: 'Wide entities: a year at once',
    method: 'PATCH',
    path: 'messageyears/000123/2024',
    body: { counts: everyDay },
    cost: '1',
  },
  { pattern: 'Wide entities: a chart', path: 'messageyears/000123/2024', cost: '2, at once' },
  { pattern: 'Append anti-pattern avoided', path: 'doorevents/Sales/000123?top=5', cost: '1' },
  { pattern: 'Range', path: 'employees/Sales?from=000123&to=000125&select=employeeId,lastName', cost: '1' },
  { pattern: 'Partition scan', path: 'employees/Sales?jobTitle=Sales%20Manager', cost: '1' },
  {
    pattern: 'Shared access signature',
    method: 'POST',
    path: 'grants',
    body: { entity: 'employees', scope: 'own' },
    cost: '1, and none to use it',
  },
  {
    pattern: 'Archive, asked for',
    method: 'POST',
    path: 'employees/Sales/000900/archive',
    cost: '3: read, record, message',
  },
];

async function measure(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'rowkey-patterns-'));
  const product = await startProduct({ port: 0, data: folder });
  try {
    const token = await tokenOf(product, folder);
    await loadSample({ folder, url: product.url, token });
    for (const [path, body] of PREPARED)
      await ask(product, token, { pattern: '', cost: '', method: 'POST', path, body });
    // Queues are worked off, and the key that signs links is there, as in a service that has run for a while.
    await ask(product, token, { pattern: '', cost: '', path: 'employees/Sales?top=1' });
    await sleep(SETTLE_MS);
    const rows: string[] = [];
    for (const example of EXAMPLES) rows.push(await measured(product, token, example));
    await writeFile(FILE, page(rows));
    console.log(`${FILE} has ${rows.length} examples.`);
  } finally {
    await product.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

async function measured(product: Product, token: string, example: Example): Promise<string> {
  const { status, text, transactions } = await ask(product, token, example);
  if (status >= 400) throw new Error(`${example.pattern} answered ${status}: ${text}`);
  const shown = text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text;
  const answer = shown ? `${status} \`${shown.replaceAll('|', '\\|')}\`` : String(status);
  return `| ${example.pattern} | \`${example.method ?? 'GET'} /api/${example.path}\` | ${answer} | ${transactions} | ${example.cost} |`;
}

async function ask({ url }: Product, token: string, { method = 'GET', path, body }: Example) {
  const headers = { authorization: `Bearer ${token}` };
  const init = body ? { method, headers, body: JSON.stringify(body) } : { method, headers };
  const response = await fetch(`${url}/api/${path}`, init);
  const [, transactions = ''] = /desc="(\d+)/.exec(response.headers.get('server-timing') ?? '') ?? [];
  // A signature is nothing for a page, even where its storage is gone.
  const text = (await response.text()).replace(/"token":"[^"]*"/, '"token":"…"');
  return { status: response.status, text, transactions };
}

function tokenOf({ instance: { issuer, audience } }: Product, folder: string): Promise<string> {
  return signToken({ folder, issuer, audience, role: 'hr', email: 'jonesj@contoso.com' });
}

function page(rows: readonly string[]): string {
  return `# The patterns and what they cost

Written by \`npm run patterns\`, which runs each request against the product: the transactions are those that the answer
reported in \`Server-Timing\`, beside what the design guide lets one expect.

| Pattern | Request | Answer | Transactions | By the guide |
|---|---|---|---:|---|
${rows.join('\n')}
`;
}

await run(command(`Runs an example of each pattern and writes what it cost to ${FILE}.`).action(measure));
