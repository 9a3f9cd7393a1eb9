import { beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { z } from 'zod';
import {
  defineEntity,
  type IndexEntity,
  indexEntity,
  interPartitionIndex,
  intraPartitionIndex,
  total,
  type Values,
} from '../../lib/index.ts';
import { CRASHES, outcomeOf, tryFaults, tryInterruptions } from '../fault-driver.ts';
import { faultyHttpClient, interruptedHttpClient } from '../faulty-http-client.ts';
import { deploy } from '../fixtures/deploy.ts';
import { baseValues } from '../kit/base.ts';
import { type CopyIndex, definePlaces, type Entity, modelParts } from '../kit/define.ts';
import { type Engine, engineRead, engineTransfer, engineWrite, type Transfer } from '../kit/engine.ts';
import { operationsCheck, operationsModel, VerifyPosition } from '../kit/operations.ts';
import { expectIndexesToAgree, laterBy, openWorld, QUICK, rowsOf, type World } from '../world.ts';

const OLD = { partition: '{studio}', row: '{title}_{year:4}' } as const;
const NEW = { partition: '{studio}_{year:4}', row: '{title}_reel' } as const;
const declare = (key: { partition: string; row: string; former?: { partition: string; row: string } }): Entity => {
  const declared = defineEntity('reels', {
    schema: z.object({
      studio: z.string(),
      title: z.string(),
      year: z.int32().min(0),
      code: z.string(),
      cast: z.array(z.string()).default([]),
      notes: z.string().optional(),
      secret: z.string().optional(),
      script: z.string().optional(),
      soldOn: z.iso.datetime().optional(),
      minutes: z.int32().default(90),
    }),
    table: 'reels',
    key,
    encrypted: ['secret'],
    split: { more: ['notes'] },
    large: ['script'],
    expiry: { at: 'soldOn' },
    archive: { table: 'oldreels' },
    movable: ['studio'],
    indexes: {
      code: interPartitionIndex({ table: 'reelsbycode', partition: 'c', row: '{code}', unique: true }),
      actor: interPartitionIndex({
        table: 'reelsbyactor',
        partition: '{cast[]}',
        row: '{year:4}_{title}_{studio}',
        copies: ['minutes'],
      }),
      minutes: intraPartitionIndex({ row: 'min_{minutes:4}_{title}_{year:4}', copies: 'keys' }),
      titles: indexEntity({ table: 'reelsbytitle', partition: 't', row: '{title}', holds: '{year:4}_{studio}' }),
    },
    totals: { perStudio: total({ table: 'reelsperstudio', partition: '{studio}', row: 'all', sum: ['minutes'] }) },
    access: { read: [], write: [] },
  });
  return deploy(declared).reels;
};
const before = declare(OLD);
const after = declare({ ...NEW, former: OLD });
const back = declare({ ...OLD, former: NEW });

/** Cards whose two keys are in one partition, with rows there. Their box counts them. */
const declareCards = (key: { partition: string; row: string; former?: { partition: string; row: string } }) => {
  const cards = defineEntity('cards', {
    schema: z.object({
      box: z.string(),
      id: z.string().regex(/^\d{4}$/),
      color: z.string(),
      suit: z.string(),
    }),
    table: 'boxes',
    key,
    indexes: {
      color: intraPartitionIndex({ row: 'color_{color}' }),
      ids: intraPartitionIndex({ row: 'by_{id}_{color}', copies: 'keys' }),
      suits: indexEntity({ row: 'suit_{suit}', holds: '{id}' }),
    },
    access: { read: [], write: [] },
  });
  const boxes = defineEntity('boxes', {
    schema: z.object({ box: z.string(), cardCount: z.int32().max(3) }),
    table: 'boxes',
    key: { partition: '{box}', row: 'box' },
    counts: { cardCount: cards },
    access: { read: [], write: [] },
  });
  return deploy(cards, boxes).cards as Entity;
};
const [OLD_CARD, NEW_CARD] = [
  { partition: '{box}', row: 'c_{id}' } as const,
  { partition: '{box}', row: 'card_{id}' } as const,
];
const cardsBefore = declareCards(OLD_CARD);
const cardsAfter = declareCards({ ...NEW_CARD, former: OLD_CARD });
const cardsBack = declareCards({ ...OLD_CARD, former: NEW_CARD });

/** Models with the name of their maker, which the queue finds through an index. */
const declareModels = (key: { partition: string; row: string; former?: { partition: string; row: string } }) => {
  const makers = defineEntity('makers', {
    schema: z.object({ maker: z.string(), name: z.string() }),
    table: 'makers',
    key: { partition: '{maker}', row: 'maker' },
    access: { read: [], write: [] },
  });
  const models = defineEntity('models', {
    schema: z.object({ series: z.string(), code: z.string(), maker: z.string(), makerName: z.string().optional() }),
    table: 'models',
    key,
    indexes: { maker: interPartitionIndex({ table: 'modelsbymaker', partition: '{maker}', row: '{series}_{code}' }) },
    denormalized: { maker: { source: makers, copies: { makerName: ({ name }) => name }, fanOut: true } },
    access: { read: [], write: [] },
  });
  return deploy(makers, models) as unknown as { readonly makers: Entity; readonly models: Entity };
};
const OLD_MODEL = { partition: '{series}', row: 'm_{code}' } as const;
const modelsBefore = declareModels(OLD_MODEL);
const modelsAfter = declareModels({ partition: '{code}', row: 'model_{series}', former: OLD_MODEL });

let world: World;
/** The release whose queue functions run. */
let running: Entity = after;
beforeAll(async () => {
  world = await openWorld(import.meta.url, [after, cardsAfter, ...Object.values(modelsAfter)], {
    rekeyed: () => running,
  });
});

/** A process of the release that knows both keys. */
function processOf(entity: Entity, engine: Engine = world.engine): Engine {
  return { ...engine, rekey: operationsModel.createRekey([entity]) };
}

/** Takes the model of this release into use, as the start of a process does. */
const guard = (entity: Entity) => operationsModel.guardModel(world.engine, [entity], undefined);
/** Begins the move, as if the time in which writes at the former key may arrive had passed. */
async function start(entity: Entity): Promise<void> {
  await operationsModel.startRekey(world.engine, entity);
  await operationsModel.startMoves(world.engine, entity);
}

/** A clock for which the claims of a process that has died are over. */
const later = (engine: Engine): Engine => laterBy(engine, () => 2 * engine.timing.claimForMs);

/** Begins the move again, with entities that the previous release has written since. */
async function begin(): Promise<void> {
  for (const { rowKey } of await rowsOf(world.storage, 'system'))
    if (rowKey === 'reels') await world.storage.table('system').deleteEntity('model', 'reels');
  await guard(before);
  await guard(after);
  await start(after);
}

async function walk(entity: Entity, engine = processOf(entity)): Promise<{ moved: number; stuck: number }> {
  let [moved, stuck] = [0, 0];
  for (let position: Parameters<typeof operationsModel.rekeyPage>[2]['position']; ; ) {
    const { findings, next } = await operationsModel.rekeyPage(engine, entity, { position, top: 3 });
    moved += findings.filter(({ repaired }) => repaired).length;
    stuck += findings.filter(({ repaired }) => !repaired).length;
    if (!next) return { moved, stuck };
    // As a continuation has it.
    position = VerifyPosition.parse(JSON.parse(JSON.stringify(next)));
  }
}

let count = 0;
function reel(over: Values = {}): Values {
  count += 1;
  return {
    studio: 'Keystone',
    title: `Reel ${count}`,
    year: 1914 + (count % 3),
    code: `code-${count}`,
    cast: ['Charlie', `Actor ${count}`],
    notes: `Notes of ${count}`,
    secret: `Secret ${count}`,
    script: `Script of ${count} `.repeat(9_000),
    soldOn: '2190-01-01T00:00:00.000Z',
    minutes: 10 + count,
    ...over,
  };
}

async function valuesOf(engine: Engine, entity: Entity, key: Values): Promise<Values | undefined> {
  const fields = Object.keys(entity.columns);
  return engineRead.readEntity(engine, entity, key, { select: fields }).then(
    ({ values }) => engineWrite.toPlain(engine, entity, values),
    (error: { code?: string }) => {
      if (error.code === 'not-found') return undefined;
      throw error;
    },
  );
}

type Operation = 'archive' | 'move';
const there = (one: Values): Values => ({ ...one, studio: `${one.studio} West` });

/** Requests an operation, and returns its message. */
async function transferOf(operation: Operation, one: Values, { engine, entity }: By): Promise<Transfer> {
  const key = baseValues.pick(one, entity.keyFields);
  const id = await (operation === 'archive'
    ? engineTransfer.requestArchive(engine, entity, key)
    : engineTransfer.requestMove(engine, entity, key, baseValues.pick(there(one), ['studio'])));
  return (await world.take('transfers', id)).body as Transfer;
}

interface By {
  readonly engine: Engine;
  readonly entity: Entity;
}
const byFormerRelease = (): By => ({ engine: world.engine, entity: before });
const byRelease = (): By => ({ engine: processOf(after), entity: after });

/** A process that dies after it has sent this text to storage. */
const dyingAfter = (text: string): Engine => {
  const isPoint = ({ body }: { readonly body?: unknown }) => String(body).includes(text);
  return world.engineThrough(faultyHttpClient('crash after', isPoint), QUICK);
};
/** A process that dies when an entity has left its key, before it is opened elsewhere. */
const dyingAfterLeave = () => dyingAfter('"MovedTo":');

/** Handles a message, with a clock for which the claims of dead processes are over. */
const handle = (transfer: Transfer, { engine, entity }: By) =>
  engineTransfer.runTransfer(later(engine), entity, transfer);

/** The operation has succeeded, and its entity is nowhere else than at its destination, under its new key. */
async function expectDone({ operation, operationId }: Transfer, one: Values, label: string): Promise<void> {
  const engine = processOf(after);
  const { status, reason } = await engineWrite.readOperation(engine, {
    operation,
    operationId,
    entity: 'reels',
  } as const);
  expect({ status, reason }, label).toEqual({ status: 'succeeded', reason: undefined });
  const archive = after.archive as Entity;
  const isMove = operation === 'move';
  expect(await valuesOf(engine, after, one), label).toBeUndefined();
  expect(await valuesOf(engine, after, there(one)), label).toEqual(isMove ? there(one) : undefined);
  expect(await valuesOf(engine, archive, one), label).toEqual(isMove ? undefined : one);
}

async function expectAllToAgree(entity: Entity): Promise<readonly Values[]> {
  running = entity;
  await world.settle();
  for (let position: Parameters<typeof operationsCheck.verifyPage>[2]['position']; ; ) {
    const page = await operationsCheck.verifyPage(world.engine, entity, {
      position,
      top: 100,
      repair: false,
      patience: 10,
    });
    expect(page.findings).toEqual([]);
    if (!page.next) break;
    position = page.next;
  }
  return expectIndexesToAgree(world.storage, entity);
}

async function deleteRows(table: string): Promise<void> {
  for (const { partitionKey, rowKey } of await rowsOf(world.storage, table))
    await world.storage.table(table).deleteEntity(String(partitionKey), String(rowKey));
}

beforeEach(async () => {
  const tables = [
    'reels',
    'boxes',
    'oldreels',
    'reelsbycode',
    'reelsbyactor',
    'reelsbytitle',
    'reelsperstudio',
    'reelsexpiry',
  ];
  for (const table of tables) await deleteRows(table);
  const system = (await rowsOf(world.storage, 'system')).filter(({ rowKey }) => rowKey === 'reels');
  for (const row of system) await world.storage.table('system').deleteEntity('model', String(row.rowKey));
  await guard(before);
});

const { code: byCode, minutes: byMinutes, titles: byTitle } = after.indexes;
const closed = { code: 'busy', retryAfter: 5 };

test('before the command, entities are read, written and listed at their former key', { tags: ['slow'] }, async () => {
  const [one, other, gone] = [reel({ year: 1914 }), reel({ year: 1915 }), reel({ year: 1914 })];
  await engineWrite.createEntity(world.engine, before, one);
  expect(await guard(after)).toEqual([expect.stringMatching(/at their former key: npm run rekey -- reels$/)]);
  const engine = processOf(after);
  expect(await valuesOf(engine, after, one)).toEqual(one);
  await engineWrite.createEntity(engine, after, other);
  await expect(engineWrite.createEntity(engine, after, one)).rejects.toMatchObject({ code: 'duplicate-key' });
  const { isCreated } = await engineWrite.putEntity(engine, after, gone, gone);
  expect(isCreated).toBe(true);
  await engineWrite.deleteEntity(engine, after, gone);
  await expect(engineWrite.deleteEntity(engine, after, gone)).rejects.toMatchObject({ code: 'not-found' });
  await engineWrite.patchEntity(engine, after, one, { minutes: 5, notes: 'New' });
  const outcomes = await engineWrite.writeBatch(engine, after, [
    { create: gone },
    { delete: baseValues.pick(gone, after.keyFields) },
  ]);
  expect(outcomes).toMatchObject([{ outcome: 'created' }, { outcome: 'deleted' }]);
  const now = { ...one, minutes: 5, notes: 'New' };
  expect(await valuesOf(engine, after, one)).toEqual(now);
  const select = ['title'];
  expect(await engineRead.readByCopy(engine, after, byCode as CopyIndex, { code: other.code }, select)).toMatchObject({
    title: other.title,
  });
  const titles = ({ items }: { items: readonly Values[] }) => items.map(({ title }) => title);
  const page = { top: 10 };
  // The former partition has both.
  expect(titles(await engineRead.readEntities(engine, after, one, page))).toEqual([one.title]);
  expect(titles(await engineRead.readEntities(engine, after, other, page))).toEqual([other.title]);
  expect(titles(await engineRead.scanEntities(engine, after, page))).toEqual([one.title, other.title]);
  await expect(engineRead.readByCopies(engine, after, byMinutes as CopyIndex, one, page)).rejects.toMatchObject(closed);

  const create = (over: Values) => ({ create: reel({ year: 1914, ...over }) });
  await engineWrite.writeAtomically(engine, after, [create({}), create({})]);
  const apart = engineWrite.writeAtomically(engine, after, [create({ studio: 'Roach' }), create({})]);
  await expect(apart).rejects.toMatchObject(closed);

  // The previous release still writes what this one has written, and may come back.
  await engineWrite.patchEntity(world.engine, before, other, { minutes: 99 });
  expect(await valuesOf(engine, after, other)).toEqual({ ...other, minutes: 99 });
  expect(await valuesOf(world.engine, before, one)).toEqual(now);
  expect(await guard(before)).toEqual([]);
  await expectAllToAgree(before);
});

test('from the command until its wait is over, entities can be read by key and by index, and not written or listed', {
  tags: ['slow'],
}, async () => {
  const one = reel();
  await engineWrite.createEntity(world.engine, before, one);
  await guard(after);
  const late = processOf(after);
  expect(await valuesOf(late, after, one)).toEqual(one);
  await operationsModel.startRekey(world.engine, after);
  const engine = processOf(after);
  expect(await valuesOf(engine, after, one)).toEqual(one);
  expect(await valuesOf(engine, after, { ...one, title: 'Another' })).toBeUndefined();
  await expect(engineWrite.patchEntity(engine, after, one, { minutes: 1 })).rejects.toMatchObject(closed);
  await expect(engineWrite.deleteEntity(engine, after, one)).rejects.toMatchObject(closed);
  await expect(engineWrite.createEntity(engine, after, reel())).rejects.toMatchObject(closed);
  await expect(engineRead.readEntities(engine, after, one, { top: 10 })).rejects.toMatchObject(closed);
  await expect(engineRead.scanEntities(engine, after, { top: 10 })).rejects.toMatchObject(closed);
  await expect(engineRead.readByCopies(engine, after, byMinutes as CopyIndex, one, { top: 10 })).rejects.toMatchObject(
    closed,
  );
  // A process uses what it has read of the phase for some seconds, and the command waits for it.
  await engineWrite.patchEntity(late, after, one, { minutes: 2 });
  expect(await valuesOf(engine, after, one)).toEqual({ ...one, minutes: 2 });
  vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 5_000);
  // Its clock stood still while its machine was suspended.
  await expect(engineWrite.patchEntity(late, after, one, { minutes: 3 })).rejects.toMatchObject(closed);
  vi.restoreAllMocks();
});

