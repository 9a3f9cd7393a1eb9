import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, expect, inject, test } from 'vitest';
import type { Model } from '../../lib/index.ts';
import { prepareWorlds, type WalkWorld } from '../../local/walk/walk-world.ts';
import {
  categories,
  model as fixtures,
  movies,
  people,
  products,
  reservations,
  reviews,
  sales,
} from '../fixtures/model.ts';
import { baseValues } from '../kit/base.ts';
import type { Entity, Finding } from '../kit/define.ts';
import { operationsCheck, type VerifyPosition } from '../kit/operations.ts';
import { testStorage } from '../storage.ts';

/** A stored value of another type than its field: no read returns it, and no command stops at it. */

let world: WalkWorld;
beforeAll(async () => {
  const folder = await mkdtemp(join(inject('folder'), 'wrong-values-'));
  world = await (await prepareWorlds(fixtures as Model, { connectionString: testStorage(import.meta.url), folder }))();
  const { store } = world;
  for (const [at, soldOn] of ['2026-01-05', '2026-01-20', '2026-02-03'].entries())
    await store.sales.create({
      branch: 'Bern',
      saleId: `S00000${at}`,
      soldOn,
      amount: at + 0.5,
      clerk: 'Ann',
      profit: 3,
    });
  await store.movies.create({ title: 'Ran', year: 1985, filmId: '1', genres: ['War'], cast: ['Ann', 'Bob'] });
  await store.movies.create({ title: 'Ikiru', year: 1952, filmId: '2', genres: ['War'], cast: ['Ann'] });
  await store.people.create({ country: 'UK', personId: 'e-1', kind: 'employee', firstName: 'Ann', jobTitle: 'Cook' });
  await store.reservations.create({
    office: 'Oslo',
    reservationId: 'A1',
    kind: 'desk',
    storey: 1,
  });
  await world.worker.settle();
});

async function check(entity: Entity, { repair = false, only }: { repair?: boolean; only?: string } = {}) {
  const all: Finding[] = [];
  for (let position: VerifyPosition | undefined, isFirst = true; isFirst || position; isFirst = false) {
    const page = await operationsCheck.verifyPage(world.engine, entity, {
      position,
      top: 100,
      repair,
      only,
      patience: 0,
    });
    all.push(...page.findings);
    position = page.next;
  }
  return all;
}

const isUnreadable = (error: unknown) => baseValues.hasCode(error, 'needs-repair');

test.each<[entity: Entity, keys: [string, string], key: object, wrong: Record<string, unknown>, right: object]>([
  [sales as Entity, ['Bern', 'S000001'], { branch: 'Bern', saleId: 'S000001' }, { amount: 'lots' }, { amount: 1.5 }],
  [
    sales as Entity,
    ['Bern', 'S000001'],
    { branch: 'Bern', saleId: 'S000001' },
    { soldOn: 5 },
    { soldOn: '2026-01-20' },
  ],
  [sales as Entity, ['Bern', 'S000001'], { branch: 'Bern', saleId: 'S000001' }, { profit: 1.5 }, { profit: 3 }],
  [
    movies as Entity,
    ['War', 'Ran_1985_1'],
    { genre: 'War', title: 'Ran', year: 1985, filmId: '1' },
    { cast: true },
    { cast: ['Ann', 'Bob'] },
  ],
  [people as Entity, ['UK', 'e-1'], { country: 'UK', personId: 'e-1' }, { firstName: false }, { firstName: 'Ann' }],
  [people as Entity, ['UK', 'e-1'], { country: 'UK', personId: 'e-1' }, { kind: 7 }, { kind: 'employee' }],
])(
  'of %s is found, named and never returned: %o',
  { tags: ['slow'] },
  async (entity, [partitionKey, rowKey], key, wrong, right) => {
    const store = world.store[entity.name];
    const table = world.engine.storage.table(entity.table);
    const [field = ''] = Object.keys(wrong);
    const before = await table.getEntity(partitionKey, rowKey);
    await table.updateEntity({ partitionKey, rowKey, ...wrong }, 'Merge');
    await expect(store.get(key)).rejects.toSatisfy(isUnreadable);
    await expect(store.get(key)).rejects.toMatchObject({ field });
    const others = Object.fromEntries(
      entity.partition.fields.map((name) => [name, (key as Record<string, unknown>)[name]]),
    );
    const listed = await Array.fromAsync<Record<string, unknown>>(store.range(others));
    expect(listed.map((one) => one[field])).toContain(null);
    expect(JSON.stringify(listed)).not.toContain('lots');
    const found = await check(entity);
    expect(found).toEqual([expect.objectContaining({ kind: 'invalid', row: rowKey, repaired: false })]);
    expect(found[0]?.reason).toContain(`"${field}"`);
    expect(await check(entity, { repair: true })).toHaveLength(1);
    for (const only of [...Object.keys(entity.indexes), ...Object.keys(entity.totals)])
      expect(await check(entity, { repair: true, only })).toHaveLength(1);
    // A change of another field is not the mistake of its caller, and a change of this one mends the row.
    if (entity === (sales as Entity)) await expect(store.update(key, { tip: 1 })).rejects.toSatisfy(isUnreadable);
    if (field !== 'kind') await store.update(key, right);
    else await table.updateEntity({ partitionKey, rowKey, ...right }, 'Merge');
    await world.worker.settle();
    await check(entity, { repair: true });
    expect(await check(entity)).toEqual([]);
    const { timestamp: _, etag: __, ...values } = await table.getEntity(partitionKey, rowKey);
    for (const name of Object.keys(right)) expect(values[name]).toEqual(before[name]);
  },
);

