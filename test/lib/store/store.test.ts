import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { beforeAll, describe, expect, inject, test } from 'vitest';
import { createRowkey, RowkeyError } from '../../../lib/index.ts';
import { PNG } from '../../../local/walk/png.ts';
import { model } from '../../fixtures/writers.ts';
import { operationsCheck } from '../../kit/operations.ts';
import { storageKeys } from '../../kit/storage.ts';
import { openApp } from '../../open-app.ts';

const file = join(inject('folder'), `${randomUUID()}.json`);
const rowkey = openApp(import.meta.url, model, { keys: { file } });
const { store } = rowkey;
beforeAll(async () => {
  await storageKeys.rotateLocalKey(file);
  await rowkey.provision();
});

const ann = { country: 'NO', writerId: 'ann' };
const annWhole = { ...ann, email: 'ann@example.com', age: 40, tags: ['crime', 'sea'] };
/** The model derives them. */
const initials = 'AB';
const secrets = { iban: 'NO93 8601 1117 947', biography: 'Ann writes. '.repeat(30_000) };

describe('the store of an entity', () => {
  test('creates, reads, updates, replaces and deletes with ETags', async () => {
    expect(await store.writers.get(ann)).toBeUndefined();
    const created = await store.writers.create({ ...annWhole, ...secrets });
    expect(created.values).toEqual({ ...annWhole, ...secrets, initials });
    expect(await store.writers.get(ann)).toEqual(created);

    const updated = await store.writers.update(ann, { age: 41 }, { ifMatch: created.etag });
    expect(updated.values).toEqual({ ...annWhole, ...secrets, age: 41, initials });
    await expect(store.writers.update(ann, { age: 42 }, { ifMatch: created.etag })).rejects.toMatchObject({
      code: 'etag-mismatch',
    });
    const again = await store.writers.update(updated.values, { age: 42 });
    expect(again.values).toEqual({ ...annWhole, ...secrets, age: 42, initials });
    expect(await store.writers.get(again.values)).toEqual(again);
    const replaced = await store.writers.replace(ann, { email: 'ann@example.com' });
    expect(replaced.values).toEqual({ ...ann, email: 'ann@example.com', tags: [], initials });

    await store.writers.delete(ann, { ifMatch: replaced.etag });
    expect(await store.writers.get(ann)).toBeUndefined();
    await expect(store.writers.delete(ann)).rejects.toMatchObject({ code: 'not-found' });
    const values = { email: 'ann@example.com' };
    await expect(store.writers.replace(ann, values)).rejects.toMatchObject({ code: 'not-found' });
    const put = await store.writers.put(ann, values, { ifNoneMatch: '*' });
    expect(put).toEqual(await store.writers.get(ann));
    await expect(store.writers.put(ann, values, { ifNoneMatch: '*' })).rejects.toMatchObject({ code: 'etag-mismatch' });
    expect((await store.writers.put(ann, { ...values, age: 1 })).values.age).toBe(1);
    await store.writers.delete(ann);
  });

  test('rejects an invalid key, an invalid entity and a unique value of another entity', async () => {
    await expect(store.writers.get({ country: '', writerId: 'x' })).rejects.toMatchObject({
      code: 'invalid-input',
      field: 'country',
    });
    await store.writers.create({ country: 'SE', writerId: 'bo', email: 'bo@example.com' });
    const other = store.writers.create({ country: 'SE', writerId: 'bob', email: 'bo@example.com' });
    await expect(other).rejects.toMatchObject({ code: 'duplicate-value' });
  });

  test('reads through each kind of index', async () => {
    await store.writers.create({ country: 'DK', writerId: 'eva', email: 'eva@example.com', age: 7, tags: ['a', 'b'] });
    await store.writers.create({ country: 'DK', writerId: 'ida', email: 'ida@example.com', age: 7, tags: ['b'] });
    const { by } = store.writers;
    expect(await by.email({ email: 'eva@example.com' })).toMatchObject({ writerId: 'eva', tags: ['a', 'b'] });
    expect(await by.email({ email: 'nobody@example.com' })).toBeUndefined();
    expect(await Array.fromAsync(by.byAge({ country: 'DK', age: 7 }))).toEqual([
      { country: 'DK', writerId: 'eva', email: 'eva@example.com' },
      { country: 'DK', writerId: 'ida', email: 'ida@example.com' },
    ]);
    const listed = await by.list({ country: 'DK', email: 'ida@example.com' }).page();
    expect(listed).toMatchObject({ items: [{ writerId: 'ida' }], next: undefined });
    const tagged = await Array.fromAsync(by.tag({ tags: 'b' }), ({ writerId }) => writerId);
    expect(tagged).toEqual(['eva', 'ida']);
  });

  test('iterates over all pages of a range, with the selected fields', async () => {
    const { writerId: _, ...fields } = { ...annWhole, country: 'FI', age: 1 };
    for (const id of ['a1', 'a2', 'a3', 'b1'])
      await store.writers.create({ ...fields, writerId: id, email: `${id}@example.com`, biography: id });
    const first = await store.writers.range({ country: 'FI' }).page({ top: 3 });
    expect(first.items.map(({ writerId }) => writerId)).toEqual(['a1', 'a2', 'a3']);
    expect(first.items[0]).not.toHaveProperty('biography');
    const second = await store.writers.range({ country: 'FI' }).page({ after: first.next });
    expect(second.items.map(({ writerId }) => writerId)).toEqual(['b1']);
    const some = store.writers.range({ country: 'FI' }, { from: 'a2', to: 'a', select: ['writerId', 'biography'] });
    expect(await Array.fromAsync(some)).toEqual([
      { writerId: 'a2', biography: 'a2' },
      { writerId: 'a3', biography: 'a3' },
    ]);
    const where = { email: 'b1@example.com' };
    expect(await Array.fromAsync(store.writers.range({ country: 'FI' }, { where }))).toHaveLength(1);
  });

  test('includes the children of an entity', async () => {
    const key = { country: 'IS', writerId: 'jon' };
    await store.writers.create({ ...key, email: 'jon@example.com' });
    await store.books.create({ ...key, year: 2001, title: 'One' });
    await store.books.create({ ...key, year: 2002, title: 'Two' });
    const found = await store.writers.get(key, { include: ['books'] });
    expect(found?.values).toMatchObject({ email: 'jon@example.com', books: [{ title: 'One' }, { title: 'Two' }] });
  });

  test('creates one entity for requests with the same id, even with a generated key', async () => {
    const text = 'Buy milk.';
    const [one, other] = [
      await store.notes.create({ topic: 'home', text }, { requestId: 'r1' }),
      await store.notes.create({ topic: 'home', text }, { requestId: 'r1' }),
    ];
    expect(other).toEqual(one);
    expect(await Array.fromAsync(store.notes.range({ topic: 'home' }))).toHaveLength(1);
  });
});