test('a process looks again when it begins each transaction and after each read at the former key', {
  tags: ['slow'],
}, async () => {
  const one = reel();
  await engineWrite.createEntity(world.engine, before, one);
  await guard(after);
  const former = modelParts.formerOf(after) as Entity;
  const moved = async () => {
    const engine = processOf(after);
    await start(after);
    expect(await walk(after)).toMatchObject({ stuck: 0 });
    return engine;
  };
  const engine = await moved();
  // As if they had chosen the former declaration before.
  const key = baseValues.pick(one, after.keyFields);
  await expect(engineWrite.patchEntity(engine, former, key, { minutes: 1 })).rejects.toMatchObject(closed);
  await expect(engineWrite.createEntity(engine, former, one)).rejects.toMatchObject(closed);
  const change = {
    entity: former,
    address: definePlaces.addressOf(former, one),
    before: { state: 'absent' },
    after: one,
  } as const;
  await expect(engineWrite.commit(engine, [change])).rejects.toMatchObject(closed);
  await expect(engineRead.readEntities(engine, former, one, { top: 10 })).rejects.toMatchObject(closed);
  await expect(engineRead.scanEntities(engine, former, { top: 10 })).rejects.toMatchObject(closed);
  expect(await valuesOf(engine, after, one)).toEqual(one);
});

