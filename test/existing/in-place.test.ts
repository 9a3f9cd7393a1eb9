import { TableClient, type TableEntity } from '@azure/data-tables';
import fc from 'fast-check';
import { beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { defineEntity, defineModel, indexEntity, interPartitionIndex, total } from '../../lib/index.ts';
import { definePlaces, type Entity } from '../kit/define.ts';
import { operationsCheck, operationsModel } from '../kit/operations.ts';
import { storageAccounts, storageRows } from '../kit/storage.ts';
import { openApp } from '../open-app.ts';
import { PATIENCE_MS } from '../patience.ts';
import { sampleRuns } from '../points.ts';
import { testStorage } from '../storage.ts';
import { openWorld } from '../world.ts';

/** Declarations over a table that another program fills, and goes on filling. */

const access = { read: ['reader'], write: ['editor'] } as const;

/** What declarations over the table have in common. */
const declared = {
  schema: z.object({
    customerId: z.int().min(0),
    lastName: z.string(),
    createdOn: z.iso.datetime(),
    externalId: z.uuid().optional(),
    thumbnail: z.string().optional(),
    points: z.string().optional(),
    totalCents: z.int().optional(),
    discount: z.number().optional(),
    isActive: z.boolean().optional(),
    visits: z.int32().optional(),
  }),
  table: 'shopdata',
  key: { partition: 'C-{customerId:6}', row: 'customer' },
  existing: {
    properties: {
      lastName: 'LastName',
      createdOn: { name: 'CreatedOn', type: 'DateTime' },
      externalId: { name: 'ExternalId', type: 'Guid' },
      thumbnail: { name: 'Thumbnail', type: 'Binary' },
      points: { name: 'LoyaltyPoints', type: 'Int64' },
      totalCents: { name: 'TotalCents', type: 'Int64' },
      discount: 'Discount',
      isActive: 'IsActive',
      visits: 'Visits',
    },
  },
  access,
} as const;

const customers = defineEntity('customers', {
  ...declared,
  indexes: {
    byName: interPartitionIndex({ table: 'customersbyname', partition: '{lastName}', row: '{customerId:6}' }),
    byGuid: interPartitionIndex({ table: 'customersbyguid', partition: 'all', row: '{externalId}', unique: true }),
    days: indexEntity({ table: 'customerdays', partition: 'all', row: '{lastName}', holds: '{customerId:6}' }),
  },
  totals: { perName: total({ table: 'customertotals', partition: 'all', row: '{lastName}', sum: ['totalCents'] }) },
});

const orders = defineEntity('orders', {
  schema: z.object({ customerId: z.int().min(0), orderId: z.string(), amount: z.number(), status: z.string() }),
  table: 'shopdata',
  key: { partition: 'C-{customerId:6}', row: 'order-{orderId}' },
  existing: { properties: { amount: 'Amount', status: 'Status' }, where: { Kind: 'Order' } },
  access,
});

const visits = defineEntity('visits', {
  schema: z.object({ customerId: z.int().min(0), number: z.int(), at: z.string() }),
  table: 'shopdata',
  key: { partition: 'C-{customerId:6}', row: 'visit-{number}' },
  existing: { properties: { at: 'At' } },
  access,
});

/** Two kinds of rows with keys of one form. */
const ofOneForm = {
  schema: z.object({ customerId: z.int().min(0), id: z.uuid(), text: z.string() }),
  table: 'shopdata',
  key: { partition: 'M-{customerId:6}', row: '{id}' },
  access,
} as const;
const mails = defineEntity('mails', {
  ...ofOneForm,
  existing: { properties: { text: 'Subject' }, where: { Kind: 'Mail' } },
});
const calls = defineEntity('calls', {
  ...ofOneForm,
  existing: { properties: { text: 'Topic' }, where: { Kind: 'Call' } },
});

const model = defineModel({
  roles: ['reader', 'editor'],
  operatorRole: 'editor',
  entities: [customers, orders, visits, mails, calls],
});

const app = openApp(import.meta.url, model);
const connection = testStorage(import.meta.url);
const table = TableClient.fromConnectionString(connection, 'shopdata', {
  allowInsecureConnection: true,
});
const { store } = app;
const ofModel = (name: string) => model.list.find((entity) => entity.name === name) as Entity;
const linked = { customers: ofModel('customers'), orders: ofModel('orders') };

const ANN = { customerId: 17 };
const annKeys = { partitionKey: 'C-000017', rowKey: 'customer' };
const ann = {
  ...annKeys,
  LastName: 'Jones',
  CreatedOn: { type: 'DateTime', value: '2021-03-04T05:06:07.1234567Z' },
  ExternalId: { type: 'Guid', value: '0b5f5cf1-2f63-4ad4-9c0f-3e6ac3d2a111' },
  Thumbnail: { type: 'Binary', value: Buffer.from([0, 1, 254, 255]).toString('base64') },
  LoyaltyPoints: { type: 'Int64', value: '9007199254740993' },
  TotalCents: { type: 'Int64', value: '4200' },
  Discount: { type: 'Double', value: 3 },
  IsActive: true,
  Visits: 7,
  LegacyFlag: { type: 'Int64', value: '1' },
  Note: 'old',
};

/** The row as storage has it, each property with its type; a Double with its point. */
async function stored({ partitionKey, rowKey }: { partitionKey: string; rowKey: string }): Promise<object | undefined> {
  let body = '';
  const onResponse = ({ bodyAsText }: { bodyAsText?: string | null }) => {
    body = bodyAsText ?? '';
  };
  const found = await table.getEntity(partitionKey, rowKey, { onResponse }).catch(() => undefined);
  if (!found) return undefined;
  const {
    Timestamp: _,
    'odata.etag': __,
    'odata.metadata': ___,
    ...row
  } = JSON.parse(body.replace(/":(-?\d+\.\d+)/g, '":"#$1"'));
  return row;
}

const withoutOwn = (row: object = {}) =>
  Object.fromEntries(Object.entries(row).filter(([name]) => !name.startsWith('Rowkey')));

const world = await openWorld(import.meta.url, [linked.customers, linked.orders]);
const TABLES = [...new Set([linked.customers, linked.orders].flatMap((entity) => definePlaces.tablesOf(entity)))];

/** Deletes all rows of the tables of the model. */
async function clear(): Promise<void> {
  for (const name of TABLES) {
    const client = TableClient.fromConnectionString(connection, name, { allowInsecureConnection: true });
    for await (const { partitionKey = '', rowKey = '' } of client.listEntities())
      await client.deleteEntity(partitionKey, rowKey);
  }
}
beforeEach(clear);
beforeAll(async () => {
  await app.provision();
  // A process looks once in a second whether another one has built an index.
  await vi.waitFor(
    async () => {
      for (const index of ['byName', 'byGuid', 'days', 'perName'])
        await operationsModel.markBuilt(world.engine, linked.customers, index);
      await store.customers.by.byName.range({ lastName: 'Jones' }).page();
      await store.customers.totals.perName.get({ lastName: 'Jones' });
    },
    { timeout: PATIENCE_MS },
  );
});

/** What the consistency check finds of customers, on all its pages. */
async function verified({ repair = false } = {}): Promise<string[]> {
  const found: string[] = [];
  for (let position: unknown; ; ) {
    const options = { position, top: 100, repair, patience: 0, maxTransactions: 10_000 } as never;
    const { findings, next } = await operationsCheck.verifyPage(world.engine, linked.customers, options);
    found.push(...findings.map(({ kind }) => kind));
    if (!next) return found;
    position = next;
  }
}

test('reads rows with the types of the declaration, and their keys as fields', async () => {
  await table.createEntity(ann);
  expect((await store.customers.get(ANN))?.values).toEqual({
    customerId: 17,
    lastName: 'Jones',
    createdOn: '2021-03-04T05:06:07.1234567Z',
    externalId: '0b5f5cf1-2f63-4ad4-9c0f-3e6ac3d2a111',
    thumbnail: 'AAH+/w==',
    points: '9007199254740993',
    totalCents: 4200,
    discount: 3,
    isActive: true,
    visits: 7,
  });
});

test('a Guid in upper case is that in lower case, in a write and in an index', async () => {
  const externalId = '0b5f5cf1-2f63-4ad4-9c0f-3e6ac3d2a111';
  const upper = externalId.toUpperCase();
  const { values } = await store.customers.create({
    ...ANN,
    lastName: 'Jones',
    createdOn: '2021-03-04T05:06:07Z',
    externalId: upper,
  });
  expect(values.externalId).toBe(externalId);
  await store.customers.update(ANN, { externalId: upper });
  await world.settle();
  expect((await stored(annKeys)) as object).toMatchObject({ ExternalId: externalId });
  expect((await store.customers.by.byGuid({ externalId }))?.customerId).toBe(17);
  expect(await verified()).toEqual([]);
});

test('a row may have as many bytes as storage holds', async () => {
  const bytes = (length: number) => Buffer.alloc(length, 7).toString('base64');
  const pages = (count: number, value: unknown) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`Page${index}`, value]));
  // The emulator counts the characters of their base64.
  await table.createEntity({ ...ann, ...pages(9, { type: 'Binary', value: bytes(60_000) }) });
  await store.customers.update(ANN, { lastName: 'Smith', thumbnail: bytes(65_536) });
  const row = await stored(annKeys);
  expect(row).toMatchObject({ LastName: 'Smith', Thumbnail: bytes(65_536), Page8: bytes(60_000) });
  await expect(store.customers.update(ANN, { thumbnail: bytes(65_539) })).rejects.toThrow('longer than it can be');
  await table.createEntity({ ...ann, ...pages(17, 'x'.repeat(30_000)), partitionKey: 'C-000018' });
  const update = store.customers.update({ customerId: 18 }, { thumbnail: bytes(65_536) });
  await expect(update).rejects.toThrow('larger than Table storage holds');
});

