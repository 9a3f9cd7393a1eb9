import pMap from 'p-map';
import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity } from '../../lib/define/define-entity.ts';
import type { Entity } from '../../lib/define/entity.ts';
import { compileFilter } from '../../lib/define/filter.ts';
import type { Finding } from '../../lib/define/finding.ts';
import { indexEntity, interPartitionIndex, intraPartitionIndex } from '../../lib/define/indexes.ts';
import { omit, pick, type Values } from '../../lib/define/values.ts';
import type { Position } from '../../lib/engine/read/continuation.ts';
import { readEntities, readEntity, readWithChildren, scanEntities } from '../../lib/engine/read/retrieve.ts';
import { readOperation } from '../../lib/engine/transfer/operation.ts';
import { requestArchive, requestMove } from '../../lib/engine/transfer/transfer.ts';
import { deleteRange } from '../../lib/engine/write/delete-range.ts';
import { writeAtomically, writeBatch } from '../../lib/engine/write/entity-batch.ts';
import {
  createEntity,
  deleteEntity,
  patchEntity,
  putEntity,
  replaceEntity,
} from '../../lib/engine/write/entity-store.ts';
import { toPlain } from '../../lib/engine/write/stored-values.ts';
import { RowkeyError } from '../../lib/errors.ts';
import { toProblem } from '../../lib/http/problem.ts';
import { collectOrphans } from '../../lib/operations/collect-orphans.ts';
import { rewrapEntities } from '../../lib/operations/rewrap.ts';
import { verifyPage } from '../../lib/operations/verify.ts';
import { readByCopies, readByCopy, readByList } from '../../lib/pattern-helpers/read-through-index.ts';
import { measureCost } from '../../lib/storage/cost.ts';
import { explain } from '../../lib/storage/explain.ts';
import { rotateLocalKey } from '../../lib/storage/local-key-ring.ts';
import { faultyHttpClient } from '../faulty-http-client.ts';
import { deploy } from '../fixtures/deploy.ts';
import {
  type FurtherRowSubject,
  rowKeysOf as keysOf,
  TRANSFERS,
  testFaultsOfChanges,
  tryFaultsOfTransfers,
  tryTransfer,
} from '../further-row-faults.ts';
import { expectIndexesToAgree, openWorld, rowsOf, type World } from '../world.ts';

/** An entity that does not fit into one row. */

const access = { read: ['hr'], write: ['hr'] } as const;
type Measured = `m${number}`;
const names = Array.from({ length: 1_980 }, (_, index): Measured => `m${index + 1}`);
const measurements = (count: number): Record<Measured, z.ZodOptional<z.ZodString>> =>
  Object.fromEntries(names.slice(0, count).map((name) => [name, z.string().optional()]));
const schema = z.object({
  plant: z.string(),
  testId: z.string(),
  status: z.string().optional(),
  batch: z.string().optional(),
  note: z.string().optional(),
  secret: z.string().optional(),
  ...measurements(1_978),
  m1979: z.string().optional(),
  m1980: z.string().optional(),
});
const ofTests = { schema, table: 'tests', key: { partition: '{plant}', row: 'test_{testId}' }, access } as const;
const status = intraPartitionIndex({ row: 'status_{status}_{testId}', copies: ['batch'] });
const declared = defineEntity('tests', {
  ...ofTests,
  wide: true,
  access: { ...access, restricted: { secret: ['hr'] } },
  large: ['note'],
  encrypted: ['secret'],
  indexes: {
    status,
    batch: interPartitionIndex({
      table: 'testsbybatch',
      partition: '{batch}',
      row: '{plant}_{testId}',
      copies: 'keys',
      when: ({ m1980 }) => m1980 !== 'hidden',
    }),
    last: indexEntity({ row: 'last_{m1979}', holds: '{testId}' }),
  },
  archive: { table: 'formertests' },
  movable: ['plant'],
});
const declaredRemarks = defineEntity('remarks', {
  schema: z.object({ plant: z.string(), testId: z.string(), remark: z.string() }),
  table: 'tests',
  key: { partition: '{plant}', row: 'test_{testId}_{remark}' },
  childOf: declared,
  access,
});
/** Nothing but its rows. */
const plainTests = defineEntity('plaintests', { ...ofTests, table: 'plaintests', wide: true });
const { tests, remarks, plaintests } = deploy(declared, declaredRemarks, plainTests);
/** The same rows as they were stored before the entity was declared wide. */
const { plaintests: narrow } = deploy(
  defineEntity('plaintests', {
    ...ofTests,
    schema: schema.pick({ plant: true, testId: true, status: true, note: true }).extend(measurements(2)),
    table: 'plaintests',
  }),
);
const former = tests.archive as Entity;
const every = Object.keys(tests.columns);

