import { expect, test } from 'vitest';
import { RowkeyError } from '../../lib/index.ts';
import { CRASHES, tryFaults } from '../fault-driver.ts';
import { customers, doorevents, employees, logins, orders, reviews } from '../fixtures/model.ts';
import { engineRead, engineWrite } from '../kit/engine.ts';
import { storageAccounts } from '../kit/storage.ts';
import { useProduct } from '../product.ts';
import { expectIndexesToAgree, openWorld, rowsOf, somebody } from '../world.ts';

/** Deleting the entities of a range, in batches. */

const product = useProduct(import.meta.url);
const hr = product.as('hr');
const world = await openWorld(import.meta.url);

const EVENT_ID = '6f1c1d6e-0000-4000-8000-000000000000';
const eventsOf = (employeeId: string, count: number) =>
  Array.from({ length: count }, (_, index) => ({
    department: 'Range',
    employeeId,
    hour: `20261120${String(index % 24).padStart(2, '0')}`,
    eventId: EVENT_ID.slice(0, -6) + String(index).padStart(6, '0'),
    door: 'East',
  }));
const put = (list: readonly unknown[]) =>
  engineWrite.writeBatch(
    world.engine,
    doorevents,
    list.map((one) => ({ put: one })),
  );
const left = async (employeeId: string) =>
  (await rowsOf(world.storage, 'doorevents')).filter(({ partitionKey }) => partitionKey === `Range_${employeeId}`)
    .length;

test('deletes a range of 1,000 entities that are one row with 11 transactions, and says how to continue', {
  tags: ['slow'],
}, async () => {
  await put(eventsOf('000001', 1_200));
  const path = '/api/doorevents/Range/000001';
  // The first link of a process reads the secret that signs links.
  await hr('GET', `${path}?top=1`);
  const first = await hr('DELETE', `${path}?all=true`);
  expect(first).toMatchObject({ status: 200, body: { deleted: 1_000, failed: 0, skipped: 0, problems: [] } });
  expect(first.headers.get('server-timing')).toContain('desc="11 transactions"');
  const [, next = ''] = /<(.*)>; rel="next"/.exec(first.headers.get('link') ?? '') ?? [];
  expect(await hr('DELETE', next.replace('all=true', 'all=false&from=2'))).toMatchObject({ status: 400 });
  const second = await hr('DELETE', next);
  expect(second.body).toMatchObject({ deleted: 200, failed: 0 });
  expect(second.headers.get('link')).toBeNull();
  expect(await left('000001')).toBe(0);
});

test('deletes only what the bounds include, and nothing without bounds', { tags: ['slow'] }, async () => {
  await put(eventsOf('000002', 24));
  const path = '/api/doorevents/Range/000002';
  for (const query of ['', '?from=', '?from=&to=', '?all=false', '?all=true&from=2026', '?all=yes', '?hour=2026112005'])
    expect((await hr('DELETE', path + query)).status, query).toBe(400);
  expect((await product.as('reader')('DELETE', `${path}?all=true`)).status).toBe(403);
  expect(await left('000002')).toBe(24);
  expect((await hr('DELETE', `${path}?from=2026112005&to=2026112007`)).body).toMatchObject({ deleted: 3 });
  expect((await hr('DELETE', `${path}?from=2026112020`)).body).toMatchObject({ deleted: 4 });
  expect((await hr('DELETE', `${path}?to=2026112001`)).body).toMatchObject({ deleted: 2 });
  expect(await left('000002')).toBe(15);
  const explained = await hr('DELETE', `${path}?all=true&explain=true`);
  expect(explained.body).toMatchObject({ transactions: 2 });
  expect(await left('000002')).toBe(15);
});

test('deletes index entries, children, counts and unique values as a single delete does', {
  tags: ['slow'],
}, async () => {
  const people = Array.from({ length: 12 }, () => somebody({ department: 'Leaving' }));
  for (const one of people) await engineWrite.createEntity(world.engine, employees, one);
  const [first] = people;
  const { department, employeeId } = first as (typeof people)[number];
  await engineWrite.createEntity(world.engine, reviews, { department, employeeId, year: 2_020, rating: 3 });
  const stays = somebody({ department: 'Staying' });
  await engineWrite.createEntity(world.engine, employees, stays);
  const { cost, done } = await storageAccounts.measureCost(async (meter) => {
    const done = await engineWrite.deleteRange(world.engine, employees, { department }, { all: true });
    return { cost: meter.transactions, done };
  });
  expect(done).toEqual({ deleted: 12, failed: [], skipped: 0, next: undefined });
  // One query for all, and one for the children of each; no entity is read by itself.
  expect(cost).toBeLessThan(12 * 3);
  await world.settle();
  await expectIndexesToAgree(world.storage, employees);
  expect(
    (await rowsOf(world.storage, 'employees')).filter(
      ({ partitionKey, EntityType }) => partitionKey === department && EntityType !== 'list',
    ),
  ).toEqual([expect.objectContaining({ EntityType: 'placeholder', employeeCount: 0 })]);
  expect((await engineRead.readEntity(world.engine, employees, stays)).values).toEqual(stays);
  await engineWrite.createEntity(world.engine, employees, {
    ...stays,
    department,
    employeeId,
    email: String(first?.email),
  });
});

