import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, interPartitionIndex, intraPartitionIndex, RowkeyError, type Values } from '../../lib/index.ts';
import { createQueueWorker } from '../../local/walk/queue-worker.ts';
import { deploy } from '../fixtures/deploy.ts';
import { model } from '../fixtures/model.ts';
import { SAMPLES } from '../fixtures/samples.ts';
import { baseValues } from '../kit/base.ts';
import { definePlaces, type Entity, type Finding } from '../kit/define.ts';
import { type Engine, engineCore, engineRead, engineTransfer, engineWrite } from '../kit/engine.ts';
import { featureSeries, featureUpkeep } from '../kit/features.ts';
import { operationsCheck, operationsModel, operationsMove } from '../kit/operations.ts';
import {
  type Address,
  type KeyRing,
  type Storage,
  storageAccounts,
  storageRows,
  storageSlots,
  storageTables,
} from '../kit/storage.ts';
import { QUICK } from '../lib/operations/storage-to-move.ts';
import { createAccounts } from '../lib/storage/several-accounts.ts';
import { countTurns } from '../patient-clock.ts';
import { sampleItems } from '../points.ts';
import { QUICK as SOON } from '../world.ts';

countTurns();

/** Rows of another program are among those of the app. Nothing changes them: every property, the ETag and the time stamp stay. */

const keys: KeyRing = {
  wrap: async (dataKey) => ({ keyId: 'memory', wrapped: dataKey }),
  unwrap: async (_, wrapped) => wrapped,
  currentKeyId: async () => 'memory',
};
const resources = () => operationsModel.resourcesOf(model.list, Date.now(), model);
const OWN_TABLES = new Set(operationsModel.resourcesOf([]).tables.filter((table) => table !== 'operations'));

interface World {
  readonly engine: Engine;
  readonly open: () => Storage;
  settle(): Promise<void>;
}

async function openWorld(names: readonly string[], entities: readonly Entity[] = model.list): Promise<World> {
  const created = createAccounts([...names]);
  const open = () => created.open();
  const storage = open();
  await storageTables.provision(storage, operationsModel.resourcesOf(entities, Date.now(), model));
  const engine = engineCore.createEngine(storage, { keys, timing: SOON });
  const log = { warn: () => undefined, error: () => undefined };
  const worker = createQueueWorker({ engine, entities, log }, { lastLogged: () => '' });
  return { engine, open, settle: worker.settle };
}

/** What a client or another program has written, as a row that Rowkey cannot have written. */
const FOREIGN = [
  { Foreign: true, Name: 'of another program', Count: 7, Price: 2.5, At: new Date(0) },
  { Foreign: true, EntityType: 'Invoice', Total: 12 },
];

async function ownerFor(storage: Storage, { table, partition }: Address): Promise<Storage> {
  return storage.accounts
    ? (await storageSlots.ownerOfPlace(storage.accounts, storageSlots.placeOf(table, partition))).account
    : storage;
}

let count = 0;
async function place(account: Storage, { table, partition, row }: Address): Promise<void> {
  count += 1;
  const properties = FOREIGN[count % FOREIGN.length] ?? {};
  await account.table(table).upsertEntity({ partitionKey: partition, rowKey: row, ...properties }, 'Replace');
}

async function tablesOf(account: Storage): Promise<string[]> {
  return (await storageTables.listTables(account, '')).filter((table) => !OWN_TABLES.has(table));
}

/** All foreign rows as storage returns them, with ETag and time stamp. */
async function foreignIn(storage: Storage): Promise<readonly string[]> {
  const found: string[] = [];
  for (const account of storageAccounts.accountsOf(storage))
    for (const table of await tablesOf(account))
      for await (const row of account.table(table).listEntities())
        if (row.Foreign) found.push(`${account.name} ${table} ${JSON.stringify(row)}`);
  return found.sort();
}

async function countRows(storage: Storage): Promise<number> {
  let rows = 0;
  for (const account of storageAccounts.accountsOf(storage))
    for (const table of await tablesOf(account))
      for await (const row of account.table(table).listEntities())
        rows += row.Foreign || /^~/.test(String(row.rowKey)) ? 0 : 1;
  return rows;
}