/** A text of 60 kB in storage: sixteen fill a row. */
const LONG = 'x'.repeat(30_000);

let world: World;
beforeAll(async () => {
  world = await openWorld(import.meta.url, [tests, remarks, plaintests]);
});

let counter = 0;
/** An entity of three rows, whose indexed fields are in the last one, after the others have filled the first. */
function tested(over: Values = {}): Values {
  counter += 1;
  const testId = `T${counter}`;
  return { plant: 'Oslo', testId, ...numbered(480, `of ${testId}`), m1979: testId, m1980: 'z', ...over };
}
function numbered(count: number, value: unknown, first = 1): Values {
  return pick(Object.fromEntries(names.map((name) => [name, value])), names.slice(first - 1, first - 1 + count));
}
const create = (one: Values, entity: Entity = tests) => createEntity(world.engine, entity, one);
const read = (one: Values, entity: Entity = tests, select?: readonly string[]) =>
  readEntity(world.engine, entity, one, { select });
const whole = async (one: Values, entity: Entity = tests) =>
  toPlain(world.engine, entity, (await read(one, entity)).values);
const costOf = (work: () => Promise<unknown>) => measureCost(async (cost) => work().then(() => cost.transactions));
const rowKeysOf = (one: Values, entity: Entity = tests) => keysOf(world, entity, one);
const verify = async (repair: boolean): Promise<readonly Finding[]> => {
  const findings: Finding[] = [];
  for (
    let position: Parameters<typeof verifyPage>[2]['position'], isFirst = true;
    isFirst || position;
    isFirst = false
  ) {
    const options = { position, top: 1_000, repair, patience: 10, maxTransactions: 100_000 };
    const page = await verifyPage(world.engine, tests, options);
    findings.push(...page.findings);
    position = page.next;
  }
  return findings;
};
const subject: FurtherRowSubject = {
  world: () => world,
  what: 'Wide entity',
  newcomer: (name) => tested({ plant: name, status: 'new', batch: name }),
  create,
  whole,
};
const transferred = { entity: tests, archive: former, entities: [tests, remarks], elsewhere: { plant: 'There' } };
/** Repeats what meets too many other requests, as a caller would. */
async function untilNotBusy<Result>(work: () => Promise<Result>): Promise<Result> {
  for (;;)
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof RowkeyError && error.code === 'busy')) throw error;
    }
}
/** What a piece of work reads and writes, without executing its writes. */
async function stepsOf(work: () => Promise<unknown>) {
  const steps = await explain(work);
  const actions = steps.flatMap((step) => ('write' in step && step.write === 'rows' ? step.actions : []));
  const kinds = steps.map((step) => ('read' in step ? step.read : step.write));
  return { rows: actions.map(({ kind, row }) => `${kind} ${row}`), kinds };
}