test.each<[string, Entity, [string, string], Record<string, unknown>, string]>([
  ['a kind that is not declared', reservations as Entity, ['Oslo', 'A1'], { kind: 'boat' }, 'kind'],
  ['a text that is no date', sales as Entity, ['Bern', 'S000002'], { soldOn: 'soon' }, 'soldOn'],
  ['something else than a list', movies as Entity, ['War', 'Ikiru_1952_2'], { cast: '{}' }, 'cast'],
  ['no JSON', movies as Entity, ['War', 'Ikiru_1952_2'], { cast: '[' }, 'cast'],
])(
  '%s is found, and nothing that follows from it is repaired',
  async (_, entity, [partitionKey, rowKey], wrong, field) => {
    const table = world.engine.storage.table(entity.table);
    const before = await table.getEntity(partitionKey, rowKey);
    await table.updateEntity({ partitionKey, rowKey, ...wrong }, 'Merge');
    const key = Object.fromEntries(entity.keyFields.map((name) => [name, before[name]]));
    if (entity === (movies as Entity)) await expect(world.store.movies.get(key)).rejects.toMatchObject({ field });
    const found = await check(entity, { repair: true });
    expect(found).toEqual([expect.objectContaining({ kind: 'invalid', row: rowKey, repaired: false })]);
    expect(found[0]?.reason).toContain(`"${field}"`);
    await table.updateEntity(
      { partitionKey, rowKey, ...Object.fromEntries([[field, before[field]]]) } as never,
      'Merge',
    );
    expect(await check(entity)).toEqual([]);
  },
);

test('a list of values of another type is found', async () => {
  const table = world.engine.storage.table('movies');
  const { cast } = await table.getEntity('War', 'Ikiru_1952_2');
  await table.updateEntity({ partitionKey: 'War', rowKey: 'Ikiru_1952_2', cast: '[1]' }, 'Merge');
  expect(await check(movies as Entity, { repair: true })).toEqual([expect.objectContaining({ kind: 'invalid' })]);
  await table.updateEntity({ partitionKey: 'War', rowKey: 'Ikiru_1952_2', cast } as never, 'Merge');
  expect(await check(movies as Entity)).toEqual([]);
});

test('a wrong value is not copied to other entities', async () => {
  const { store, engine } = world;
  await store.categories.create({ categoryId: 1, buyer: 'Ann', taxRate: 0.2 });
  await store.products.create({ categoryId: 1, productId: 1, productName: 'Tea' });
  await world.worker.settle();
  const table = engine.storage.table('products');
  const row = { partitionKey: '00001', rowKey: 'category' };
  await table.updateEntity({ ...row, taxRate: 'lots' }, 'Merge');
  expect(await check(products as Entity, { repair: true })).toEqual([]);
  expect((await store.products.get({ categoryId: 1, productId: 1 })).values).toMatchObject({ taxRate: 0.2 });
  expect(await check(categories as Entity)).toEqual([expect.objectContaining({ kind: 'invalid', row: 'category' })]);
  await table.updateEntity({ ...row, taxRate: 0.2 }, 'Merge');
});

test('a child without its parent is found, and left to a person', async () => {
  const child = { partitionKey: 'Sales', rowKey: 'empid_000777_2026', EntityType: 'reviews', EntityVersion: 1 };
  const values = { department: 'Sales', employeeId: '000777', year: 2026, rating: 3 };
  const table = world.engine.storage.table('employees');
  await table.createEntity({ ...child, ...values });
  const found = [{ kind: 'dangling', of: 'employees', row: child.rowKey, repaired: false }];
  expect(await check(reviews as Entity, { repair: true })).toEqual(found.map((one) => expect.objectContaining(one)));
  await table.deleteEntity(child.partitionKey, child.rowKey);
  expect(await check(reviews as Entity)).toEqual([]);
});

test('a row that makes its check fail is a finding, and the others are checked', async () => {
  const table = world.engine.storage.table('people');
  const row = { partitionKey: 'UK', rowKey: 'e-2', EntityType: 'people', EntityVersion: 1, WriteId: 'x' };
  await table.createEntity({ ...row, country: 'UK', personId: 'e-2', kind: 'employee', name: 'Ann' });
  await table.createEntity({
    ...row,
    rowKey: 'e-3',
    country: 'UK',
    personId: 'e-3',
    kind: 'employee',
    jobTitle: 'Cook',
  });
  const found = await check(people as Entity);
  // An upgrade cannot know what the first row lacks.
  expect(found.map(({ kind, row: key }) => [kind, key])).toContainEqual(['invalid', 'e-2']);
  await table.deleteEntity('UK', 'e-2');
  await table.deleteEntity('UK', 'e-3');
});