test('the command waits for the processes that write at the former key', { tags: ['slow'] }, async () => {
  await engineWrite.createEntity(world.engine, before, reel());
  await guard(after);
  const began = Date.now();
  const at = (ms: number): Engine => ({ ...world.engine, now: () => began + ms });
  const page = (ms: number) =>
    operationsModel.rekeyPage(processOf(after, at(ms)), after, { position: undefined, top: 10 });
  const { engine } = world;
  await operationsModel.startRekey(at(0), after);
  const waitMs = 5_000 + engine.timing.hideIntentForSeconds * 1_000;
  await page(waitMs - 1);
  expect(await operationsModel.readRekey(engine, after)).toMatchObject({ phase: 'waiting' });
  await page(waitMs);
  expect(await operationsModel.readRekey(engine, after)).toMatchObject({ phase: 'moving' });
  expect(await page(waitMs)).toMatchObject({ findings: [{ repaired: true }] });
});

test('a request for a key moves its entity first', { tags: ['slow'] }, async () => {
  const all = Array.from({ length: 8 }, () => reel());
  for (const one of all) await engineWrite.createEntity(world.engine, before, one);
  await guard(after);
  await start(after);
  await expect(guard(before)).rejects.toThrow(/reels: .* rows that no request would find/);
  const engine = processOf(after);
  const [read, patched, put, deleted, created, listed, taken] = all as [
    Values,
    Values,
    Values,
    Values,
    Values,
    Values,
    Values,
  ];
  expect(await valuesOf(engine, after, read)).toEqual(read);
  await engineWrite.patchEntity(engine, after, patched, { minutes: 7 });
  const { isCreated } = await engineWrite.putEntity(engine, after, put, { ...put, minutes: 8 });
  expect(isCreated).toBe(false);
  await engineWrite.deleteEntity(engine, after, deleted);
  await expect(engineWrite.createEntity(engine, after, created)).rejects.toMatchObject({ code: 'duplicate-key' });
  const { items } = await engineRead.readByList(
    engine,
    after,
    byTitle as IndexEntity,
    { title: listed.title },
    { top: 10 },
  );
  expect(items).toMatchObject([{ title: listed.title }]);
  await expect(engineWrite.createEntity(engine, after, reel({ code: taken.code }))).rejects.toMatchObject({
    code: 'duplicate-value',
  });
  await engineWrite.createEntity(engine, after, { ...deleted, minutes: 1 });
  await expect(engineRead.readEntities(engine, after, read, { top: 10 })).rejects.toMatchObject(closed);
  expect(await operationsCheck.verifyPage(engine, after, { top: 100, repair: false, patience: 0 })).toMatchObject({
    findings: [],
  });

  expect(await walk(after)).toEqual({ moved: expect.any(Number), stuck: 0 });
  expect(await guard(after)).toEqual([]);
  const wanted = [...all.filter((one) => ![patched, put, deleted].includes(one))];
  wanted.push({ ...patched, minutes: 7 }, { ...put, minutes: 8 }, { ...deleted, minutes: 1 });
  const found = await expectAllToAgree(after);
  expect(found.length).toBe(wanted.length);
  for (const one of wanted) expect(await valuesOf(processOf(after), after, one)).toEqual(one);
  const { items: ranged } = await engineRead.readEntities(processOf(after), after, read, { top: 10 });
  expect(ranged.length).toBeGreaterThan(0);
});