test('a write keeps types, unknown properties and all that it does not change', async () => {
  await table.createEntity(ann);
  const before = await stored(annKeys);
  await store.customers.update(ANN, { lastName: 'Smith' });
  expect(withoutOwn(await stored(annKeys))).toEqual({ ...before, LastName: 'Smith' });
  await store.customers.replace(ANN, { lastName: 'Smith', createdOn: '2021-03-04T05:06:07Z' });
  expect(withoutOwn(await stored(annKeys))).toMatchObject({ Note: 'old', LegacyFlag: '1' });
  expect(await verified()).toEqual([]);
});

test('a write of another type than the stored one is refused, and changes nothing', async () => {
  await table.createEntity(ann);
  const before = await stored(annKeys);
  for (const [field, value] of [
    ['createdOn', '1600-12-31T23:59:59Z'],
    ['createdOn', '2021-03-04T05:06:07.12345678Z'],
    ['points', '9223372036854775808'],
    ['points', '1.5'],
    ['points', '007'],
    ['thumbnail', 'not base64'],
  ])
    await expect(store.customers.update(ANN, { [String(field)]: value })).rejects.toMatchObject({
      code: 'invalid-input',
      field,
    });
  expect(await stored(annKeys)).toEqual(before);
});

test('a value of another type is unreadable, and stays until a write replaces it', async () => {
  await table.createEntity({ ...ann, IsActive: 'yes' });
  const before = await stored(annKeys);
  await expect(store.customers.get(ANN)).rejects.toMatchObject({ code: 'needs-repair' });
  const [listed] = await Array.fromAsync(store.customers.range(ANN));
  expect(listed).toMatchObject({ lastName: 'Jones', isActive: null });
  await expect(store.customers.update(ANN, { lastName: 'Smith' })).rejects.toMatchObject({ code: 'needs-repair' });
  expect(await stored(annKeys)).toEqual(before);
  await store.customers.update(ANN, { isActive: false });
  expect(withoutOwn(await stored(annKeys))).toEqual({ ...before, IsActive: false });
});

