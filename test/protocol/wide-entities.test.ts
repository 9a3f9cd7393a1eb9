import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, interPartitionIndex, type Values } from '../../lib/index.ts';
import { allItems } from '../all-pages.ts';
import { collectAllOrphans } from '../collect-all-orphans.ts';
import { costOf } from '../cost-of.ts';
import { deploy } from '../fixtures/deploy.ts';
import { baseValues } from '../kit/base.ts';
import { defineCodec } from '../kit/define.ts';
import { engineRead, engineWrite, type Position } from '../kit/engine.ts';
import { operationsCheck, operationsModel } from '../kit/operations.ts';
import { storageAccounts, storageKeys } from '../kit/storage.ts';
import {
  access,
  create,
  LONG,
  measurements,
  names,
  narrow,
  numbered,
  ofTests,
  openWideWorld,
  plaintests,
  read,
  remarks,
  rowKeysOf,
  status,
  stepsOf,
  tested,
  tests,
  whole,
  world,
} from '../wide-entity.ts';
import { openWorld, rowsOf } from '../world.ts';

openWideWorld(import.meta.url);

describe('an entity of 2,000 fields', () => {
  const all = { plant: 'All', testId: 'all', status: 'new', ...numbered(1_980, 'measured') };

  test('is written in one transaction, and read by one range query', async () => {
    expect(await costOf(() => create(all, plaintests))).toBe(1);
    expect(await rowKeysOf(all, plaintests)).toHaveLength(9);
    expect(await costOf(async () => expect(await whole(all, plaintests)).toEqual(all))).toBe(1);
    expect((await stepsOf(() => read(all, plaintests))).kinds).toEqual(['rows']);
  });

  test('is changed by one range query and one transaction with the rows of the changed fields', async () => {
    const change = () => engineWrite.patchEntity(world.engine, plaintests, all, { m1: 'changed', m1980: 'changed' });
    const row = 'test_all';
    const rows = [`replace ${row}`, `upsert ${row}!-wide8`];
    expect(await stepsOf(change)).toEqual({ rows, kinds: ['rows', 'rows'] });
    expect(await costOf(change)).toBe(2);
    const changed = { ...all, m1: 'changed', m1980: 'changed' };
    expect(await whole(all, plaintests)).toEqual(changed);
    const put = () => engineWrite.putEntity(world.engine, plaintests, all, { ...changed, m700: 'put' });
    expect((await stepsOf(put)).rows).toEqual([`replace ${row}`, `upsert ${row}!-wide2`]);
    expect(await costOf(put)).toBe(2);
    expect(await whole(all, plaintests)).toEqual({ ...changed, m700: 'put' });
    expect(
      (await stepsOf(() => engineWrite.patchEntity(world.engine, plaintests, all, { m1: 'changed' }))).rows,
    ).toEqual([]);
  });

  test('returns selected fields alone from storage, and key fields from its own row', async () => {
    const selected = () => read(all, plaintests, ['testId', 'm2', 'm1500']);
    expect((await selected()).values).toEqual({ testId: 'all', m2: 'measured', m1500: 'measured' });
    expect(await storageAccounts.explain(selected)).toMatchObject([
      { read: 'rows', select: expect.arrayContaining(['m2', 'm1500']) },
    ]);
    expect(await storageAccounts.explain(() => read(all, plaintests, ['testId']))).toMatchObject([{ read: 'row' }]);
    // A projection of so many names would be longer than a URL may be.
    const most = names.slice(100);
    expect((await read(all, plaintests, most)).values).toEqual({
      ...baseValues.pick(all, most),
      m1980: 'changed',
      m700: 'put',
    });
  });

  test('is deleted with all its rows', async () => {
    expect(await costOf(() => engineWrite.deleteEntity(world.engine, plaintests, all))).toBe(6);
    expect(await rowKeysOf(all, plaintests)).toEqual([]);
    await expect(read(all, plaintests)).rejects.toMatchObject({ code: 'not-found' });
  });
});

