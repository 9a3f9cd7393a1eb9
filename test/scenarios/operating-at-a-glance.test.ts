import { expect, test } from 'vitest';
import { storageTables } from '../kit/storage.ts';
import { eventually, type Reply, useProduct } from '../product.ts';
import { somebody } from '../world.ts';

/** The routes that show an operator the state of the app, without keys and values of entities. */

const product = useProduct(import.meta.url);
const operator = product.as('operator');
const hr = product.as('hr');

const transactionsOf = ({ headers }: Reply) =>
  Number(/(\d+) transaction/.exec(headers.get('server-timing') ?? '')?.[1]);

test('shows how many messages each queue has, and since when the oldest waits', async () => {
  const queue = product.storage.queue('transfers-poison');
  const before = Date.now() - 5_000;
  const shown = await eventually(
    async () => {
      // The timer that empties the queue may be faster.
      await queue.sendMessage('{}');
      return operator('GET', '/api/operations/queues');
    },
    // The timer may have received the messages, which are then hidden.
    ({ body }) => body.items.at(-1).oldestWaitingSince !== undefined,
  );
  const { items } = shown.body;
  expect(items.map((item: { queue: string }) => item.queue)).toEqual([
    'index-changes',
    'index-changes-poison',
    'transfers',
    'transfers-poison',
  ]);
  const { messages, oldestWaitingSince } = items.at(-1);
  expect(messages).toBeGreaterThan(0);
  expect(Date.parse(oldestWaitingSince)).toBeGreaterThan(before);
  expect(items[2]).toEqual({ queue: 'transfers', messages: 0 });
  expect(transactionsOf(shown)).toBe(8);
});

test('shows what changes of the model have left to do, in one transaction', async () => {
  const shown = await operator('GET', '/api/operations/model');
  expect(shown.status).toBe(200);
  expect(shown.body.items).toContainEqual({
    entity: 'employees',
    isDeclared: true,
    version: expect.any(Number),
    unbuilt: [],
    leftOver: [],
  });
  expect(transactionsOf(shown)).toBe(1);
});

test('lists the consistency checks of all entities in one transaction, without findings', async () => {
  expect(await product.runTimer('verify')).toBe(202);
  const shown = await eventually(
    () => operator('GET', '/api/operations/verify'),
    ({ body }) => body.items.some((run: { finishedAt?: string }) => run.finishedAt !== undefined),
  );
  expect(shown.body.items.length).toBeGreaterThan(5);
  const run = shown.body.items.find(({ finishedAt }: { finishedAt?: string }) => finishedAt !== undefined);
  expect(Object.keys(run).toSorted()).toEqual([
    'checked',
    'entity',
    'finishedAt',
    'foreign',
    'found',
    'repaired',
    'startedAt',
  ]);
  expect(transactionsOf(shown)).toBe(1);
});

test('counts transactions by pattern and estimates their cost, without telemetry', { tags: ['slow'] }, async () => {
  const before = (await operator('GET', '/api/operations/usage')).body;
  const one = somebody();
  expect((await hr('POST', '/api/employees', { body: one })).status).toBe(201);
  for (let count = 0; count < 5; count += 1) await hr('GET', `/api/employees/${one.department}/${one.employeeId}`);
  const shown = await operator('GET', '/api/operations/usage');
  const after = shown.body;
  expect(transactionsOf(shown)).toBe(0);
  expect(after.transactions - before.transactions).toBeGreaterThanOrEqual(5 + 4);
  expect(after.dollars).toBeGreaterThan(0);
  const named = after.patterns.map(({ pattern }: { pattern: string }) => pattern);
  expect(named).toEqual(expect.arrayContaining(['eventual transaction']));
  expect(Date.parse(after.since)).toBeLessThanOrEqual(Date.now());
});