test('a number that was widened is read, and stored as it is declared', async () => {
  await table.createEntity({ ...ann, TotalCents: 12, Discount: 4 });
  expect((await store.customers.get(ANN))?.values).toMatchObject({ totalCents: 12, discount: 4 });
  await store.customers.update(ANN, { lastName: 'Smith' });
  expect(await stored(annKeys)).toMatchObject({
    TotalCents: '12',
    'TotalCents@odata.type': 'Edm.Int64',
    Discount: '#4.0',
  });
});

test('filters compare stored types', async () => {
  await table.createEntity(ann);
  await table.createEntity({
    ...ann,
    partitionKey: 'C-000018',
    LastName: 'Smith',
    LoyaltyPoints: { type: 'Int64', value: '5' },
  });
  const found = async (where: Parameters<typeof store.customers.range>[1]) =>
    (await Array.fromAsync(store.customers.range(ANN, where))).length;
  expect(await found({ where: { createdOn: { eq: '2021-03-04T05:06:07.1234567Z' } } })).toBe(1);
  expect(await found({ where: { createdOn: { gt: '2021-03-04T05:06:07.1234567Z' } } })).toBe(0);
  expect(
    await found({ where: { externalId: { eq: '0B5F5CF1-2F63-4AD4-9C0F-3E6AC3D2A111' }, isActive: { eq: true } } }),
  ).toBe(1);
  expect(
    await found({ where: { externalId: { eq: '0b5f5cf1-2f63-4ad4-9c0f-3e6ac3d2a111' }, isActive: { eq: true } } }),
  ).toBe(1);
  expect(await found({ where: { points: { eq: '9007199254740993' } } })).toBe(1);
  expect(await found({ where: { points: { eq: '9007199254740992' } } })).toBe(0);
  expect(await found({ where: { customerId: { eq: 17 } } })).toBe(1);
  expect(await found({ where: { customerId: { eq: 18 } } })).toBe(0);
});