test('requests of two callers with the same id are two requests', async () => {
  const create = (subject: string) =>
    store
      .as({ subject, roles: ['hr', 'reader'], claims: {} })
      .notes.create({ topic: 'shared', text: subject }, { requestId: 'same' });
  const created = [await create('ann'), await create('bob'), await create('ann')];
  expect(created.map(({ values }) => values.text)).toEqual(['ann', 'bob', 'ann']);
});

test('the store writes, reads and deletes the file of an entity', async () => {
  const { portrait } = store.writers.files;
  const key = { country: 'NL', writerId: 'tom' };
  await expect(portrait.put(key, PNG)).rejects.toMatchObject({ code: 'not-found' });
  await store.writers.create({ ...key, email: 'tom@example.com' });
  expect(await portrait.get(key)).toBeUndefined();
  // The type is detected, whatever the caller says.
  const stored = await portrait.put(key, new Blob([PNG], { type: 'text/plain' }), { ifNoneMatch: '*', by: 'tom' });
  expect(stored).toMatchObject({ type: 'image/png', bytes: PNG.length });
  const found = await portrait.get(key);
  expect({ type: found?.blob.type, bytes: await found?.blob.bytes() }).toEqual({
    type: 'image/png',
    bytes: new Uint8Array(PNG),
  });
  expect((await store.writers.get(key))?.values.portrait).toEqual(stored);
  const ifMatch = '"other"';
  await expect(portrait.put(key, PNG, { ifMatch })).rejects.toMatchObject({ code: 'etag-mismatch' });
  await expect(portrait.delete(key, { ifMatch })).rejects.toMatchObject({ code: 'etag-mismatch' });
  await expect(portrait.put(key, new Uint8Array(2))).rejects.toMatchObject({ code: 'unsupported-media-type' });
  await expect(portrait.put(key, new Uint8Array(1_001))).rejects.toMatchObject({ code: 'too-large' });
  await portrait.delete(key, { ifMatch: found?.etag });
  await portrait.delete(key);
  expect(await portrait.get(key)).toBeUndefined();
});