/** The slots of all partitions: to move each of the others takes a minute. */
async function usedSlots(storage: Storage): Promise<string[]> {
  const slots = new Set<string>();
  for (const account of storageAccounts.accountsOf(storage))
    for (const table of await tablesOf(account))
      for await (const { partitionKey = '' } of account.table(table).listEntities())
        slots.add(storageSlots.slotOf(partitionKey));
  return [...slots].sort();
}

/** Places rows in each table of each account: in the partitions of the app, before and after its rows, and in others. */
async function placeEverywhere(storage: Storage): Promise<readonly string[]> {
  for (const account of storageAccounts.accountsOf(storage))
    for (const table of await tablesOf(account)) {
      const partitions = new Set(['another program']);
      for await (const { partitionKey } of account.table(table).listEntities()) partitions.add(String(partitionKey));
      for (const partition of partitions)
        for (const row of [' 0', 'm another', 'zz another']) await place(account, { table, partition, row });
    }
  return foreignIn(storage);
}

const plain = model.list.filter(({ series }) => !series);
const series = model.list.filter(({ series: slots }) => slots);
const sample = ({ name }: Entity, n: number): Values => SAMPLES[name]?.(n) ?? {};

interface Seeded {
  readonly entity: Entity;
  readonly values: Values;
}

async function seed({ engine, settle }: World): Promise<Seeded[]> {
  const customers = plain.find(({ name }) => name === 'customers') as Entity;
  await engineWrite.createEntity(engine, customers, { ...sample(customers, 99), customerId: 'ZREF' });
  const all: Seeded[] = [];
  for (const entity of plain)
    for (const n of [1, 2])
      all.push({ entity, values: (await engineWrite.createEntity(engine, entity, sample(entity, n))).values });
  for (const entity of series)
    for (const n of [1, 2]) await featureSeries.setCounts(engine, entity, sample(entity, n), new Map([[2, 5]]));
  await settle();
  return all;
}

async function verifyAll(
  engine: Engine,
  options: { readonly repair: boolean; readonly only?: string },
  entity: Entity,
) {
  const found: Finding[] = [];
  for (let position: Parameters<typeof operationsCheck.verifyPage>[2]['position']; ; ) {
    const page = await operationsCheck.verifyPage(engine, entity, { position, top: 1_000, patience: 0, ...options });
    found.push(...page.findings);
    if (!page.next) return found;
    position = page.next;
  }
}

const SETUPS = sampleItems([[['first']], [['first', 'second', 'third']]], 'accounts with rows of others');

describe.each(SETUPS)('in accounts %s', (names) => {
  test('commands over many rows leave rows of another program as they are', { tags: ['slow'] }, async () => {
    const world = await openWorld(names);
    const { engine, settle } = world;
    const seeded = await seed(world);
    const before = await placeEverywhere(engine.storage);
    const unchanged = async (what: string) => expect(await foreignIn(engine.storage), what).toEqual(before);
    for (const entity of plain.filter(({ period }) => !period)) {
      // A client may have written a row with keys that no entity has, and only a person can tell.
      const found = await verifyAll(engine, { repair: true }, entity);
      expect(found.filter(({ kind, repaired }) => kind !== 'invalid' || repaired)).toEqual([]);
      for (const only of Object.keys(entity.indexes)) await verifyAll(engine, { repair: true, only }, entity);
    }
    await unchanged('verify and reindex');
    await operationsCheck.collectOrphans({ ...engine, now: () => Date.now() + 30 * baseValues.DAY_MS }, model.list);
    await unchanged('orphans');
    for (const entity of plain) {
      const late = { ...engine, now: () => Date.now() + 40_000 * baseValues.DAY_MS };
      if (entity.expiry) await featureUpkeep.expireEntities(late, entity, { until: Number.POSITIVE_INFINITY });
    }
    await settle();
    await unchanged('expiry');
    for (const { entity, values } of seeded) {
      const { failed } = await engineWrite.deleteRange(
        engine,
        entity,
        baseValues.pick(values, entity.partition.fields),
        { all: true },
      );
      expect(failed.map(({ code }) => code).filter((code) => code !== 'referenced')).toEqual([]);
    }
    await settle();
    await unchanged('range delete');
    const late = { ...engine, now: () => Date.now() + 40_000 * baseValues.DAY_MS };
    for (const entity of model.list) {
      if (!entity.period) continue;
      const { dropped, shared } = await featureUpkeep.rollPeriods(late, entity);
      expect([dropped, shared.length > 0], entity.name).toEqual([[], true]);
    }
    await unchanged('periods');
  });
});

