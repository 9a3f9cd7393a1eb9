import { hash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { createHttpHeaders, RestError } from '@azure/core-rest-pipeline';
import { expect, test, vi } from 'vitest';
import { z } from 'zod';
import { createRowkey, defineEntity, defineModel, indexEntity, interPartitionIndex, total } from '../../lib/index.ts';
import { compareStored } from '../../local/walk/compare-stored.ts';
import { createQueueWorker } from '../../local/walk/queue-worker.ts';
import { deploy } from '../fixtures/deploy.ts';
import { messageyears as years } from '../fixtures/model.ts';
import { accessChecks } from '../kit/access.ts';
import { apiCalls, appFunctions } from '../kit/api.ts';
import { baseValues } from '../kit/base.ts';
import { definePlaces, type Entity } from '../kit/define.ts';
import {
  engineConsume,
  engineCore,
  engineRead,
  engineReconcile,
  engineTransfer,
  engineWrite,
  type Transfer,
} from '../kit/engine.ts';
import { featureFiles, featureSeries } from '../kit/features.ts';
import { operationsCheck, operationsModel, operationsMove } from '../kit/operations.ts';
import {
  type Account,
  type Storage,
  storageAccounts,
  storageBlobs,
  storageQueues,
  storageRows,
  storageSlots,
  storageTables,
} from '../kit/storage.ts';
import { accountNamed, createAccounts, FAULTS, NAMES, type Several } from '../lib/storage/several-accounts.ts';
import { countTurns, createTurnClock } from '../patient-clock.ts';
import { putAll } from '../put-all.ts';
import { slots } from '../slots.ts';

countTurns();

const access = { read: ['hr'], write: ['hr'] } as const;
const declaredProjects = defineEntity('projects', {
  schema: z.object({
    area: z.string(),
    projectId: z.string(),
    title: z.string(),
    code: z.string(),
    notes: z.string().optional(),
  }),
  table: 'projects',
  key: { partition: '{area}', row: 'project_{projectId}' },
  indexes: {
    title: interPartitionIndex({ table: 'projectsbytitle', partition: '{title}', row: '{area}_{projectId}' }),
    code: interPartitionIndex({ table: 'projectsbycode', partition: '{code}', row: 'code', unique: true }),
    list: indexEntity({ table: 'projectlists', partition: '{title}', row: 'all', holds: '{area}_{projectId}' }),
  },
  large: ['notes'],
  attachments: { plan: { container: 'plans', maxBytes: 1_000, types: ['image/png'] } },
  access,
});
const declaredTasks = defineEntity('tasks', {
  schema: z.object({ area: z.string(), projectId: z.string(), task: z.string() }),
  table: 'projects',
  key: { partition: '{area}', row: 'project_{projectId}_{task}' },
  childOf: declaredProjects,
  access,
});
const TEXTS = Array.from({ length: 16 }, (_, index) => `text${index}`);
const declaredReports = defineEntity('reports', {
  schema: z
    .object({ area: z.string(), reportId: z.string() })
    .extend(baseValues.mapValues(Object.fromEntries(TEXTS.map((text) => [text, text])), () => z.string().optional())),
  table: 'projects',
  key: { partition: '{area}', row: 'report_{reportId}' },
  access,
});
const { projects, tasks, reports } = deploy(declaredProjects, declaredTasks, declaredReports);
const entities = [projects, tasks, reports];

async function open(storage: Storage) {
  await storageTables.provision(storage, operationsModel.resourcesOf(entities, Date.now()));
  return openProvisioned(storage);
}

function openProvisioned(storage: Storage) {
  const engine = engineCore.createEngine(storage);
  const source = { engine: async () => engine, record: <Result>(_: string, write: () => Promise<Result>) => write() };
  // biome-ignore lint/suspicious/noExplicitAny: the test needs no types of the store
  return { engine, store: apiCalls.createStore(entities, source) as any };
}

/** A text that begins with `what`, whose partition is in the account. */
async function textIn(storage: Storage, account: string, what: string, table = ''): Promise<string> {
  for (let number = 0; ; number += 1)
    if ((await storageSlots.ownerOf(storage, `${what}${number}`, table)).name === account) return `${what}${number}`;
}

/** Starts a process of an app on the accounts. */
function startApp({ openWith }: Pick<ReturnType<typeof createAccounts>, 'openWith'>, model: object) {
  return createRowkey({
    model: defineModel({ roles: ['hr', 'operator'], operatorRole: 'operator', ...model } as never) as never,
    storage: { accounts: openWith(undefined, 0).options as never },
    auth: { issuer: 'https://issuer.example/', audience: 'rowkey', jwksUri: 'https://issuer.example/keys' },
    // biome-ignore lint/suspicious/noExplicitAny: the test needs no types of the store
  }) as any;
}

/** The transactions of each piece of work, but for the reads of the map, of which one lasts for five seconds. */
async function costsOf(
  storage: Storage,
  { requests }: Pick<ReturnType<typeof createAccounts>, 'requests'>,
): Promise<Record<string, number>> {
  const { store } = await open(storage);
  const costs: Record<string, number> = {};
  const of = async (work: string, run: () => Promise<unknown>) => {
    requests.length = 0;
    await run();
    costs[work] = requests.filter(({ url }) => !url.includes("PartitionKey='slots'")).length;
  };
  const key = { area: 'north', projectId: 'p1' };
  await store.projects.create({ ...key, projectId: 'p0', title: 'Bridge', code: 'c0' });
  await store.projects.get(key).catch(() => undefined);
  await of('create', () => store.projects.create({ ...key, title: 'Bridge', code: 'c1' }));
  await of('get', () => store.projects.get(key));
  await of('patch', () => store.projects.update(key, { title: 'Road' }));
  await of('range', () => Array.fromAsync(store.projects.range({ area: 'north' })));
  await of('index', () => Array.fromAsync(store.projects.by.title({ title: 'Road' })));
  await of('list', () => store.projects.by.list({ title: 'Road' }));
  await of('unique', () => store.projects.by.code({ code: 'c1' }));
  await of('child', () => store.tasks.create({ ...key, task: 't1' }));
  await of('delete', () => store.projects.delete(key));
  return costs;
}

test('takes the same transactions in three accounts as in one', { tags: ['slow'] }, async () => {
  const [one, three] = [createAccounts(), createAccounts()];
  const [alone] = one.openWith(undefined, 0).options;
  if (!alone) throw new Error('There is no account.');
  const inOne = await costsOf(storageAccounts.openStorage(alone), one);
  expect(await costsOf(three.open(), three)).toEqual(inOne);
  expect(inOne).toMatchObject({ get: 1, range: 1, index: 1 });
});

test('deletes children by the queue that would fill a transaction without its fence', { tags: ['slow'] }, async () => {
  const { open: openAll } = createAccounts([...NAMES]);
  const storage = openAll();
  const { engine, store } = await open(storage);
  const project = { area: 'north', projectId: 'p1' };
  await store.projects.create({ ...project, title: 'Bridge', code: 'c1' });
  const all = Array.from({ length: 99 }, (_, index) => ({ ...project, task: `t${index}` }));
  await putAll(engine, tasks, all);
  const owner = (await storageSlots.ownerOf(storage, 'north')) as Account;
  const move = { move: '!m1', to: 'third' } as const;
  await storageSlots.changeSlots(owner, [storageSlots.slotOf('north')], () => ({ phase: 'fencing', ...move }));
  const late = engineCore.createEngine(openAll());
  const operationId = await engineWrite.deleteEntity(late, projects, project);
  expect(operationId).toBeDefined();
  for (const part of engineReconcile.listParts(late))
    for (const { text } of await storageQueues.receiveMessages(late.storage, part, { limit: 32, hiddenFor: 60 }))
      if (JSON.parse(text).operationId === operationId)
        await engineTransfer.runTransfer(late, projects, JSON.parse(text) as Transfer);
  expect(
    await engineWrite.readOperation(late, { entity: 'projects', operation: 'delete', operationId: operationId ?? '' }),
  ).toEqual(expect.objectContaining({ status: 'succeeded' }));
  const { rows } = await storageRows.readRange(late.storage, { table: 'projects', partition: 'north', from: '' });
  expect(rows.filter(({ properties }) => properties.EntityType === 'tasks')).toEqual([]);
});

test('deletes what it leaves to nobody else, also if a move has given it another ETag', {
  tags: ['slow'],
}, async () => {
  const declared = defineEntity('cars', {
    schema: z.object({ yard: z.string(), plate: z.string(), owner: z.string() }),
    table: 'cars',
    key: { partition: '{yard}', row: 'car_{plate}' },
    indexes: { owner: interPartitionIndex({ table: 'carsbyowner', partition: '{owner}', row: 'o', unique: true }) },
    totals: { perYard: total({ table: 'carsperyard', partition: '{yard}', row: 'all' }) },
    movable: ['yard'],
    access,
  });
  const { cars } = deploy(declared);
  const { open: openAll, memories } = createAccounts();
  const storage = openAll() as Several;
  await storageTables.provision(storage, operationsModel.resourcesOf([cars, years], Date.now()));
  const engine = engineCore.createEngine(storage);
  const moved = new Set<string>();
  for (const memory of memories)
    memory.intercept = async (request, send) => {
      const [, table = '', partition = '', row = ''] =
        /\/(\w+)\(PartitionKey='(.*)',RowKey='(.*)'\)/.exec(decodeURIComponent(request.url)) ?? [];
      const etag = request.headers.get('if-match') ?? '*';
      if (request.method !== 'DELETE' || etag === '*' || moved.has(request.url)) return send();
      moved.add(request.url);
      const found = await storageRows.readRow(storage, { table, partition, row });
      // As the copy of a move.
      if (found)
        await storageRows.submit(storage, {
          ...found,
          actions: [{ kind: 'upsert', row, properties: found.properties }],
        });
      return send();
    };
  const log = { warn: vi.fn(), error: vi.fn() };
  const worker = createQueueWorker({ engine, entities: [cars], log }, { lastLogged: () => '' });
  await engineWrite.createEntity(engine, cars, { yard: 'north', plate: 'p1', owner: 'May' });
  await engineTransfer.requestMove(engine, cars, { yard: 'north', plate: 'p1' }, { yard: 'south' });
  while ((await worker.handleVisible()) > 0);
  await engineWrite.deleteEntity(engine, cars, { yard: 'south', plate: 'p1' });
  await featureSeries.setCounts(engine, years, { employeeId: '000001', year: 2026 }, slots({ 1: 5, 366: 7 }));
  await featureSeries.deleteSeries(engine, years, { employeeId: '000001', year: 2026 }, { ifMatch: '*' });
  const left = await Promise.all(
    ['cars', 'carsbyowner', 'carsperyard', years.table].map(
      async (table) => (await storageRows.scanTable(storage, { table, limit: 10 })).rows,
    ),
  );
  expect(left.flat()).toEqual([]);
  expect([...moved].map((url) => /\/(\w+)\(/.exec(url)?.[1])).toEqual(
    expect.arrayContaining(['cars', 'carsperyard', years.table]),
  );
  expect(log.warn).not.toHaveBeenCalled();

  const message = { queue: 'index-changes', id: 'm1', attempts: 5, insertedAt: Date.now(), body: {} };
  await engineConsume.recordPoison(engine, message, 'It fails.');
  const [poison] = (await engineConsume.listPoison(engine, { limit: 10 })).items;
  await engineConsume.replayPoison(engine, poison?.id ?? '');
  expect((await engineConsume.listPoison(engine, { limit: 10 })).items).toEqual([]);
});

test('rejects a transaction that has no room for the fence of a move, and executes the largest other one', {
  tags: ['slow'],
}, async () => {
  const { open: openAll } = createAccounts([...NAMES]);
  const storage = openAll();
  await open(storage);
  const owner = (await storageSlots.ownerOf(storage, 'north')) as Account;
  await storageSlots.changeSlots(owner, [storageSlots.slotOf('north')], () => ({
    phase: 'fencing',
    move: '!m1',
    to: 'third',
  }));
  const { store } = openProvisioned(openAll());
  const put = (count: number, last: object = {}, texts: object = {}) => {
    const actions = Array.from({ length: count }, (_, index) => ({
      put: { area: 'north', reportId: `r${index}`, ...texts, ...(index === count - 1 ? last : {}) },
    }));
    return store.reports.batch(actions, { atomic: true });
  };
  await expect(put(100)).rejects.toMatchObject({
    code: 'too-large',
    message: expect.stringContaining('needs 100 rows in one transaction; at most 99 are possible'),
  });
  expect(await put(99)).toHaveLength(99);

  const full = Object.fromEntries(TEXTS.map((text) => [text, 'x'.repeat(32_000)]));
  const most = 8;
  const measured: string = await put(most + 1, {}, full).catch((error: Error) => error.message);
  const [, needed, limit] = /needs (\d+) bytes in one transaction; at most (\d+) are possible/.exec(measured) ?? [];
  const spare = Number(limit) - Number(needed);
  expect(Number(limit)).toBeLessThan(4 * 1_048_576);
  const last = (length: number) => {
    const left = TEXTS.length * 32_000 + spare + length;
    return Object.fromEntries(
      TEXTS.map((text, at) => [text, 'x'.repeat(Math.max(0, Math.min(32_000, left - at * 32_000)))]),
    );
  };
  await expect(put(most + 1, last(1), full)).rejects.toMatchObject({ code: 'too-large' });
  expect(await put(most + 1, last(0), full)).toHaveLength(most + 1);
});

test('brings entities with their indexes, and a tenant, to accounts of their own and back while entities are written', {
  tags: ['slow'],
}, async () => {
  const { open: openAll } = createAccounts();
  const all = openAll() as Several;
  await open(all);
  const timing = {
    ...operationsMove.MOVE_TIMING,
    leaseMs: 100,
    lateMs: 50,
    holdMs: 5_000,
    keepMs: 0,
  };
  const options = { resources: operationsModel.resourcesOf(entities, Date.now()), timing };
  const placed = definePlaces.layersOf({
    list: entities,
    placement: {
      acme: { keys: ['acme'], account: 'second' },
      work: { entities: ['projects', 'tasks'], account: 'third' },
    },
  });
  const areas = ['acme', 'acme_2', 'north', 'south', 'east'];
  let isOver = false;
  let count = 0;
  const traffic = (async () => {
    for (; !isOver; count += 1) {
      // A process that reads the map when it begins: this mover does not wait until a lease has ended.
      const { store } = openProvisioned(openAll());
      const key = { area: areas[count % areas.length], projectId: `p${count}` };
      const title = count % 2 === 0 ? 'Bridge' : 'Road';
      await store.projects.create({ ...key, title, code: `c${count}` });
      await store.tasks.create({ ...key, task: 't1' });
      if (count % 3 === 0) await store.projects.update(key, { title: 'Tunnel' });
    }
  })();
  const tables = ['projects', 'projectsbytitle', 'projectsbycode', 'projectlists'];
  const partitionsOf = async (account: string) => {
    const found = new Set<string>();
    for (const table of tables)
      for await (const { partitionKey } of accountNamed(all, account).table(table).listEntities())
        found.add(`${table}/${partitionKey}`);
    return [...found].sort();
  };
  // Too long for the row.
  const notes = 'note '.repeat(60_000);
  const withNotes = ['acme_2', 'north'].map((area) => ({ area, projectId: 'large' }));
  for (const key of withNotes)
    await openProvisioned(openAll()).store.projects.create({ ...key, title: 'Bridge', code: `of ${key.area}`, notes });
  const largeIn = (account: string) =>
    Array.fromAsync(
      storageBlobs.listContainer(accountNamed(all, account), engineRead.LARGE_CONTAINER),
      ({ metadata }) => metadata.partition,
    );
  // Entities of all areas and titles, before the move and beside it.
  await Promise.race([traffic, vi.waitUntil(() => count > 5, { timeout: 60_000 })]);
  const before = count;
  await operationsMove.arrangeLayers(all, placed, options);
  await operationsMove.moveSlots(
    all,
    operationsMove.planLayers(await operationsMove.readPlacement(all.accounts), placed),
    options,
  );
  expect(count).toBeGreaterThan(before);
  isOver = true;
  await traffic;
  await operationsMove.cleanUp(all, options);
  expect(await partitionsOf('first')).toEqual([]);
  expect(await partitionsOf('second')).toEqual(['projects/acme', 'projects/acme_2']);
  expect((await partitionsOf('third')).filter((place) => !/by(code)|^projects\//.test(place))).toEqual(
    ['Bridge', 'Road', 'Tunnel'].flatMap((title) => [`projectlists/${title}`, `projectsbytitle/${title}`]).sort(),
  );
  expect([await largeIn('first'), await largeIn('second'), await largeIn('third')]).toEqual([
    [],
    ['acme_2'],
    ['north'],
  ]);
  const accountToUpload = async (area: string) => {
    const { blob } = featureFiles.announceFile(projects, { area, projectId: 'p0' }, 'plan', {
      type: 'image/png',
      bytes: 90,
    });
    return (await storageBlobs.accountOfBlob(openAll(), blob)) as Account;
  };
  expect((await accountToUpload('acme')).name).toBe('second');
  expect((await accountToUpload('acmeco')).name).toBe('third');
  for (const entity of entities) expect((await compareStored(openAll(), entity)).differences).toEqual([]);
  await operationsMove.arrangeLayers(all, [], options);
  for (const name of ['work', 'acme'])
    await operationsMove.moveSlots(
      all,
      operationsMove.planToLayer0(await operationsMove.readPlacement(all.accounts), name),
      options,
    );
  await operationsMove.cleanUp(all, options);
  const { store } = openProvisioned(openAll());
  expect(await Array.fromAsync(store.projects.range({ area: 'acme' }))).toHaveLength(Math.ceil(count / areas.length));
  for (const key of withNotes) expect((await store.projects.get(key)).values.notes).toBe(notes);
  for (const entity of entities) expect((await compareStored(openAll(), entity)).differences).toEqual([]);
});

/** Each account away, with another one that is there. */
const AWAY = NAMES.map((away, index) => ({ away, there: NAMES[(index + 1) % NAMES.length] as string }));

test.concurrent.each(AWAY)(
  'writes in $there while $away has an index entry, and fails if it has a unique value',
  { tags: ['slow'] },
  async ({ away, there }) => {
    const { open: openAll, stopped } = createAccounts();
    const storage = openAll();
    const { store } = await open(storage);
    const key = { area: await textIn(storage, there, 'area'), projectId: 'p1' };
    const [title, code, codeAway] = [
      await textIn(storage, away, 'title'),
      await textIn(storage, there, 'code'),
      await textIn(storage, away, 'code'),
    ];
    stopped.add(away);
    await store.projects.create({ ...key, title, code });
    expect((await store.projects.get(key)).values).toMatchObject({ title });
    await expect(store.projects.by.code({ code })).resolves.toMatchObject({ title });
    await expect(store.projects.create({ ...key, projectId: 'p2', title, code: codeAway })).rejects.toThrow(
      `the account ${away} does not respond`,
    );
    await expect(Array.fromAsync(store.projects.by.title({ title }))).rejects.toThrow(`the account ${away}`);
    const check = operationsCheck.verifyPage(engineCore.createEngine(openAll()), projects, { top: 9, repair: false });
    await expect(check).rejects.toThrow(`the account ${away} does not respond`);
  },
);

test.concurrent.each(AWAY)(
  'delays a message of $there whose index entry is in $away for a day, and then an operator sends it again',
  { tags: ['slow'] },
  async ({ away, there }) => {
    const { open: openAll, stopped } = createAccounts();
    const storage = openAll();
    const { engine, store } = await open(storage);
    await storageTables.provision(storage, { tables: ['poison'], queues: [], containers: [] });
    const area = await textIn(storage, there, 'area');
    const title = await textIn(storage, away, 'title');
    const code = await textIn(storage, there, 'code');
    stopped.add(away);
    await store.projects.create({ area, projectId: 'p1', title, code });
    const queue = storageAccounts.queueIn(accountNamed(storage as Several, there), 'index-changes');
    const indexEntries = [
      { index: 'title', table: 'projectsbytitle', partition: title, row: `${area}_p1` },
      { index: 'list', table: 'projectlists', partition: title, row: 'all', member: `${area}_p1` },
    ];
    const items = [{ partition: area, row: 'project_p1', indexEntries }];
    const warnings: string[] = [];
    const errors: string[] = [];
    const log = { warn: (line: string) => void warnings.push(line), error: (line: string) => void errors.push(line) };
    const work = {
      version: engineReconcile.MESSAGE_VERSION,
      intent: 'i1',
      entity: 'projects',
      table: 'projects',
      items,
    };
    const deliver = (hours: number, id = 'm1') => {
      const since = Date.now() - hours * baseValues.HOUR_MS;
      const body = { ...work, history: { id, since, attempts: 0, waits: hours * 12 } };
      const message = { queue, id, attempts: 1, insertedAt: since, body };
      return engineConsume.consumeIntent({ engine: engineCore.createEngine(openAll()), entities, log }, message);
    };
    for (const hours of [0, 1, 12, 23]) await deliver(hours);
    const why = expect.stringContaining(`the account ${away} does not respond`);
    expect([warnings, errors]).toEqual([[why, why, why, why], []]);
    // Poison records are spread over the accounts.
    const recorded: string[] = [];
    for (let number = 0; recorded.length < 3; number += 1)
      await deliver(25, `m${number}`).then(
        () => recorded.push(`m${number}`),
        () => undefined,
      );
    expect(errors).toEqual([why, why, why]);
    stopped.clear();
    expect(
      (await engineConsume.listPoison(engine, { limit: 10 })).items.map(({ id }) => id.split('_')[1]).sort(),
    ).toEqual(recorded.toSorted());
    expect((await compareStored(openAll(), projects)).differences).not.toEqual([]);
    const { replayed } = await engineConsume.replayPage(engine, {
      limit: 10,
      queue: 'index-changes',
      reason: `the account ${away}`,
    });
    expect(replayed).toHaveLength(3);
    expect((await engineConsume.listPoison(engine, { limit: 10 })).items).toEqual([]);
    const sent = await storageQueues.receiveMessages(storage, queue, { limit: 32, hiddenFor: 60 });
    for (const { id, insertedAt, text } of sent) {
      const message = { queue, id, insertedAt, attempts: 1, body: JSON.parse(text) };
      await engineConsume.consumeIntent({ engine: engineCore.createEngine(openAll()), entities, log }, message);
    }
    expect(await Array.fromAsync(store.projects.by.title({ title }))).toHaveLength(1);
    expect((await compareStored(openAll(), projects)).differences).toEqual([]);
  },
);

const declaredNotes = defineEntity('notes', {
  schema: z.object({ area: z.string(), projectId: z.string(), title: z.string() }),
  table: 'notes',
  key: { partition: '{area}', row: '{projectId}' },
  access,
});

test.concurrent.each(NAMES)(
  'a process that starts while %s is away reads and writes in the other accounts',
  { tags: ['slow'] },
  async (away) => {
    const accounts = createAccounts();
    const { open: openAll, stopped } = accounts;
    const storage = openAll();
    const start = () => startApp(accounts, { entities: [declaredNotes] });
    const before = start();
    await before.provision();
    // Known before the account is away: who has not asked for five seconds asks it again.
    const areas = new Map(
      await Promise.all(NAMES.map(async (name) => [name, await textIn(storage, name, 'area')] as const)),
    );
    const project = (account: string, id: string) => ({ area: areas.get(account), projectId: id, title: 'Bridge' });
    for (const name of NAMES) await before.store.notes.create(project(name, 'p1'));
    stopped.add(away);
    const { store } = start();
    for (const name of NAMES) {
      const { area, projectId } = project(name, 'p1');
      const reading = store.notes.get({ area, projectId });
      if (name === away) await expect(reading).rejects.toThrow(`the account ${away} does not respond`);
      else expect((await reading).values).toMatchObject({ area });
    }
    // The audit log is in the first account, and goes on in another one.
    for (const name of NAMES.filter((other) => other !== away)) await store.notes.create(project(name, 'p2'));
    const readLog = () =>
      operationsCheck.readChanges(engineCore.createEngine(openAll()), {
        from: Date.now() - baseValues.HOUR_MS,
        to: Date.now() + 1,
        limit: 99,
      });
    const recorded = async () => (await readLog()).items.map(({ row }) => row).sort();
    await expect(recorded()).rejects.toThrow(`the account ${away} does not respond`);
    stopped.clear();
    expect(await recorded()).toEqual(['p1', 'p1', 'p1', 'p2', 'p2']);
    await start().store.notes.create(project('first', 'p3'));
    expect(await recorded()).toHaveLength(6);
    const [first, second] = await Promise.all(
      (openAll() as Several).accounts.list.map((account) =>
        storageBlobs.listBlobs(account, { container: storageBlobs.AUDIT_CONTAINER, prefix: '' }),
      ),
    );
    // The hour, which each process begins a blob for, may end meanwhile.
    expect(first).not.toEqual([]);
    const elsewhere = new Set(second?.map((name) => name.replace(/^.*\d+-/, '')));
    expect(elsewhere).toEqual(new Set(away === 'first' ? ['second.log'] : []));
  },
);

test.concurrent.each(AWAY)(
  'counts the requests of callers whose count is in $there while $away is away',
  { tags: ['slow'] },
  async ({ away, there }) => {
    const accounts = createAccounts();
    const { open: openAll, stopped } = accounts;
    const storage = openAll();
    const model = { entities: [declaredNotes], limits: [{ role: 'hr', entity: 'notes', requests: 2, per: 'day' }] };
    const app = startApp(accounts, model);
    await app.provision();
    const key = { area: await textIn(storage, there, 'area'), projectId: 'p1' };
    await app.store.notes.create({ ...key, title: 'Bridge' });
    const callerIn = async (account: string) => {
      for (let number = 0; ; number += 1) {
        const partition = `requests-${hash('sha256', `caller${number}`)}`;
        if ((await storageSlots.ownerOf(storage, partition, 'system')).name === account)
          return app.store.as({ subject: `caller${number}`, roles: ['hr'], claims: {} });
      }
    };
    stopped.add(away);
    const [counted, uncounted] = [await callerIn(there), await callerIn(away)];
    for (let count = 0; count < 2; count += 1) expect(await counted.notes.get(key)).toBeDefined();
    await expect(counted.notes.get(key)).rejects.toMatchObject({ code: 'too-many-requests' });
    await expect(uncounted.notes.get(key)).rejects.toThrow(`the account ${away} does not respond`);
    stopped.clear();
    expect(await uncounted.notes.get(key)).toBeDefined();
  },
);

test.concurrent.each(AWAY)(
  'serves the files and long texts of $there while $away is away',
  { tags: ['slow'] },
  async ({ away, there }) => {
    const accounts = createAccounts();
    const { open: openAll, stopped } = accounts;
    const storage = openAll();
    const file = (container: string) => ({ container, maxBytes: 100, types: ['application/pdf'] as const });
    const plans = defineEntity('plans', {
      schema: z.object({ area: z.string(), planId: z.string(), text: z.string().optional() }),
      table: 'plans',
      key: { partition: '{area}', row: '{planId}' },
      large: ['text'],
      attachments: { scan: file('scans'), map: file('maps') },
      access,
    });
    // The maps of all plans are in the account that is away.
    const app = startApp(accounts, { entities: [plans], containerAccounts: { maps: away } });
    await app.provision();
    const pdf = new Blob(['%PDF-1.7'], { type: 'application/pdf' });
    const text = 'long '.repeat(60_000);
    const [here, gone] = await Promise.all(
      [there, away].map(async (account) => ({ area: await textIn(storage, account, 'area'), planId: 'p1' })),
    );
    for (const key of [here, gone]) {
      await app.store.plans.create({ ...key, text });
      for (const name of ['scan', 'map']) await app.store.plans.files[name].put(key, pdf);
    }
    const { scan, map } = app.store.plans.files;
    const fails = (work: Promise<unknown>) => expect(work).rejects.toThrow(`the account ${away} does not respond`);
    stopped.add(away);
    expect((await app.store.plans.get(here)).values.text).toBe(text);
    expect((await scan.get(here)).blob.size).toBe(pdf.size);
    await scan.put(here, pdf);
    await app.store.plans.update(here, { text: `${text}!` });
    await app.store.plans.create({ ...here, planId: 'p2', text });
    await scan.put({ ...here, planId: 'p2' }, pdf);
    await app.store.plans.delete({ ...here, planId: 'p2' });
    await fails(map.get(here));
    await fails(map.put(here, pdf));
    await fails(app.store.plans.get(gone));
    await fails(scan.get(gone));
    stopped.clear();
    expect((await app.store.plans.get(here)).values.text).toBe(`${text}!`);
    for (const key of [here, gone])
      for (const each of [scan, map]) expect((await each.get(key)).blob.size).toBe(pdf.size);
  },
);

test.concurrent.each(AWAY)(
  'a process that starts while $away does not answer serves $there within seconds',
  { tags: ['slow'] },
  async ({ away, there }) => {
    const accounts = createAccounts();
    const storage = accounts.open();
    const visits = defineEntity('visits', {
      schema: z.object({ area: z.string(), visitId: z.string(), title: z.string() }),
      table: 'visits',
      key: { partition: '{area}', row: '{visitId}' },
      indexes: {
        title: interPartitionIndex({ table: 'visitsbytitle', partition: '{title}', row: '{area}_{visitId}' }),
      },
      access,
    });
    const start = () => startApp(accounts, { entities: [visits] });
    const before = start();
    await before.provision();
    const key = { area: await textIn(storage, there, 'area'), visitId: 'v1' };
    const title = await textIn(storage, away, 'title');
    await before.store.visits.create({ ...key, title });
    const held = Promise.withResolvers<void>();
    const memory = accounts.memoryOf(away);
    memory.intercept = async ({ abortSignal }, execute) => {
      const aborted = new Promise<never>((_, reject) =>
        abortSignal?.addEventListener('abort', () => reject(new DOMException('Aborted.', 'AbortError'))),
      );
      await Promise.race([held.promise, aborted]);
      return execute();
    };
    const clock = createTurnClock();
    const within = async <Result>(seconds: number, work: Promise<Result>) => {
      const end = new AbortController();
      const isLate = async () => {
        for (const since = clock.now(); clock.now() - since < seconds * 1_000; )
          await sleep(100, undefined, { ref: false, signal: end.signal });
        throw new Error(`not within ${seconds} s`);
      };
      return Promise.race([work, isLate()]).finally(() => end.abort());
    };
    const { store, runtime } = start();
    // The parts of the start wait for the account one after another.
    expect(await within(40, store.visits.get(key))).toMatchObject({ values: { title } });
    expect(await within(4, store.visits.get(key))).toBeDefined();
    // The audit log gives its own account ten seconds.
    const second = { ...key, visitId: 'v2' };
    await within(away === 'first' ? 20 : 9, store.visits.create({ ...second, title }));
    expect(await within(4, store.visits.get(second))).toBeDefined();
    const { away: named } = await within(9, operationsCheck.readQueueStates(engineCore.createEngine(accounts.open())));
    expect(named).toEqual([away]);
    clock.stop();
    held.resolve();
    // The queue may still have the entry of the second one.
    const [first] = await Array.fromAsync(store.visits.by.title({ title }));
    expect(first).toMatchObject({ visitId: 'v1' });
    expect(await runtime.app().findMissing()).toEqual([]);
  },
);

test.concurrent.each(NAMES)('timers that need %s do their work at a later run', { tags: ['slow'] }, async (away) => {
  const accounts = createAccounts();
  const { open: openAll, stopped } = accounts;
  const declareVisits = (name: string) =>
    defineEntity(name, {
      schema: z.object({ area: z.string(), visitId: z.string(), until: z.iso.datetime() }),
      table: name,
      key: { partition: '{area}', row: '{visitId}' },
      expiry: { at: 'until' },
      access,
    });
  const app = startApp(accounts, { entities: [declareVisits('calls'), declareVisits('visits')] });
  await app.provision();
  const area = await textIn(openAll(), away, 'area');
  for (const entity of ['calls', 'visits'])
    await app.store[entity].create({
      area,
      visitId: 'v1',
      until: new Date(Date.now() - baseValues.HOUR_MS).toISOString(),
    });
  const lines: string[] = [];
  const log = (line: string) => void lines.push(line);
  const run = (timer: string) => appFunctions.TIMERS[timer]?.run(app.runtime, { log, warn: log, error: log } as never);
  const timers = ['expire', 'verify', 'collect-orphans'];
  stopped.add(away);
  for (const timer of timers) await expect(run(timer)).rejects.toThrow(`the account ${away} does not respond`);
  stopped.clear();
  // The table of one entity, and the container of long texts.
  for (const memory of accounts.memories)
    memory.intercept = async (request, execute) => {
      const isAway = /[/]calls|[/]large/.test(request.url) || /[/]calls/.test(String(request.body));
      if (!isAway) return execute();
      return { request, status: 503, headers: createHttpHeaders({ 'retry-after-ms': '1' }), bodyAsText: '' };
    };
  lines.length = 0;
  for (const timer of timers) await expect(run(timer)).rejects.toMatchObject({ code: 'storage-unavailable' });
  expect(lines).toEqual([
    'visits: 1 expired entities deleted, 0 not.',
    'visits: 0 rows compared, 0 do not agree, 0 of them repaired.',
    '0 old counts of requests deleted.',
  ]);
  for (const memory of accounts.memories) memory.intercept = undefined;
  lines.length = 0;
  for (const timer of timers) await run(timer);
  expect(lines.filter((line) => line.startsWith('calls'))).toEqual([
    'calls: 1 expired entities deleted, 0 not.',
    'calls: 0 rows compared, 0 do not agree, 0 of them repaired.',
  ]);
});

test.concurrent.each([
  ['first', undefined],
  ['third', 'third'],
])('records a change once if %s goes away at any call of its append', { tags: ['slow'] }, async (own, placed) => {
  const change = { id: 'c1', by: 'ann', operation: 'create', entity: 'notes', fields: [] };
  const address = { table: 'notes', partition: 'p', row: 'r' };
  const points = [1, 2, 3].flatMap((at) => (['before', 'after'] as const).map((when) => ({ at, when })));
  await Promise.all(
    points.map(async ({ at, when }) => {
      const { memoryOf, openWith, stopped } = createAccounts();
      const options = { accounts: openWith(undefined, 0).options, containers: placed ? { audit: placed } : {} };
      const engine = engineCore.createEngine(storageAccounts.openStorage(options));
      await storageTables.provision(engine.storage, {
        tables: [],
        queues: [],
        containers: [storageBlobs.AUDIT_CONTAINER],
      });
      const memory = memoryOf(own);
      let calls = 0;
      memory.intercept = async (request, execute) => {
        calls += 1;
        if (calls === at) stopped.add(own);
        if (calls < at) return execute();
        if (calls === at && when === 'after') await execute();
        throw new RestError('The connection was reset.', { code: 'ECONNRESET', request });
      };
      const log = operationsCheck.createAuditLog(engine);
      await log.append([{ ...change, ...address, at: new Date().toISOString() } as never]);
      expect(calls).toBe(at);
      stopped.clear();
      memory.intercept = undefined;
      const { items } = await operationsCheck.readChanges(engine, {
        from: Date.now() - baseValues.HOUR_MS,
        to: Date.now() + 1,
        limit: 9,
      });
      expect(items.map(({ id }) => id)).toEqual(['c1']);
    }),
  );
});

test('a process with the recorded model starts while any account is away, and another one needs all', {
  tags: ['slow'],
}, async () => {
  const { open: openAll, stopped, requests } = createAccounts();
  const { engine } = await open(openAll());
  const start = (list: readonly Entity[] = entities) =>
    operationsModel.guardModel(engineCore.createEngine(openAll()), list, undefined);
  await operationsModel.guardModel(engine, entities, undefined);
  const owner = (await storageSlots.ownerOf(engine.storage, 'model')) as Account;
  const other = deploy(
    defineEntity('notes', {
      schema: z.object({ area: z.string(), note: z.string() }),
      table: 'projects',
      key: { partition: '{area}', row: 'note_{note}' },
      access,
    }),
  ).notes;
  const copies = "PartitionKey='slots',RowKey='model'";
  requests.length = 0;
  expect(await start()).toEqual([]);
  expect(requests.filter(({ url, method }) => method !== 'GET' || url.includes(copies))).toEqual([]);
  for (const name of NAMES) {
    stopped.add(name);
    requests.length = 0;
    const notes = await start();
    expect(notes).toEqual(name === owner.name ? [expect.stringContaining('the one of the copy')] : []);
    const reads = requests.filter(({ account, url }) => account !== name && url.includes(copies));
    expect(reads).toHaveLength(name === owner.name ? 1 : 0);
    expect(requests.filter(({ method }) => method !== 'GET')).toEqual([]);
    // A model with another entity, and one that was not recorded.
    for (const changed of [[...entities, other], [other], [{ ...projects, formerKey: tasks }, tasks]])
      if (name === owner.name) await expect(start(changed)).rejects.toThrow(`the account ${name} does not respond`);
    await expect(start([...entities, other])).rejects.toThrow(`the account ${name} does not respond`);
    stopped.clear();
    expect(await start()).toEqual([]);
  }
});

test('issues no grant while the account of the revocations is away', { tags: ['slow'] }, async () => {
  const { open: openAll, stopped } = createAccounts();
  const { engine } = await open(openAll());
  const owner = await storageSlots.ownerOf(engine.storage, 'revoked-grants', 'system');
  for (const name of NAMES) {
    stopped.add(name);
    const grant = accessChecks.admitGrant(engineCore.createEngine(openAll()), 'ann');
    if (name === owner.name) await expect(grant).rejects.toThrow(`the account ${name} does not respond`);
    else expect(await grant).toBeGreaterThan(0);
    stopped.clear();
  }
});

test('continues a page in a new process while any account is away', { tags: ['slow'] }, async () => {
  const { open: openAll, stopped } = createAccounts();
  await open(openAll());
  const token = await engineRead.toContinuation(openAll(), 'a query', { row: 'r' });
  for (const name of NAMES) {
    stopped.add(name);
    expect(await engineRead.fromContinuation(openAll(), 'a query', token)).toEqual({ row: 'r' });
    const other = await engineRead.toContinuation(openAll(), 'a query', { row: 's' });
    stopped.clear();
    expect(await engineRead.fromContinuation(openAll(), 'a query', other)).toEqual({ row: 's' });
  }
});

test('a start after a changed model, or while entities begin to move to another key, finds no copy of before', {
  tags: ['slow'],
}, async () => {
  const { open: openAll, stopped } = createAccounts();
  const { engine } = await open(openAll());
  const owner = (await storageSlots.ownerOf(engine.storage, 'model')) as Account;
  const start = (list: readonly Entity[]) =>
    operationsModel.guardModel(engineCore.createEngine(openAll()), list, undefined);
  const startWithoutOwner = async (list: readonly Entity[]) => {
    stopped.add(owner.name);
    return start(list).finally(() => stopped.clear());
  };
  await start([projects]);
  await start(entities);
  await expect(startWithoutOwner([projects])).rejects.toThrow('does not respond');
  await startWithoutOwner(entities);
  // The former release, beside which the newer one runs.
  for (const name of NAMES.filter((each) => each !== owner.name)) {
    stopped.add(name);
    expect(await start([projects])).toContainEqual(expect.stringContaining('The entity tasks is no longer'));
    await expect(operationsModel.startRekey(engine, tasks)).rejects.toThrow(`the account ${name} does not respond`);
    stopped.clear();
  }
  await start(entities);
  await operationsModel.startRekey(engine, tasks);
  await operationsModel.markBuilt(engine, tasks, 'none');
  await expect(startWithoutOwner(entities)).rejects.toThrow('does not respond');
  // The next start fills the copies again, and the commands that end something keep them.
  await start(entities);
  await operationsModel.markBuilt(engine, projects, 'none');
  await startWithoutOwner(entities);
});

test('a crash or a lost reply at any call of a start leaves no copy of another model than the recorded one', {
  tags: ['slow'],
}, async () => {
  const { open: openAll, openWith, stopped } = createAccounts();
  const { engine } = await open(openAll());
  const owner = (await storageSlots.ownerOf(engine.storage, 'model')) as Account;
  const models = [[projects], entities];
  for (const list of models) await operationsModel.guardModel(engineCore.createEngine(openAll()), list, undefined);
  for (const fault of FAULTS)
    for (let [at, isOver] = [1, false]; !isOver; at += 1) {
      const [next, before] = at % 2 === 0 ? [entities, [projects]] : [[projects], entities];
      const { storage, countCalls } = openWith(fault, at);
      await operationsModel.guardModel(engineCore.createEngine(storage), next, undefined).catch(() => undefined);
      isOver = countCalls() < at;
      stopped.add(owner.name);
      const starts = await Promise.allSettled(
        [next, before].map((list) => operationsModel.guardModel(engineCore.createEngine(openAll()), list, undefined)),
      );
      stopped.clear();
      expect(starts.filter(({ status }) => status === 'fulfilled').length).toBeLessThan(2);
      await operationsModel.guardModel(engineCore.createEngine(openAll()), next, undefined);
      stopped.add(owner.name);
      expect(await operationsModel.guardModel(engineCore.createEngine(openAll()), next, undefined)).toHaveLength(1);
      stopped.clear();
    }
});
