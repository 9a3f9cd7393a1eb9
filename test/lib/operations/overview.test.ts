import { expect, test } from 'vitest';
import { listPeriodTables, readAccountStates, readQueueStates } from '../../../lib/operations/overview.ts';
import { createMemoryStorage } from '../../../lib/testing/index.ts';
import { type Engine, engineConsume, engineCore } from '../../kit/engine.ts';
import { httpDoor } from '../../kit/http.ts';
import { type MoveTiming, operationsModel, operationsMove } from '../../kit/operations.ts';
import { storageAccounts, storageRows, storageSlots, storageTables } from '../../kit/storage.ts';
import { countTurns } from '../../patient-clock.ts';
import { testApp, testInvocation, testRequest } from '../http/request.ts';
import { NAMES, provisionAccounts, RESOURCES, TABLE } from '../storage/several-accounts.ts';

countTurns();

const timing: MoveTiming = {
  ...operationsMove.MOVE_TIMING,
  leaseMs: 50,
  lateMs: 50,
  holdMs: 200,
  keepMs: 0,
};
const quick = { timing, resources: RESOURCES };

/** Three accounts, with a row in a slot of the first one. */
async function threeAccounts() {
  const created = await provisionAccounts();
  const { storage } = created;
  await storageRows.scanTable(storage, { table: TABLE, limit: 1 });
  const partition = 'p'.repeat(
    1 + [...'pppppppppp'].findIndex((_, at) => storageSlots.slotOf('p'.repeat(at + 1)) < '555'),
  );
  const action = { kind: 'upsert', row: 'a', properties: { EntityType: 'thing' } } as const;
  await storageRows.submit(storage, { table: TABLE, partition, actions: [action] });
  return {
    ...created,
    slot: storageSlots.slotOf(partition),
    read: (now = Date.now) => readAccountStates({ storage, now }),
  };
}

test('names what each account owns', async () => {
  const { read } = await threeAccounts();
  const own = { isAway: false, layers: [], containers: [] };
  expect(await read()).toEqual({
    items: [
      { ...own, name: 'first', slots: 1366 },
      { ...own, name: 'second', slots: 1365 },
      { ...own, name: 'third', slots: 1365 },
    ],
    moves: [],
    mover: undefined,
    unowned: [],
    advice: [],
  });
});

test('tells how long writes to closed slots wait, before any is handed over', { tags: ['slow'] }, async () => {
  const { storage, slot, read } = await threeAccounts();
  const abort = new AbortController();
  const options = { ...quick, timing: { ...timing, holdMs: 1_000 }, isClosed: true, grantedForMs: 60_000 };
  const moving = operationsMove.moveSlots(storage, [{ slots: [slot], to: 'second' }], {
    ...options,
    signal: abort.signal,
  });
  await expect.poll(async () => (await read()).mover?.pauseMs).toBeGreaterThan(200);
  expect((await read()).mover).toMatchObject({ phase: 'waiting', slots: 0 });
  abort.abort(new Error('The mover dies.'));
  await expect(moving).rejects.toThrow('The mover dies.');
});

test('tells of a move while its mover lives, after the mover has died, and after the move', {
  tags: ['slow'],
}, async () => {
  const { storage, slot, read } = await threeAccounts();
  const abort = new AbortController();
  const moving = operationsMove.moveSlots(storage, [{ slots: [slot], to: 'second' }], {
    ...quick,
    signal: abort.signal,
    grantedForMs: 60_000,
  });
  await expect.poll(async () => (await read()).mover?.leftMs).toBeGreaterThan(50_000);
  const alive = await read();
  expect(alive).toMatchObject({
    moves: [{ from: 'first', to: 'second', slots: 1, gone: 0, phase: 'fencing' }],
    advice: [],
  });
  expect(alive.mover).toMatchObject({ isAlive: true, phase: 'waiting', slots: 0, pauseMs: 0 });

  abort.abort(new Error('The mover dies.'));
  await expect(moving).rejects.toThrow('The mover dies.');
  const dead = await read(() => Date.now() + 31_000);
  expect(dead.mover?.isAlive).toBe(false);
  expect(dead.advice).toEqual([
    expect.stringContaining('accounts -- resume'),
    expect.stringContaining('accounts -- abort'),
  ]);

  await operationsMove.resumeMoves(storage, quick);
  const moved = await read();
  expect(moved).toMatchObject({ moves: [{ slots: 1, gone: 1, phase: 'gone' }], mover: undefined, unowned: [] });
  expect(moved.items.map(({ slots }) => slots)).toEqual([1365, 1366, 1365]);
  expect(moved.advice.join()).toMatch(/accounts -- back.*accounts -- clean-up, after \d\d:\d\d UTC/);
});

test.each(NAMES)('names %s, which is away, and tells of the others', async (name) => {
  const { stopped, read } = await threeAccounts();
  stopped.add(name);
  const { items, unowned } = await read();
  const slots = { first: 1366, second: 1365, third: 1365 };
  expect(items.map((item) => [item.name, item.isAway, item.slots])).toEqual(
    Object.entries(slots).map(([each, owned]) => [each, each === name, each === name ? undefined : owned]),
  );
  expect(unowned).toEqual([]);
});

