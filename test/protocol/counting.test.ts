import { createDefaultHttpClient } from '@azure/core-rest-pipeline';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity } from '../../lib/define.ts';
import { costOf } from '../cost-of.ts';
import { interruptedHttpClient } from '../faulty-http-client.ts';
import { deploy } from '../fixtures/deploy.ts';
import { departments, employees } from '../fixtures/model.ts';
import { engineRead, engineTransfer, engineWrite } from '../kit/engine.ts';
import { operationsCheck } from '../kit/operations.ts';
import { putAll } from '../put-all.ts';
import { expectIndexesToAgree, openWorld, rowsOf, somebody } from '../world.ts';

/** The employeeCount of a department is exact under concurrent writes. */

const common = { table: 'boxes', access: { read: ['hr'], write: ['hr'] } } as const;
/** An entity that is only counted: without indexes and copied fields. */
const declaredBoxes = defineEntity('boxes', {
  ...common,
  schema: z.object({ place: z.string(), boxId: z.string(), size: z.string() }),
  key: { partition: '{place}', row: 'box_{boxId}' },
});
const declaredShelves = defineEntity('shelves', {
  ...common,
  schema: z.object({ place: z.string(), boxCount: z.int32().optional() }),
  key: { partition: '{place}', row: 'shelf' },
  counts: { boxCount: declaredBoxes },
});
/** At most three in a place. */
const declaredCrates = defineEntity('crates', {
  ...common,
  table: 'crates',
  schema: z.object({ place: z.string(), crateId: z.string(), until: z.iso.datetime().optional() }),
  key: { partition: '{place}', row: 'crate_{crateId}' },
  expiry: { at: 'until' },
  movable: ['place'],
});
const cellarsWith = (crateCount: z.ZodType) =>
  defineEntity('cellars', {
    ...common,
    table: 'crates',
    schema: z.object({ place: z.string(), note: z.string().optional(), crateCount }),
    key: { partition: '{place}', row: 'cellar' },
    counts: { crateCount: declaredCrates },
  });
const { boxes, shelves, crates, cellars } = deploy(
  declaredBoxes,
  declaredShelves,
  declaredCrates,
  cellarsWith(z.int32().max(3).optional()),
);

const world = await openWorld(import.meta.url, [boxes, shelves, crates, cellars]);

const countOf = async (department: string) =>
  (await engineRead.readEntity(world.engine, departments, { department })).values.employeeCount;
const hire = (department: string, over = {}, engine = world.engine) =>
  engineWrite.createEntity(engine, employees, somebody({ department, ...over }));