test('a list that began at the former key goes on there, and begins again at the new one', {
  tags: ['slow'],
}, async () => {
  for (const one of Array.from({ length: 4 }, () => reel({ year: 1914 })))
    await engineWrite.createEntity(world.engine, before, one);
  const key = { studio: 'Keystone', year: 1914 };
  const ofFormer = await engineRead.readEntities(world.engine, before, key, { top: 1 });
  const scanOfFormer = await engineRead.scanEntities(world.engine, before, { top: 1 });
  await guard(after);
  const { next } = await engineRead.readEntities(processOf(after), after, key, { top: 1, after: ofFormer.next });
  const scanned = await engineRead.scanEntities(processOf(after), after, { top: 1, after: scanOfFormer.next });
  await start(after);
  expect(await walk(after)).toEqual({ moved: 4, stuck: 0 });
  const engine = processOf(after);
  const rejected = {
    code: 'invalid-input',
    field: 'continuation',
    message: expect.stringMatching(/^The key of reels/),
  };
  for (const position of [ofFormer.next, next])
    await expect(engineRead.readEntities(engine, after, key, { top: 1, after: position })).rejects.toMatchObject(
      rejected,
    );
  for (const position of [scanOfFormer.next, scanned.next])
    await expect(engineRead.scanEntities(engine, after, { top: 1, after: position })).rejects.toMatchObject(rejected);
  const first = await engineRead.readEntities(engine, after, key, { top: 1 });
  const rest = await engineRead.readEntities(engine, after, key, { top: 10, after: first.next });
  expect([...first.items, ...rest.items]).toHaveLength(4);
  expect(
    (
      await engineRead.scanEntities(engine, after, {
        top: 10,
        after: (await engineRead.scanEntities(engine, after, { top: 1 })).next,
      })
    ).items,
  ).toHaveLength(3);
});