test('a value has one text, as the service returns it, in the row, its indexes and filters', async () => {
  const guid = '0B5F5CF1-2f63-4ad4-9c0f-3e6ac3d2a111';
  const given = { lastName: 'Jones', createdOn: '2021-03-04T05:06:07.000Z', externalId: guid, thumbnail: 'AQIDBB==' };
  const canonical = { createdOn: '2021-03-04T05:06:07Z', externalId: guid.toLowerCase(), thumbnail: 'AQIDBA==' };
  const created = await store.customers.create({ ...ANN, ...given });
  expect(created.values).toMatchObject(canonical);
  expect(await stored(annKeys)).toMatchObject({
    CreatedOn: canonical.createdOn,
    ExternalId: canonical.externalId,
    Thumbnail: canonical.thumbnail,
  });
  expect(await verified()).toEqual([]);
  const twin = { ...given, customerId: 18, externalId: guid.toUpperCase() };
  await expect(store.customers.create(twin)).rejects.toMatchObject({ code: 'duplicate-value' });
  const where = { externalId: { eq: guid.toUpperCase() } };
  expect(await Array.fromAsync(store.customers.range(ANN, { where }))).toHaveLength(1);
  expect(await Array.fromAsync(store.customers.by.byName.range({ lastName: 'Jones' }, { where }))).toHaveLength(1);
  // The emulator keeps the text of the other program.
  await table.updateEntity({ ...annKeys, CreatedOn: { type: 'DateTime', value: '2021-03-04T05:06:07.1200000Z' } });
  expect((await store.customers.get(ANN))?.values.createdOn).toBe('2021-03-04T05:06:07.12Z');
});