describe('a maintained count', () => {
  test('is correct after 32 concurrent creates and deletes', async () => {
    await engineWrite.createEntity(world.engine, departments, { department: 'Crowd' });
    // The constant clock keeps callers from timing out on a slow machine.
    const now = Date.now();
    const patient = { ...world.engine, now: () => now };
    // Those of one process wait for each other.
    const other = { ...world.engineThrough(createDefaultHttpClient()), now: () => now };
    const engineOf = (index: number) => (index % 2 === 0 ? patient : other);
    const hireAll = () => Array.from({ length: 16 }, (_, index) => hire('Crowd', {}, engineOf(index)));
    const early = await Promise.all(hireAll());
    expect(await countOf('Crowd')).toBe(16);
    await Promise.all([
      ...early.map(({ values }, index) => engineWrite.deleteEntity(engineOf(index), employees, values)),
      ...hireAll(),
    ]);
    expect(await countOf('Crowd')).toBe(16);
    await world.settle();
    await expectIndexesToAgree(world.storage, employees);
  });

  test('survives a department that is created after its employees, deleted before them, and created again', async () => {
    await hire('Late');
    await hire('Late');
    await expect(engineRead.readEntity(world.engine, departments, { department: 'Late' })).rejects.toMatchObject({
      code: 'not-found',
    });
    await engineWrite.createEntity(world.engine, departments, { department: 'Late' });
    expect(await countOf('Late')).toBe(2);
    await engineWrite.deleteEntity(world.engine, departments, { department: 'Late' });
    await expect(engineRead.readEntity(world.engine, departments, { department: 'Late' })).rejects.toMatchObject({
      code: 'not-found',
    });
    await hire('Late');
    await engineWrite.createEntity(world.engine, departments, { department: 'Late', description: 'Back' });
    expect(await countOf('Late')).toBe(3);
  });

  test('survives writes to the department, and cannot be written', async () => {
    const { values } = await hire('Kept');
    await engineWrite.createEntity(world.engine, departments, { department: 'Kept' });
    const key = { department: 'Kept' };
    await engineWrite.patchEntity(world.engine, departments, key, { description: 'One' });
    await engineWrite.replaceEntity(world.engine, departments, key, {
      description: 'Two',
      managerId: values.employeeId,
    });
    expect(await countOf('Kept')).toBe(1);
    expect(await putAll(world.engine, departments, [{ ...key, description: 'Three' }])).toEqual(['stored']);
    expect(await countOf('Kept')).toBe(1);
    await expect(engineWrite.patchEntity(world.engine, departments, key, { employeeCount: 7 })).rejects.toMatchObject({
      code: 'invalid-input',
    });
  });

  test('changes with its manager in the same transaction', async () => {
    const { values } = await hire('Led');
    await engineWrite.createEntity(world.engine, departments, { department: 'Led', managerId: values.employeeId });
    await engineWrite.patchEntity(world.engine, employees, values, { lastName: 'Renamed' });
    expect(await countOf('Led')).toBe(1);
    await engineWrite.deleteEntity(world.engine, employees, values);
    const { values: led } = await engineRead.readEntity(world.engine, departments, { department: 'Led' });
    expect(led).toEqual({ department: 'Led', employeeCount: 0 });
  });

  test('follows moves, archives and imports', { tags: ['slow'] }, async () => {
    const people = Array.from({ length: 40 }, () => somebody({ department: 'From' }));
    expect(await putAll(world.engine, employees, people)).toEqual(people.map(() => 'created'));
    for (const department of ['From', 'To']) await engineWrite.createEntity(world.engine, departments, { department });
    await world.settle();
    for (const person of people.slice(0, 3))
      await engineTransfer.requestMove(world.engine, employees, person, { department: 'To' });
    for (const person of people.slice(3, 5)) await engineTransfer.requestArchive(world.engine, employees, person);
    await world.settle();
    expect(await countOf('From')).toBe(35);
    expect(await countOf('To')).toBe(3);
    await expectIndexesToAgree(world.storage, employees);
  });

  test('adds no transaction to a create, even if the last name exists already', async () => {
    await hire('Cheap', { lastName: 'Same' });
    const again = await costOf(() => hire('Cheap', { lastName: 'Same' }));
    expect(again).toBe(10);
  });

  test('is not decreased by a delete that is rejected because the entity changed', async () => {
    const box = { place: 'Attic', boxId: '1' };
    const { etag } = await engineWrite.createEntity(world.engine, boxes, { ...box, size: 'small' });
    const grow = () => engineWrite.patchEntity(world.engine, boxes, box, { size: 'large' });
    // Between the read and the transaction of the delete.
    const overtaken = world.engineThrough(interruptedHttpClient(1, grow, 'after'));
    await expect(engineWrite.deleteEntity(overtaken, boxes, box, { ifMatch: etag })).rejects.toMatchObject({
      code: 'etag-mismatch',
    });
    expect((await engineRead.readEntity(world.engine, boxes, box)).values.size).toBe('large');
    await engineWrite.createEntity(world.engine, shelves, { place: 'Attic' });
    expect((await engineRead.readEntity(world.engine, shelves, { place: 'Attic' })).values.boxCount).toBe(1);
    await engineWrite.deleteEntity(world.engine, boxes, box);
    await world.settle();
    const rows = await rowsOf(world.storage, 'boxes');
    const attic = rows.filter(({ partitionKey }) => partitionKey === box.place);
    expect(attic).toMatchObject([{ rowKey: 'shelf', boxCount: 0 }]);
  });
});