describe('an entity of 2,000 fields', () => {
  const all = { plant: 'All', testId: 'all', status: 'new', ...numbered(1_980, 'measured') };

  test('is written in one transaction, and read by one range query', async () => {
    expect(await costOf(() => create(all, plaintests))).toBe(1);
    expect(await rowKeysOf(all, plaintests)).toHaveLength(9);
    expect(await costOf(async () => expect(await whole(all, plaintests)).toEqual(all))).toBe(1);
    expect((await stepsOf(() => read(all, plaintests))).kinds).toEqual(['rows']);
  });

  test('is changed by one range query and one transaction with the rows of the changed fields', async () => {
    const change = () => patchEntity(world.engine, plaintests, all, { m1: 'changed', m1980: 'changed' });
    const row = 'test_all';
    const rows = [`replace ${row}`, `upsert ${row}!-wide8`];
    expect(await stepsOf(change)).toEqual({ rows, kinds: ['rows', 'rows'] });
    expect(await costOf(change)).toBe(2);
    const changed = { ...all, m1: 'changed', m1980: 'changed' };
    expect(await whole(all, plaintests)).toEqual(changed);
    const put = () => putEntity(world.engine, plaintests, all, { ...changed, m700: 'put' });
    expect((await stepsOf(put)).rows).toEqual([`replace ${row}`, `upsert ${row}!-wide2`]);
    expect(await costOf(put)).toBe(2);
    expect(await whole(all, plaintests)).toEqual({ ...changed, m700: 'put' });
    expect((await stepsOf(() => patchEntity(world.engine, plaintests, all, { m1: 'changed' }))).rows).toEqual([]);
  });

  test('returns selected fields alone from storage, and key fields from its own row', async () => {
    const selected = () => read(all, plaintests, ['testId', 'm2', 'm1500']);
    expect((await selected()).values).toEqual({ testId: 'all', m2: 'measured', m1500: 'measured' });
    expect(await explain(selected)).toMatchObject([{ read: 'rows', select: expect.arrayContaining(['m2', 'm1500']) }]);
    expect(await explain(() => read(all, plaintests, ['testId']))).toMatchObject([{ read: 'row' }]);
    // A projection of so many names would be longer than a URL may be.
    const most = names.slice(100);
    expect((await read(all, plaintests, most)).values).toEqual({ ...pick(all, most), m1980: 'changed', m700: 'put' });
  });

  test('is deleted with all its rows', async () => {
    expect(await costOf(() => deleteEntity(world.engine, plaintests, all))).toBe(6);
    expect(await rowKeysOf(all, plaintests)).toEqual([]);
    await expect(read(all, plaintests)).rejects.toMatchObject({ code: 'not-found' });
  });
});

describe('an entity of 3 MB', () => {
  const one = { plant: 'Large', testId: 'large', ...numbered(100, LONG) };

  test('is written, read and changed at the same cost', async () => {
    expect(await costOf(() => create(one, plaintests))).toBe(1);
    expect(await costOf(async () => expect(await whole(one, plaintests)).toEqual(one))).toBe(1);
    expect(await costOf(() => patchEntity(world.engine, plaintests, one, { m90: 'short' }))).toBe(2);
    expect(await whole(one, plaintests)).toEqual({ ...one, m90: 'short' });
  });

  test('does not exceed what one transaction writes', async () => {
    const change = patchEntity(world.engine, plaintests, one, numbered(30, LONG, 101));
    await expect(change).rejects.toMatchObject({
      code: 'too-large',
      details: { accepted: expect.stringContaining('3670016 bytes') },
    });
    expect(await whole(one, plaintests)).toEqual({ ...one, m90: 'short' });
  });

  test('is listed page by page, also if a filter leaves out what a page holds', async () => {
    const others = ['a', 'b', 'z'].map((testId) => ({ ...one, testId }));
    for (const other of others) await create(other, plaintests);
    const list = async (filter: Values, select?: string[]) => {
      const items: Values[] = [];
      for (let after: { row: string } | undefined, isFirst = true; isFirst || after; isFirst = false) {
        const where = compileFilter(plaintests, filter);
        const options = { top: 2, after, where, select };
        const page = await readEntities(world.engine, plaintests, { plant: 'Large' }, options);
        items.push(...page.items);
        after = page.next;
      }
      return items;
    };
    const found = await list({});
    expect(found.map(({ testId }) => testId)).toEqual(['a', 'b', 'large', 'z']);
    expect(found[3]).toEqual(others[2]);
    expect(await list({ testId: { gt: 'x' } })).toEqual([others[2]]);
    expect(await list({ testId: { gt: 'x' } }, ['m1'])).toEqual([{ m1: LONG }]);
    const listKeys = () => readEntities(world.engine, plaintests, { plant: 'Large' }, { top: 100, select: ['testId'] });
    expect((await listKeys()).items).toHaveLength(4);
    expect(await costOf(listKeys)).toBe(1);
    const { deleted } = await deleteRange(world.engine, plaintests, { plant: 'Large' }, { all: true });
    expect(deleted).toBeGreaterThan(0);
  });
});