test('the keys exchanged move the entities back, also from the middle', { tags: ['slow'] }, async () => {
  const all = Array.from({ length: 5 }, () => reel());
  for (const one of all) await engineWrite.createEntity(world.engine, before, one);
  await guard(after);
  await start(after);
  for (const one of all.slice(0, 2)) await engineWrite.patchEntity(processOf(after), after, one, { minutes: 5 });
  expect(await guard(back)).toEqual([expect.stringMatching(/former key/)]);
  const engine = processOf(back);
  expect(await valuesOf(engine, back, all[0] ?? {})).toEqual({ ...all[0], minutes: 5 });
  expect(await valuesOf(engine, back, all[4] ?? {})).toEqual(all[4]);
  // They are at both keys.
  await expect(engineWrite.patchEntity(engine, back, all[0] ?? {}, { minutes: 6 })).rejects.toMatchObject(closed);
  await expect(engineWrite.createEntity(engine, back, reel())).rejects.toMatchObject(closed);
  await start(back);
  expect(await walk(back)).toEqual({ moved: 2, stuck: 0 });
  expect(await expectAllToAgree(back)).toHaveLength(5);
  expect(await guard(before)).toEqual([]);
  expect(await walk(back)).toEqual({ moved: 0, stuck: 0 });
});

test('entities that a move has left between their keys are found before the way back, and go back', {
  tags: ['slow'],
}, async () => {
  const [copied, left, opened, gone] = Array.from({ length: 4 }, () => reel({ script: 'short' })) as Values[] as [
    Values,
    Values,
    Values,
    Values,
  ];
  for (const one of [copied, left, opened, gone]) await engineWrite.createEntity(world.engine, before, one);
  await begin();
  for (const one of [copied, gone]) await outcomeOf(engineTransfer.moveToKey(dyingAfter('"MovingFrom":'), after, one));
  await outcomeOf(engineTransfer.moveToKey(dyingAfter('"MovedTo":'), after, left));
  await outcomeOf(engineTransfer.moveToKey(dyingAfter('"MovingFrom":""'), after, opened));
  await engineWrite.deleteEntity(world.engine, before, gone);
  expect(await guard(back)).toEqual([expect.stringMatching(/former key/)]);
  const wanted = async () => {
    for (const one of [copied, left, opened]) expect(await valuesOf(processOf(back), back, one)).toEqual(one);
    expect(await valuesOf(processOf(back), back, gone)).toBeUndefined();
  };
  await wanted();
  await operationsModel.startRekey(world.engine, back);
  await wanted();
  await operationsModel.startMoves(world.engine, back);
  await engineWrite.patchEntity(later(processOf(back)), back, left, { minutes: 1 });
  expect(await walk(back, later(processOf(back)))).toMatchObject({ stuck: 0 });
  expect(await valuesOf(processOf(back), back, left)).toEqual({ ...left, minutes: 1 });
  expect(await expectAllToAgree(back)).toHaveLength(3);
});