test('texts of an Int64 are compared as numbers, in the table and in the copies of an index', async () => {
  const numbers = ['-9223372036854775808', '-10', '-9', '0', '5', '10', '9007199254740993', '9223372036854775807'];
  for (const [at, points] of numbers.entries())
    await store.customers.create({ customerId: at, lastName: 'Jones', createdOn: '2026-11-01T08:00:00Z', points });
  const compared = {
    gt: (value: bigint, bound: bigint) => value > bound,
    ge: (value: bigint, bound: bigint) => value >= bound,
    lt: (value: bigint, bound: bigint) => value < bound,
    le: (value: bigint, bound: bigint) => value <= bound,
  };
  for (const bound of ['-10', '6', '9007199254740992', '9007199254740993'])
    for (const [operator, holds] of Object.entries(compared)) {
      const where = { points: { [operator]: bound } };
      const expected = numbers.filter((number) => holds(BigInt(number), BigInt(bound)));
      const copies = await Array.fromAsync(store.customers.by.byName.range({ lastName: 'Jones' }, { where }));
      expect(copies.map(({ points }) => points)).toEqual(expected);
      const rows = await Promise.all(
        numbers.map((_, customerId) => Array.fromAsync(store.customers.range({ customerId }, { where }))),
      );
      expect(rows.flat().map(({ points }) => points)).toEqual(expected);
    }
  for (const bound of ['many', '', '1.5', '9223372036854775808'])
    await expect(store.customers.range(ANN, { where: { points: { gt: bound } } }).page()).rejects.toMatchObject({
      code: 'invalid-input',
      message: expect.stringContaining('points'),
    });
});

/** Rows that are none of the declarations: a kind that nobody declares, keys of another form, and an order that lacks its mark. */
const FOREIGN = [
  { partitionKey: 'C-000001', rowKey: 'note-1', Text: 'call back', EntityType: 'Note', WriteId: 'theirs' },
  { partitionKey: 'C-1', rowKey: 'customer', LastName: 'Short' },
  { partitionKey: 'c-000001', rowKey: 'customer', LastName: 'Lower' },
  { partitionKey: 'C-000001', rowKey: 'order-9', Amount: 1, Kind: 'Draft' },
  { partitionKey: 'C-000001', rowKey: 'order-a!b', Amount: 1, Kind: 'Order' },
  { partitionKey: 'C-000001', rowKey: 'visit-007', At: 'noon' },
];

type Typed = Readonly<Record<string, unknown>>;
const text = fc.constantFrom('Jones', 'Smith', "O'Hara", 'é', 'RowkeyType', '{"type":"Int64","value":"1"}');
const instant = fc.constantFrom('2021-03-04T05:06:07.1234567Z', '1999-12-31T23:59:59Z', '2030-01-01T00:00:00.5Z');
const int64 = fc.constantFrom('0', '9007199254740993', '-9223372036854775808', '9223372036854775807');
const guid = fc.uuid();
/** What the other program stores, and what the fields of the same values are. */
const written = fc.record(
  {
    lastName: text,
    createdOn: instant,
    externalId: guid,
    thumbnail: fc.constantFrom('AAH+/w==', ''),
    points: int64,
    totalCents: fc.integer({ min: -5, max: 2 ** 40 }),
    discount: fc.constantFrom(3, 0.25, -1e300),
    isActive: fc.boolean(),
    visits: fc.integer({ min: 0, max: 9 }),
  },
  { requiredKeys: ['lastName', 'createdOn'] },
);
type Written = Partial<typeof written extends fc.Arbitrary<infer Fields> ? Fields : never>;
const others = fc.dictionary(
  fc.constantFrom('LegacyFlag', 'Note', 'EntityType', 'WriteId', 'customerId'),
  fc.oneof(
    text,
    fc.boolean(),
    fc.constantFrom(
      { type: 'Double', value: '3.0' },
      { type: 'Int64', value: '1' },
      { type: 'DateTime', value: '2021-03-04T05:06:07.1234567Z' },
      { type: 'Binary', value: 'AAH+/w==' },
    ),
  ),
);