/** The addresses at which an entity has rows, or would have them: its own, and those of its index entries and totals. */
function addressesOf(entity: Entity, values: Values): Address[] {
  const rows = definePlaces.projectionsOf(entity).flatMap((projection) => [...projection.rows(values)]);
  return [
    definePlaces.addressOf(entity, values),
    ...rows.map(({ table, partition, row }) => ({ table, partition, row })),
  ];
}

async function outcomeOf(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return 'done';
  } catch (error) {
    if (error instanceof RowkeyError) return error.code;
    throw error;
  }
}

describe.each(SETUPS)('single writes in accounts %s', (names) => {
  test('refuse the key of a row of another program, and leave the row as it is', { tags: ['slow'] }, async () => {
    const world = await openWorld(names);
    const { engine, settle } = world;
    const { storage } = engine;
    await seed(world);
    for (const { table } of model.list) engineCore.noteShared(engine, table);
    for (const [index, entity] of plain.filter(({ isWrittenByClients }) => !isWrittenByClients).entries()) {
      const values = sample(entity, 31 + index);
      const { childOf } = entity;
      if (childOf)
        await engineWrite.createEntity(engine, childOf, {
          ...sample(childOf, 71),
          ...baseValues.pick(values, childOf.keyFields),
        });
      const whole = (await engineWrite.createEntity(engine, entity, values)).values;
      const key = baseValues.pick(whole, entity.keyFields);
      await engineWrite.deleteEntity(engine, entity, key, {});
      await settle();
      const at = definePlaces.addressOf(entity, whole);
      const account = await ownerFor(storage, at);
      await place(account, at);
      const before = await foreignIn(storage);
      const field = Object.keys(values).find((name) => !entity.keyFields.includes(name)) ?? '';
      const body = baseValues.pick(
        values,
        entity.keyFields.filter((name) => !(name in entity.derived)).concat(Object.keys(values)),
      );
      const outcomes = {
        create: await outcomeOf(engineWrite.createEntity(engine, entity, values)),
        put: await outcomeOf(engineWrite.putEntity(engine, entity, key, values, {})),
        patch: await outcomeOf(engineWrite.patchEntity(engine, entity, key, { [field]: values[field] }, {})),
        delete: await outcomeOf(engineWrite.deleteEntity(engine, entity, key, {})),
        deleteAny: await outcomeOf(engineWrite.deleteEntity(engine, entity, key, { ifMatch: '*' })),
        batch: (
          await engineWrite.writeBatch(engine, entity, [
            { put: body },
            { patch: { ...key, [field]: values[field] } },
            { delete: key },
          ])
        ).map((outcome) => (outcome instanceof RowkeyError ? outcome.code : outcome.outcome)),
        transact: await outcomeOf(engineWrite.transact(engine, [{ entity, action: { delete: key } }])),
        transactPut: await outcomeOf(engineWrite.transact(engine, [{ entity, action: { put: body } }])),
      };
      expect({ entity: entity.name, ...outcomes }).toEqual({
        entity: entity.name,
        create: 'duplicate-key',
        put: 'duplicate-key',
        patch: 'not-found',
        delete: 'not-found',
        deleteAny: 'not-found',
        batch: ['duplicate-key', 'not-found', 'not-found'],
        transact: 'not-found',
        transactPut: 'duplicate-key',
      });
      await settle();
      expect(await foreignIn(storage), entity.name).toEqual(before);
    }
  });

  test('leave a row of another program at the key of an index entry, a list, a count or a total', {
    tags: ['slow'],
  }, async () => {
    const world = await openWorld(names);
    const { engine, settle } = world;
    const { storage } = engine;
    await seed(world);
    for (const { table } of model.list) engineCore.noteShared(engine, table);
    const some = sampleItems([...plain.keys()], 'entity beside rows of others', 8);
    for (const index of some) {
      const entity = plain[index] as Entity;
      const values = sample(entity, 31 + index);
      const { childOf } = entity;
      if (childOf)
        await engineWrite.createEntity(engine, childOf, {
          ...sample(childOf, 71),
          ...baseValues.pick(values, childOf.keyFields),
        });
      const whole = (await engineWrite.createEntity(engine, entity, values)).values;
      const key = baseValues.pick(whole, entity.keyFields);
      await settle();
      const others = addressesOf(entity, whole).slice(1);
      await engineWrite.deleteEntity(engine, entity, key, {});
      await settle();
      for (const at of others)
        if (!(await storageRows.readRow(storage, at))) await place(await ownerFor(storage, at), at);
      const before = await foreignIn(storage);
      await outcomeOf(engineWrite.createEntity(engine, entity, values));
      await outcomeOf(engineWrite.putEntity(engine, entity, key, values, {}));
      await outcomeOf(engineWrite.deleteEntity(engine, entity, key, {}));
      expect(await foreignIn(storage), entity.name).toEqual(before);
      if (!entity.period) await verifyAll(engine, { repair: true }, entity);
      expect(await foreignIn(storage), entity.name).toEqual(before);
    }
  });

  test('leave a row of another program at the key of a series', { tags: ['slow'] }, async () => {
    const { engine } = await openWorld(names);
    const { storage } = engine;
    for (const entity of series.filter(({ isWrittenByClients }) => !isWrittenByClients)) {
      engineCore.noteShared(engine, entity.table);
      const key = sample(entity, 51);
      await featureSeries.setCounts(engine, entity, key, new Map([[2, 5]]));
      await featureSeries.deleteSeries(engine, entity, key);
      const at = definePlaces.addressOf(entity, key);
      await place(await ownerFor(storage, at), at);
      const before = await foreignIn(storage);
      expect([
        await outcomeOf(featureSeries.readSeries(engine, entity, key)),
        await outcomeOf(featureSeries.setCounts(engine, entity, key, new Map([[2, 5]]))),
        await outcomeOf(featureSeries.increment(engine, entity, key, { slot: 2, by: 1 })),
        await outcomeOf(featureSeries.deleteSeries(engine, entity, key)),
        await outcomeOf(featureSeries.deleteSeries(engine, entity, key, { ifMatch: '*' })),
      ]).toEqual(['not-found', 'duplicate-key', 'duplicate-key', 'not-found', 'not-found']);
      expect(await foreignIn(storage), entity.name).toEqual(before);
    }
  });
});

