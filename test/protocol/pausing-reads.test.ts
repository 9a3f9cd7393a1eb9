import type { HttpClient } from '@azure/core-rest-pipeline';
import { beforeAll, expect, test } from 'vitest';
import type { InterPartitionIndex, Values } from '../../lib/index.ts';
import { httpClient as shared } from '../../local/walk/known-messages.ts';
import { allPages } from '../all-pages.ts';
import { customers, doorevents, logins, products } from '../fixtures/model.ts';
import { type Engine, engineRead, engineWrite } from '../kit/engine.ts';
import type { Internal } from '../kit/internal.ts';
import { openWorld, type World } from '../world.ts';

/**
 * A read whose filter matches few rows. Storage then returns few rows or none, with a continuation, which the emulator does only
 * for full pages. So here, each call of storage looks at two rows.
 */

const LOOKED_AT = 2;
/** Lists end after ten calls that returned less than asked for. */
const MAX_CALLS = 10;
const COUNT = 60;
/** Matches: at the beginning, close together, and after a long gap. */
const MATCHING = [0, 1, 5, 47, 48, 59];

let world: World;
let calls = 0;
const sparse: HttpClient = {
  async sendRequest(request) {
    const url = new URL(request.url);
    const filter = url.searchParams.get('$filter') ?? '';
    const [comparison, field = '', value] = / and (\w+) eq ('rare'|false)/.exec(filter) ?? [];
    if (comparison === undefined) return shared.sendRequest(request);
    url.searchParams.set('$filter', filter.replace(comparison, ''));
    url.searchParams.set('$top', String(LOOKED_AT));
    const select = url.searchParams.get('$select');
    if (select && !select.split(',').includes(field)) url.searchParams.set('$select', `${select},${field}`);
    request.url = String(url);
    const response = await shared.sendRequest(request);
    // The table of a period may not exist.
    if (response.status !== 200) return response;
    calls += 1;
    const body = JSON.parse(response.bodyAsText ?? '{}');
    // Further rows do not have the field.
    const found = body.value.filter(
      (row: Values) => row[field] === undefined || row[field] === (value === 'false' ? false : 'rare'),
    );
    return { ...response, bodyAsText: JSON.stringify({ ...body, value: found }) };
  },
};

const nameOf = (at: number) => (MATCHING.includes(at) ? 'rare' : 'often');
const where = (field: string, value: string | boolean = 'rare'): Internal['Filter'] => [
  { field, operator: 'eq', values: [value] },
];
const daysAgo = (days: number, at: number) => new Date(Date.now() - days * 86_400_000 - at * 1_000).toISOString();
const numbers = Array.from({ length: COUNT }, (_, at) => at);

beforeAll(async () => {
  world = await openWorld(import.meta.url);
  const { engine } = world;
  const eventId = (at: number) => `6f1c1d6e-0000-4000-8000-${String(at).padStart(12, '0')}`;
  const events = numbers.map((at) => ({
    department: 'Pauses',
    employeeId: '000001',
    hour: `20261120${String(Math.floor(at / 3)).padStart(2, '0')}`,
    eventId: eventId(at),
    door: nameOf(at),
  }));
  await engineWrite.writeBatch(
    engine,
    doorevents,
    events.map((put) => ({ put })),
  );
  const text = { description: 'long', specification: 'long' };
  const goods = numbers.map((at) => ({ categoryId: 7, productId: at, productName: nameOf(at), ...text }));
  await engineWrite.writeBatch(
    engine,
    products,
    goods.map((create) => ({ create })),
  );
  const shops = numbers.map((at) => ({
    city: 'Pauses',
    customerId: `P${String(at).padStart(3, '0')}`,
    companyName: nameOf(at),
    contactName: `Ann Same`,
  }));
  await engineWrite.writeBatch(
    engine,
    customers,
    shops.map((create) => ({ create })),
  );
  for (const at of numbers) {
    const login = {
      employeeId: '000001',
      at: daysAgo(at < 50 ? 2 : 1, at),
      loginId: eventId(at),
      succeeded: !MATCHING.includes(at),
    };
    await engineWrite.createEntity(engine, logins, login);
  }
  await world.settle();
});

async function readAll(read: (options: Internal['PageOptions']) => Promise<Internal['Page']>, top: number) {
  const pages = await allPages(async (after: Internal['PageOptions']['after']) => {
    calls = 0;
    const page = await read({ top, after });
    // The sparse calls end a page; calls that return as much as asked for do not count.
    expect(calls).toBeLessThanOrEqual(MAX_CALLS * 3 + top);
    return page;
  });
  return { items: pages.flatMap(({ items }) => items), pages: pages.map(({ items }) => items.length) };
}

const byName = customers.indexes.cityAndLastName as InterPartitionIndex;
const LISTS: Readonly<Record<string, (engine: Engine, options: Internal['PageOptions']) => Promise<Internal['Page']>>> =
  {
    'a range': (engine, options) =>
      engineRead.readEntities(
        engine,
        doorevents,
        { department: 'Pauses', employeeId: '000001' },
        { ...options, where: where('door') },
      ),
    'a range with a projection': (engine, options) =>
      engineRead.readEntities(
        engine,
        doorevents,
        { department: 'Pauses', employeeId: '000001' },
        { ...options, where: where('door'), select: ['eventId'], from: '2026112000', to: '2026112020' },
      ),
    'a range with further rows': (engine, options) =>
      engineRead.readEntities(
        engine,
        products,
        { categoryId: 7 },
        { ...options, where: where('productName'), select: ['productId', 'description'] },
      ),
    'a range without them': (engine, options) =>
      engineRead.readEntities(engine, products, { categoryId: 7 }, { ...options, where: where('productName') }),
    'a range over periods': (engine, options) =>
      engineRead.readEntities(
        engine,
        logins,
        { employeeId: '000001' },
        { ...options, where: where('succeeded', false) },
      ),
    'a range of an index': (engine, options) =>
      engineRead.readByCopies(
        engine,
        customers,
        byName,
        { city: 'Pauses' },
        { ...options, where: where('companyName') },
      ),
    'a scan': (engine, options) => engineRead.scanEntities(engine, doorevents, { ...options, where: where('door') }),
  };

test.each(Object.entries(LISTS))(
  '%s pauses, and its pages have every entity once',
  { tags: ['slow'] },
  async (_, list) => {
    for (const top of [1, 2, 4, 1_000]) {
      const expected = (await readAll((options) => list(world.engine, options), 1_000)).items;
      expect(expected).toHaveLength(MATCHING.length);
      const { items, pages } = await readAll((options) => list(world.engineThrough(sparse), options), top);
      expect(items).toEqual(expected);
      // The gap does not fit into the calls of one page.
      expect(pages.length).toBeGreaterThan(1);
    }
  },
);

test('a read pauses after few calls, with what it has found', async () => {
  const engine = world.engineThrough(sparse);
  const read = LISTS['a range'];
  calls = 0;
  const first = await read?.(engine, { top: 1_000 });
  expect(calls).toBe(MAX_CALLS);
  expect(first?.items).toHaveLength(3);
  const second = await read?.(engine, { top: 1_000, after: first?.next });
  expect(second?.items).toEqual([]);
  expect(second?.next).toBeDefined();
});

test('a delete of a range continues after a pause', async () => {
  const engine = world.engineThrough(sparse);
  const done = await allPages((after: Internal['PageOptions']['after']) =>
    engineWrite.deleteRange(engine, logins, { employeeId: '000001' }, { all: true, after }),
  );
  expect(done.reduce((sum, { deleted }) => sum + deleted, 0)).toBe(COUNT);
});