describe('an entity of 3 MB', { tags: ['slow'] }, () => {
  const one = { plant: 'Large', testId: 'large', ...numbered(100, LONG) };

  test('is written, read and changed at the same cost', async () => {
    expect(await costOf(() => create(one, plaintests))).toBe(1);
    expect(await costOf(async () => expect(await whole(one, plaintests)).toEqual(one))).toBe(1);
    expect(await costOf(() => engineWrite.patchEntity(world.engine, plaintests, one, { m90: 'short' }))).toBe(2);
    expect(await whole(one, plaintests)).toEqual({ ...one, m90: 'short' });
  });

  test('does not exceed what one transaction writes', async () => {
    const change = engineWrite.patchEntity(world.engine, plaintests, one, numbered(30, LONG, 101));
    await expect(change).rejects.toMatchObject({
      code: 'too-large',
      accepted: expect.stringContaining('3670016 bytes'),
    });
    expect(await whole(one, plaintests)).toEqual({ ...one, m90: 'short' });
  });

  test('is listed page by page, also if a filter leaves out what a page holds', async () => {
    const others = ['a', 'b', 'z'].map((testId) => ({ ...one, testId }));
    for (const other of others) await create(other, plaintests);
    const list = (filter: Values, select?: string[]) => {
      const options = { top: 2, where: defineCodec.compileFilter(plaintests, filter), select };
      return allItems<Values, Position>((after) =>
        engineRead.readEntities(world.engine, plaintests, { plant: 'Large' }, { ...options, after }),
      );
    };
    const found = await list({});
    expect(found.map(({ testId }) => testId)).toEqual(['a', 'b', 'large', 'z']);
    expect(found[3]).toEqual(others[2]);
    expect(await list({ testId: { gt: 'x' } })).toEqual([others[2]]);
    expect(await list({ testId: { gt: 'x' } }, ['m1'])).toEqual([{ m1: LONG }]);
    const listKeys = () =>
      engineRead.readEntities(world.engine, plaintests, { plant: 'Large' }, { top: 100, select: ['testId'] });
    expect((await listKeys()).items).toHaveLength(4);
    expect(await costOf(listKeys)).toBe(1);
    const { deleted } = await engineWrite.deleteRange(world.engine, plaintests, { plant: 'Large' }, { all: true });
    expect(deleted).toBeGreaterThan(0);
  });
});

describe('a read', () => {
  test('beside keys that begin with its key does not mix entities', { tags: ['slow'] }, async () => {
    const keys = ['A', 'A B', 'A!-wide1'];
    const all = keys.map((testId) => tested({ plant: 'Mixed', testId }));
    for (const one of all) await create(one);
    for (const one of all) expect(await whole(one)).toEqual(one);
    for (const top of [1, 2, 3]) {
      const items = await allItems((after: Position | undefined) =>
        engineRead.readEntities(world.engine, tests, { plant: 'Mixed' }, { from: 'A', to: 'A', top, after }),
      );
      expect(items).toEqual(all);
    }
    expect((await engineRead.scanEntities(world.engine, tests, { top: 1_000 })).items).toEqual(
      expect.arrayContaining(all),
    );
  });

  test('includes children in the same query', { tags: ['slow'] }, async () => {
    const one = tested({ plant: 'Children' });
    await create(one);
    await create(tested({ plant: 'Children', testId: `${one.testId} 2` }));
    const remark = { plant: 'Children', testId: one.testId, remark: 'good' };
    await create(remark, remarks);
    const get = () => engineRead.readWithChildren(world.engine, tests, one, [remarks]);
    expect((await get()).values).toEqual({ ...one, remarks: [remark] });
    expect(await costOf(get)).toBe(1);
  });

  test('through an index finds entities by a field of any row', { tags: ['slow'] }, async () => {
    const one = tested({ plant: 'Indexed', status: 'ready', batch: 'B1', m1979: 'L' });
    const hidden = tested({ plant: 'Indexed', status: 'ready', batch: 'B1', m1980: 'hidden' });
    for (const each of [one, hidden]) await create(each);
    const { batch, last } = tests.indexes;
    const byStatus = { plant: 'Indexed', status: 'ready' };
    expect((await engineRead.readByCopies(world.engine, tests, status, byStatus, { top: 9 })).items).toMatchObject([
      baseValues.pick(one, ['testId', 'batch']),
      baseValues.pick(hidden, ['testId', 'batch']),
    ]);
    expect(await engineRead.readByCopy(world.engine, tests, status, { ...byStatus, testId: one.testId })).toEqual(one);
    expect((await engineRead.readByCopies(world.engine, tests, batch, { batch: 'B1' }, { top: 9 })).items).toEqual([
      one,
    ]);
    const keyOnly = { top: 9, select: ['testId'] };
    const found = [baseValues.pick(one, ['testId'])];
    expect((await engineRead.readByCopies(world.engine, tests, batch, { batch: 'B1' }, keyOnly)).items).toEqual(found);
    const byLast = { plant: 'Indexed', m1979: 'L' };
    expect((await engineRead.readByList(world.engine, tests, last, byLast, { top: 9 })).items).toEqual([one]);
    expect((await engineRead.readByList(world.engine, tests, last, byLast, keyOnly)).items).toEqual(found);
    // The condition, the copy and the list follow a field of a further row.
    await engineWrite.patchEntity(world.engine, tests, hidden, { m1980: 'shown' });
    await engineWrite.patchEntity(world.engine, tests, one, { m1979: 'M', batch: 'B2' });
    await world.settle();
    const inBatch = await engineRead.readByCopies(world.engine, tests, batch, { batch: 'B1' }, keyOnly);
    expect(inBatch.items).toEqual([baseValues.pick(hidden, ['testId'])]);
    expect((await engineRead.readByList(world.engine, tests, last, byLast, keyOnly)).items).toEqual([]);
  });
});