describe('moves between accounts', () => {
  const given = { timing: QUICK, resources: resources() };

  test('leave rows of another program where they are, and move all others', { tags: ['slow'] }, async () => {
    const world = await openWorld(['first', 'second', 'third']);
    const { engine, open } = world;
    await seed(world);
    const before = await placeEverywhere(engine.storage);
    const unchanged = async (what: string) => expect(await foreignIn(engine.storage), what).toEqual(before);
    const rows = await countRows(engine.storage);
    const all = await usedSlots(engine.storage);
    await operationsMove.moveSlots(open(), [{ slots: all, to: 'second' }], given);
    await unchanged('move');
    await operationsMove.moveBack(open(), undefined, given);
    await unchanged('back');
    await operationsMove.moveSlots(open(), [{ slots: all, to: 'third' }], given);
    await operationsMove.cleanUp(open(), given);
    await unchanged('clean-up');
    expect(await countRows(engine.storage)).toBe(rows);
    await operationsMove.asMover(open(), given, async (mover) => {
      await operationsMove.startMoves(mover, [{ slots: all.slice(0, 64), to: 'first' }], false);
      expect(await operationsMove.legsOf(mover)).not.toEqual([]);
    });
    await operationsMove.abortMoves(open(), given);
    await unchanged('abort');
    expect(await countRows(engine.storage)).toBe(rows);
  });
});

/** Items that get another key, lose an index, and may be archived and moved. */
function declareItems(
  key: { partition: string; row: string; former?: { partition: string; row: string } },
  indexes = {},
) {
  const declared = defineEntity('items', {
    schema: z.object({ shop: z.string(), id: z.string(), color: z.string() }),
    table: 'items',
    key,
    archive: { table: 'olditems' },
    movable: ['shop'],
    indexes: {
      color: interPartitionIndex({ table: 'itemsbycolor', partition: '{color}', row: '{shop}_{id}' }),
      ...indexes,
    },
    access: { read: [], write: [] },
  });
  return deploy(declared).items as Entity;
}