test('reports entities that cannot be deleted, and deletes the others', async () => {
  const city = 'Range';
  for (const customerId of ['RANGE1', 'RANGE2', 'RANGE3'])
    await engineWrite.createEntity(world.engine, customers, { city, customerId, companyName: 'C' });
  await engineWrite.createEntity(world.engine, orders, { customerId: 'RANGE2', orderId: 1, orderDate: '2026-11-20' });
  const { body } = await hr('DELETE', `/api/customers/${city}?from=RANGE`);
  expect(body).toMatchObject({ deleted: 2, failed: 1, problems: [{ code: 'referenced' }] });
  expect((await hr('GET', `/api/customers/${city}`)).body.items).toMatchObject([{ customerId: 'RANGE2' }]);
  await world.settle();
  await expectIndexesToAgree(world.storage, customers);
});

test('tells how many rows are not valid entities and are still there', async () => {
  const partition = '000888';
  for (const claim of [1, 2, 3]) {
    const at = `2026-11-20T0${claim}:00:00.000Z`;
    expect(
      (await hr('POST', '/api/expenses', { body: { employeeId: partition, at, amount: claim, category: 'Travel' } }))
        .status,
    ).toBe(201);
  }
  const client = product.storage.table('expenses');
  const [one] = (await rowsOf(product.storage, 'expenses')).filter(({ partitionKey }) => partitionKey === partition);
  // A client with a grant wrote an amount that no entity can have, and a key that no entity can have.
  const row = { partitionKey: partition, rowKey: String(one?.rowKey) };
  await client.updateEntity({ ...row, amount: 'much' }, 'Merge');
  await client.createEntity({ partitionKey: partition, rowKey: 'x' });
  const { body } = await hr('DELETE', `/api/expenses/${partition}?all=true`);
  expect(body).toEqual({ deleted: 2, failed: 0, skipped: 2, problems: [] });
  expect((await hr('DELETE', `/api/expenses/${partition}?all=true`)).body).toMatchObject({ deleted: 0, skipped: 2 });
});

test('deletes over the tables of several periods', { tags: ['slow'] }, async () => {
  const days = [1, 2, 3].map((ago) => new Date(Date.now() - ago * 86_400_000).toISOString());
  const login = (at: string) => ({ employeeId: '000003', at, succeeded: true });
  for (const at of days) await engineWrite.createEntity(world.engine, logins, login(at));
  const done = await engineWrite.deleteRange(
    world.engine,
    logins,
    { employeeId: '000003' },
    { from: days[1]?.slice(0, 10), to: days[0]?.slice(0, 10) },
  );
  expect(done).toEqual({ deleted: 2, failed: [], skipped: 0, next: undefined });
  expect((await hr('GET', '/api/logins/000003')).body.items).toMatchObject([{ at: days[2] }]);
});

test('continues after a crash at any storage call, and its indexes follow', { tags: ['slow'] }, async () => {
  const hire = async (department: string) => {
    for (let count = 0; count < 3; count += 1)
      await engineWrite.createEntity(world.engine, employees, somebody({ department }));
  };
  await tryFaults(
    async ({ label, client, timing }) => {
      const department = `Crash ${label}`;
      await hire(department);
      const crashing = world.engineThrough(client, timing);
      await engineWrite
        .deleteRange(crashing, employees, { department }, { all: true })
        .catch((error: unknown) => error);
      await world.settle();
      await expectIndexesToAgree(world.storage, employees);
      const { failed } = await engineWrite.deleteRange(world.engine, employees, { department }, { all: true });
      expect(failed.filter((error) => error instanceof RowkeyError)).toEqual([]);
      await world.settle();
      expect((await hr('GET', `/api/employees/${encodeURIComponent(department)}`)).body.items).toEqual([]);
    },
    { faults: CRASHES },
  );
  await expectIndexesToAgree(world.storage, employees);
});