describe('a write', () => {
  test('moves fields between rows, and reads all back', { tags: ['slow'] }, async () => {
    const one = { plant: 'Grown', testId: 'grown', ...numbered(20, LONG) };
    await create(one);
    expect(await rowKeysOf(one)).toHaveLength(2);
    await engineWrite.patchEntity(world.engine, tests, one, numbered(20, LONG, 21));
    expect(await rowKeysOf(one)).toHaveLength(3);
    const short = Object.fromEntries(names.slice(0, 30).map((name) => [name, null]));
    await engineWrite.patchEntity(world.engine, tests, one, { ...short, status: 's', note: 'n'.repeat(200_000) });
    const left = { plant: 'Grown', testId: 'grown', ...numbered(10, LONG, 31), status: 's', note: 'n'.repeat(200_000) };
    expect(await whole(one)).toEqual(left);
    await engineWrite.replaceEntity(world.engine, tests, one, {
      ...baseValues.pick(one, ['plant', 'testId']),
      m1: 'alone',
    });
    expect(await rowKeysOf(one)).toHaveLength(1);
    expect(await whole(one)).toEqual({ plant: 'Grown', testId: 'grown', m1: 'alone' });
  });

  test('of any field changes the ETag of the entity', async () => {
    const one = tested();
    const { etag } = await create(one);
    await engineWrite.patchEntity(world.engine, tests, one, { m400: 'other' });
    const stale = engineWrite.patchEntity(world.engine, tests, one, { m1: 'x' }, { ifMatch: etag });
    await expect(stale).rejects.toMatchObject({ code: 'etag-mismatch' });
    await expect(engineWrite.deleteEntity(world.engine, tests, one, { ifMatch: etag })).rejects.toMatchObject({
      code: 'etag-mismatch',
    });
  });

  test('in a batch shares transactions as far as they fit', { tags: ['slow'] }, async () => {
    const some = Array.from({ length: 6 }, () => ({ ...tested({ plant: 'Batch' }), ...numbered(30, LONG, 600) }));
    const batch = async (...actions: Parameters<typeof engineWrite.writeBatch>[2]) =>
      (await engineWrite.writeBatch(world.engine, tests, actions)).map((each) =>
        'outcome' in each ? each.outcome : each.code,
      );
    expect(await batch(...some.map((one) => ({ put: one })))).toEqual(some.map(() => 'created'));
    for (const one of some) expect(await whole(one)).toEqual(one);
    const patches = some.map((one) => ({
      patch: { ...baseValues.pick(one, tests.keyFields), m2: 'patched', m460: null },
    }));
    expect(await batch(...patches)).toEqual(some.map(() => 'stored'));
    for (const one of some) expect(await whole(one)).toEqual({ ...baseValues.omit(one, ['m460']), m2: 'patched' });
    // A page of the range ends after 4 MiB.
    const remove = () => engineWrite.deleteRange(world.engine, tests, { plant: 'Batch' }, { all: true });
    expect((await remove()).deleted + (await remove()).deleted).toBe(6);
    await world.settle();
    const left = (await rowsOf(world.storage, 'tests')).filter(({ partitionKey }) => partitionKey === 'Batch');
    expect(left.filter(({ rowKey }) => !/^last_/.test(String(rowKey)))).toEqual([]);
  });

  test('stores what was stored before the entity was declared wide', async () => {
    const one = { plant: 'Legacy', testId: 'legacy', m1: 'a', note: 'b' };
    await create(one, narrow);
    expect(await whole(one, plaintests)).toEqual(one);
    await engineWrite.patchEntity(world.engine, plaintests, one, numbered(600, 'c', 3));
    expect(await whole(one, plaintests)).toEqual({ ...one, ...numbered(600, 'c', 3) });
  });

  test('upgrades the whole entity', { tags: ['slow'] }, async () => {
    const one = tested({ plant: 'Upgraded' });
    await create(one, plaintests);
    const { plaintests: next } = deploy(
      defineEntity('plaintests', {
        ...ofTests,
        table: 'plaintests',
        wide: true,
        version: 2,
        upgrades: { 1: (values) => ({ ...values, m480: `2: ${values.m480}`, status: `${values.m1980}` }) },
      }),
    );
    const upgraded = { ...one, m480: `2: ${one.m480}`, status: 'z' };
    expect(await whole(one, next)).toEqual(upgraded);
    const listed = await engineRead.readEntities(
      world.engine,
      next,
      { plant: 'Upgraded' },
      { top: 9, select: ['status'] },
    );
    expect(listed.items).toEqual([{ status: 'z' }]);
    expect((await read(one, next, ['testId'])).values).toEqual({ testId: one.testId });
    await engineWrite.patchEntity(world.engine, next, one, { m2: 'x' });
    expect(await whole(one, next)).toEqual({ ...upgraded, m2: 'x' });
  });

  test('encrypts, rewraps and keeps texts in blobs in any row', async () => {
    const one = tested({ plant: 'Sealed', secret: 'Top', note: 'n'.repeat(400_000) });
    await create(one);
    await storageKeys.rotateLocalKey(world.keyFile);
    expect(await operationsModel.rewrapEntities(world.engine, tests, { top: 1_000 })).toMatchObject({ failed: 0 });
    const later = { ...world.engine, now: () => Date.now() + 3 * 86_400_000 };
    await collectAllOrphans(later, [tests]);
    expect(await whole(one)).toEqual(one);
  });
});