test('lists the busiest partitions, with keys for an operator who may read the entity', {
  tags: ['slow'],
}, async () => {
  const one = somebody({ department: 'Furnace' });
  expect((await hr('POST', '/api/employees', { body: one })).status).toBe(201);
  for (let count = 0; count < 50; count += 1) await hr('GET', `/api/employees/Furnace/${one.employeeId}`);
  const shown = await operator('GET', '/api/operations/heat');
  expect(shown.status).toBe(200);
  expect(shown.headers.get('cache-control')).toBe('no-store');
  expect(transactionsOf(shown)).toBe(0);
  // An operator alone reads no employees.
  expect(JSON.stringify(shown.body)).not.toContain('Furnace');
  const ofWhole = await product.as(['operator', 'hr', 'reader'])('GET', '/api/operations/heat');
  const found = ofWhole.body.items.find(({ partition }: { partition?: string }) => partition === 'Furnace');
  expect(found).toMatchObject({ service: 'table', resource: 'employees', kind: 'entity', isHot: false, throttled: 0 });
  expect(found.entities).toContain('employees');
  expect(found.requests).toBeGreaterThan(50);
  expect(found.written).toBeGreaterThan(0);
  expect(found.share).toBeGreaterThan(0);
  expect(found.slot).toMatch(/^[0-9a-f]{3}$/);
  expect(shown.body.items.map(({ slot }: { slot: string }) => slot)).toContain(found.slot);
});

test('has one storage account, without a transaction', async () => {
  const shown = await operator('GET', '/api/operations/accounts');
  const account = { name: 'first', isAway: false, slots: 4096, layers: [], containers: [] };
  expect(shown.body).toEqual({ items: [account], moves: [], unowned: [], advice: [] });
  expect(transactionsOf(shown)).toBe(0);
});

test('counts reads through indexes, and says what an index is for besides, in one transaction', async () => {
  const find = async (index: string) => {
    const shown = await operator('GET', '/api/operations/indexes');
    expect(shown.status).toBe(200);
    expect(transactionsOf(shown)).toBe(1);
    return shown.body.items.find(
      (one: { entity: string; index: string }) => one.entity === 'employees' && one.index === index,
    );
  };
  const before = await find('lastName');
  expect((await hr('GET', '/api/employees/by/lastName/Sales/Jones')).status).toBe(200);
  const after = await find('lastName');
  expect(after).toMatchObject({ kind: 'list', reads: before.reads + 1, neededFor: [], isUnread: false });
  expect(after).not.toHaveProperty('transactions');
  expect(after.lastReadOn).toBe(new Date().toISOString().slice(0, 10));
  const email = await find('emailCompanyWide');
  expect(email.neededFor).toContain('unique values');
  expect(email.transactions).toBeGreaterThan(0);
});

test('lists the tables of periods, and which of them are past retention', async () => {
  await storageTables.createTable(product.storage, 'logins20190102');
  const shown = await operator('GET', '/api/operations/period-tables');
  const of = shown.body.items.filter(({ entity }: { entity: string }) => entity === 'logins');
  expect(of[0]).toEqual({
    entity: 'logins',
    table: 'logins20190102',
    period: '2019-01-02',
    from: '2019-01-02T00:00:00.000Z',
    isDue: true,
  });
  const today = new Date().toISOString().slice(0, 10);
  expect(of).toContainEqual(expect.objectContaining({ period: today, isDue: false }));
});

test('lists who gets no grants, page by page, until the grants are restored', async () => {
  const subjects = ['ann@contoso.com', 'bob@contoso.com'];
  for (const subject of subjects) await operator('POST', '/api/operations/grants/revoke', { body: { subject } });
  const listed: string[] = [];
  let path = '/api/operations/grants/revoked?top=1';
  while (path) {
    const { body, headers } = await operator('GET', path);
    expect(body.items.length).toBeLessThanOrEqual(1);
    listed.push(...body.items.map(({ subject }: { subject: string }) => subject));
    path = /<(.*)>/.exec(headers.get('link') ?? '')?.[1] ?? '';
  }
  expect(listed.toSorted()).toEqual(subjects);
  for (const subject of subjects) await operator('POST', '/api/operations/grants/restore', { body: { subject } });
  expect((await operator('GET', '/api/operations/grants/revoked')).body.items).toEqual([]);
});

test('is not shown to other roles', async () => {
  for (const path of [
    'queues',
    'model',
    'verify',
    'usage',
    'heat',
    'accounts',
    'indexes',
    'period-tables',
    'grants/revoked',
  ]) {
    expect((await hr('GET', `/api/operations/${path}`)).status, path).toBe(403);
    expect((await product.as(undefined)('GET', `/api/operations/${path}`)).status, path).toBe(401);
  }
});
