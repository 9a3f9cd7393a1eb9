import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { beforeAll, expect, test } from 'vitest';
import type { Values } from '../../lib/index.ts';
import { customers, departments, employees, model, movies, orders, reviews } from '../fixtures/model.ts';
import { definePlaces, type Entity } from '../kit/define.ts';
import { engineConsume, engineRead, engineTransfer, engineWrite } from '../kit/engine.ts';
import { operationsModel } from '../kit/operations.ts';
import type { Address } from '../kit/storage.ts';
import { sampleRuns } from '../points.ts';
import { openWorld, rowsOf, somebody, type World } from '../world.ts';

/**
 * Anyone with write access to a queue can forge a message. A forged message must only change what the stored entities
 * imply.
 */

let world: World;
let people: Values[];
let before: Map<string, Record<string, unknown>[]>;
const tables = operationsModel
  .resourcesOf(model.list, Date.now())
  .tables.filter((table) => table !== engineConsume.POISON_TABLE);
const operationIds: string[] = [];

async function everything() {
  const found = await Promise.all(tables.map(async (table) => [table, await rowsOf(world.storage, table)] as const));
  return new Map(found);
}

function consumerOf({ engine, logged }: World) {
  const log = { warn: (text: string) => logged.push(text), error: (text: string) => logged.push(text) };
  return { engine, entities: model.list, log };
}

function messageOf(queue: string, body: unknown) {
  return { queue, id: randomUUID(), attempts: 5, insertedAt: Date.now(), body: JSON.parse(JSON.stringify(body)) };
}

beforeAll(async () => {
  world = await openWorld(import.meta.url);
  const { engine } = world;
  const create = (entity: Entity, values: Values) => engineWrite.createEntity(engine, entity, values);
  await engineRead.toContinuation(engine.storage, '', { row: '' });
  people = [somebody(), somebody(), somebody({ department: 'Legal', lastName: 'Xu' }), somebody({ lastName: 'Xu' })];
  for (const one of people) await create(employees, one);
  await create(departments, { department: 'Sales', managerId: people[0]?.employeeId });
  await create(reviews, { ...pickKey(people[0]), year: 2025, rating: 4 });
  await create(movies, { title: 'Alien', year: 1979, genres: ['Horror'], cast: ['Sigourney Weaver', 'John Hurt'] });
  await create(customers, { city: 'Bern', customerId: 'CHOPS', companyName: 'Chop-suey', contactName: 'Yang Wang' });
  await create(orders, { customerId: 'CHOPS', orderId: 10254, orderDate: '2026-11-20' });
  const [archived, moved, failed] = [somebody(), somebody(), somebody()];
  for (const one of [archived, moved, failed]) await create(employees, one);
  operationIds.push(await engineTransfer.requestArchive(engine, employees, pickKey(archived)));
  operationIds.push(await engineTransfer.requestMove(engine, employees, pickKey(moved), { department: 'Legal' }));
  operationIds.push(await engineTransfer.requestArchive(engine, employees, pickKey(failed)));
  await engineWrite.deleteEntity(engine, employees, pickKey(failed));
  await world.settle();
  before = await everything();
  expect(before.get('system')).not.toEqual([]);
});

function pickKey({ department, employeeId }: Values = {}): Values {
  return { department, employeeId };
}

/** Returns the existing keys of all tables. */
function addresses(): Address[] {
  return [...before].flatMap(([table, rows]) =>
    rows.map(({ partitionKey, rowKey }) => ({ table, partition: String(partitionKey), row: String(rowKey) })),
  );
}

function arbitraryIntent() {
  const names = [...model.list.map(({ name }) => name), 'formeremployees', 'constructor'];
  const indexes = model.list.flatMap((entity) => Object.keys(entity.indexes));
  const all = addresses();
  const address = fc.constantFrom(...all);
  const mixed = fc.record({
    table: fc.constantFrom(...tables),
    partition: fc.oneof(fc.constantFrom(...all.map(({ partition }) => partition)), fc.string()),
    row: fc.oneof(fc.constantFrom(...all.map(({ row }) => row)), fc.string()),
  });
  const member = fc.constantFrom(
    ...people.flatMap(({ department, employeeId }) => [String(employeeId), `${department}/${employeeId}`]),
  );
  const named = fc.oneof({ arbitrary: address, weight: 4 }, mixed);
  const indexEntry = fc
    .tuple(
      fc.constantFrom(...indexes, 'constructor', '__proto__', 'toString'),
      named,
      fc.option(member, { nil: undefined }),
    )
    .map(([index, { table, partition, row }, of]) => ({ index, table, partition, row, member: of }));
  const items = fc.array(
    fc
      .record({ at: named, indexEntries: fc.array(indexEntry, { maxLength: 8 }) })
      .map(({ at, indexEntries }) => ({ ...at, indexEntries })),
    { minLength: 1, maxLength: 6 },
  );
  return fc
    .record({ intent: fc.uuid(), entity: fc.constantFrom(...names), items })
    .map(({ items: all, ...intent }) => ({
      version: 1,
      ...intent,
      table: all[0]?.table,
      items: all.map(({ table: _, ...item }) => item),
    }));
}