test('the store of a caller has the files that the roles of the caller open', async () => {
  const key = { country: 'NL', writerId: 'eef' };
  await store.writers.create({ ...key, email: 'eef@example.com' });
  const as = (...roles: string[]) => store.as({ subject: 'eef', roles, claims: {} }).writers.files.portrait;
  await as('hr').put(key, PNG);
  expect((await as('reader').get(key))?.blob.size).toBe(PNG.length);
  for (const call of [as('reader').put(key, PNG), as('reader').delete(key), as().get(key)])
    await expect(call).rejects.toMatchObject({ code: 'forbidden' });
});

test('the store of a series counts by slot', async () => {
  const key = { page: 'start', day: '2026-11-22' };
  expect(await store.charts.get(key)).toBeUndefined();
  expect(await store.charts.increment(key, 9, 2, { requestId: 'r1' })).toBe(2);
  expect(await store.charts.increment(key, 9, 2, { requestId: 'r1' })).toBe(2);
  await store.charts.set(key, { 0: 5, 23: 7 });
  const found = await store.charts.get(key);
  expect([found?.counts[0], found?.counts[9], found?.counts[23]]).toEqual([5, 2, 7]);
  for (const count of [Number.NaN, -5, 1.5, 2 ** 31]) {
    await expect(store.charts.set(key, { 3: count })).rejects.toMatchObject({ code: 'invalid-input' });
    if (count !== -5)
      await expect(store.charts.increment(key, 3, count)).rejects.toMatchObject({ code: 'invalid-input' });
  }
  await expect(store.charts.increment(key, 24, 1)).rejects.toMatchObject({ code: 'invalid-input' });
  expect(await store.charts.span({ page: 'start' }, { from: '2026-11-22T22', to: '2026-11-23T00' })).toEqual([
    { at: '2026-11-22T22:00:00Z', count: 0 },
    { at: '2026-11-22T23:00:00Z', count: 7 },
    { at: '2026-11-23T00:00:00Z', count: 0 },
  ]);
  await store.charts.delete(key);
  expect(await store.charts.get(key)).toBeUndefined();
});

test('records its writes in the audit log with the given subject', async () => {
  const from = Date.now() - 60_000;
  await store.notes.create({ topic: 'audit', text: 'a' }, { by: 'ann' });
  const { items } = await operationsCheck.readChanges(await rowkey.runtime.readyEngine(console), {
    from,
    to: Date.now() + 60_000,
    limit: 1_000,
  });
  expect(items.filter(({ partition }) => partition === 'audit')).toMatchObject([
    { by: 'ann', operation: 'create', entity: 'notes' },
  ]);
});

test('fails with wrong-setting if no setting is valid', async () => {
  const refusal = new RowkeyError('wrong-setting', 'None.');
  const refused = createRowkey({ model, refusal });
  await expect(refused.store.writers.get(ann)).rejects.toMatchObject({ code: 'wrong-setting' });
});