const STORED = {
  lastName: ['LastName'],
  createdOn: ['CreatedOn', 'DateTime'],
  externalId: ['ExternalId', 'Guid'],
  thumbnail: ['Thumbnail', 'Binary'],
  points: ['LoyaltyPoints', 'Int64'],
  totalCents: ['TotalCents', 'Int64'],
  discount: ['Discount', 'Double'],
  isActive: ['IsActive'],
  visits: ['Visits'],
} as const;

function toStored(fields: Written): Typed {
  return Object.fromEntries(
    Object.entries(fields).map(([field, value]) => {
      const [name = field, type] = STORED[field as keyof typeof STORED] ?? [];
      return [name, type ? { type, value: String(value) } : value];
    }),
  );
}

/** The form in which `stored` returns a row. */
function asSent(keys: { partitionKey: string; rowKey: string }, properties: Typed): Typed {
  const sent: Record<string, unknown> = { PartitionKey: keys.partitionKey, RowKey: keys.rowKey };
  for (const [name, value] of Object.entries(properties)) {
    if (typeof value !== 'object' || value === null || !('type' in value)) sent[name] = value;
    else if (value.type === 'Double') sent[name] = Number(Object(value).value);
    else Object.assign(sent, { [name]: Object(value).value, [`${name}@odata.type`]: `Edm.${value.type}` });
  }
  return sent;
}

/** Doubles as numbers: the text of one is not unique. */
const asNumbers = (row: object | undefined) =>
  Object.fromEntries(
    Object.entries(row ?? {}).map(([name, value]) => [
      name,
      typeof value === 'string' && /^#/.test(value) ? Number(value.slice(1)) : value,
    ]),
  );

const step = fc.record({
  id: fc.integer({ min: 1, max: 3 }),
  does: fc.constantFrom('insert', 'put', 'merge', 'remove', 'create', 'update', 'replace', 'delete'),
  fields: written,
  others,
});

test('after any writes of both programs, rows are what each wrote, and a repair makes indexes agree', {
  tags: ['slow'],
}, async () => {
  const run = async (steps: readonly (typeof step extends fc.Arbitrary<infer Step> ? Step : never)[]) => {
    await clear();
    const foreign = await Promise.all(FOREIGN.map(async (row) => [row, (await table.createEntity(row)).etag] as const));
    const expected = new Map<number, Typed>();
    for (const { id, does, fields, others: more } of steps) {
      const keys = { partitionKey: `C-${String(id).padStart(6, '0')}`, rowKey: 'customer' };
      const key = { customerId: id };
      const row = { ...toStored(fields), ...more };
      const before = expected.get(id);
      const named: readonly string[] = Object.values(STORED).map(([name]) => name);
      if (does === 'insert' && !before) await table.createEntity({ ...keys, ...row } as TableEntity);
      else if (does === 'put') await table.upsertEntity({ ...keys, ...row } as TableEntity, 'Replace');
      else if (does === 'merge') await table.upsertEntity({ ...keys, ...row } as TableEntity, 'Merge');
      else if (does === 'remove' && before) await table.deleteEntity(keys.partitionKey, keys.rowKey);
      else if (does === 'create' && !before) await store.customers.create({ ...key, ...fields });
      else if (does === 'update' && before) await store.customers.update(key, fields);
      else if (does === 'replace' && before) await store.customers.replace(key, fields);
      else if (does === 'delete' && before) await store.customers.delete(key);
      else continue;
      if (does === 'insert' || does === 'put') expected.set(id, row);
      else if (does === 'merge') expected.set(id, { ...before, ...row });
      else if (does === 'create') expected.set(id, toStored(fields));
      else if (does === 'update') expected.set(id, { ...before, ...toStored(fields) });
      else if (does === 'replace')
        expected.set(id, {
          ...Object.fromEntries(Object.entries(before ?? {}).filter(([name]) => !named.includes(name))),
          ...toStored(fields),
        });
      else expected.delete(id);
    }
    await world.settle();
    for (const id of [1, 2, 3]) {
      const keys = { partitionKey: `C-${String(id).padStart(6, '0')}`, rowKey: 'customer' };
      const properties = expected.get(id);
      const found = await stored(keys);
      expect(found && asNumbers(withoutOwn(found))).toEqual(properties && asSent(keys, properties));
    }
    await verified({ repair: true });
    await world.settle();
    expect(await verified()).toEqual([]);
    const byName = (one: object) => String(Object(one).LastName);
    for (const [lastName, rows] of Map.groupBy(expected.values(), byName)) {
      const listed = await Array.fromAsync(store.customers.by.byName.range({ lastName }));
      expect(listed).toHaveLength(rows.length);
      expect(listed.every((one) => one.lastName === lastName)).toBe(true);
      const total = await store.customers.totals.perName.get({ lastName });
      expect(total?.count).toBe(rows.length);
    }
    for (const [row, etag] of foreign) {
      const { partitionKey, rowKey } = row;
      expect((await table.getEntity(partitionKey, rowKey)).etag).toBe(etag);
    }
  };
  await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 8 }), run), sampleRuns(100));
});