describe('the maximum of a count', () => {
  const store = (place: string, crateId: string, over = {}, engine = world.engine) =>
    engineWrite.createEntity(engine, crates, { place, crateId, ...over });
  const fill = (place: string) => Promise.all(['1', '2', '3'].map((crateId) => store(place, crateId)));
  const crateCountOf = async (place: string) =>
    (await rowsOf(world.storage, 'crates')).find(
      ({ partitionKey, rowKey }) => partitionKey === place && rowKey === 'cellar',
    )?.crateCount;
  const full = { code: 'partition-full', accepted: 'at most 3 entities of crates in a partition' };

  test('is never exceeded, by concurrent creates of two processes and by a batch, and a delete makes room', async () => {
    const other = world.engineThrough(createDefaultHttpClient());
    const ids = Array.from({ length: 8 }, (_, index) => String(index));
    const outcomes = await Promise.allSettled(
      ids.map((id, index) => store('Busy', id, {}, index % 2 === 0 ? other : world.engine)),
    );
    const refused = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []));
    expect(refused).toHaveLength(5);
    for (const reason of refused) expect(reason).toMatchObject(full);
    const stored = ids.find((_, index) => outcomes[index]?.status === 'fulfilled') ?? '';
    await engineWrite.deleteEntity(world.engine, crates, { place: 'Busy', crateId: stored });
    const batch = ['7', '8', '9'].map((crateId) => ({ create: { place: 'Batch', crateId } }));
    expect(await putAll(world.engine, crates, [{ place: 'Busy', crateId: 'next' }])).toEqual(['created']);
    const [, , , ...late] = await engineWrite.writeBatch(world.engine, crates, [
      ...batch,
      { create: { place: 'Batch', crateId: '10' } },
      { put: { place: 'Batch', crateId: '7' } },
    ]);
    expect(late).toMatchObject([full, { outcome: 'unchanged' }]);
    expect([await crateCountOf('Busy'), await crateCountOf('Batch')]).toEqual([3, 3]);
  });

  test('rejects a transaction as a whole, unless it makes room first', async () => {
    await fill('Once');
    const create = { entity: crates, action: { create: { place: 'Once', crateId: '4' } } };
    await expect(engineWrite.transact(world.engine, [create])).rejects.toMatchObject(full);
    await engineWrite.transact(world.engine, [
      { entity: crates, action: { delete: { place: 'Once', crateId: '1' } } },
      create,
    ]);
    expect(await crateCountOf('Once')).toBe(3);
  });

  test('makes a move fail, and the entity stays where it is', async () => {
    await fill('Full');
    await store('Roomy', '4');
    const key = { place: 'Roomy', crateId: '4' };
    const operationId = await engineTransfer.requestMove(world.engine, crates, key, { place: 'Full' });
    await world.settle();
    // No retry would help.
    expect(world.logged.filter((line) => line.includes('attempt'))).toEqual([]);
    expect(
      await engineWrite.readOperation(world.engine, { operation: 'move', entity: 'crates', operationId }),
    ).toMatchObject({
      status: 'failed',
      reason: 'The partition cannot have more than 3 entities of crates.',
    });
    expect((await engineRead.readEntity(world.engine, crates, key)).values).toEqual(key);
    expect([await crateCountOf('Full'), await crateCountOf('Roomy')]).toEqual([3, 1]);
  });

  test('returns the entity of an earlier attempt, and replaces an expired entity with the key', async () => {
    const last = { place: 'Again', crateId: '3', until: new Date(Date.now() + 60_000).toISOString() };
    await store('Again', '1');
    await store('Again', '2');
    const { etag } = await engineWrite.createEntity(world.engine, crates, last, 'attempt');
    expect(await engineWrite.createEntity(world.engine, crates, last, 'attempt')).toMatchObject({ etag });
    const later = { ...world.engine, now: () => Date.now() + 120_000 };
    await expect(store('Again', '4', {}, later)).rejects.toMatchObject(full);
    expect((await store('Again', '3', {}, later)).values).toEqual({ place: 'Again', crateId: '3' });
    expect(await crateCountOf('Again')).toBe(3);
  });

  test('costs no transaction, and if it is lowered, what is there stays and can be changed', async () => {
    await store('Less', '1');
    expect(await costOf(() => store('Less', '2'))).toBe(1);
    await store('Less', '3');
    await engineWrite.createEntity(world.engine, cellars, { place: 'Less' });
    const lowered = deploy(declaredCrates, cellarsWith(z.int32().max(1).optional()));
    await engineWrite.patchEntity(
      world.engine,
      lowered.crates,
      { place: 'Less', crateId: '1' },
      { until: '2999-01-01T00:00:00Z' },
    );
    await engineWrite.patchEntity(world.engine, lowered.cellars, { place: 'Less' }, { note: 'Damp' });
    await engineWrite.replaceEntity(world.engine, lowered.cellars, { place: 'Less' }, { place: 'Less', note: 'Dry' });
    await engineWrite.deleteEntity(world.engine, lowered.crates, { place: 'Less', crateId: '2' });
    await expect(
      engineWrite.createEntity(world.engine, lowered.crates, { place: 'Less', crateId: '4' }),
    ).rejects.toMatchObject({
      code: 'partition-full',
    });
    expect((await engineRead.readEntity(world.engine, lowered.cellars, { place: 'Less' })).values.crateCount).toBe(2);
  });
});

