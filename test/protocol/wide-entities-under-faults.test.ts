import { describe, expect, test } from 'vitest';
import type { RowkeyError, Values } from '../../lib/index.ts';
import { testFurtherRows } from '../further-rows-contract.ts';
import { baseValues } from '../kit/base.ts';
import { engineRead, engineTransfer, engineWrite, type Position } from '../kit/engine.ts';
import { httpDoor } from '../kit/http.ts';
import { operationsModel } from '../kit/operations.ts';
import { storageKeys } from '../kit/storage.ts';
import {
  create,
  former,
  LONG,
  numbered,
  openWideWorld,
  read,
  remarks,
  rowKeysOf,
  subject,
  tested,
  tests,
  verify,
  whole,
  world,
} from '../wide-entity.ts';
import { creating, deleting, patching, replacing, testWrites } from '../write-contract.ts';

openWideWorld(import.meta.url);

testWrites(subject, {
  'a create': creating(tests),
  'a patch of one row': patching(tests, { m1: 'changed' }),
  'a patch of several rows, with a new one': patching(tests, {
    ...numbered(20, LONG, 700),
    m3: null,
    m470: 'changed',
  }),
  'a replace that needs fewer rows': replacing(tests, (one) => ({
    ...baseValues.pick(one, tests.keyFields),
    m1: 'alone',
    m470: 'kept',
  })),
  'a delete': deleting(tests),
});

testFurtherRows(subject, {
  archive: former,
  entities: [tests, remarks],
  elsewhere: { plant: 'There' },
  long: (plant) => tested({ plant, ...numbered(40, LONG), secret: 'S', status: 'new', batch: 'B' }),
  together: (text) => ({ status: text, m480: text, m700: text }),
  alone: (number) => ({ [`m${number}`]: 'kept' }),
  further: 'wide1',
  verify,
});

describe('an entity that lost a row', () => {
  const lose = (one: Values) =>
    world.storage.table('tests').deleteEntity(String(one.plant), `test_${one.testId}!-wide1`);
  const needsRepair = (work: Promise<unknown>) => expect(work).rejects.toMatchObject({ code: 'needs-repair' });
  async function scanAll() {
    const scan = (after?: Position) => engineRead.scanEntities(world.engine, tests, { top: 1_000, after });
    for (let { next } = await scan(); next; ) ({ next } = await scan(next));
  }
  const toMove = (one: Values) => engineTransfer.requestMove(world.engine, tests, one, { plant: `New${one.plant}` });

  test('is in no list without the fields of the row', async () => {
    const one = tested({ plant: 'Partial', batch: 'Partial', status: 'partial' });
    await Promise.all([create(one), create(tested({ plant: 'Partial', batch: 'Partial' }))]);
    await lose(one);
    const { batch: byBatch, last } = tests.indexes;
    if (byBatch?.kind !== 'inter-partition' || last?.kind !== 'index-entity') throw new Error('Other indexes.');
    await needsRepair(engineRead.readEntities(world.engine, tests, one, { top: 10 }));
    await needsRepair(engineRead.readEntities(world.engine, tests, one, { top: 10, select: ['m1'] }));
    await needsRepair(scanAll());
    await needsRepair(engineRead.readByCopies(world.engine, tests, byBatch, { batch: 'Partial' }, { top: 10 }));
    await needsRepair(
      engineRead.readByList(world.engine, tests, last, baseValues.pick(one, ['plant', 'm1979']), { top: 10 }),
    );
    const { items } = await engineRead.readEntities(world.engine, tests, one, { top: 10, select: ['testId'] });
    expect(items).toContainEqual({ testId: one.testId });
    const patch = { ...baseValues.pick(one, ['plant', 'testId']), m1: 'x' };
    const error = await engineWrite
      .writeAtomically(world.engine, tests, [{ patch }])
      .catch((thrown: RowkeyError) => thrown);
    expect(error).toMatchObject({ code: 'needs-repair', message: expect.stringContaining('at 0') });
    expect(httpDoor.toProblem(error as RowkeyError).detail).not.toContain('wide1');
    await engineWrite.deleteEntity(world.engine, tests, one);
    expect((await engineRead.readEntities(world.engine, tests, one, { top: 10 })).items).toHaveLength(1);
  });

  test.each([
    ['archived', 'archive', (one: Values) => engineTransfer.requestArchive(world.engine, tests, one), former],
    ['moved', 'move', toMove, tests],
  ] as const)('is not %s', { tags: ['slow'] }, async (_, operation, request, destination) => {
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
    expect(await engineWrite.readOperation(world.engine, done)).toMatchObject(failed);
    await Promise.all([before, after].map((one) => engineWrite.deleteEntity(world.engine, tests, one)));
    await world.settle();
  });

  test('keeps the other rows if its keys are wrapped again', async () => {
    const one = tested({ plant: 'Wrapped', secret: 'S3cret' });
    await create(one);
    await lose(one);
    await storageKeys.rotateLocalKey(world.keyFile);
    const pages = [await operationsModel.rewrapEntities(world.engine, tests, { top: 1_000 })];
    for (let page = pages[0]; page?.next; page = pages.at(-1))
      pages.push(await operationsModel.rewrapEntities(world.engine, tests, { top: 1_000, after: page.next }));
    expect(pages.reduce((sum, { failed }) => sum + failed, 0)).toBe(1);
    await needsRepair(read(one));
    await engineWrite.deleteEntity(world.engine, tests, one);
    await world.settle();
  });
});