test('a forged intent changes no row of a consistent store', { tags: ['slow'] }, async () => {
  await fc.assert(
    fc.asyncProperty(arbitraryIntent(), async (intent) => {
      await engineConsume.consumeIntent(consumerOf(world), messageOf('index-changes', intent));
      expect(await everything()).toEqual(before);
    }),
    sampleRuns(150),
  );
});

test('an intent that names the continuation secret becomes poison, and the rest of the intent is done', async () => {
  const [one = {}] = people;
  const table = 'employeesbylastname';
  const [indexEntry] = definePlaces.indexEntriesOf(employees, one);
  const lost = definePlaces.indexEntriesOf(employees, one).find((other) => other.table === table);
  if (!indexEntry || !lost) throw new Error('An employee has both.');
  await world.storage.table(table).deleteEntity(lost.partition, lost.row);
  const secret = { ...indexEntry, table: 'system', partition: 'secrets', row: 'continuation' };
  const items = [{ partition: 'Sales', row: `empid_${one.employeeId}`, indexEntries: [secret, lost] }];
  const intent = { version: 1, intent: randomUUID(), entity: 'employees', table: 'employees', items };
  await engineConsume.consumeIntent(consumerOf(world), { ...messageOf('index-changes', intent), attempts: 1 });
  const { items: poison } = await engineConsume.listPoison(world.engine, { limit: 1 });
  expect(poison[0]?.reason).toMatch(/an entry that the index emailCompanyWide of employees cannot have/);
  const withoutEtags = (rows = new Map<string, Record<string, unknown>[]>()) =>
    [...rows].map(([name, all]) => [name, all.map(({ etag: _, timestamp: __, ...row }) => row)]);
  expect(withoutEtags(await everything())).toEqual(withoutEtags(before));
  before = await everything();
});

test('a row that is not a copy, claim or list of the entity is kept, even at the address of an index entry', async () => {
  const [one = {}] = people;
  const row = `empid_${one.employeeId}`;
  const strangers: Record<string, Values> = {
    employeesbyemail: { EntityType: 'employees', SourcePartition: 'Sales', SourceRow: 'empid_999999' },
    employeesbylastname: { EntityType: 'note', text: 'kept' },
  };
  const indexEntries = definePlaces
    .indexEntriesOf(employees, { ...one, email: 'other@contoso.com', lastName: 'Other' })
    .filter(({ table }) => Object.hasOwn(strangers, table));
  expect(indexEntries).toHaveLength(2);
  for (const { table, partition, row: rowKey } of indexEntries)
    await world.storage.table(table).createEntity({ partitionKey: partition, rowKey, ...strangers[table] });
  const items = [{ partition: 'Sales', row, indexEntries }];
  const intent = { version: 1, intent: randomUUID(), entity: 'employees', table: 'employees', items };
  await engineConsume.consumeIntent(consumerOf(world), messageOf('index-changes', intent));
  for (const { table, partition, row: rowKey } of indexEntries)
    expect(await world.storage.table(table).getEntity(partition, rowKey)).toMatchObject(strangers[table] ?? {});
  for (const { table, partition, row: rowKey } of indexEntries)
    await world.storage.table(table).deleteEntity(partition, rowKey);
});

test('a forged archive or move changes neither data nor records of operations', { tags: ['slow'] }, async () => {
  const keys = addresses()
    .filter(({ table }) => table === 'employees')
    .map(({ partition, row }) => ({ department: partition, employeeId: row.replace('empid_', '') }));
  const incarnations = [...before.values()]
    .flat()
    .flatMap(({ Incarnation }) => (Incarnation ? [String(Incarnation)] : []));
  const to = fc.option(
    fc.oneof(
      fc.record({ department: fc.constantFrom('Sales', 'Legal', 'a/b') }),
      fc.record({ employeeId: fc.constantFrom('000001', '999999'), email: fc.constant('x@contoso.com') }),
      fc.constantFrom<Values>({ constructor: 1 }, { department: { nested: true } }, {}),
    ),
    { nil: undefined },
  );
  const transfer = fc.record({
    version: fc.constant(1),
    operation: fc.constantFrom('archive', 'move'),
    operationId: fc.constantFrom(...operationIds, '2026-11-20-00000000-0000-0000-0000-000000000000', 'x'),
    entity: fc.constantFrom('employees', 'formeremployees', 'customers', 'constructor'),
    key: fc.oneof(fc.constantFrom<Values>(...keys), fc.dictionary(fc.string(), fc.jsonValue())),
    to,
    incarnation: fc.constantFrom(...incarnations),
  });
  await fc.assert(
    fc.asyncProperty(transfer, async (forged) => {
      await engineConsume.consumeTransfer(consumerOf(world), messageOf('transfers', forged));
      expect(await everything()).toEqual(before);
    }),
    sampleRuns(150),
  );
});
