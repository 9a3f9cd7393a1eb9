import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { createCommand, run } from '../local/cli/command.ts';
import { walkPages } from '../local/cli/walk-pages.ts';
import { createEmulatorAccount, formatConnectionString } from '../local/instance/azurite.ts';
import { signToken } from '../local/instance/identity-provider.ts';
import { readSecrets } from '../local/instance/secrets.ts';
import { type Product, startProduct } from '../local/instance/start-product.ts';
import { PNG } from '../local/walk/png.ts';
import { buildFixtures } from './fixtures/build.ts';
import { deployedApp } from './fixtures/deployed-app.ts';
import { baseValues } from './kit/base.ts';
import { storageAccounts } from './kit/storage.ts';

interface Options {
  readonly seconds: string;
  readonly callers: string;
  readonly build: boolean;
}

const DEPARTMENTS = 8;
/** Of each caller, also if the time ends first. */
const LEAST_REQUESTS = 4;
const DRAINED_WITHIN_MS = 90_000;
/** The accepted growth of a heap after it has warmed up. */
const GROWTH = 1.35;
const WARM_AFTER_SECONDS = 60;

const program = createCommand(
  "Runs mixed traffic against the fixtures' app and reports its cost and whether everything agrees afterwards.",
)
  .option('--seconds <number>', 'how long, at most 300', '60')
  .option('--callers <number>', 'concurrent callers', '16')
  .option('--no-build', 'runs the app that is built')
  .action(soak);

interface Employee {
  readonly department: string;
  readonly employeeId: string;
}

/** The state of one caller, and the counters that all callers share. */
interface Traffic {
  readonly url: string;
  readonly token: string;
  readonly mine: Employee[];
  readonly statuses: Map<string, number>;
  readonly latencies: number[];
  readonly wrong: string[];
}

let counter = 0;

/**
 * The weight of each kind of request, and its expected statuses. 404 is expected if the entity was archived or moved
 * meanwhile.
 */
const REQUESTS: readonly [weight: number, send: (traffic: Traffic) => Promise<void>][] = [
  [6, create],
  [10, (traffic) => ask(traffic, 'GET', pathOf(oneOf(traffic.mine)), [200, 404])],
  [
    4,
    (traffic) =>
      ask(traffic, 'GET', `employees/by/lastName/Soak${Math.floor(Math.random() * DEPARTMENTS)}/Smith?top=5`, [200]),
  ],
  [2, (traffic) => ask(traffic, 'GET', `departments/Soak${Math.floor(Math.random() * DEPARTMENTS)}`, [200, 404])],
  [5, (traffic) => ask(traffic, 'PATCH', pathOf(oneOf(traffic.mine)), [200, 404], { phone: String(Math.random()) })],
  [1, (traffic) => ask(traffic, 'PUT', `${pathOf(oneOf(traffic.mine))}/photo`, [200, 404], PNG)],
  [2, (traffic) => ask(traffic, 'DELETE', pathOf(takeOne(traffic.mine)), [204, 404])],
  [1, (traffic) => ask(traffic, 'POST', `${pathOf(takeOne(traffic.mine))}/archive`, [202, 404])],
  [
    1,
    (traffic) =>
      ask(traffic, 'POST', `${pathOf(takeOne(traffic.mine))}/move`, [202, 404], { department: `Soak${DEPARTMENTS}` }),
  ],
  [3, (traffic) => ask(traffic, 'POST', 'messagehours/000001/2026-11-20/9/increments', [200], { by: 1 })],
  [3, (traffic) => ask(traffic, 'POST', 'logins', [201], { employeeId: '000001', succeeded: true })],
  [1, (traffic) => ask(traffic, 'POST', 'customers/batch', [200], { actions: customers().map((put) => ({ put })) })],
];
const TOTAL = REQUESTS.reduce((sum, [weight]) => sum + weight, 0);