test.each(NAMES)('lists the queues of the other accounts while %s is away', { tags: ['slow'] }, async (name) => {
  const { storage, stopped } = await provisionAccounts();
  await storageTables.provision(storage, {
    tables: [],
    queues: ['index-changes', 'transfers'].flatMap((queue) => [queue, `${queue}-poison`]),
    containers: [],
  });
  stopped.add(name);
  const { items, away } = await readQueueStates({ storage, queueParts: 1 } as never);
  expect(away).toEqual([name]);
  expect(items.map(({ queue }) => queue)).toEqual(
    NAMES.filter((other) => other !== name)
      .map((other) => (other === 'first' ? '' : `${other}/`))
      .flatMap((account) =>
        ['index-changes', 'index-changes-poison', 'transfers', 'transfers-poison'].map((queue) => `${account}${queue}`),
      ),
  );
});

test.each(NAMES)('lists the failed messages and period tables of the other accounts while %s is away', async (name) => {
  const { storage, stopped } = await provisionAccounts();
  await storageTables.provision(storage, {
    tables: ['poison', 'logins20260101'],
    queues: ['index-changes'],
    containers: [],
  });
  const engine = { storage, now: Date.now } as Engine;
  for (let id = 0; id < 12; id += 1)
    await engineConsume.recordPoison(
      engine,
      { queue: 'index-changes', id: `m${id}`, insertedAt: new Date(id), attempts: 5, body: 'x' } as never,
      'why',
    );
  expect(await engineConsume.listPoison(engine, { limit: 20 })).toMatchObject({
    items: { length: 12 },
    more: false,
    away: [],
  });
  stopped.add(name);
  const { items, away } = await engineConsume.listPoison(engine, { limit: 20 });
  expect(away).toEqual([name]);
  expect(items.length).toBeGreaterThan(0);
  expect(items.length).toBeLessThan(12);
  const page = await engineConsume.replayPage(engine, { limit: 20, queue: 'transfers' });
  expect(page).toMatchObject({ replayed: [], away: [name] });
  const entity = { name: 'logins', table: 'logins', period: { per: 'day', keep: 30 } } as never;
  expect(await listPeriodTables(engine, [entity])).toMatchObject({
    items: [{ table: 'logins20260101', period: '2026-01-01' }],
    away: [name],
  });
});

test.each(NAMES)(
  'the API for operators names %s, which is away, beside the items of the others',
  { tags: ['slow'] },
  async (name) => {
    const { storage, stopped } = await provisionAccounts();
    await storageTables.provision(storage, operationsModel.resourcesOf([]));
    const engine = engineCore.createEngine(storage);
    const caller = { subject: 'ann', roles: ['operator'], claims: {} };
    const app = testApp(import.meta.url, { engine, authenticate: async () => caller });
    const handler = httpDoor.createApiHandler(
      () => app,
      [
        ...httpDoor.operatorRoutes({ list: [], operatorRole: 'operator', blocksUsers: false }),
        httpDoor.accountsRoute('operator'),
      ],
    );
    const ask = async (path: string, body?: object) => {
      const sent = body && { method: 'POST' as const, body: JSON.stringify(body) };
      const headers = { authorization: 'Bearer x', 'content-type': 'application/json' };
      const request = testRequest({
        path: `operations/${path}`,
        params: { path: `operations/${path}` },
        headers,
        ...sent,
      });
      const { status, body: text } = await handler(request, testInvocation().invocation);
      return { status, body: JSON.parse(await new Response(text as ConstructorParameters<typeof Response>[0]).text()) };
    };
    stopped.add(name);
    const [queues, poison, accounts, replays] = await Promise.all([
      ask('queues'),
      ask('poison'),
      ask('accounts'),
      ask('poison/replays', {}),
    ]);
    expect(queues).toMatchObject({ status: 200, body: { items: { length: 8 }, away: [name] } });
    expect(poison).toMatchObject({ status: 200, body: { items: [], away: [name] } });
    expect(replays).toMatchObject({ status: 202, body: { replayed: [], away: [name] } });
    const isAway = accounts.body.items.map((item: { name: string; isAway: boolean }) => [item.name, item.isAway]);
    expect(isAway).toEqual(NAMES.map((each) => [each, each === name]));
    // What is in one partition.
    const owner = await storageSlots.ownerOf(storage, 'verify', 'system').catch(() => ({ name }));
    const verify = await ask('verify');
    if (owner.name !== name) expect(verify.status).toBe(200);
    else
      expect(verify).toMatchObject({
        status: 503,
        body: { detail: expect.stringContaining(`the account ${name} does not respond`) },
      });
  },
);

test('asks nothing with one account', async () => {
  const memory = createMemoryStorage();
  memory.intercept = () => {
    throw new Error('A request was sent.');
  };
  const { items, advice } = await readAccountStates({ storage: storageAccounts.openStorage(memory), now: Date.now });
  expect(items).toMatchObject([{ name: 'first', slots: 4096 }]);
  expect(advice).toEqual([]);
});