describe('a read', () => {
  test('beside keys that begin with its key does not mix entities', async () => {
    const keys = ['A', 'A B', 'A!-wide1'];
    const all = keys.map((testId) => tested({ plant: 'Mixed', testId }));
    for (const one of all) await create(one);
    for (const one of all) expect(await whole(one)).toEqual(one);
    for (const top of [1, 2, 3]) {
      const items: Values[] = [];
      for (let after: { row: string } | undefined, isFirst = true; isFirst || after; isFirst = false) {
        const options = { from: 'A', to: 'A', top, after };
        const page = await readEntities(world.engine, tests, { plant: 'Mixed' }, options);
        items.push(...page.items);
        after = page.next;
      }
      expect(items).toEqual(all);
    }
    expect((await scanEntities(world.engine, tests, { top: 1_000 })).items).toEqual(expect.arrayContaining(all));
  });

  test('includes children in the same query', async () => {
    const one = tested({ plant: 'Children' });
    await create(one);
    await create(tested({ plant: 'Children', testId: `${one.testId} 2` }));
    const remark = { plant: 'Children', testId: one.testId, remark: 'good' };
    await create(remark, remarks);
    const get = () => readWithChildren(world.engine, tests, one, [remarks]);
    expect((await get()).values).toEqual({ ...one, remarks: [remark] });
    expect(await costOf(get)).toBe(1);
  });

  test('through an index finds entities by a field of any row', async () => {
    const one = tested({ plant: 'Indexed', status: 'ready', batch: 'B1', m1979: 'L' });
    const hidden = tested({ plant: 'Indexed', status: 'ready', batch: 'B1', m1980: 'hidden' });
    for (const each of [one, hidden]) await create(each);
    const { batch, last } = tests.indexes;
    const byStatus = { plant: 'Indexed', status: 'ready' };
    expect((await readByCopies(world.engine, tests, status, byStatus, { top: 9 })).items).toMatchObject([
      pick(one, ['testId', 'batch']),
      pick(hidden, ['testId', 'batch']),
    ]);
    expect(await readByCopy(world.engine, tests, status, { ...byStatus, testId: one.testId })).toEqual(one);
    expect((await readByCopies(world.engine, tests, batch, { batch: 'B1' }, { top: 9 })).items).toEqual([one]);
    const keyOnly = { top: 9, select: ['testId'] };
    const found = [pick(one, ['testId'])];
    expect((await readByCopies(world.engine, tests, batch, { batch: 'B1' }, keyOnly)).items).toEqual(found);
    const byLast = { plant: 'Indexed', m1979: 'L' };
    expect((await readByList(world.engine, tests, last, byLast, { top: 9 })).items).toEqual([one]);
    expect((await readByList(world.engine, tests, last, byLast, keyOnly)).items).toEqual(found);
    // The condition, the copy and the list follow a field of a further row.
    await patchEntity(world.engine, tests, hidden, { m1980: 'shown' });
    await patchEntity(world.engine, tests, one, { m1979: 'M', batch: 'B2' });
    await world.settle();
    const inBatch = await readByCopies(world.engine, tests, batch, { batch: 'B1' }, keyOnly);
    expect(inBatch.items).toEqual([pick(hidden, ['testId'])]);
    expect((await readByList(world.engine, tests, last, byLast, keyOnly)).items).toEqual([]);
  });
});