const item = (id: string): Values => ({ shop: 'A', id, color: 'red' });

describe.each(SETUPS)('changes of a model in accounts %s', (names) => {
  const OLD = { partition: '{shop}', row: 'item_{id}' };
  const before = declareItems(OLD, { copy: intraPartitionIndex({ row: 'copy_{color}_{id}', copies: 'keys' }) });
  const plainItems = declareItems(OLD);
  const after = declareItems({ partition: '{shop}_{id}', row: 'item', former: OLD });
  const [first, second, third]: [Values, Values, Values] = [item('1'), item('2'), item('3')];
  const items = [first, second, third];

  async function open(entity: Entity) {
    const world = await openWorld(names, [entity]);
    await operationsModel.guardModel(world.engine, [before], undefined);
    for (const values of items) await engineWrite.createEntity(world.engine, before, values);
    await world.settle();
    const { storage } = world.engine;
    const occupy = async (at: Address) => place(await ownerFor(storage, at), at);
    return { ...world, storage, occupy };
  }

  test('leave rows of another program in the clean-up of a removed index', async () => {
    const { engine, storage } = await open(plainItems);
    const placed = await placeEverywhere(storage);
    await operationsModel.guardModel(engine, [plainItems], undefined);
    const options = { entities: [plainItems], position: undefined, top: 1_000 };
    const { findings } = await operationsCheck.cleanUpIndex(engine, plainItems, 'copy', options);
    expect(findings.filter(({ repaired }) => repaired)).toHaveLength(items.length);
    expect(await foreignIn(storage)).toEqual(placed);
  });

  test('leave rows of another program beside a move to another key, and name the entity whose key one has', {
    tags: ['slow'],
  }, async () => {
    const { engine, storage, occupy } = await open(after);
    await placeEverywhere(storage);
    const taken = definePlaces.addressOf(after, third);
    await occupy(taken);
    const placed = await foreignIn(storage);
    await operationsModel.guardModel(engine, [after], undefined);
    await operationsModel.startRekey(engine, after);
    await operationsModel.startMoves(engine, after);
    const found: Finding[] = [];
    for (let position: Parameters<typeof operationsModel.rekeyPage>[2]['position']; ; ) {
      const page = await operationsModel.rekeyPage({ ...engine, rekey: operationsModel.createRekey([after]) }, after, {
        position,
        top: 100,
      });
      found.push(...page.findings);
      if (!page.next) break;
      position = page.next;
    }
    expect(await foreignIn(storage)).toEqual(placed);
    expect(found.filter(({ repaired }) => repaired)).toHaveLength(2);
    const stuck = found.filter(({ repaired }) => !repaired);
    expect(stuck).toMatchObject([
      { kind: 'unreachable', row: 'item_3', reason: 'Another entity has this key at the destination.' },
    ]);
    for (const values of [first, second])
      expect(await storageRows.readRow(storage, definePlaces.addressOf(after, values))).toMatchObject({
        properties: { color: 'red' },
      });
  });

  test('leave rows of another program at the key of an archived or moved entity, which stays', async () => {
    const { engine, storage, occupy, settle } = await open(before);
    await occupy(definePlaces.addressOf(before.archive as Entity, first));
    await occupy(definePlaces.addressOf(before, { ...second, shop: 'B' }));
    const placed = await foreignIn(storage);
    const ids = [
      {
        operation: 'archive',
        operationId: await engineTransfer.requestArchive(engine, before, baseValues.pick(first, ['shop', 'id'])),
      },
      {
        operation: 'move',
        operationId: await engineTransfer.requestMove(engine, before, baseValues.pick(second, ['shop', 'id']), {
          shop: 'B',
        }),
      },
    ] as const;
    await settle();
    expect(await foreignIn(storage)).toEqual(placed);
    for (const each of ids)
      expect((await engineWrite.readOperation(engine, { ...each, entity: 'items' })).status).toBe('failed');
    for (const one of items)
      expect(
        (await engineRead.readEntity(engine, before, baseValues.pick(one, ['shop', 'id']), {})).values,
      ).toMatchObject(one);
  });
});
