// @module-tag long

import { describe, expect, test } from 'vitest';
import { RowkeyError } from '../../../../lib/index.ts';
import { PNG } from '../../../../local/walk/png.ts';
import type { Internal } from '../../../kit/internal.ts';
import { operationsBackup, operationsCheck } from '../../../kit/operations.ts';
import { storageJournal } from '../../../kit/storage.ts';
import {
  type BackedUp,
  entityNamed,
  openBackedUp,
  passTime,
  useStillClocks,
  valuesIn,
  writeEmptySnapshot,
} from './backup-app.ts';

useStillClocks();

const person = { team: 'ops', email: 'a@x', town: 'Bern' };
const keyOf = (personId: string) => ({ team: 'ops', personId });

async function deletesSince({ engine }: BackedUp, from: number): Promise<Internal['DeletedRow'][]> {
  const { items } = await operationsCheck.readChanges(engine, { from, to: Date.now() + 1_000, limit: 10_000 });
  return items.filter((item): item is Internal['DeletedRow'] => item.operation === 'delete' && item.row !== undefined);
}

const outcomes = (done: Awaited<ReturnType<typeof operationsBackup.undelete>>) =>
  done.map(({ entity, key, outcome }) => [
    `${entity.name} ${key?.personId ?? key?.noteId ?? '?'}`,
    outcome instanceof RowkeyError ? outcome.code : outcome.outcome,
  ]);

describe('undelete', () => {
  test('creates what was deleted with its last values, texts, files and children, and leaves later entities', async () => {
    const app = await openBackedUp();
    const { store } = app;
    await writeEmptySnapshot(app);
    const story = 's'.repeat(100_000);
    await store.people.create({ ...person, personId: '1', story });
    await store.people.files.photo.put(keyOf('1'), PNG);
    await store.pets.create({ ...keyOf('1'), petName: 'rex', legs: 4 });
    await store.people.create({ ...person, personId: '2', email: 'b@x' });
    await store.people.create({ ...person, personId: '3', email: 'c@x' });
    await store.people.update(keyOf('2'), { town: 'Basel' });
    passTime();
    const from = Date.now();
    for (const id of ['1', '2', '3']) await store.people.delete(keyOf(id));
    // Created again, and with the unique value of a deleted one.
    await store.people.create({ ...person, personId: '3', email: 'later@x', town: 'Genf' });
    await store.people.create({ ...person, personId: '4', email: 'b@x' });
    const deletes = await deletesSince(app, from);
    const entity = entityNamed('people');
    const trial = await operationsBackup.undelete(app.engine, entity, { deletes, isTrial: true });
    expect(outcomes(trial)).toEqual([
      ['people 1', 'created'],
      ['people 2', 'created'],
      ['people 3', 'duplicate-key'],
    ]);
    expect(await store.people.get(keyOf('1'))).toBeUndefined();
    const done = await operationsBackup.undelete(app.engine, entity, { deletes, isTrial: false });
    expect(outcomes(done)).toEqual([
      ['people 1', 'created'],
      ['people 2', 'duplicate-value'],
      ['people 3', 'etag-mismatch'],
      ['pets 1', 'created'],
    ]);
    const { values } =
      (await store.people.get(keyOf('1'), { include: ['pets'], select: ['story', 'town', 'photo'] })) ?? {};
    expect(values).toMatchObject({ story, town: 'Bern', pets: [{ petName: 'rex', legs: 4 }] });
    const photo = await store.people.files.photo.get(keyOf('1'));
    expect(Buffer.from((await photo?.blob.arrayBuffer()) ?? new ArrayBuffer())).toEqual(PNG);
    expect((await store.people.get(keyOf('3')))?.values.town).toBe('Genf');
    expect((await store.people.by.email({ email: 'a@x' }))?.personId).toBe('1');
    // What is back is not deleted any more.
    const again = await operationsBackup.undelete(app.engine, entity, { deletes, isTrial: false });
    expect(outcomes(again).map(([, outcome]) => outcome)).not.toContain('created');
  });

  test('has back each entity as it was before its own delete, and one that was deleted twice as it was last', async () => {
    const app = await openBackedUp();
    const { store } = app;
    await writeEmptySnapshot(app);
    for (const id of ['1', '2']) await store.people.create({ ...person, personId: id, email: `${id}@x` });
    passTime();
    const from = Date.now();
    await store.people.delete(keyOf('1'));
    await store.people.update(keyOf('2'), { town: 'Basel' });
    await store.people.create({ ...person, personId: '3', email: '3@x' });
    await store.people.create({ ...person, personId: '1', email: '1@x', town: 'Genf' });
    await store.pets.create({ ...keyOf('1'), petName: 'rex', legs: 4 });
    for (const id of ['2', '3', '1']) await store.people.delete(keyOf(id));
    const deletes = await deletesSince(app, from);
    const done = await operationsBackup.undelete(app.engine, entityNamed('people'), { deletes, isTrial: false });
    expect(outcomes(done).toSorted()).toEqual([
      ['people 1', 'created'],
      ['people 2', 'created'],
      ['people 3', 'created'],
      ['pets 1', 'created'],
    ]);
    const towns = await Promise.all(
      ['1', '2', '3'].map(async (id) => (await store.people.get(keyOf(id)))?.values.town),
    );
    expect(towns).toEqual(['Genf', 'Basel', 'Bern']);
  });

  test('has back what was deleted row by row, as it was right before', async () => {
    const app = await openBackedUp();
    await writeEmptySnapshot(app);
    const key = { pad: 'p', noteId: 'a' };
    await app.store.notes.put(key, { text: 'first', weight: 5 });
    await app.store.notes.update(key, { text: 'second' });
    const from = Date.now();
    await app.store.notes.delete(key);
    const deletes = await deletesSince(app, from);
    const done = await operationsBackup.undelete(app.engine, entityNamed('notes'), { deletes, isTrial: false });
    expect(outcomes(done)).toEqual([['notes a', 'created']]);
    expect((await app.store.notes.get(key))?.values).toEqual({ ...key, text: 'second', weight: 5 });
  });
});

