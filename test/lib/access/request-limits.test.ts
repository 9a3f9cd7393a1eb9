import { hash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { countRequest, deleteOldCounts } from '../../../lib/access/request-limits.ts';
import { type RequestLimit, RowkeyError } from '../../../lib/index.ts';
import { tryFaults } from '../../fault-driver.ts';
import { faultyHttpClient, interruptedHttpClient } from '../../faulty-http-client.ts';
import { type Engine, engineCore } from '../../kit/engine.ts';
import type { Internal } from '../../kit/internal.ts';
import { storageAccounts, storageRows, storageSlots, storageTables } from '../../kit/storage.ts';
import { testStorage } from '../../storage.ts';

const NOON = Date.parse('2026-11-20T12:00:00Z');
const MINUTE = 60_000;
const DAY = 1_440 * MINUTE;

/** A process of the app, with a clock of its own. */
function openProcess(httpClient = faultyHttpClient()) {
  const clock = { now: NOON };
  const storage = storageAccounts.openStorage({ connectionString: testStorage(import.meta.url), httpClient });
  return { clock, httpClient, engine: engineCore.createEngine(storage, { now: () => clock.now }) };
}

await storageTables.provision(openProcess().engine.storage, {
  tables: [storageSlots.SYSTEM_TABLE],
  queues: [],
  containers: [],
});

/** Asks for a visitor from this address; undefined if no proxy names it. */
function visit(engine: Engine, limits: readonly RequestLimit[], address?: string): Promise<void> {
  const caller = { subject: '', roles: ['visitor'], claims: {}, ...(address === undefined ? {} : { address }) };
  return countRequest(engine, { limits, caller, roles: ['visitor'], entity: undefined, deeds: ['read'] });
}

const visitorLimit = (requests: number, per: RequestLimit['per'] = 'minute'): RequestLimit[] => [
  { role: 'visitor', requests, per },
];

/** The rows of the system table, as text, of which the partition key begins with this one. */
async function systemRows({ storage }: Engine, head: string) {
  const scan = { table: storageSlots.SYSTEM_TABLE, type: ['requests', 'visitors'], limit: 1_000 };
  const { rows } = await storageRows.scanTable(storage, scan);
  return rows.filter(({ partition }) => partition.startsWith(head));
}

interface Asked {
  readonly roles?: readonly string[];
  readonly entity?: string;
  readonly deeds?: readonly Internal['Deed'][];
}

function ask(engine: Engine, limits: readonly RequestLimit[], subject: string, asked: Asked = {}): Promise<void> {
  const { roles = ['user'], entity, deeds = ['read'] } = asked;
  return countRequest(engine, { limits, caller: { subject, roles, claims: {} }, roles, entity, deeds });
}

const limit = (requests: number): RequestLimit[] => [{ role: 'user', requests, per: 'minute' }];

/** Asks one after another until the limit refuses, and returns how often it did not. */
async function askUntilRefused(engine: Engine, limits: readonly RequestLimit[], subject: string): Promise<number> {
  for (let admitted = 0; ; admitted += 1)
    try {
      await ask(engine, limits, subject);
    } catch (error) {
      expect(error).toMatchObject({ code: 'too-many-requests' });
      return admitted;
    }
}

/** Shares of limits that a process takes for visitors in a minute, as docs/access.md says. */
const VISITOR_SHARES = 600;

/** The numbers in docs/access.md. */
const COSTS = [
  [1, 2],
  [20, 10],
  [60, 13],
  [600, 21],
  [10_000, 31],
  [1_000_000, 47],
] as const;

test.each(COSTS.slice(0, 4))('admits %i requests of a window with %i storage transactions', async (requests, cost) => {
  const { engine, clock } = openProcess();
  const limits = limit(requests);
  const subject = `ann-${requests}`;
  await storageAccounts.measureCost(async (spent) => {
    expect(await askUntilRefused(engine, limits, subject)).toBe(requests);
    expect(spent.transactions).toBe(cost);
    await expect(ask(engine, limits, subject)).rejects.toMatchObject({
      code: 'too-many-requests',
      message: `The role "user" has a limit of ${requests} request${requests === 1 ? '' : 's'} per minute, which is reached.`,
      retryAfter: 60,
    });
    // A refusal needs no storage.
    expect(spent.transactions).toBe(cost);
  });
  clock.now += MINUTE - 1;
  await expect(ask(engine, limits, subject)).rejects.toMatchObject({ retryAfter: 1 });
  clock.now += 1;
  await storageAccounts.measureCost(async (spent) => {
    expect(await askUntilRefused(engine, limits, subject)).toBe(requests);
    // The process knows the ETag of the row.
    expect(spent.transactions).toBe(cost - 1);
  });
});

test.each([
  [20, 2, 21],
  [60, 2, 28],
  [600, 2, 52],
])(
  'admits %i requests of %i processes that are asked in turn with %i storage transactions',
  async (requests, count, cost) => {
    const processes = Array.from({ length: count }, () => openProcess());
    const limits = limit(requests);
    const subject = `turns-${requests}-${count}`;
    let admitted = 0;
    for (let asked = 0; asked < requests + count * count; asked += 1) {
      const { engine } = processes[asked % count] as (typeof processes)[number];
      admitted += await ask(engine, limits, subject).then(
        () => 1,
        () => 0,
      );
    }
    expect(admitted).toBe(requests);
    expect(processes.reduce((sum, { httpClient }) => sum + httpClient.calls, 0)).toBe(cost);
  },
);

test.each(COSTS)('takes the share of %i requests in as many steps as documented', (requests, cost) => {
  let left: number = requests;
  let steps = 0;
  for (; left > 0; steps += 1) left -= Math.ceil(left / 4);
  expect(steps + 1).toBe(cost);
});

test('two processes admit the limit together, and a third one that is idle keeps at most a quarter', async () => {
  const [first, second, idle] = [openProcess(), openProcess(), openProcess()];
  const limits = limit(100);
  await ask(idle.engine, limits, 'bob');
  const counts = await Promise.all([first, second].map(({ engine }) => askUntilRefused(engine, limits, 'bob')));
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(75);
  expect(await askUntilRefused(idle.engine, limits, 'bob')).toBe(24);
});

test('concurrent requests of two processes are admitted up to the limit, and share the transactions', async () => {
  const limits = limit(100);
  const processes = [openProcess(), openProcess()];
  const asked = Array.from({ length: 400 }, (_, index) => {
    const { engine } = processes[index % 2] as (typeof processes)[number];
    return ask(engine, limits, 'burst').then(
      () => 'admitted',
      (error: unknown) => (error instanceof RowkeyError ? error.code : 'failed'),
    );
  });
  const outcomes = Map.groupBy(await Promise.all(asked), (outcome) => outcome);
  expect([...outcomes].map(([outcome, { length }]) => [outcome, length]).toSorted()).toEqual([
    ['admitted', 100],
    ['too-many-requests', 300],
  ]);
  const calls = processes.reduce((sum, { httpClient }) => sum + httpClient.calls, 0);
  expect(calls).toBeLessThan(100);
});

test('admits no more than the limit with each fault at each storage call, and all of it if storage replies to a retry', {
  tags: ['slow'],
}, async () => {
  const limits = limit(20);
  let tries = 0;
  await tryFaults(async ({ fault, label, client }) => {
    tries += 1;
    const subject = `faulty-${tries}`;
    const [faulty, other] = [openProcess(client), openProcess()];
    let admitted = 0;
    for (let asked = 0; asked < 30; asked += 1)
      await ask(faulty.engine, limits, subject).then(
        () => {
          admitted += 1;
        },
        () => undefined,
      );
    const together = admitted + (await askUntilRefused(other.engine, limits, subject));
    expect(together, label).toBeLessThanOrEqual(20);
    if (!fault?.startsWith('crash')) expect(together, label).toBe(20);
  });
});

test('takes another share if another process was faster, and none twice', async () => {
  const limits = limit(100);
  const other = openProcess();
  const slow = openProcess(interruptedHttpClient(2, () => ask(other.engine, limits, 'slow')));
  await ask(slow.engine, limits, 'slow');
  const admitted =
    (await askUntilRefused(slow.engine, limits, 'slow')) + (await askUntilRefused(other.engine, limits, 'slow'));
  expect(admitted + 2).toBe(100);
});

test('a request that cannot be counted is rejected, and one within the share needs no storage', async () => {
  const limits = limit(8);
  const down = openProcess(faultyHttpClient('crash before', 3));
  await ask(down.engine, limits, 'down');
  await ask(down.engine, limits, 'down');
  await expect(ask(down.engine, limits, 'down')).rejects.toThrow();
  await expect(ask(down.engine, limits, 'down')).rejects.toThrow();
});

test('a process whose clock is behind counts in the window that another one has begun', async () => {
  const limits = limit(4);
  const [ahead, behind] = [openProcess(), openProcess()];
  ahead.clock.now += MINUTE;
  await ask(ahead.engine, limits, 'skewed');
  expect(await askUntilRefused(behind.engine, limits, 'skewed')).toBe(3);
  await expect(ask(behind.engine, limits, 'skewed')).rejects.toMatchObject({ retryAfter: 120 });
  behind.clock.now += 2 * MINUTE;
  expect(await askUntilRefused(behind.engine, limits, 'skewed')).toBe(4);
});

test('counts what a request does, under all limits that concern it or under none', async () => {
  const limits: RequestLimit[] = [
    { role: 'user', requests: 10, per: 'hour' },
    { role: 'user', entity: 'invitations', action: 'create', requests: 2, per: 'day' },
    { role: 'user', entity: 'invitations', action: 'write', requests: 3, per: 'day' },
  ];
  const { engine } = openProcess();
  const on = (entity: string, ...deeds: Internal['Deed'][]) => ask(engine, limits, 'cid', { entity, deeds });
  await on('invitations', ['create', 'update'], 'delete');
  await expect(on('invitations', 'create', 'create')).rejects.toMatchObject({
    code: 'too-many-requests',
    accepted: '2 creates of invitations per day',
    retryAfter: 43_200,
  });
  await expect(on('invitations', 'create', 'create', 'create')).rejects.toMatchObject({ code: 'too-large' });
  await on('invitations', 'create');
  await expect(on('invitations', 'delete')).rejects.toMatchObject({ accepted: '3 writes of invitations per day' });
  await on('expenses', 'create', 'create', 'create');
  await on('invitations', 'read', 'read', 'read', 'read');
  await expect(on('expenses', 'read')).rejects.toMatchObject({ accepted: '10 requests per hour', retryAfter: 3_600 });
});

test('a role without a limit admits every request, and another role lends its limit', async () => {
  const limits: RequestLimit[] = [
    { role: 'user', requests: 1, per: 'minute' },
    { role: 'guest', requests: 2, per: 'minute' },
    { role: 'hr', action: 'write', requests: 1, per: 'minute' },
  ];
  const { engine } = openProcess();
  const both = { roles: ['user', 'guest'] };
  for (let times = 0; times < 3; times += 1) await ask(engine, limits, 'dan', both);
  await expect(ask(engine, limits, 'dan', both)).rejects.toMatchObject({ accepted: '1 request per minute' });
  await ask(engine, limits, 'dan', { roles: ['user', 'hr'] });
  await ask(engine, limits, 'dan', { roles: ['user', 'hr'], deeds: ['create'] });
  await expect(ask(engine, limits, 'dan', { roles: ['user', 'hr'], deeds: ['create'] })).rejects.toThrow();
  await ask(engine, limits, 'eve');
});

test('the rest of a share ends with its window', async () => {
  const { engine, clock } = openProcess();
  await ask(engine, limit(100), 'rest');
  clock.now += MINUTE;
  expect(await askUntilRefused(engine, limit(100), 'rest')).toBe(100);
});

test('a request that no limit concerns takes no storage transaction', async () => {
  const limits: RequestLimit[] = [
    { role: 'user', requests: 1, per: 'minute' },
    { role: 'hr', action: 'write', requests: 1, per: 'minute' },
  ];
  const { engine, httpClient } = openProcess();
  for (let times = 0; times < 3; times += 1) await ask(engine, limits, 'free', { roles: ['user', 'hr'] });
  expect(httpClient.calls).toBe(0);
});

test('an explained request counts, and its steps do not show how', async () => {
  const { engine } = openProcess();
  const limits = limit(1);
  expect(await storageAccounts.explain(() => ask(engine, limits, 'explained'))).toEqual([]);
  await expect(ask(engine, limits, 'explained')).rejects.toThrow();
});

test('rows have no subject in clear, and one row counts all windows', async () => {
  const { engine, clock } = openProcess();
  for (let minutes = 0; minutes < 5; minutes += 1) {
    await ask(engine, limit(4), 'frances@contoso.com');
    clock.now += MINUTE;
  }
  const { rows } = await storageRows.scanTable(engine.storage, { table: storageSlots.SYSTEM_TABLE, limit: 1_000 });
  expect(JSON.stringify(rows)).not.toContain('frances');
  const [{ partition = '' } = {}] = rows.filter(({ properties }) => String(properties.Window).includes('12:04'));
  const counted = await storageRows.readRange(engine.storage, {
    table: storageSlots.SYSTEM_TABLE,
    partition,
    from: '',
  });
  expect(counted.rows).toHaveLength(1);
});

test('the counts of callers who have not returned for a month are deleted, and no others', async () => {
  const { engine, clock } = openProcess();
  const limits: RequestLimit[] = [...limit(8), { role: 'user', requests: 8, per: 'day' }];
  for (const subject of ['gone', 'back']) await ask(engine, limits, subject);
  const countsOf = async () => {
    const { rows } = await storageRows.scanTable(engine.storage, {
      table: storageSlots.SYSTEM_TABLE,
      type: 'requests',
      limit: 1_000,
    });
    return rows.length;
  };
  await deleteOldCounts({ ...engine, now: () => NOON + 40 * DAY });
  expect(await countsOf()).toBe(0);
  // The process remembers the rows that are gone.
  clock.now += 40 * DAY;
  for (const subject of ['gone', 'back']) await ask(engine, limits, subject);
  clock.now += 30 * DAY;
  await ask(engine, limits, 'back');
  clock.now += 1;
  expect(
    await storageAccounts.measureCost(async (spent) => [await deleteOldCounts(engine), spent.transactions]),
  ).toEqual([2, 5]);
  expect(
    await storageAccounts.measureCost(async (spent) => [await deleteOldCounts(engine), spent.transactions]),
  ).toEqual([0, 3]);
  expect(await countsOf()).toBe(2);
  expect(await askUntilRefused(engine, limit(8), 'gone')).toBe(8);
  // Of this minute, one is used.
  expect(await askUntilRefused(engine, limits, 'back')).toBe(7);
});

describe('of visitors', () => {
  test('counts each address by itself, in all processes together', async () => {
    const [first, second] = [openProcess(), openProcess()];
    const limits = visitorLimit(2);
    await visit(first.engine, limits, '203.0.113.1');
    await visit(second.engine, limits, '203.0.113.1');
    for (const { engine } of [first, second])
      await expect(visit(engine, limits, '203.0.113.1')).rejects.toMatchObject({
        code: 'too-many-requests',
        message: 'The role "visitor" has a limit of 2 requests per minute, which is reached.',
      });
    await visit(first.engine, limits, '203.0.113.2');
  });

  test('counts all visitors together if no proxy names their addresses', async () => {
    const { engine } = openProcess();
    const limits = visitorLimit(2, 'hour');
    await visit(engine, limits);
    await visit(engine, limits);
    await expect(visit(engine, limits)).rejects.toMatchObject({ code: 'too-many-requests' });
  });

  test('stores no address, nor a hash of it that anybody could compute, and another one each day', async () => {
    const { engine, clock } = openProcess();
    clock.now += 100 * DAY;
    const limits = visitorLimit(9);
    const partitions = new Set((await systemRows(engine, 'requests-v')).map(({ partition }) => partition));
    const before = partitions.size;
    for (let day = 1; day <= 2; day += 1) {
      await visit(engine, limits, '198.51.100.9');
      const rows = await systemRows(engine, 'requests-v');
      for (const { partition } of rows) partitions.add(partition);
      expect(JSON.stringify(rows)).not.toContain('198.51.100.9');
      for (const algorithm of ['sha256', 'sha1', 'md5'])
        expect(JSON.stringify(rows)).not.toContain(hash(algorithm, '198.51.100.9', 'hex'));
      clock.now += DAY;
    }
    expect(partitions.size).toBe(before + 2);
  });

  test('forgets the keys and the counts of past days', async () => {
    const { engine, clock } = openProcess();
    clock.now += 200 * DAY;
    await visit(engine, visitorLimit(9), '198.51.100.1');
    clock.now += DAY;
    await visit(engine, visitorLimit(9), '198.51.100.1');
    const rowsOf = async () => {
      const keys = await systemRows(engine, 'visitors');
      return [keys.map(({ row }) => row), (await systemRows(engine, 'requests-v')).length];
    };
    await deleteOldCounts(engine);
    expect(await rowsOf()).toEqual([['2027-06-08', '2027-06-09'], 2]);
    clock.now += DAY + 1;
    await deleteOldCounts(engine);
    expect(await rowsOf()).toEqual([['2027-06-09'], 0]);
    clock.now += 2 * DAY;
    await deleteOldCounts(engine);
    expect(await rowsOf()).toEqual([[], 0]);
  });

  test('concurrent requests of one address take no more than its share of what a process does for visitors', async () => {
    const { engine } = openProcess();
    const limits = visitorLimit(10, 'day');
    const burst = await Promise.allSettled(
      Array.from({ length: 2 * VISITOR_SHARES }, () => visit(engine, limits, '203.0.113.1')),
    );
    expect(burst.filter(({ status }) => status === 'fulfilled')).toHaveLength(10);
    await visit(engine, limits, '203.0.113.2');
  });

  test('20,000 requests from as many addresses take a bounded number of storage transactions', {
    tags: ['slow'],
  }, async () => {
    const { engine } = openProcess();
    const limits = visitorLimit(5, 'hour');
    const outcomes = new Map<string, number>();
    const since = performance.now();
    await storageAccounts.measureCost(async (spent) => {
      for (let asked = 0; asked < 20_000; asked += 1) {
        const address = `10.${asked >> 16}.${(asked >> 8) & 255}.${asked & 255}`;
        const outcome = await visit(engine, limits, address).then(
          () => 'admitted',
          ({ code }: RowkeyError) => code,
        );
        outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
      }
      const minutes = Math.ceil((performance.now() - since) / MINUTE);
      const most = minutes * VISITOR_SHARES;
      // A read and an insert of each admitted one, and the key of the day.
      expect(spent.transactions).toBeLessThanOrEqual(2 * most + 2);
      expect(outcomes.get('admitted')).toBeGreaterThanOrEqual(VISITOR_SHARES);
      expect(outcomes.get('admitted')).toBeLessThanOrEqual(most);
    });
    expect([...outcomes.keys()]).toEqual(['admitted', 'too-many-requests']);
    // Callers with a token do not notice.
    await ask(engine, limit(5), 'ann');
    await expect(visit(engine, limits, '203.0.113.99')).rejects.toMatchObject({
      message: 'There are too many requests without a token at this time.',
      retryAfter: expect.any(Number),
    });
  });
});