test('a value of another type does not tell a kind', async () => {
  const keys = { partitionKey: 'M-000001', rowKey: '0b5f5cf1-2f63-4ad4-9c0f-3e6ac3d2a111' };
  await table.createEntity({
    ...keys,
    Kind: { type: 'Binary', value: Buffer.from('Mail').toString('base64') },
    Subject: 'x',
  });
  expect(await store.mails.get({ customerId: 1, id: keys.rowKey })).toBeUndefined();
  expect(await Array.fromAsync(store.mails.range({ customerId: 1 }))).toEqual([]);
});

test('a row of a kind is deleted beside one that is only read', async () => {
  const keys = { partitionKey: 'M-000001', rowKey: '0b5f5cf1-2f63-4ad4-9c0f-3e6ac3d2a111' };
  const beside = defineModel({
    roles: ['reader', 'editor'],
    operatorRole: 'editor',
    entities: [
      defineEntity('mails', { ...ofOneForm, existing: { where: { Kind: 'Mail' }, readOnly: true } }),
      defineEntity('calls', { ...ofOneForm, existing: { where: { Kind: 'Call' } } }),
    ],
  });
  const other = openApp(import.meta.url, beside);
  await table.createEntity({ ...keys, Kind: 'Call', text: 'x' });
  await other.store.calls.delete({ customerId: 1, id: keys.rowKey });
  expect(await stored(keys)).toBeUndefined();
  await table.createEntity({ ...keys, Kind: 'Mail', text: 'x' });
  await expect(other.store.mails.delete({ customerId: 1, id: keys.rowKey })).rejects.toMatchObject({
    code: 'method-not-allowed',
  });
});

test('a property tells kinds with keys of one form apart', async () => {
  const [id, other] = ['0b5f5cf1-2f63-4ad4-9c0f-3e6ac3d2a111', '0b5f5cf1-2f63-4ad4-9c0f-3e6ac3d2a112'] as const;
  const keys = { partitionKey: 'M-000001', rowKey: id };
  await table.createEntity({ ...keys, Kind: 'Mail', Subject: 'Offer' });
  await store.calls.create({ customerId: 1, id: other, text: 'Delay' });
  const key = { customerId: 1, id };
  expect((await store.mails.get(key))?.values).toEqual({ ...key, text: 'Offer' });
  expect(await store.calls.get(key)).toBeUndefined();
  await expect(store.calls.create({ ...key, text: 'x' })).rejects.toMatchObject({ code: 'duplicate-key' });
  await expect(store.calls.update(key, { text: 'x' })).rejects.toMatchObject({ code: 'not-found' });
  await expect(store.calls.delete(key)).rejects.toMatchObject({ code: 'not-found' });
  await store.mails.update(key, { text: 'Order' });
  expect(withoutOwn(await stored(keys))).toEqual({
    PartitionKey: 'M-000001',
    RowKey: id,
    Kind: 'Mail',
    Subject: 'Order',
  });
  expect(await stored({ ...keys, rowKey: other })).toMatchObject({ Kind: 'Call', Topic: 'Delay' });
  expect(await Array.fromAsync(store.mails.range({ customerId: 1 }))).toEqual([{ ...key, text: 'Order' }]);
});