describe('a write', () => {
  test('moves fields between rows, and reads all back', async () => {
    const one = { plant: 'Grown', testId: 'grown', ...numbered(20, LONG) };
    await create(one);
    expect(await rowKeysOf(one)).toHaveLength(2);
    await patchEntity(world.engine, tests, one, numbered(20, LONG, 21));
    expect(await rowKeysOf(one)).toHaveLength(3);
    const short = Object.fromEntries(names.slice(0, 30).map((name) => [name, null]));
    await patchEntity(world.engine, tests, one, { ...short, status: 's', note: 'n'.repeat(200_000) });
    const left = { plant: 'Grown', testId: 'grown', ...numbered(10, LONG, 31), status: 's', note: 'n'.repeat(200_000) };
    expect(await whole(one)).toEqual(left);
    await replaceEntity(world.engine, tests, one, { ...pick(one, ['plant', 'testId']), m1: 'alone' });
    expect(await rowKeysOf(one)).toHaveLength(1);
    expect(await whole(one)).toEqual({ plant: 'Grown', testId: 'grown', m1: 'alone' });
  });

  test('of any field changes the ETag of the entity', async () => {
    const one = tested();
    const { etag } = await create(one);
    await patchEntity(world.engine, tests, one, { m400: 'other' });
    const stale = patchEntity(world.engine, tests, one, { m1: 'x' }, { ifMatch: etag });
    await expect(stale).rejects.toMatchObject({ code: 'etag-mismatch' });
    await expect(deleteEntity(world.engine, tests, one, { ifMatch: etag })).rejects.toMatchObject({
      code: 'etag-mismatch',
    });
  });

  test('in a batch shares transactions as far as they fit', async () => {
    const some = Array.from({ length: 6 }, () => ({ ...tested({ plant: 'Batch' }), ...numbered(30, LONG, 600) }));
    const batch = async (...actions: Parameters<typeof writeBatch>[2]) =>
      (await writeBatch(world.engine, tests, actions)).map((each) => ('outcome' in each ? each.outcome : each.code));
    expect(await batch(...some.map((one) => ({ put: one })))).toEqual(some.map(() => 'created'));
    for (const one of some) expect(await whole(one)).toEqual(one);
    const patches = some.map((one) => ({ patch: { ...pick(one, tests.keyFields), m2: 'patched', m460: null } }));
    expect(await batch(...patches)).toEqual(some.map(() => 'stored'));
    for (const one of some) expect(await whole(one)).toEqual({ ...omit(one, ['m460']), m2: 'patched' });
    // A page of the range ends after 4 MiB.
    const remove = () => deleteRange(world.engine, tests, { plant: 'Batch' }, { all: true });
    expect((await remove()).deleted + (await remove()).deleted).toBe(6);
    await world.settle();
    const left = (await rowsOf(world.storage, 'tests')).filter(({ partitionKey }) => partitionKey === 'Batch');
    expect(left.filter(({ rowKey }) => !/^last_/.test(String(rowKey)))).toEqual([]);
  });

  test('stores what was stored before the entity was declared wide', async () => {
    const one = { plant: 'Legacy', testId: 'legacy', m1: 'a', note: 'b' };
    await create(one, narrow);
    expect(await whole(one, plaintests)).toEqual(one);
    await patchEntity(world.engine, plaintests, one, numbered(600, 'c', 3));
    expect(await whole(one, plaintests)).toEqual({ ...one, ...numbered(600, 'c', 3) });
  });

  test('upgrades the whole entity', async () => {
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
    const listed = await readEntities(world.engine, next, { plant: 'Upgraded' }, { top: 9, select: ['status'] });
    expect(listed.items).toEqual([{ status: 'z' }]);
    expect((await read(one, next, ['testId'])).values).toEqual({ testId: one.testId });
    await patchEntity(world.engine, next, one, { m2: 'x' });
    expect(await whole(one, next)).toEqual({ ...upgraded, m2: 'x' });
  });

  test('encrypts, rewraps and keeps texts in blobs in any row', async () => {
    const one = tested({ plant: 'Sealed', secret: 'Top', note: 'n'.repeat(400_000) });
    await create(one);
    await rotateLocalKey(world.keyFile);
    expect(await rewrapEntities(world.engine, tests, { top: 1_000 })).toMatchObject({ failed: 0 });
    const later = { ...world.engine, now: () => Date.now() + 3 * 86_400_000 };
    await collectOrphans(later, [tests]);
    expect(await whole(one)).toEqual(one);
  });
});