async function soak({ callers, build, ...options }: Options): Promise<void> {
  const seconds = Math.min(300, Number(options.seconds));
  if (build) await buildFixtures();
  const folder = await mkdtemp(join(tmpdir(), 'rowkey-soak-'));
  const complaints: string[] = [];
  const log = (line: string) => void (/\[error\]|unhandled/i.test(line) && complaints.push(line));
  const product = await startProduct({ app: deployedApp, port: 0, data: folder, log });
  try {
    const { issuer, audience } = product.instance;
    const common = { folder, issuer, audience };
    const token = await signToken({ ...common, role: 'hr' });
    const shared = { url: product.url, token, statuses: new Map<string, number>(), latencies: [], wrong: complaints };
    const until = Date.now() + seconds * 1_000;
    const memory: number[] = [];
    const sampling = (async () => {
      for (; Date.now() < until; await sleep(1_000)) memory.push(await hostMegabytes());
    })();
    await Promise.all(
      Array.from({ length: Number(callers) }, async () => {
        const traffic: Traffic = { ...shared, mine: [] };
        for (let at = 0; at < LEAST_REQUESTS || Date.now() < until; at += 1)
          await (at < 3 ? create : chooseRequest())(traffic);
      }),
    );
    await sampling;
    const drained = await drain(product, folder);
    const operator = await signToken({ ...common, role: ['operator', 'hr'] });
    const target = { url: product.url, root: '/api', token: operator, pace: baseValues.createPace() };
    let found = 0;
    for (const entity of ['employees', 'departments', 'customers']) {
      const path = `/api/operations/verify/${entity}?top=200`;
      found += (await walkPages(target, { path, bookmark: join(folder, 'soak'), rate: 5_000 }))?.found ?? 0;
    }
    report({ ...shared, mine: [] }, { memory, drained, found, seconds });
  } finally {
    await product.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

function chooseRequest(): (traffic: Traffic) => Promise<void> {
  let left = Math.random() * TOTAL;
  for (const [weight, send] of REQUESTS) {
    left -= weight;
    if (left < 0) return send;
  }
  return create;
}

async function create(traffic: Traffic): Promise<void> {
  counter += 1;
  const employeeId = String(counter).padStart(6, '0');
  const department = `Soak${counter % DEPARTMENTS}`;
  const one = {
    department,
    employeeId,
    email: `${employeeId}@contoso.com`,
    firstName: 'Ann',
    lastName: counter % 3 ? 'Smith' : `N${counter}`,
    nationalId: employeeId,
  };
  await ask(traffic, 'POST', 'employees', [201], one);
  traffic.mine.push({ department, employeeId });
}

function customers() {
  counter += 10;
  return Array.from({ length: 10 }, (_, index) => ({
    city: `City${index % 3}`,
    customerId: `C${counter + index}`,
    companyName: 'Soak',
    contactName: `Ann N${index}`,
  }));
}

async function ask(
  { url, token, statuses, latencies, wrong }: Traffic,
  method: string,
  path: string,
  expected: readonly number[],
  body?: object | Buffer,
): Promise<void> {
  const sent = Buffer.isBuffer(body) ? new Uint8Array(body) : JSON.stringify(body);
  const type: Record<string, string> = typeof sent === 'string' ? { 'content-type': 'application/json' } : {};
  const since = performance.now();
  const response = await fetch(`${url}/api/${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, ...type },
    ...(sent === undefined ? {} : { body: sent }),
  });
  const text = await response.text();
  latencies.push(performance.now() - since);
  statuses.set(String(response.status), (statuses.get(String(response.status)) ?? 0) + 1);
  // 503: others write the same entity, and the caller should retry.
  if (!expected.includes(response.status) && response.status !== 503)
    wrong.push(`${method} ${path} returned ${response.status}: ${text.slice(0, 200)}`);
}

function oneOf(list: readonly Employee[]): Employee {
  return list[Math.floor(Math.random() * list.length)] ?? { department: 'Soak0', employeeId: '999999' };
}

function takeOne(list: Employee[]): Employee {
  return list.splice(Math.floor(Math.random() * list.length), 1)[0] ?? { department: 'Soak0', employeeId: '999999' };
}

function pathOf({ department, employeeId }: Employee): string {
  return `employees/${department}/${employeeId}`;
}

/** The memory of the functions host, a child of this process. */
async function hostMegabytes(): Promise<number> {
  const { stdout } = await promisify(execFile)('ps', ['-o', 'rss=,args=', '--ppid', String(process.pid)]);
  const line = stdout.split('\n').find((text) => text.includes('host/main.ts'));
  return Number(line?.trim().split(/\s+/)[0] ?? 0) / 1_024;
}

/** Seconds until no queue holds a message. */
async function drain({ instance }: Product, folder: string): Promise<number> {
  const { storageKey } = await readSecrets(folder);
  const storage = storageAccounts.openStorage({
    connectionString: formatConnectionString(createEmulatorAccount(storageKey), instance),
  });
  const since = Date.now();
  for (;;) {
    let left = 0;
    for (const queue of ['index-changes', 'transfers'])
      left += (await storage.queue(queue).getProperties()).approximateMessagesCount ?? 0;
    if (left === 0) return (Date.now() - since) / 1_000;
    if (Date.now() - since > DRAINED_WITHIN_MS)
      throw new Error(`The queues do not become empty: ${left} messages are left.`);
    await sleep(200);
  }
}

function report(
  { statuses, latencies, wrong }: Traffic,
  { memory, drained, found, seconds }: { memory: readonly number[]; drained: number; found: number; seconds: number },
): void {
  const sorted = latencies.toSorted((one, other) => one - other);
  const at = (part: number) => `${(sorted[Math.floor((sorted.length - 1) * part)] ?? 0).toFixed(0)} ms`;
  const quarters = [0.25, 0.5, 0.75, 1].map((part) => memory[Math.max(0, Math.ceil(memory.length * part) - 1)] ?? 0);
  const [, half = 0, , end = 0] = quarters;
  // A process still grows just after its start.
  const isFlat = seconds < WARM_AFTER_SECONDS || end <= half * GROWTH;
  console.log(`requests      ${sorted.length}, ${(sorted.length / seconds).toFixed(0)} a second
statuses      ${[...statuses]
    .sort()
    .map(([status, times]) => `${status}: ${times}`)
    .join(', ')}
latency       p50 ${at(0.5)}, p95 ${at(0.95)}
host memory   ${quarters.map((megabytes) => `${megabytes.toFixed(0)} MB`).join(', ')} after each quarter
queues empty  ${drained.toFixed(1)} s after the last request
findings      ${found}
violations    ${wrong.length}`);
  for (const text of wrong.slice(0, 10)) console.error(text);
  if (wrong.length > 0 || found > 0 || !isFlat) process.exitCode = 1;
  if (!isFlat) console.error('The memory of the host grows.');
}

await run(program);
