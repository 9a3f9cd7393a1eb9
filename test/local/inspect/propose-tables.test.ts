import { expect, test } from 'vitest';
import { describe, kindNamed, propose, schemasOf } from './samples.ts';
import { guidOf, identityRows, logRows, nameIndexRows, type StoredRow, shopRows, typed } from './shapes.ts';

const table = 'Things';
/** Rows with the keys of a function of their number. */
function rowsOf(count: number, row: (number: number) => Omit<StoredRow, 'table'>): StoredRow[] {
  return Array.from({ length: count }, (_, at) => ({ table, ...row(at + 1) }));
}

test('tells kinds of one partition apart, and reads their types', () => {
  const proposal = propose(shopRows(60));
  const [customers, orders] = [kindNamed(proposal, 'customers'), kindNamed(proposal, 'orders')];
  expect([customers.partition, customers.row, customers.rows.length]).toEqual(['C-{customerId:6}', 'customer', 60]);
  expect([orders.partition, orders.row, orders.rows.length]).toEqual(['C-{customerId:6}', 'order-{orderId:8}', 90]);
  expect(schemasOf(customers)).toEqual({
    'key customerId': 'z.int().min(0)',
    LastName: 'z.string()',
    Email: 'z.string()',
    CreatedOn: 'z.iso.datetime()',
    ExternalId: 'z.uuid()',
    Thumbnail: 'z.base64()',
    LoyaltyPoints: 'z.string().regex(/^-?\\d+$/)',
    Discount: 'z.number()',
    IsActive: 'z.boolean()',
    Visits: 'z.int32()',
    PreferredLanguage: 'z.string()?',
  });
  expect(schemasOf(orders)).toMatchObject({
    TotalCents: 'z.int()',
    Status: "z.enum(['Open', 'Paid', 'Shipped'])",
    Lines: 'z.string()',
  });
  expect(customers.unique).toEqual(['email', 'externalId', 'loyaltyPoints']);
});

test('reads ticks in reverse, and says that a date without hyphens stays a text', () => {
  const rows = logRows(8, 20);
  const log = kindNamed(propose(rows), 'requestlog');
  expect([log.partition, log.row]).toEqual(['{day}', '{at~}_{requestLogId}']);
  expect(log.notes).toContain('day: is a date without hyphens. It stays a text, and ranges of it are ranges of texts');
  expect(describe(rows)).toContain('// The partition key begins with a time: all writes of the moment go to one end');
});

test('finds the indexes that a program keeps by hand, and what is wrong with them', () => {
  const rows = identityRows(40).filter(({ partition }) => partition !== 'email_person7@contoso.com');
  rows.push({
    table: 'Identity',
    partition: 'email_ghost@contoso.com',
    row: 'index',
    properties: { UserId: guidOf('ghost') },
  });
  const { indexes } = propose(rows);
  const found = indexes.map(({ index, target, by, ...counts }) => ({
    ...counts,
    to: target.name,
    key: index.partition,
    by,
  }));
  expect(found).toMatchObject([
    {
      to: 'profiles',
      key: 'email_{email}',
      from: 'userId',
      by: [{ field: 'email' }],
      dangling: 1,
      missing: 1,
      stale: 0,
    },
    {
      to: 'profiles',
      key: 'name_{name}',
      from: 'userId',
      by: [{ field: 'userName', change: 'upper' }],
      dangling: 0,
      missing: 0,
    },
  ]);
  const text = describe(rows);
  expect(text).toContain(
    "email: interPartitionIndex({ table: 'profilesbyemail', partition: 'email_{email#}', row: '{email}', unique: true })",
  );
  expect(text).toContain(
    '// Compared: 40 rows, 1 id without a row, 1 of profiles without an index row, 0 with another value.',
  );
  expect(text).not.toContain('entities: [index');
});

test('takes rows for no index if most of them lead nowhere', () => {
  const isThere = (partition: string, number: number) => partition !== `user_${guidOf(`user ${number}`)}`;
  const gone = Array.from({ length: 25 }, (_, at) => at + 1);
  const rows = identityRows(40).filter(({ partition }) => gone.every((number) => isThere(partition, number)));
  expect(propose(rows).indexes).toEqual([]);
});

test('finds lists of ids in another table', () => {
  const { indexes } = propose([...shopRows(60), ...nameIndexRows(59)]);
  expect(indexes).toMatchObject([
    { target: { name: 'customers' }, from: 'ids', isList: true, by: [{ field: 'lastName' }], missing: 1 },
  ]);
});

test('takes rows that refer to others for no index of them', () => {
  const orders = rowsOf(30, (number) => ({
    partition: `C-${String(number % 9).padStart(6, '0')}`,
    row: guidOf(`order ${number}`),
    properties: { Amount: number, Note: `n${number}` },
  }));
  expect(propose([...shopRows(20), ...orders]).indexes).toEqual([]);
});

