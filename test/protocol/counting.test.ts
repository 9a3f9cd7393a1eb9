import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity } from '../../lib/define/define-entity.ts';
import { readEntity } from '../../lib/engine/read/retrieve.ts';
import { requestArchive, requestMove } from '../../lib/engine/transfer/transfer.ts';
import { createEntity, deleteEntity, patchEntity, replaceEntity } from '../../lib/engine/write/entity-store.ts';
import { costOf } from '../cost-of.ts';
import { interruptedHttpClient } from '../faulty-http-client.ts';
import { deploy } from '../fixtures/deploy.ts';
import { departments, employees } from '../fixtures/model.ts';
import { putAll } from '../put-all.ts';
import { expectIndexesToAgree, openWorld, rowsOf, somebody, type World } from '../world.ts';

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
const { boxes, shelves } = deploy(declaredBoxes, declaredShelves);

let world: World;
beforeAll(async () => {
  world = await openWorld(import.meta.url, [boxes, shelves]);
});

const countOf = async (department: string) =>
  (await readEntity(world.engine, departments, { department })).values.employeeCount;
const hire = (department: string, over = {}, engine = world.engine) =>
  createEntity(engine, employees, somebody({ department, ...over }));

describe('a maintained count', () => {
  test('is correct after 32 concurrent creates and deletes', async () => {
    await createEntity(world.engine, departments, { department: 'Crowd' });
    // The constant clock keeps callers from timing out on a slow machine.
    const now = Date.now();
    const patient = { ...world.engine, now: () => now };
    const early = await Promise.all(Array.from({ length: 16 }, () => hire('Crowd', {}, patient)));
    expect(await countOf('Crowd')).toBe(16);
    await Promise.all([
      ...early.map(({ values }) => deleteEntity(patient, employees, values)),
      ...Array.from({ length: 16 }, () => hire('Crowd', {}, patient)),
    ]);
    expect(await countOf('Crowd')).toBe(16);
    await world.settle();
    await expectIndexesToAgree(world.storage, employees);
  });

  test('survives a department that is created after its employees, deleted before them, and created again', async () => {
    await hire('Late');
    await hire('Late');
    await expect(readEntity(world.engine, departments, { department: 'Late' })).rejects.toMatchObject({
      code: 'not-found',
    });
    await createEntity(world.engine, departments, { department: 'Late' });
    expect(await countOf('Late')).toBe(2);
    await deleteEntity(world.engine, departments, { department: 'Late' });
    await expect(readEntity(world.engine, departments, { department: 'Late' })).rejects.toMatchObject({
      code: 'not-found',
    });
    await hire('Late');
    await createEntity(world.engine, departments, { department: 'Late', description: 'Back' });
    expect(await countOf('Late')).toBe(3);
  });

  test('survives writes to the department, and cannot be written', async () => {
    const { values } = await hire('Kept');
    await createEntity(world.engine, departments, { department: 'Kept' });
    const key = { department: 'Kept' };
    await patchEntity(world.engine, departments, key, { description: 'One' });
    await replaceEntity(world.engine, departments, key, { description: 'Two', managerId: values.employeeId });
    expect(await countOf('Kept')).toBe(1);
    expect(await putAll(world.engine, departments, [{ ...key, description: 'Three' }])).toEqual(['stored']);
    expect(await countOf('Kept')).toBe(1);
    await expect(patchEntity(world.engine, departments, key, { employeeCount: 7 })).rejects.toMatchObject({
      code: 'invalid-input',
    });
  });

  test('changes with its manager in the same transaction', async () => {
    const { values } = await hire('Led');
    await createEntity(world.engine, departments, { department: 'Led', managerId: values.employeeId });
    await patchEntity(world.engine, employees, values, { lastName: 'Renamed' });
    expect(await countOf('Led')).toBe(1);
    await deleteEntity(world.engine, employees, values);
    const { values: led } = await readEntity(world.engine, departments, { department: 'Led' });
    expect(led).toEqual({ department: 'Led', employeeCount: 0 });
  });

  test('follows moves, archives and imports', async () => {
    const people = Array.from({ length: 40 }, () => somebody({ department: 'From' }));
    expect(await putAll(world.engine, employees, people)).toEqual(people.map(() => 'created'));
    for (const department of ['From', 'To']) await createEntity(world.engine, departments, { department });
    await world.settle();
    for (const person of people.slice(0, 3)) await requestMove(world.engine, employees, person, { department: 'To' });
    for (const person of people.slice(3, 5)) await requestArchive(world.engine, employees, person);
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
    const { etag } = await createEntity(world.engine, boxes, { ...box, size: 'small' });
    const grow = () => patchEntity(world.engine, boxes, box, { size: 'large' });
    // Between the read and the transaction of the delete.
    const overtaken = world.engineThrough(interruptedHttpClient(1, grow, 'after'));
    await expect(deleteEntity(overtaken, boxes, box, { ifMatch: etag })).rejects.toMatchObject({
      code: 'etag-mismatch',
    });
    expect((await readEntity(world.engine, boxes, box)).values.size).toBe('large');
    await createEntity(world.engine, shelves, { place: 'Attic' });
    expect((await readEntity(world.engine, shelves, { place: 'Attic' })).values.boxCount).toBe(1);
    await deleteEntity(world.engine, boxes, box);
    await world.settle();
    const rows = await rowsOf(world.storage, 'boxes');
    const attic = rows.filter(({ partitionKey }) => partitionKey === box.place);
    expect(attic).toMatchObject([{ rowKey: 'shelf', boxCount: 0 }]);
  });
});