test('a message of a write at the former key may come after the entity has left', { tags: ['slow'] }, async () => {
  const one = reel();
  await engineWrite.createEntity(world.queued, before, one);
  await begin();
  expect(await walk(after, later(processOf(after)))).toMatchObject({ stuck: 0 });
  expect(await expectAllToAgree(after)).toEqual([expect.objectContaining({ title: one.title })]);
});

test('a crash at any storage call of the command loses nothing, and a second run continues', {
  tags: ['slow'],
}, async () => {
  await tryFaults(
    async ({ client, timing, label }) => {
      const one = reel({ script: 'short' });
      await engineWrite.createEntity(world.engine, before, one);
      await begin();
      await outcomeOf(walk(after, processOf(after, world.engineThrough(client, timing))));
      expect(await valuesOf(processOf(after), after, one), label).toEqual(one);
      await engineWrite.patchEntity(later(processOf(after)), after, one, { minutes: 3 });
      expect(await walk(after, later(processOf(after))), label).toMatchObject({ stuck: 0 });
    },
    { faults: CRASHES, moreCallsThan: 10, size: 3 },
  );
  await expectAllToAgree(after);
});

test('a request and a command that dies between the two reads of the request lose nothing', async () => {
  const one = reel({ script: 'short' });
  await engineWrite.createEntity(world.engine, before, one);
  await begin();
  let isRead = false;
  // The read of the row at the new key, then that at the former one.
  const isSecondRead = ({ method }: { readonly method: string }) => method === 'GET' && isRead;
  const client = interruptedHttpClient(isSecondRead, () =>
    outcomeOf(engineTransfer.moveToKey(dyingAfterLeave(), after, one)),
  );
  const through = world.engineThrough({
    async sendRequest(request) {
      const response = await client.sendRequest(request);
      const isNew = decodeURIComponent(request.url).includes(String(definePlaces.addressOf(after, one).row));
      isRead ||= request.method === 'GET' && isNew;
      return response;
    },
  });
  await outcomeOf(engineTransfer.moveToKey(through, after, one));
  // Another one finishes the move, or deletes what it takes for a copy that was too late.
  await engineTransfer.moveToKey(later(world.engine), after, one);
  expect(await valuesOf(processOf(after), after, one)).toEqual(one);
});

test('entities are moved and archived at their former key before the command, and at the new one after it', {
  tags: ['slow'],
}, async () => {
  const all = Array.from({ length: 6 }, () => reel({ script: 'short' }));
  const [one, other, moved, archived, deleted, late] = all as [Values, Values, Values, Values, Values, Values];
  for (const each of all) await engineWrite.createEntity(world.engine, before, each);
  await guard(after);
  const ended: [Transfer, Values, By][] = [
    [await transferOf('move', one, byRelease()), one, byFormerRelease()],
    [await transferOf('archive', other, byFormerRelease()), other, byRelease()],
    [await transferOf('archive', deleted, byRelease()), deleted, byRelease()],
  ];
  for (const [transfer, , by] of ended) await handle(transfer, by);
  const archive = after.archive as Entity;
  expect(await valuesOf(processOf(after), archive, other)).toEqual(other);
  const open = await transferOf('move', late, byRelease());
  await operationsModel.startRekey(world.engine, after);
  await expect(engineTransfer.requestMove(processOf(after), after, moved, { studio: 'Roach' })).rejects.toMatchObject(
    closed,
  );
  await expect(handle(open, byRelease())).rejects.toMatchObject(closed);
  expect(await valuesOf(processOf(after), archive, other)).toEqual(other);
  await operationsModel.startMoves(world.engine, after);
  await handle(open, byRelease());
  for (const [operation, each] of [
    ['move', moved],
    ['archive', archived],
  ] as const) {
    const transfer = await transferOf(operation, each, byRelease());
    await handle(transfer, byRelease());
    ended.push([transfer, each, byRelease()]);
  }
  expect(await valuesOf(processOf(after), archive, other)).toEqual(other);
  await engineWrite.deleteEntity(processOf(after), archive, deleted);
  await expect(engineWrite.deleteEntity(processOf(after), archive, deleted)).rejects.toMatchObject({
    code: 'not-found',
  });
  await expect(engineRead.scanEntities(processOf(after), archive, { top: 10 })).rejects.toMatchObject(closed);
  expect(await walk(after)).toMatchObject({ stuck: 0 });
  for (const [transfer, each] of ended) if (each !== deleted) await expectDone(transfer, each, 'ended');
  await expectDone(open, late, 'requested before the command');
  const { items } = await engineRead.scanEntities(processOf(after), archive, { top: 10 });
  expect(items.map(({ title }) => title).sort()).toEqual([other.title, archived.title].sort());
  await expectAllToAgree(after);
});