test('leaves what is of a person whose data was erased since', async () => {
  const app = await openBackedUp();
  await writeEmptySnapshot(app);
  const keys = ['ann', 'ben'].map((pad) => ({ pad, noteId: '1' }));
  for (const key of keys) await app.store.notes.create({ ...key, text: 'x' });
  passTime();
  const from = Date.now();
  for (const key of keys) await app.store.notes.delete(key);
  const erased = { operation: 'erase', entity: 'users', subject: 'ann', at: new Date().toISOString() } as const;
  const written = { by: 'ann', requestId: 'r', id: 'i', table: 'system', partition: '', fields: [] };
  await operationsCheck.createAuditLog(app.engine).append([{ ...written, ...erased }]);
  const deletes = (await deletesSince(app, from)).filter(({ entity }) => entity === 'notes');
  const done = await operationsBackup.undelete(app.engine, entityNamed('notes'), { deletes, isTrial: false });
  expect(done.map(({ key, outcome }) => [key?.pad, outcome instanceof RowkeyError ? outcome.code : 'created'])).toEqual(
    [
      ['ann', 'forbidden'],
      ['ben', 'created'],
    ],
  );
  expect(await app.store.notes.get({ pad: 'ann', noteId: '1' })).toBeUndefined();
});

test('rejects an entity that another program writes too', async () => {
  const app = await openBackedUp();
  const entity = { ...entityNamed('notes'), existing: {} };
  await expect(operationsBackup.undelete(app.engine, entity, { deletes: [], isTrial: true })).rejects.toMatchObject({
    code: 'invalid-input',
  });
});

test('lists what an entity was, from the state at the beginning to its delete', async () => {
  const app = await openBackedUp();
  await writeEmptySnapshot(app);
  const address = { table: 'people', partition: 'ops', row: 'id_1' };
  await app.store.people.create({ ...person, personId: '1', story: 'x'.repeat(70_000) });
  passTime();
  const from = storageJournal.padTime(new Date().toISOString());
  passTime();
  await app.store.people.update(keyOf('1'), { town: 'Basel', story: 'y'.repeat(70_000) });
  await app.store.people.create({ ...person, personId: '2', email: 'b@x' });
  await app.store.people.delete(keyOf('1'));
  const to = storageJournal.toTime(Date.now() + 1) ?? '';
  const { items, next } = await operationsBackup.readVersions(app.engine, address, { from, to, top: 10 });
  expect(next).toBeUndefined();
  const versions: unknown[] = [];
  for (const { engine } of items) {
    const values = await valuesIn(engine, 'people', keyOf('1')).catch((error: RowkeyError) => error.code);
    versions.push(typeof values === 'string' ? values : [values?.town, String(values?.story).slice(0, 1)]);
  }
  // The row of the tombstone goes in a transaction of its own.
  expect(versions).toEqual([['Bern', 'x'], ['Basel', 'y'], 'not-found', 'not-found']);
  const page = await operationsBackup.readVersions(app.engine, address, { from, to, top: 1 });
  expect(page.next).toBe(items[1]?.at);
});

test('the store reads as of an instant, and tells what is no instant', async () => {
  const app = await openBackedUp();
  const { store } = app;
  await writeEmptySnapshot(app);
  await store.people.create({ ...person, personId: '1' });
  passTime();
  const at = new Date().toISOString();
  passTime();
  await store.people.delete(keyOf('1'));
  expect((await store.people.get(keyOf('1'), { at }))?.values.town).toBe('Bern');
  const page = await store.people.range({ team: 'ops' }, { at, select: ['town'] }).page();
  expect(page.items).toEqual([{ town: 'Bern' }]);
  expect(await store.people.get(keyOf('1'), { at: '2020-01-01T00:00:00Z' })).toBeUndefined();
  const later = new Date(Date.now() + 60_000).toISOString();
  for (const wrong of ['yesterday', later])
    await expect(store.people.get(keyOf('1'), { at: wrong })).rejects.toMatchObject({
      code: 'invalid-input',
      field: 'at',
    });
});
