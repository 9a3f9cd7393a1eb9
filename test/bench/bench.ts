import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { cpus, tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { TableClient, type TableEntity } from '@azure/data-tables';
import { BlobServiceClient } from '@azure/storage-blob';
import { QueueServiceClient } from '@azure/storage-queue';
import { createCommand, run } from '../../local/cli/command.ts';
import { createEmulatorAccount, formatConnectionString } from '../../local/instance/azurite.ts';
import { signToken } from '../../local/instance/identity-provider.ts';
import { readSecrets } from '../../local/instance/secrets.ts';
import { type Child, endChild, spawnScript } from '../../local/instance/spawn-child.ts';
import { startProduct } from '../../local/instance/start-product.ts';
import { buildFixtures } from '../fixtures/build.ts';
import { deployedApp } from '../fixtures/deployed-app.ts';
import { type Growth, measureGrowth } from './growth.ts';
import { type BenchRequest, type Round, runRound, type Side, send, toRatio } from './measure.ts';
import type { PlainCreate } from './plain-server.ts';

interface Options {
  readonly quick: boolean;
  readonly only?: string;
  readonly build: boolean;
}

/** A request of the product, and one of the plain server that does the same storage calls. */
interface Task {
  readonly name: string;
  readonly product: () => BenchRequest;
  readonly plain: () => BenchRequest;
}

const FULL = { rounds: 7, milliseconds: 4_000, callers: [1, 16, 64] };
const QUICK = { rounds: 5, milliseconds: 1_000, callers: [1, 16] };
const SIZES = [1_000, 10_000, 100_000];
const READ_EMPLOYEES = 200;
const DEPARTMENTS = 500;
/** A marker of six digits that occurs in the rows of the template employee only. */
const TEMPLATE = '987654';
const TABLES = ['employees', 'employeesbyemail', 'employeesbyid', 'employeesbylastname'];

const program = createCommand('Measures the product against plain code that does the same storage calls.')
  .option('--quick', 'fewer and shorter rounds', false)
  .option('--only <name>', 'tasks whose name contains this text')
  .option('--no-build', 'measures the app that is built')
  .action(bench);

async function bench({ quick, only = '', build }: Options): Promise<void> {
  if (build) await buildFixtures();
  const folder = await mkdtemp(join(tmpdir(), 'rowkey-bench-'));
  const log = (line: string) => void (line.includes('[error]') && console.error(line));
  const product = await startProduct({ app: deployedApp, port: 0, data: folder, log });
  let child: Child | undefined;
  try {
    const { issuer, audience } = product.instance;
    const token = await signToken({ folder, issuer, audience, role: 'hr' });
    const { storageKey } = await readSecrets(folder);
    const storage = formatConnectionString(createEmulatorAccount(storageKey), product.instance);
    const productSide: Side = { url: `${product.url}/api`, token };
    await createPlainResources(storage);
    child = spawnScript(fileURLToPath(new URL('plain-server.ts', import.meta.url)), [], {
      env: { BENCH_STORAGE: storage },
    });
    child.stderr.pipe(process.stderr);
    const plainSide: Side = { url: `http://127.0.0.1:${await firstLine(child)}` };
    const tasks = await prepareTasks(productSide, storage);
    const results: Result[] = [];
    const { rounds, milliseconds, callers } = quick ? QUICK : FULL;
    for (const task of tasks.filter(({ name }) => name.includes(only)))
      for (const count of callers) {
        const options = { callers: count, milliseconds };
        const done: { product: Round[]; plain: Round[] } = { product: [], plain: [] };
        // Warms up both sides: connections, compiled code, caches.
        await runRound(productSide, task.product, options);
        await runRound(plainSide, task.plain, options);
        for (let round = 0; round < rounds; round += 1) {
          // Each side is first in turn.
          const sides = round % 2 === 0 ? (['product', 'plain'] as const) : (['plain', 'product'] as const);
          for (const side of sides)
            done[side].push(await runRound(side === 'product' ? productSide : plainSide, task[side], options));
        }
        const result = { task: task.name, callers: count, ...done };
        results.push(result);
        console.log(formatResult(result));
      }
    const growth = quick || !'growth'.includes(only) ? [] : await measureGrowth(storage, SIZES);
    if (growth.length > 0) console.log(formatGrowth(growth));
    if (!quick && only === '') await writeFile('docs/benchmarks.md', format(results, growth));
  } finally {
    if (child) await endChild(child);
    await product.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

interface Result {
  readonly task: string;
  readonly callers: number;
  readonly product: readonly Round[];
  readonly plain: readonly Round[];
}

let created = 0;

function employee(id: string, department: string) {
  return {
    department,
    employeeId: id,
    email: `b${id}@contoso.com`,
    firstName: 'Ann',
    lastName: `N${id}`,
    jobTitle: 'Clerk',
    hireDate: '2020-01-02',
    nationalId: `n${id}`,
  };
}

async function prepareTasks(product: Side, storage: string): Promise<Task[]> {
  for (let index = 0; index < READ_EMPLOYEES; index += 1)
    await send(product, { method: 'POST', path: '/employees', body: employee(toId(index), 'Read') });
  await send(product, { method: 'POST', path: '/employees', body: employee(TEMPLATE, `D${TEMPLATE}`) });
  const template = await readTemplate(storage);
  const readRow = (table: string, { partitionKey, rowKey }: { partitionKey: string; rowKey: string }) =>
    `/row?${new URLSearchParams({ table, partition: partitionKey, row: rowKey })}`;
  const copies = await rowsOf(storage, 'employeesbyemail', `b0000`);
  let next = 0;
  return [
    {
      name: 'GET by key',
      product: () => ({ method: 'GET', path: `/employees/Read/${toId(next++ % READ_EMPLOYEES)}` }),
      plain: () => ({
        method: 'GET',
        path: readRow('employees', { partitionKey: 'Read', rowKey: `empid_${toId(next++ % READ_EMPLOYEES)}` }),
      }),
    },
    {
      name: 'GET by full copy',
      product: () => ({
        method: 'GET',
        path: `/employees/by/emailCompanyWide/b${toId(next++ % copies.length)}@contoso.com`,
      }),
      plain: () => ({ method: 'GET', path: readRow('employeesbyemail', copies[next++ % copies.length] as never) }),
    },
    {
      name: 'POST with indexes',
      product: () => {
        const id = toId(100_000 + created++);
        return { method: 'POST', path: '/employees', body: employee(id, `P${created % DEPARTMENTS}`) };
      },
      plain: () => {
        const id = toId(100_000 + created++);
        const body = JSON.parse(JSON.stringify(template).replaceAll(TEMPLATE, id));
        return { method: 'POST', path: '/create', body };
      },
    },
  ];
}

function toId(index: number): string {
  return String(index).padStart(6, '0');
}

/** The rows that the product stored for one employee, for the plain server to store under other keys. */
async function readTemplate(storage: string): Promise<PlainCreate> {
  const [own = [], byEmail = [], byId = [], byName = []] = await Promise.all(
    TABLES.map((table) => rowsOf(storage, table, TEMPLATE)),
  );
  const [list] = byName;
  const claims = [
    ...byEmail.map((entity) => ({ table: 'plainbyemail', entity })),
    ...byId.map((entity) => ({ table: 'plainbyid', entity })),
  ];
  if (own.length < 3 || claims.length !== 2 || !list) throw new Error('The employee has other rows than expected.');
  return {
    message: 'm'.repeat(600),
    claims,
    rows: { table: 'plainemployees', entities: own },
    list: { table: 'plainbylastname', entity: list },
    record: `${'r'.repeat(400)}\n`,
  };
}

/** The rows of a table whose keys contain a text, as the SDK sends them. */
async function rowsOf(storage: string, table: string, text: string): Promise<TableEntity[]> {
  const client = TableClient.fromConnectionString(storage, table, { allowInsecureConnection: true });
  const found: TableEntity[] = [];
  for await (const { etag: _, timestamp: __, ...entity } of client.listEntities())
    if (`${entity.partitionKey} ${entity.rowKey}`.includes(text)) found.push(entity as TableEntity);
  return found;
}

async function createPlainResources(storage: string): Promise<void> {
  for (const table of ['plainemployees', 'plainbyemail', 'plainbyid', 'plainbylastname'])
    await TableClient.fromConnectionString(storage, table, { allowInsecureConnection: true }).createTable();
  await QueueServiceClient.fromConnectionString(storage).createQueue('plain');
  const container = BlobServiceClient.fromConnectionString(storage).getContainerClient('plain');
  await container.create();
  await container.getAppendBlobClient('audit').create();
}

async function firstLine(child: Child): Promise<string> {
  for await (const line of createInterface({ input: child.stdout })) return line;
  throw new Error('The plain server has not started.');
}

function formatResult(result: Result): string {
  const { task, callers, product, plain } = result;
  const median = (rounds: readonly Round[], figure: keyof Round) =>
    rounds.map((round) => round[figure]).toSorted((one, other) => one - other)[Math.floor(rounds.length / 2)] ?? 0;
  const cell = (figure: keyof Round, digits: number) => {
    const ratio = toRatio(product, plain, figure);
    const [of, to] = [median(product, figure), median(plain, figure)];
    return `${ratio.median.toFixed(2)} (${ratio.least.toFixed(2)}–${ratio.most.toFixed(2)}; ${of.toFixed(digits)} : ${to.toFixed(digits)})`;
  };
  return `| ${task} | ${callers} | ${cell('p50', 2)} | ${cell('p99', 2)} | ${cell('perSecond', 0)} |`;
}

function formatGrowth(growth: readonly Growth[]): string {
  const [first] = growth;
  const rows = Object.keys(first?.figures ?? {}).map((operation) => {
    const cells = growth.map(({ figures }) => {
      const { transactions = 0, milliseconds = 0 } = figures[operation] ?? {};
      const ratio = milliseconds / (first?.figures[operation]?.milliseconds ?? Number.NaN);
      return `${transactions}; ${ratio.toFixed(2)} (${milliseconds.toFixed(1)} ms)`;
    });
    return `| ${[operation, ...cells].join(' | ')} |`;
  });
  const sizes = growth.map(({ entities }) => entities.toLocaleString('en'));
  return `| Operation | ${sizes.join(' | ')} |\n|---|${sizes.map(() => '---|').join('')}\n${rows.join('\n')}`;
}

function format(results: readonly Result[], growth: readonly Growth[]): string {
  const [cpu] = cpus();
  return `# Benchmarks

\`npm run bench\` writes this page. Every figure is the ratio of the product to plain code that does the same storage calls with the same SDKs, one after the other, on the same
emulator. Rounds of both alternate in one run; a cell has the median of the ratios of ${FULL.rounds} rounds of ${FULL.milliseconds / 1_000} s, their least and greatest, and the medians of both sides.

${cpus().length} × ${cpu?.model.trim()}, ${Math.round(totalmem() / 2 ** 30)} GiB, Node ${process.version}. The load, both servers and the emulator share the processors.

| Task | Callers | p50, ms | p99, ms | Requests a second |
|---|---:|---|---|---|
${results.map(formatResult).join('\n')}

## Growth

One partition with an index over names, filled to each size. A cell has the storage transactions of an operation, and its median time as a ratio to that of the smallest size.
The number of transactions is what storage bills; the time is that of the emulator.

${formatGrowth(growth)}
`;
}

await run(program);