test('a number has one key', async () => {
  const keys = { partitionKey: 'C-000001', rowKey: 'visit-007' };
  await table.createEntity({ ...keys, At: 'noon' });
  await table.createEntity({ ...keys, rowKey: 'visit-8', At: 'night' });
  expect(await store.visits.get({ customerId: 1, number: 7 })).toBeUndefined();
  expect(await Array.fromAsync(store.visits.range({ customerId: 1 }))).toEqual([
    { customerId: 1, number: 8, at: 'night' },
  ]);
});

test('a tombstone into which the other program has merged is its row', async () => {
  await table.createEntity({
    ...annKeys,
    RowkeyType: 'tombstone',
    RowkeyWriteId: 'w',
    LastName: 'Jones',
    CreatedOn: ann.CreatedOn,
  });
  expect((await store.customers.get(ANN))?.values).toMatchObject({ lastName: 'Jones' });
});

describe('a table that is only read', () => {
  const readOnly = defineModel({
    roles: ['reader', 'editor'],
    operatorRole: 'editor',
    entities: [defineEntity('readers', { ...declared, existing: { ...declared.existing, readOnly: true } })],
  });
  const { store: reading } = openApp(import.meta.url, readOnly);
  const row = { customerId: 17, lastName: 'Smith', createdOn: '2021-03-04T05:06:07Z' };

  test('is read', async () => {
    await table.createEntity(ann);
    expect((await reading.readers.get(ANN))?.values).toMatchObject({ lastName: 'Jones' });
  });

  test('is written by a restore to a place where nobody else writes', async () => {
    const address = { table: 'shopdata', partition: annKeys.partitionKey, row: annKeys.rowKey };
    const action = {
      kind: 'insert',
      row: address.row,
      properties: { EntityType: 'readers', lastName: 'Jones' },
    } as const;
    const opened = storageAccounts.openStorage({ connectionString: connection });
    const write = (options: { isRestored?: boolean }) =>
      storageRows.submit(storageAccounts.withShapes(opened, readOnly.list, options), { ...address, actions: [action] });
    await expect(write({})).rejects.toMatchObject({ code: 'method-not-allowed' });
    await write({ isRestored: true });
    expect(await stored(annKeys)).toMatchObject({ LastName: 'Jones' });
  });

  test.each<[string, () => Promise<unknown>]>([
    ['create', () => reading.readers.create({ ...row, customerId: 18 })],
    ['put', () => reading.readers.put(ANN, row)],
    ['update', () => reading.readers.update(ANN, { lastName: 'Smith' })],
    ['replace', () => reading.readers.replace(ANN, row)],
    ['delete', () => reading.readers.delete(ANN)],
  ])('refuses %s', async (_, write) => {
    await table.createEntity(ann);
    const before = await table.getEntity(annKeys.partitionKey, annKeys.rowKey);
    await expect(write()).rejects.toMatchObject({ code: 'method-not-allowed' });
    expect(await table.getEntity(annKeys.partitionKey, annKeys.rowKey)).toEqual(before);
    expect(await stored({ partitionKey: 'C-000018', rowKey: 'customer' })).toBeUndefined();
  });
});
