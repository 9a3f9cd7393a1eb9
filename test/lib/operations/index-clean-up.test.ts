import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity } from '../../../lib/define/define-entity.ts';
import { indexEntity, interPartitionIndex, intraPartitionIndex } from '../../../lib/define/indexes.ts';
import { createEntity } from '../../../lib/engine/write/entity-store.ts';
import { cleanUpIndex } from '../../../lib/operations/index-clean-up.ts';
import { guardModel } from '../../../lib/operations/model-guard.ts';
import type { VerifyPosition } from '../../../lib/operations/verify.ts';
import { measureCost } from '../../../lib/storage/cost.ts';
import { explain } from '../../../lib/storage/explain.ts';
import { createTable, listTables } from '../../../lib/storage/provision.ts';
import { tryAction } from '../../../lib/storage/rows.ts';
import { deploy } from '../../fixtures/deploy.ts';
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

let world: World;
beforeAll(async () => {
  world = await openWorld(import.meta.url, [before]);
  await guardModel(world.engine, [before], undefined);
  for (const b of ['1', '2', '3', '4', '5'])
    await createEntity(world.engine, before, { a: b < '3' ? 'one' : 'two', b, c: `c${b}` });
  await world.settle();
});

const cleanUp = async (index: string, position?: VerifyPosition) =>
  cleanUpIndex(world.engine, after, index, { entities: [after], position, top: 7 });

async function cleanUpAll(index: string): Promise<number> {
  let deleted = 0;
  for (let page = await cleanUp(index); ; page = await cleanUp(index, page.next)) {
    deleted += page.findings.filter(({ repaired }) => repaired).length;
    if (!page.next) return deleted;
  }
}

describe('the clean-up of a removed index', () => {
  test('deletes only the rows of that index and is offered until it has finished', async () => {
    const keys = async () => (await rowsOf(world.storage, 'things')).map(({ rowKey }) => String(rowKey)).sort();
    const all = await keys();
    expect(all).toHaveLength(30);
    const notes = await guardModel(world.engine, [after], undefined);
    expect(notes).toHaveLength(Object.keys(former).length);
    for (const name of ['kept', 'constructor', '__proto__', 'toString'])
      await expect(cleanUp(name)).rejects.toMatchObject({ code: 'not-found' });

    for (const index of ['copy', 'list', 'shared'] as const) {
      expect(await cleanUpAll(index)).toBe(5);
      await expect(cleanUp(index)).rejects.toMatchObject({ code: 'not-found' });
    }
    expect(await keys()).toEqual(all.filter((key) => /^(b|kept|klist)_/.test(key)));

    expect(await listTables(world.storage, 'things')).toEqual(['things', 'thingsbyc', 'thingslists']);
    const steps = await explain(() => cleanUp('remote'));
    expect(steps).toContainEqual({ write: 'table', table: 'thingsbyc', does: 'drop' });
    expect(await listTables(world.storage, 'things')).toEqual(['things', 'thingsbyc', 'thingslists']);
    await cleanUpAll('remote');
    await cleanUpAll('listElsewhere');
    expect(await listTables(world.storage, 'things')).toEqual(['things']);
    expect(await guardModel(world.engine, [after], undefined)).toEqual([]);
  });

  test('keeps lists of another entity whose keys match the removed index', async () => {
    const list = { list: indexEntity({ row: '{c}', holds: '{b}' }) };
    const table = 'sharing';
    const { sharing: then } = deploy(defineEntity('sharing', { ...declaration, table, indexes: list }));
    const { sharing: now } = deploy(defineEntity('sharing', { ...declaration, table }));
    const tags = { tags: indexEntity({ row: 'tag_{c}', holds: '{b}' }) };
    const key = { ...declaration.key, row: 'other_{b}' } as const;
    const { others: other } = deploy(defineEntity('others', { ...declaration, table, key, indexes: tags }));
    const { engine, storage } = world;
    await createTable(storage, table);
    await guardModel(engine, [then, other], undefined);
    for (const entity of [then, other]) await createEntity(engine, entity, { a: 'one', b: '1', c: 'c1' });
    await guardModel(engine, [now, other], undefined);
    await cleanUpIndex(engine, now, 'list', { entities: [now, other], position: undefined, top: 100 });
    expect((await rowsOf(storage, table)).map(({ rowKey }) => rowKey)).toEqual(['b_1', 'other_1', 'tag_c1']);
  });
});

test('ends a page that takes too many transactions, and continues in the next one', async () => {
  const declared = { ...declaration, table: 'many' } as const;
  const copy = interPartitionIndex({ table: 'many', partition: 'of_{c}', row: 'copy_{a}_{b}' });
  const { many: then } = deploy(defineEntity('many', { ...declared, indexes: { copy } }));
  const { many: now } = deploy(defineEntity('many', declared));
  const { engine, storage } = await openWorld(import.meta.url, [then]);
  await guardModel(engine, [then], undefined);
  for (let b = 10; b < 50; b += 1) {
    const properties = { EntityType: 'many', SourcePartition: 'one', SourceRow: `b_${b}`, a: 'one', b: String(b) };
    await tryAction(
      storage,
      { table: 'many', partition: 'of_x' },
      { kind: 'insert', row: `copy_one_${b}`, properties },
    );
  }
  await guardModel(engine, [now], undefined);
  const pages: { cost: number; checked: number }[] = [];
  for (let position: VerifyPosition | undefined, isFirst = true; position || isFirst; isFirst = false) {
    const { page, cost } = await measureCost(async (spent) => {
      const options = { entities: [now], position, top: 100, maxTransactions: 30 };
      return { page: await cleanUpIndex(engine, now, 'copy', options), cost: spent.transactions };
    });
    pages.push({ cost, checked: page.checked });
    position = page.next;
  }
  expect(pages.reduce((sum, { checked }) => sum + checked, 0)).toBe(40);
  // Eight rows run concurrently, and each takes some reads and a delete.
  expect(Math.max(...pages.map(({ cost }) => cost))).toBeLessThan(30 + 8 * 8);
  expect(await rowsOf(storage, 'many')).toEqual([]);
});
