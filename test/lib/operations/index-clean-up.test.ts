import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, indexEntity, interPartitionIndex, intraPartitionIndex, total } from '../../../lib/define.ts';
import { cleanUpIndex } from '../../../lib/operations/index-clean-up.ts';
import { allPages } from '../../all-pages.ts';
import { interruptedHttpClient } from '../../faulty-http-client.ts';
import { deploy } from '../../fixtures/deploy.ts';
import { engineWrite } from '../../kit/engine.ts';
import { operationsModel, type VerifyPosition } from '../../kit/operations.ts';
import { type Storage, storageAccounts, storageRows, storageTables } from '../../kit/storage.ts';
import { openWorld, rowsOf, type World } from '../../world.ts';

const declaration = {
  schema: z.object({ a: z.string(), b: z.string(), c: z.string() }),
  table: 'things',
  key: { partition: '{a}', row: 'b_{b}' },
  access: { read: ['hr'], write: ['hr'] },
} as const;
const kept = {
  kept: intraPartitionIndex({ row: 'kept_{c}' }),
  keptList: indexEntity({ row: 'klist_{c}', holds: '{b}' }),
};
const former = {
  copy: intraPartitionIndex({ row: 'copy_{c}_{b}' }),
  list: indexEntity({ row: 'list_{c}', holds: '{b}' }),
  shared: interPartitionIndex({ table: 'things', partition: 'of_{c}', row: 'shared_{a}_{b}' }),
  remote: interPartitionIndex({ table: 'thingsbyc', partition: '{c}', row: '{c}', unique: true }),
  listElsewhere: indexEntity({ table: 'thingslists', partition: '{c}', row: 'ids', holds: '{a}/{b}' }),
};
const { things: before } = deploy(defineEntity('things', { ...declaration, indexes: { ...kept, ...former } }));
const { things: after } = deploy(defineEntity('things', { ...declaration, indexes: kept }));

const world = await openWorld(import.meta.url, [before]);
beforeAll(async () => {
  await operationsModel.guardModel(world.engine, [before], undefined);
  for (const b of ['1', '2', '3', '4', '5'])
    await engineWrite.createEntity(world.engine, before, { a: b < '3' ? 'one' : 'two', b, c: `c${b}` });
  await world.settle();
});

const cleanUp = async (index: string, position?: VerifyPosition) =>
  cleanUpIndex(world.engine, after, index, { entities: [after], position, top: 7 });

async function cleanUpAll(index: string): Promise<number> {
  const pages = await allPages((position: VerifyPosition | undefined) => cleanUp(index, position));
  return pages.flatMap(({ findings }) => findings).filter(({ repaired }) => repaired).length;
}

describe('the clean-up of a removed index', () => {
  test('deletes only the rows of that index and is offered until it has finished', async () => {
    const keys = async () => (await rowsOf(world.storage, 'things')).map(({ rowKey }) => String(rowKey)).sort();
    const all = await keys();
    expect(all).toHaveLength(30);
    const notes = await operationsModel.guardModel(world.engine, [after], undefined);
    expect(notes).toHaveLength(Object.keys(former).length);
    for (const name of ['kept', 'constructor', '__proto__', 'toString'])
      await expect(cleanUp(name)).rejects.toMatchObject({ code: 'not-found' });

    for (const index of ['copy', 'list', 'shared'] as const) {
      expect(await cleanUpAll(index)).toBe(5);
      await expect(cleanUp(index)).rejects.toMatchObject({ code: 'not-found' });
    }
    expect(await keys()).toEqual(all.filter((key) => /^(b|kept|klist)_/.test(key)));

    expect(await storageTables.listTables(world.storage, 'things')).toEqual(['things', 'thingsbyc', 'thingslists']);
    const steps = await storageAccounts.explain(() => cleanUp('remote'));
    expect(steps).toContainEqual({ write: 'table', table: 'thingsbyc', does: 'drop' });
    expect(await storageTables.listTables(world.storage, 'things')).toEqual(['things', 'thingsbyc', 'thingslists']);
    await cleanUpAll('remote');
    await cleanUpAll('listElsewhere');
    expect(await storageTables.listTables(world.storage, 'things')).toEqual(['things']);
    expect(await operationsModel.guardModel(world.engine, [after], undefined)).toEqual([]);
  });

  test.each([
    ['lists', (row: string) => indexEntity({ row, holds: '{b}' })],
    ['copies', (row: string) => intraPartitionIndex({ row })],
  ] as const)('keeps %s of another entity whose keys match the removed index', async (a, toIndex) => {
    const table = 'sharing';
    const indexes = { former: toIndex('{c}') };
    const { sharing: then } = deploy(defineEntity('sharing', { ...declaration, table, indexes }));
    const { sharing: now } = deploy(defineEntity('sharing', { ...declaration, table }));
    const key = { ...declaration.key, row: 'other_{b}' } as const;
    const tags = { tags: toIndex('tag_{c}') };
    const { others: other } = deploy(defineEntity('others', { ...declaration, table, key, indexes: tags }));
    const { engine, storage } = await openWorld(import.meta.url, [then, other]);
    await operationsModel.guardModel(engine, [then, other], undefined);
    for (const entity of [then, other]) await engineWrite.createEntity(engine, entity, { a, b: '1', c: 'c1' });
    await operationsModel.guardModel(engine, [now, other], undefined);
    await cleanUpIndex(engine, now, 'former', { entities: [now, other], position: undefined, top: 100 });
    const rows = (await rowsOf(storage, table)).filter(({ partitionKey }) => partitionKey === a);
    expect(rows.map(({ rowKey }) => rowKey)).toEqual(['b_1', 'other_1', 'tag_c1']);
  });
});