describe('the consistency check of a count', () => {
  const check = async (place: string, repair: boolean) => {
    const position = { table: 0, after: { partition: place, row: '' }, left: 0 };
    const options = { position, top: 10, repair, patience: 10 };
    const { findings } = await operationsCheck.verifyPage(world.engine, boxes, options);
    return findings
      .filter(({ partition }) => partition === place)
      .map(({ kind, of, row, repaired }) => ({ kind, of, row, repaired }));
  };
  const wrong = { kind: 'wrong-count', of: 'boxCount', row: 'shelf' };
  const shelfOf = async (place: string) =>
    (await rowsOf(world.storage, 'boxes')).find(
      ({ partitionKey, rowKey }) => partitionKey === place && rowKey === 'shelf',
    );
  const putTwo = async (place: string) => {
    for (const boxId of ['1', '2']) await engineWrite.createEntity(world.engine, boxes, { place, boxId, size: 'L' });
  };

  test.each([
    ['too high', { boxCount: 7 }, true],
    ['too low', { boxCount: 0 }, false],
    ['a text', { boxCount: '2' }, true],
    ['not whole', { boxCount: 1.5 }, false],
  ])('finds and repairs one that is %s', async (what, damage, hasShelf) => {
    const place = `Shop ${what}`;
    await putTwo(place);
    if (hasShelf) await engineWrite.createEntity(world.engine, shelves, { place });
    expect(await check(place, true)).toEqual([]);
    const right = await shelfOf(place);
    await world.storage.table('boxes').updateEntity({ partitionKey: place, rowKey: 'shelf', ...damage }, 'Merge');
    expect(await check(place, false)).toEqual([{ ...wrong, repaired: false }]);
    expect(await check(place, true)).toEqual([{ ...wrong, repaired: true }]);
    expect(await check(place, true)).toEqual([]);
    expect(await shelfOf(place)).toMatchObject({ boxCount: 2, EntityType: right?.EntityType });
  });

  test('counts anew after its row is gone, and leaves the row of another program alone', async () => {
    await putTwo('Gone');
    await world.storage.table('boxes').deleteEntity('Gone', 'shelf');
    expect(await check('Gone', true)).toEqual([{ ...wrong, repaired: true }]);
    expect(await shelfOf('Gone')).toMatchObject({ boxCount: 2 });
    await world.storage.table('boxes').deleteEntity('Gone', 'shelf');
    await world.storage.table('boxes').createEntity({ partitionKey: 'Gone', rowKey: 'shelf', boxCount: 9 });
    const foreign = { kind: 'conflict', of: 'boxCount', row: 'shelf', repaired: false };
    expect(await check('Gone', true)).toEqual([foreign]);
    expect(await shelfOf('Gone')).toMatchObject({ boxCount: 9 });
    await world.storage.table('boxes').deleteEntity('Gone', 'shelf');
    expect(await check('Gone', true)).toEqual([{ ...wrong, repaired: true }]);
  });
});