test('a move that has taken unique values at the former key gives them back', { tags: ['slow'] }, async () => {
  const one = reel({ script: 'short' });
  await engineWrite.createEntity(world.engine, before, one);
  const transfer = await transferOf('move', one, byFormerRelease());
  await outcomeOf(engineTransfer.runTransfer(dyingAfter('"Confirmed":true'), before, transfer));
  await begin();
  expect(await walk(after, later(processOf(after)))).toMatchObject({ stuck: 0 });
  await handle(transfer, byRelease());
  await expectDone(transfer, one, 'after the command');
  await expectAllToAgree(after);
});

test('an entity that cannot be moved is reported, and the others are moved', { tags: ['slow'] }, async () => {
  const [one, ...others] = Array.from({ length: 8 }, () => reel({ script: 'short' })) as [Values, ...Values[]];
  for (const each of [one, ...others]) await engineWrite.createEntity(world.engine, before, each);
  const { table, partition, row } = definePlaces.addressOf(after, one);
  await world.storage.table(table).createEntity({ partitionKey: partition, rowKey: row, EntityType: 'reels' });
  await begin();
  expect(await walk(after)).toEqual({ moved: others.length, stuck: 1 });
  expect(await operationsModel.readRekey(world.engine, after)).toMatchObject({ phase: 'moving' });
  await world.storage.table(table).deleteEntity(partition, row);
  expect(await walk(after)).toEqual({ moved: 1, stuck: 0 });
  await expectAllToAgree(after);
});

test('archived entities alone are moved, too', { tags: ['slow'] }, async () => {
  const one = reel();
  await engineWrite.createEntity(world.engine, before, one);
  await handle(await transferOf('archive', one, byFormerRelease()), byFormerRelease());
  expect(await guard(after)).toEqual([expect.stringMatching(/former key/)]);
  await start(after);
  expect(await walk(after)).toEqual({ moved: 1, stuck: 0 });
  expect(await guard(after)).toEqual([]);
  expect(await valuesOf(processOf(after), after.archive as Entity, one)).toEqual(one);
  await expectAllToAgree(after);
});

test.each(['move', 'archive'] as const)(
  '%s that has died at any storage call at the former key is done at the new one',
  { tags: ['slow'] },
  async (operation) => {
    await tryFaults(
      async ({ at, fault, client, timing, label }) => {
        const one = reel({ script: 'short' });
        await engineWrite.createEntity(world.engine, before, one);
        const transfer = await transferOf(operation, one, byFormerRelease());
        await outcomeOf(engineTransfer.runTransfer(world.engineThrough(client, timing), before, transfer));
        await begin();
        const isMessageFirst = (at % 2 === 0) === (fault === 'crash after');
        if (isMessageFirst) await handle(transfer, byRelease());
        expect(await walk(after, later(processOf(after))), label).toMatchObject({ stuck: 0 });
        await handle(transfer, byRelease());
        await expectDone(transfer, one, label);
      },
      { faults: CRASHES, moreCallsThan: 10 },
    );
    await expectAllToAgree(after);
  },
);

test.each(['move', 'archive'] as const)(
  'the command may die at any storage call with %s that has begun at the former key',
  { tags: ['slow'] },
  async (operation) => {
    await tryFaults(
      async ({ client, timing, label }) => {
        const one = reel({ script: 'short' });
        await engineWrite.createEntity(world.engine, before, one);
        const transfer = await transferOf(operation, one, byFormerRelease());
        await outcomeOf(engineTransfer.runTransfer(dyingAfterLeave(), before, transfer));
        await begin();
        await outcomeOf(walk(after, processOf(after, later(world.engineThrough(client, timing)))));
        expect(await walk(after, later(processOf(after))), label).toMatchObject({ stuck: 0 });
        await handle(transfer, byRelease());
        await expectDone(transfer, one, label);
      },
      { faults: CRASHES, moreCallsThan: 10 },
    );
    await expectAllToAgree(after);
  },
);

/** Begins the move of cards that the previous release has written. */
async function beginCards(declared: Entity, previous = cardsBefore): Promise<void> {
  const rows = await rowsOf(world.storage, 'system');
  if (previous === cardsBefore && rows.some(({ rowKey }) => rowKey === 'cards'))
    await world.storage.table('system').deleteEntity('model', 'cards');
  if (previous === cardsBefore) await guard(previous);
  await guard(declared);
  await start(declared);
}