test.each(['own', 'shared'])('the clean-up of a removed total deletes its rows in its %s table', async (place) => {
  const table = `counted${place}`;
  const sums = { table: place === 'own' ? `${table}totals` : table, partition: 'of_{c}', row: 'all' } as const;
  const schema = declaration.schema.extend({ amount: z.int32() });
  const totals = { former: total({ ...sums, sum: ['amount'] }) };
  const { [table]: then } = deploy(defineEntity(table, { ...declaration, schema, table, totals }));
  const { [table]: now } = deploy(defineEntity(table, { ...declaration, schema, table }));
  if (!then || !now) throw new Error('Both are declared.');
  const { engine, storage, settle } = await openWorld(import.meta.url, [then]);
  await operationsModel.guardModel(engine, [then], undefined);
  for (const b of ['1', '2']) await engineWrite.createEntity(engine, then, { a: 'one', b, c: 'c', amount: 2 });
  await settle();
  const rows = await Promise.all([table, sums.table].map((each) => rowsOf(storage, each)));
  expect(rows.flat().length).toBeGreaterThan(2);
  await operationsModel.guardModel(engine, [now], undefined);
  await cleanUpIndex(engine, now, 'former', { entities: [now], position: undefined, top: 100 });
  expect((await rowsOf(storage, table)).map(({ rowKey }) => rowKey)).toEqual(['b_1', 'b_2']);
  expect((await storageTables.listTables(storage, '')).filter((name) => name === `${table}totals`)).toEqual([]);
});

describe('the clean-up of many rows', () => {
  const table = 'many';
  const copy = interPartitionIndex({ table, partition: 'of_{c}', row: 'copy_{a}_{b}' });
  const { many: then } = deploy(defineEntity('many', { ...declaration, table, indexes: { copy } }));
  const { many: now } = deploy(defineEntity('many', { ...declaration, table }));

  /** Removes the index, which has these numbers of copies in its partitions. */
  async function removeIndex(counts: Readonly<Record<string, number>>, more = {}): Promise<World> {
    const own = await openWorld(import.meta.url, [then]);
    await operationsModel.guardModel(own.engine, [then], undefined);
    for (const [partition, count] of Object.entries(counts)) await storeCopies(own.storage, partition, count, more);
    await operationsModel.guardModel(own.engine, [now], undefined);
    return own;
  }

  async function storeCopies(storage: Storage, partition: string, count: number, more: object) {
    const actions = Array.from({ length: count }, (_, index) => {
      const b = String(index).padStart(4, '0');
      const properties = { EntityType: 'many', SourcePartition: 'one', SourceRow: `b_${b}`, a: 'one', b, ...more };
      return { kind: 'insert', row: `copy_one_${b}`, properties } as const;
    });
    for (let at = 0; at < count; at += 100)
      await storageRows.submit(storage, { table, partition, actions: actions.slice(at, at + 100) });
  }

  /** Cleans up all pages. */
  async function cleanUpPages({ engine }: World, maxTransactions = 100_000) {
    const pages = await allPages((position: VerifyPosition | undefined) =>
      storageAccounts.measureCost(async (spent) => {
        const options = { entities: [now], position, top: 1_000, maxTransactions };
        return { ...(await cleanUpIndex(engine, now, 'copy', options)), cost: spent.transactions };
      }),
    );
    return pages.map(({ cost, checked, findings }) => {
      return { cost, checked, repaired: findings.filter(({ repaired }) => repaired).length };
    });
  }

  test('deletes a hundred copies of a partition in a transaction', async () => {
    const own = await removeIndex({ of_x: 250, of_y: 3 });
    // The shape, a scan of 64 rows a call, the transactions (of_x takes 100, 100 and 50), the shape again and its change.
    expect(await cleanUpPages(own)).toEqual([{ cost: 1 + 4 + 4 + 2, checked: 253, repaired: 253 }]);
    expect(await rowsOf(own.storage, table)).toEqual([]);
  });

  test('deletes the others if another process has deleted a copy', async () => {
    const own = await removeIndex({ of_z: 20 });
    const interrupt = () => own.storage.table(table).deleteEntity('of_z', 'copy_one_0007');
    // The shape, the scan, the transaction.
    const client = interruptedHttpClient(3, interrupt, 'before');
    const [page] = await cleanUpPages({ ...own, engine: own.engineThrough(client) });
    expect(page).toMatchObject({ checked: 20, repaired: 19 });
    expect(await rowsOf(own.storage, table)).toEqual([]);
  });

  test('ends a page that takes too many transactions, and continues in the next one', { tags: ['slow'] }, async () => {
    // Rows with a claim are checked one by one.
    const own = await removeIndex({ of_x: 40 }, { Claim: 'ended', ClaimExpires: '2020-01-01T00:00:00Z' });
    const pages = await cleanUpPages(own, 30);
    expect(pages.reduce((sum, { checked }) => sum + checked, 0)).toBe(40);
    // Eight rows run concurrently, and each takes some reads and a delete.
    expect(Math.max(...pages.map(({ cost }) => cost))).toBeLessThan(30 + 8 * 8);
    expect(pages.length).toBeGreaterThan(1);
    expect(await rowsOf(own.storage, table)).toEqual([]);
  });
});