test('names the property that tells kinds, and says if it alone does', () => {
  const properties = (number: number) => (number % 2 ? { Kind: 'Car', Wheels: 4 } : { Kind: 'Boat', Length: 9 });
  const rows = rowsOf(40, (number) => ({
    partition: 'all',
    row: `${number % 2 ? 'c' : 'b'}${String(number).padStart(4, '0')}`,
    properties: properties(number),
  }));
  const proposal = propose(rows);
  expect(kindNamed(proposal, 'cars').where).toEqual({ property: 'Kind', value: 'Car' });
  expect(describe(rows)).toContain("where: { Kind: 'Boat' },");
  expect(schemasOf(kindNamed(proposal, 'boats'))).toEqual({ 'key boatId': 'z.int().min(0)', Length: 'z.int32()' });
  const ofOneForm = rows.map((row, at) => ({ ...row, row: guidOf(String(at)) }));
  expect(schemasOf(kindNamed(propose(ofOneForm), 'things'))).toMatchObject({
    Kind: 'z.string()',
    Wheels: 'z.int32()?',
  });
  expect(describe(ofOneForm)).toContain('// Rows of several kinds (Kind is Boat, Car) have keys of one form');
});

test.each<[what: string, keyOf: (number: number) => string, template: string]>([
  ['padded numbers', (number) => String(number).padStart(4, '0'), '{id:4}'],
  ['numbers', (number) => String(number), '{id}'],
  ['a prefix without a separator', (number) => `T${String(number).padStart(4, '0')}`, 'T{thingId:4}'],
  ['days', (number) => `2026-01-${String((number % 28) + 1).padStart(2, '0')}|${number}`, '{day}|{thingId}'],
  [
    'days before a hyphen',
    (number) => `2026-01-${String((number % 28) + 1).padStart(2, '0')}-${number}`,
    '{id}-{thingId:2}-{thingId2:2}-{thingId3}',
  ],
  ['hashes', (number) => guidOf(String(number)).replaceAll('-', ''), '{hash}'],
  ['texts', (number) => `word ${'abcdefgh'.slice(number % 7)} of ${number}`, '{key}'],
  ['addresses', (number) => `mail_a.b${number}@contoso.com`, 'mail_{mail}'],
])('reads %s in keys', (_, keyOf, template) => {
  const rows = rowsOf(30, (number) => ({ partition: 'all', row: keyOf(number), properties: { Size: number % 4 } }));
  const kind = kindNamed(propose(rows), 'things');
  expect([kind.row, kind.notRead.size]).toEqual([template, 0]);
});

test('uses the property that has the value of a part of the key', () => {
  const rows = rowsOf(30, (number) => ({
    partition: `P-${String(number).padStart(5, '0')}`,
    row: `v_${number}`,
    properties: {
      ProductCode: typed('Int64')(String(number)),
      Version: String(number),
      Code: String(number * 7).padStart(5, '0'),
    },
  }));
  const kind = kindNamed(propose(rows), 'things');
  expect([kind.partition, kind.row]).toEqual(['P-{productCode:5}', 'v_{version}']);
  expect(kind.fields.slice(0, 2)).toMatchObject([
    { field: 'productCode', property: 'ProductCode', type: 'Int64', schema: 'z.int().min(0)' },
    { field: 'version', property: 'Version' },
  ]);
});

test('takes a value that is in both keys for one field', () => {
  const rows = rowsOf(30, (number) => ({
    partition: `t-${number}`,
    row: String(number),
    properties: { Size: number % 4 },
  }));
  const kind = kindNamed(propose(rows), 'things');
  expect([kind.partition, kind.row, kind.keyFields]).toEqual(['t-{thingId}', '{thingId}', ['thingId']]);
});

test('says what cannot be declared, and why', () => {
  const rows = rowsOf(40, (number) => ({
    partition: number % 40 ? `p_${number}` : 'p_50%',
    row: 'thing',
    properties: {
      Mixed: number % 2 ? 'text' : number,
      Ratio: typed('Double')(number === 3 ? 'NaN' : '1.5'),
      Größe: number,
      RowkeyId: number,
    },
  }));
  const text = describe(rows);
  expect(text).toContain(
    '// No field for the property Mixed: values of several types (20 String, 20 Int32). Writes keep it as it is.',
  );
  expect(text).toContain('// ratio: has values of several types (39 Double, 1 NaN): Rowkey reads the first only.');
  expect(text).toContain('// No field for the property Größe: its name has other characters than A-Z, a-z, 0-9 and _.');
  expect(text).toContain('// No field for the property RowkeyId: names with Rowkey are those of Rowkey.');
  expect(text).toContain('// Not read: 1 row, because the key has "%", which Rowkey escapes.');
  const empty = rowsOf(5, (number) => ({ partition: `p${number}`, row: '', properties: { Size: number } }));
  expect(describe(empty)).toContain('// Cannot be declared. The row key is empty, which no key template can be.');
});

test('says that new rows all go to the last partition', () => {
  const at = (day: number) => `W/"datetime'2026-11-${String(day).padStart(2, '0')}T08%3A00%3A00Z'"`;
  const rows = rowsOf(20, (number) => ({
    partition: `batch${100 + number}`,
    row: 'a',
    properties: {},
    etag: at(number),
  }));
  expect(describe(rows)).toContain('// Hot: new rows go to the last partitions');
  const spread = rows.map((row, index) => ({ ...row, etag: at(((index * 7) % 20) + 1) }));
  expect(describe(spread)).not.toContain('Hot');
  // All rows were stored within a short time, in the order of their keys.
  const loaded = rows.map((row, index) => ({ ...row, etag: at(1).replace('00Z', `${10 + index}Z`) }));
  expect(describe(loaded)).not.toContain('Hot');
});