test('rows in the partition of both keys follow, and counts stay, whenever the command dies', {
  tags: ['slow'],
}, async () => {
  let box = 0;
  const card = (id: string, color: string) => ({ box: `Box ${box}`, id, color, suit: 'wild' });
  await tryFaults(
    async ({ client, timing, label }) => {
      box += 1;
      const all: Values[] = [card('0001', 'red'), card('0002', 'green'), card('0003', 'blue')];
      for (const one of all) await engineWrite.createEntity(world.engine, cardsBefore, one);
      await expect(engineWrite.createEntity(world.engine, cardsBefore, card('0004', 'white'))).rejects.toMatchObject({
        code: 'partition-full',
      });
      await beginCards(cardsAfter);
      await outcomeOf(walk(cardsAfter, processOf(cardsAfter, world.engineThrough(client, timing))));
      const engine = later(processOf(cardsAfter));
      const [first, second] = all as [Values, Values, Values];
      await engineWrite.patchEntity(engine, cardsAfter, first, { color: 'gold', suit: 'coins' });
      await engineWrite.deleteEntity(engine, cardsAfter, second);
      expect(await walk(cardsAfter, engine), label).toMatchObject({ stuck: 0 });
      await engineWrite.createEntity(processOf(cardsAfter), cardsAfter, { ...second, color: 'red' });
      expect(await expectAllToAgree(cardsAfter), label).toHaveLength(3);
      const given = { box: first.box, color: 'gold' };
      const { color } = cardsAfter.indexes;
      const found = await engineRead.readByCopy(processOf(cardsAfter), cardsAfter, color as CopyIndex, given);
      expect(found, label).toMatchObject({ id: '0001' });
      await deleteRows('boxes');
    },
    { faults: CRASHES, moreCallsThan: 10 },
  );
});

test('rows in the partition of both keys come back from the middle of a move', { tags: ['slow'] }, async () => {
  const all: Values[] = ['red', 'green', 'blue'].map((color, at) => ({
    box: 'Back',
    id: `100${at}`,
    color,
    suit: 'cups',
  }));
  for (const one of all) await engineWrite.createEntity(world.engine, cardsBefore, one);
  await beginCards(cardsAfter);
  const [copied, left] = all as [Values, Values, Values];
  await outcomeOf(engineTransfer.moveToKey(dyingAfter('"MovingFrom":'), cardsAfter, copied));
  await outcomeOf(engineTransfer.moveToKey(dyingAfterLeave(), cardsAfter, left));
  await beginCards(cardsBack, cardsAfter);
  expect(await walk(cardsBack, later(processOf(cardsBack)))).toMatchObject({ stuck: 0 });
  expect(await expectAllToAgree(cardsBack)).toEqual(expect.arrayContaining(all));
});

test('copied fields reach the entities at both keys', { tags: ['slow'] }, async () => {
  const { makers, models } = modelsAfter;
  const all: Values[] = ['a', 'b', 'c', 'd'].map((code) => ({ series: 'S', code, maker: 'M' }));
  await engineWrite.createEntity(world.engine, modelsBefore.makers, { maker: 'M', name: 'First' });
  for (const one of all) await engineWrite.createEntity(world.engine, modelsBefore.models, one);
  await guard(modelsBefore.models);
  await guard(models);
  running = models;
  const rename = async (name: string) => {
    await engineWrite.patchEntity(processOf(models), makers, { maker: 'M' }, { name });
    await world.settle();
  };
  const names = () =>
    Promise.all(all.map(async (one) => (await engineRead.readEntity(processOf(models), models, one)).values.makerName));
  await rename('Second');
  expect(await names()).toEqual(Array(4).fill('Second'));
  await start(models);
  // Two have moved, and one is between its keys.
  const [first, second, third] = all as [Values, Values, Values, Values];
  for (const one of [first, second]) await engineTransfer.moveToKey(world.engine, models, one);
  await outcomeOf(engineTransfer.moveToKey(dyingAfterLeave(), models, third));
  await rename('Third');
  expect(await walk(models)).toMatchObject({ stuck: 0 });
  expect(await names()).toEqual(Array(4).fill('Third'));
  await rename('Fourth');
  expect(await names()).toEqual(Array(4).fill('Fourth'));
  expect(await expectAllToAgree(models)).toHaveLength(4);
});

test('writers at any storage call of the command lose nothing', { tags: ['slow'] }, async () => {
  const act = (through: Engine) => walk(after, processOf(after, through));
  await tryInterruptions(
    world,
    async () => {
      const [patched, deleted] = [reel({ script: 'short' }), reel()];
      for (const one of [patched, deleted]) await engineWrite.createEntity(world.engine, before, one);
      await begin();
      const done = new Set<string>();
      const tried = (name: string, write: Promise<unknown>) =>
        write.then(
          () => done.add(name),
          () => undefined,
        );
      return {
        act,
        interrupt: async () => {
          const engine = processOf(after);
          await tried('patched', engineWrite.patchEntity(engine, after, patched, { minutes: 3 }));
          await tried('deleted', engineWrite.deleteEntity(engine, after, deleted));
          await tried('created', engineWrite.createEntity(engine, after, patched));
        },
        check: async (label) => {
          expect(await walk(after), label).toMatchObject({ stuck: 0 });
          const minutes = done.has('patched') ? 3 : patched.minutes;
          expect(await valuesOf(processOf(after), after, patched), label).toEqual({ ...patched, minutes });
          expect(await valuesOf(processOf(after), after, deleted), label).toEqual(
            done.has('deleted') ? undefined : deleted,
          );
          expect(done.has('created'), label).toBe(false);
        },
      };
    },
    { moreCallsThan: 10 },
  );
  await expectAllToAgree(after);
});