describe('the consistency check', () => {
  test('finds and repairs further rows that are missing, of another state or left over', {
    tags: ['slow'],
  }, async () => {
    const [lost, bothLost, changed, deleted] = [
      tested({ plant: 'Checked', status: 's' }),
      tested({ plant: 'Checked', status: 's' }),
      tested({ plant: 'Checked', status: 's', batch: 'Checked' }),
      tested({ plant: 'Checked', status: 's' }),
    ];
    for (const one of [lost, bothLost, changed, deleted]) await create(one);
    const table = world.storage.table('tests');
    const rowOf = (one: Values, name: string) => `test_${one.testId}!-${name}`;
    const former1 = { partitionKey: 'Checked', rowKey: rowOf(changed, 'wide1'), WriteId: 'of another incarnation' };
    await table.deleteEntity('Checked', rowOf(lost, 'wide2'));
    for (const name of ['wide1', 'wide2']) await table.deleteEntity('Checked', rowOf(bothLost, name));
    await table.updateEntity({ ...former1, m300: 'former' }, 'Merge');
    await table.deleteEntity('Checked', `test_${deleted.testId}`);
    const leftOver = { partitionKey: 'Checked', rowKey: 'test_nobody!-wide1' };
    await world.storage
      .table('formertests')
      .createEntity({ ...leftOver, EntityType: 'formertests.wide', WriteId: 'none' });
    await world.storage.table('testsbybatch').deleteEntity('Checked', `Checked_${changed.testId}`);
    for (const one of [lost, changed]) {
      await expect(read(one)).rejects.toMatchObject({ code: 'needs-repair' });
      await expect(engineWrite.patchEntity(world.engine, tests, one, { m1: 'x' })).rejects.toMatchObject({
        code: 'needs-repair',
      });
    }
    expect((await read(lost, tests, ['testId'])).values).toEqual({ testId: lost.testId });
    const found = await verify(true);
    expect(found).toEqual(
      expect.arrayContaining(
        [
          { kind: 'missing', of: 'wide2', row: rowOf(lost, 'wide2') },
          { kind: 'missing', of: 'wide1', row: rowOf(bothLost, 'wide1') },
          { kind: 'missing', of: 'wide2', row: rowOf(bothLost, 'wide2') },
          { kind: 'stale', of: 'wide1', row: rowOf(changed, 'wide1') },
          { kind: 'orphaned', of: 'wide1', row: rowOf(deleted, 'wide1') },
          { kind: 'orphaned', of: 'wide2', row: rowOf(deleted, 'wide2') },
          { kind: 'orphaned', of: 'wide1', table: 'formertests', row: leftOver.rowKey },
          { kind: 'missing', of: 'batch', table: 'testsbybatch', row: `Checked_${changed.testId}` },
        ].map((finding) => expect.objectContaining({ ...finding, repaired: true })),
      ),
    );
    expect(await verify(false)).toEqual([]);
    expect(await whole(changed)).toEqual({ ...changed, m300: 'former' });
    const left = await whole(lost);
    expect(left).toMatchObject(numbered(230, `of ${lost.testId}`));
    expect(left).not.toHaveProperty('m480');
    await expect(read(deleted)).rejects.toMatchObject({ code: 'not-found' });
  });

  test('deletes a further row that was copied to a key of none, and leaves the blobs that it names to their entity', {
    tags: ['slow'],
  }, async () => {
    const one = tested({ plant: 'Copied', note: 'x'.repeat(100_000) });
    await create(one);
    const table = world.storage.table('tests');
    const { WriteId } = await table.getEntity('Copied', `test_${one.testId}!-wide1`);
    // An old blob: the names of earlier releases have no time.
    const [container, name] = ['large', `tests/${one.testId}`];
    const metadata = { table: 'tests', partition: 'Copied', row: `test_${one.testId}` };
    const blob = world.storage.container(container).getBlockBlobClient(name);
    await blob.upload('x', 1, { metadata });
    const Blob_note = JSON.stringify({ blob: name, length: 1, sha256: 'x' });
    const copies = ['nobody!-wide1', `${one.testId}!-wyde1`, 'nobody'].map((row) => `test_${row}`);
    for (const rowKey of copies)
      await table.createEntity({ partitionKey: 'Copied', rowKey, EntityType: 'tests.wide', WriteId, Blob_note });
    const found = await verify(true);
    expect(found.map(({ kind, row, repaired }) => [kind, row, repaired])).toEqual(
      expect.arrayContaining(copies.map((row) => ['orphaned', row, true])),
    );
    expect(found).toHaveLength(copies.length);
    expect(await verify(false)).toEqual([]);
    expect((await blob.getProperties()).metadata).toEqual(metadata);
    await engineWrite.deleteEntity(world.engine, tests, one);
    await world.settle();
  });
});