describe('references', () => {
  const declaredTools = defineEntity('tools', {
    schema: z.object({ toolId: z.string(), ...measurements(299), m300: z.string() }),
    table: 'tools',
    key: { partition: '{toolId}', row: 'tool' },
    access,
    wide: true,
    indexes: {
      code: interPartitionIndex({
        table: 'toolsbycode',
        partition: '{m300}',
        row: 'code',
        unique: true,
        copies: 'keys',
      }),
    },
  });
  const declaredUses = defineEntity('uses', {
    schema: z.object({ useId: z.string(), ...measurements(299), m300: z.string() }),
    table: 'uses',
    key: { partition: '{useId}', row: 'use' },
    access,
    wide: true,
    references: { m300: { to: declaredTools, by: 'm300', onDelete: 'refuse' } },
    indexes: {
      tool: interPartitionIndex({ table: 'usesbytool', partition: '{m300}', row: '{useId}', copies: 'keys' }),
    },
  });
  const { tools, uses } = deploy(declaredTools, declaredUses);

  test('lead from a field of a further row to a field of a further row', { tags: ['slow'] }, async () => {
    const own = await openWorld(import.meta.url, [tools, uses]);
    const tool = { toolId: 'T', ...numbered(299, 'x'), m300: 'code' };
    const use = { useId: 'U', ...numbered(299, 'x'), m300: 'code' };
    await expect(engineWrite.createEntity(own.engine, uses, use)).rejects.toMatchObject({ field: 'm300' });
    await engineWrite.createEntity(own.engine, tools, tool);
    await own.settle();
    await engineWrite.createEntity(own.engine, uses, use);
    await expect(engineWrite.deleteEntity(own.engine, tools, tool)).rejects.toMatchObject({ code: 'referenced' });
    const check = { top: 100, repair: false, patience: 10 };
    expect((await operationsCheck.verifyPage(own.engine, uses, check)).findings).toEqual([]);
    await engineWrite.deleteEntity(own.engine, uses, use);
    await engineWrite.deleteEntity(own.engine, tools, tool);
  });
});