describe('all rows go with their entity:', () => {
  test.each(TRANSFERS)('an %s', (transfer) => {
    const values = { plant: `From ${transfer}`, ...numbered(40, LONG), secret: 'S', status: 'new', batch: 'B' };
    return tryTransfer(subject, transferred, transfer, tested(values));
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

  test('lead from a field of a further row to a field of a further row', async () => {
    const own = await openWorld(import.meta.url, [tools, uses]);
    const tool = { toolId: 'T', ...numbered(299, 'x'), m300: 'code' };
    const use = { useId: 'U', ...numbered(299, 'x'), m300: 'code' };
    await expect(createEntity(own.engine, uses, use)).rejects.toMatchObject({ details: { field: 'm300' } });
    await createEntity(own.engine, tools, tool);
    await own.settle();
    await createEntity(own.engine, uses, use);
    await expect(deleteEntity(own.engine, tools, tool)).rejects.toMatchObject({ code: 'referenced' });
    const check = { top: 100, repair: false, patience: 10 };
    expect((await verifyPage(own.engine, uses, check)).findings).toEqual([]);
    await deleteEntity(own.engine, uses, use);
    await deleteEntity(own.engine, tools, tool);
  });
});

describe('faults and concurrent writers', () => {
  const moved = { ...numbered(20, LONG, 700), m3: null, m470: 'changed' };
  const replacing = (one: Values) => ({ ...pick(one, tests.keyFields), m1: 'alone', m470: 'kept' });

  testFaultsOfChanges(subject, {
    'a create': { act: (engine, one) => createEntity(engine, tests, one), after: (one) => one },
    'a patch of one row': {
      act: (engine, one) => patchEntity(engine, tests, one, { m1: 'changed' }),
      after: (one) => ({ ...one, m1: 'changed' }),
    },
    'a patch of several rows, with a new one': {
      act: (engine, one) => patchEntity(engine, tests, one, moved),
      after: (one) => omit({ ...one, ...moved }, ['m3']),
    },
    'a replace that needs fewer rows': {
      act: (engine, one) => replaceEntity(engine, tests, one, replacing(one)),
      after: replacing,
    },
    'a delete': { act: (engine, one) => deleteEntity(engine, tests, one), after: () => undefined },
  });

  test('of a move or an archive leave it in one place with all its rows', () =>
    tryFaultsOfTransfers(subject, transferred));

  test('keep every change, and no reader sees rows of two states', async () => {
    const one = tested({ plant: 'Raced', ...numbered(20, LONG, 700), status: '0', m480: '0' });
    await create(one);
    let isDone = false;
    let reads = 0;
    const reader = async () => {
      for (; !isDone; reads += 1) {
        const { values } = await untilNotBusy(() => read(one));
        expect(values.m480).toBe(values.status);
        const range = { from: String(one.testId), top: 1, select: every };
        const [listed] = (await untilNotBusy(() => readEntities(world.engine, tests, one, range))).items;
        expect(listed?.m480).toBe(listed?.status);
      }
    };
    const writers = pMap(
      Array.from({ length: 24 }, (_, index) => index + 1),
      async (index) => {
        const engine = index % 2 === 0 ? world.engine : world.engineThrough(faultyHttpClient());
        const change =
          index % 3 === 0 ? { [`m${index}`]: 'kept' } : { status: `${index}`, m480: `${index}`, m700: `${index}` };
        await untilNotBusy(() => patchEntity(engine, tests, one, change));
      },
      { concurrency: 4 },
    ).finally(() => {
      isDone = true;
    });
    await Promise.all([writers, reader()]);
    const values = await whole(one);
    expect(values.m480).toBe(values.status);
    for (const index of [3, 6, 9, 12, 15, 18, 21, 24]) expect(values[`m${index}`]).toBe('kept');
    expect(reads).toBeGreaterThan(0);
    await world.settle();
  });

  test('leave nothing for the consistency check', async () => {
    await world.settle();
    expect(await verify(false)).toEqual([]);
    await expectIndexesToAgree(world.storage, { ...tests, children: [] });
  });
});

describe('an entity that lost a row', () => {
  const lose = (one: Values) =>
    world.storage.table('tests').deleteEntity(String(one.plant), `test_${one.testId}!-wide1`);
  const needsRepair = (work: Promise<unknown>) => expect(work).rejects.toMatchObject({ code: 'needs-repair' });
  async function scanAll() {
    const scan = (after?: Position) => scanEntities(world.engine, tests, { top: 1_000, after });
    for (let { next } = await scan(); next; ) ({ next } = await scan(next));
  }
  const toMove = (one: Values) => requestMove(world.engine, tests, one, { plant: `New${one.plant}` });

  test('is in no list without the fields of the row', async () => {
    const one = tested({ plant: 'Partial', batch: 'Partial', status: 'partial' });
    await Promise.all([create(one), create(tested({ plant: 'Partial', batch: 'Partial' }))]);
    await lose(one);
    const { batch: byBatch, last } = tests.indexes;
    if (byBatch?.kind !== 'inter-partition' || last?.kind !== 'index-entity') throw new Error('Other indexes.');
    await needsRepair(readEntities(world.engine, tests, one, { top: 10 }));
    await needsRepair(readEntities(world.engine, tests, one, { top: 10, select: ['m1'] }));
    await needsRepair(scanAll());
    await needsRepair(readByCopies(world.engine, tests, byBatch, { batch: 'Partial' }, { top: 10 }));
    await needsRepair(readByList(world.engine, tests, last, pick(one, ['plant', 'm1979']), { top: 10 }));
    const { items } = await readEntities(world.engine, tests, one, { top: 10, select: ['testId'] });
    expect(items).toContainEqual({ testId: one.testId });
    const patch = { ...pick(one, ['plant', 'testId']), m1: 'x' };
    const error = await writeAtomically(world.engine, tests, [{ patch }]).catch((thrown: RowkeyError) => thrown);
    expect(error).toMatchObject({ code: 'needs-repair', message: expect.stringContaining('at 0') });
    expect(toProblem(error as RowkeyError).detail).not.toContain('wide1');
    await deleteEntity(world.engine, tests, one);
    expect((await readEntities(world.engine, tests, one, { top: 10 })).items).toHaveLength(1);
  });

  test.each([
    ['archived', 'archive', (one: Values) => requestArchive(world.engine, tests, one), former],
    ['moved', 'move', toMove, tests],
  ] as const)('is not %s', async (_, operation, request, destination) => {
    const [before, after] = [tested({ plant: 'Kept' }), tested({ plant: 'Kept' })];
    await Promise.all([create(before), create(after)]);
    await lose(before);
    await needsRepair(request(before));
    // The row may also be lost before the queue executes the operation.
    const operationId = await request(after);
    await lose(after);
    await world.settle();
    for (const one of [before, after]) {
      await needsRepair(read(one));
      const there = destination === tests ? { ...one, plant: 'NewKept' } : one;
      expect(await rowKeysOf(there, destination)).toEqual([]);
      expect(await rowKeysOf(one)).toHaveLength(2);
    }
    const failed = {
      status: 'failed',
      reason: 'A further row of an entity of tests is lost: wide1. npm run verify -- <entity> finds its key.',
    };
    const done = { entity: 'tests', operation, operationId };
    expect(await readOperation(world.engine, done)).toMatchObject(failed);
    await Promise.all([before, after].map((one) => deleteEntity(world.engine, tests, one)));
    await world.settle();
  });

  test('keeps the other rows if its keys are wrapped again', async () => {
    const one = tested({ plant: 'Wrapped', secret: 'S3cret' });
    await create(one);
    await lose(one);
    await rotateLocalKey(world.keyFile);
    const pages = [await rewrapEntities(world.engine, tests, { top: 1_000 })];
    for (let page = pages[0]; page?.next; page = pages.at(-1))
      pages.push(await rewrapEntities(world.engine, tests, { top: 1_000, after: page.next }));
    expect(pages.reduce((sum, { failed }) => sum + failed, 0)).toBe(1);
    await needsRepair(read(one));
    await deleteEntity(world.engine, tests, one);
    await world.settle();
  });
});

describe('the consistency check', () => {
  test('finds and repairs further rows that are missing, of another state or left over', async () => {
    const [lost, changed, deleted] = [
      tested({ plant: 'Checked', status: 's' }),
      tested({ plant: 'Checked', status: 's', batch: 'Checked' }),
      tested({ plant: 'Checked', status: 's' }),
    ];
    for (const one of [lost, changed, deleted]) await create(one);
    const table = world.storage.table('tests');
    const rowOf = (one: Values, name: string) => `test_${one.testId}!-${name}`;
    const former1 = { partitionKey: 'Checked', rowKey: rowOf(changed, 'wide1'), WriteId: 'of another incarnation' };
    await table.deleteEntity('Checked', rowOf(lost, 'wide2'));
    await table.updateEntity({ ...former1, m300: 'former' }, 'Merge');
    await table.deleteEntity('Checked', `test_${deleted.testId}`);
    const leftOver = { partitionKey: 'Checked', rowKey: 'test_nobody!-wide1' };
    await world.storage
      .table('formertests')
      .createEntity({ ...leftOver, EntityType: 'formertests.wide', WriteId: 'none' });
    await world.storage.table('testsbybatch').deleteEntity('Checked', `Checked_${changed.testId}`);
    for (const one of [lost, changed]) {
      await expect(read(one)).rejects.toMatchObject({ code: 'needs-repair' });
      await expect(patchEntity(world.engine, tests, one, { m1: 'x' })).rejects.toMatchObject({ code: 'needs-repair' });
    }
    expect((await read(lost, tests, ['testId'])).values).toEqual({ testId: lost.testId });
    const found = await verify(true);
    expect(found).toEqual(
      expect.arrayContaining(
        [
          { kind: 'missing', of: 'wide2', row: rowOf(lost, 'wide2') },
          { kind: 'stale', of: 'wide1', row: rowOf(changed, 'wide1') },
          { kind: 'orphaned', of: 'wide1', row: rowOf(deleted, 'wide1') },
          { kind: 'orphaned', of: 'wide2', row: rowOf(deleted, 'wide2') },
          { kind: 'orphaned', of: 'wide1', table: 'formertests', row: leftOver.rowKey },
          { kind: 'missing', of: 'batch', table: 'testsbybatch', row: `Checked_${changed.testId}` },
        ].map((finding) => expect.objectContaining({ ...finding, repaired: true })),
      ),
    );
    await verify(true);
    expect(await verify(false)).toEqual([]);
    expect(await whole(changed)).toEqual({ ...changed, m300: 'former' });
    const left = await whole(lost);
    expect(left).toMatchObject(numbered(230, `of ${lost.testId}`));
    expect(left).not.toHaveProperty('m480');
    await expect(read(deleted)).rejects.toMatchObject({ code: 'not-found' });
  });

  test('is not needed to replace or to delete an entity that lost a row', async () => {
    const one = tested({ plant: 'Renewed' });
    await create(one);
    const lose = () => world.storage.table('tests').deleteEntity('Renewed', `test_${one.testId}!-wide1`);
    await lose();
    await replaceEntity(world.engine, tests, one, one);
    expect(await whole(one)).toEqual(one);
    await lose();
    await deleteEntity(world.engine, tests, one);
    await world.settle();
    expect(await rowKeysOf(one)).toEqual([]);
  });
});
