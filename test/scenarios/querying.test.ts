import { beforeAll, describe, expect, test } from 'vitest';
import { storageRows } from '../kit/storage.ts';
import { type Client, useProduct } from '../product.ts';
import { somebody } from '../world.ts';

/** Several reads in one request. */

const product = useProduct(import.meta.url);
const hr = product.as('hr');
const reader = product.as('reader');
const operator = product.as('operator');

const department = 'Queried';
const lastName = 'Queriedsen';
const people = [29, 30, 39, 40].map((age, at) =>
  somebody({ department, lastName, age, hireDate: `202${at}-01-01`, birthDate: `199${at}-01-01`, nationalId: `${at}` }),
);
const [one] = people;
const key = { department, employeeId: one?.employeeId };

beforeAll(async () => {
  for (const body of people) expect((await hr('POST', '/api/employees', { body })).status).toBe(201);
  for (const year of [2019, 2020]) {
    const body = { ...key, year, rating: year - 2016, comments: 'long' };
    expect((await hr('POST', '/api/reviews', { body })).status).toBe(201);
  }
  expect((await hr('POST', '/api/departments', { body: { department } })).status).toBe(201);
});

async function query(reads: unknown, as: Client = hr, suffix = '') {
  return as('POST', `/api/query${suffix}`, { body: { reads } });
}

/** The result of a single read. */
async function read(one: unknown, as: Client = hr) {
  const { status, body } = await query({ one }, as);
  expect(status, JSON.stringify(body)).toBe(200);
  return body.reads.one;
}

test('several reads return their results by name, each with its transactions', async () => {
  const { status, body, headers } = await query({
    me: { get: 'employees', key, include: ['reviews'], where: { reviews: { rating: { ge: 4 } } } },
    team: { range: 'employees', partition: { department }, where: { age: { ge: 30, lt: 40 } }, select: ['age'] },
    byMail: { by: 'emailCompanyWide', entity: 'employees', values: { email: one?.email }, select: ['lastName'] },
    namesakes: { by: 'lastName', entity: 'employees', values: { department, lastName }, top: 2, select: ['age'] },
    department: { get: 'departments', key: { department } },
    nobody: { get: 'employees', key: { department, employeeId: '999999' } },
  });
  expect(status).toBe(200);
  expect(body.reads).toMatchObject({
    me: { status: 200, transactions: 1, entity: { ...one, reviews: [{ year: 2020 }] } },
    team: { status: 200, transactions: 1, items: [{ age: 30 }, { age: 39 }] },
    byMail: { status: 200, transactions: 1, entity: { lastName } },
    namesakes: { status: 200, items: [{ age: 29 }, { age: 30 }], continuation: expect.any(String) },
    department: { status: 200, transactions: 1, entity: { department, employeeCount: 4 } },
    nobody: { status: 404, transactions: 1, problem: { code: 'not-found' } },
  });
  expect(body.reads.me.entity.reviews[0]).not.toHaveProperty('comments');
  const sum = Object.values<{ transactions: number }>(body.reads).reduce(
    (total, { transactions }) => total + transactions,
    0,
  );
  expect(headers.get('server-timing')).toContain(`"${sum} transactions"`);
  const whole = await hr('GET', `/api/employees/${department}/${one?.employeeId}`);
  expect(body.reads.me.etag).toBe(whole.headers.get('etag'));
});

const path = `/api/employees/${department}`;
const byName = { by: 'lastName', entity: 'employees', values: { department, lastName } };

test.each([
  ['an entity', { get: 'employees', key }, `${path}/${one?.employeeId}`],
  [
    'a selection',
    { get: 'employees', key, select: ['age', 'nationalId'] },
    `${path}/${one?.employeeId}?select=age,nationalId`,
  ],
  [
    'children',
    { get: 'employees', key, include: ['reviews'], select: ['reviews.year'] },
    `${path}/${one?.employeeId}?include=reviews&select=reviews.year`,
  ],
  ['a range', { range: 'employees', partition: { department } }, path],
  [
    'a filter',
    { range: 'employees', partition: { department }, where: { age: { in: [29, 40] } } },
    `${path}?age=in:29,40`,
  ],
  [
    'a restricted filter',
    { range: 'employees', partition: { department }, where: { birthDate: { ge: '1991' } } },
    `${path}?birthDate=ge:1991`,
  ],
  ['children of others', { range: 'reviews', partition: { department } }, `/api/reviews/${department}`],
  [
    'a unique index',
    { by: 'emailCompanyWide', entity: 'employees', values: { email: one?.email } },
    `/api/employees/by/emailCompanyWide/${one?.email}`,
  ],
  ['a list', byName, `/api/employees/by/lastName/${department}/${lastName}`],
  ['a filtered list', { ...byName, where: { age: 30 } }, `/api/employees/by/lastName/${department}/${lastName}?age=30`],
  [
    'a list filtered by a restricted field',
    { ...byName, where: { birthDate: '1990-01-01' } },
    `/api/employees/by/lastName/${department}/${lastName}?birthDate=1990-01-01`,
  ],
  [
    'a range of an index',
    { by: 'hireDate', entity: 'employees', values: { department }, from: '2021', to: '2022' },
    `/api/employees/by/hireDate/${department}?from=2021&to=2022`,
  ],
  [
    'an index by a restricted field',
    { by: 'birthDate', entity: 'employees', values: { department } },
    `/api/employees/by/birthDate/${department}`,
  ],
  ['an index without its partition', { by: 'hireDate', entity: 'employees', values: {} }, '/api/employees/by/hireDate'],
  [
    'logins',
    { range: 'logins', partition: { employeeId: '000001' }, from: '2026', to: '2027' },
    '/api/logins/000001?from=2026&to=2027',
  ],
  ['an archive', { range: 'formeremployees', partition: { department } }, `/api/formeremployees/${department}`],
])('%s is the same as in a GET, for every role', { tags: ['slow'] }, async (_, asked, get) => {
  const roles = { reader, hr, operator, both: product.as(['reader', 'operator']) };
  for (const [role, as] of Object.entries(roles)) {
    const expected = await as('GET', get);
    const result = await read(asked, as);
    expect(result.status, role).toBe(expected.status);
    if (expected.status !== 200) expect(result.problem.code, role).toBe(expected.body.code);
    else if (result.items) expect(result.items, role).toEqual(expected.body.items);
    else expect(result.entity, role).toEqual(expected.body);
  }
});

test('a caller without a role that reads anything is rejected', async () => {
  expect((await query({ one: { get: 'employees', key } }, product.as('visitor'))).status).toBe(403);
  expect((await query({ one: { get: 'employees', key } }, product.as(undefined))).status).toBe(401);
});

describe('a continuation', () => {
  const range = { range: 'employees', partition: { department }, where: { age: { ge: 30 } }, select: ['age'], top: 2 };

  test('continues its read, in any order of names and with another page size', async () => {
    const { items, continuation } = await read(range);
    expect(items).toEqual([{ age: 30 }, { age: 39 }]);
    expect(await read({ ...range, top: 50, continuation })).toMatchObject({ items: [{ age: 40 }] });
    expect((await query({ other: { ...range, continuation } })).body.reads.other.items).toEqual([{ age: 40 }]);
  });

  test('is rejected with any other read', async () => {
    const { continuation } = await read(range);
    for (const change of [
      { where: { age: { ge: 31 } } },
      { where: undefined },
      { select: ['phone'] },
      { partition: { department: 'Sales' } },
      { from: '1' },
      { continuation: 'x' },
    ])
      expect(await read({ ...range, continuation, ...change })).toMatchObject({
        status: 400,
        problem: { field: 'continuation' },
      });
    const other = { by: 'hireDate', entity: 'employees', values: { department }, continuation };
    expect((await read(other)).status).toBe(400);
    const linked = `${path}?age=ge:30&select=age&top=2&continuation=${continuation}`;
    expect((await hr('GET', linked)).status).toBe(400);
  });
});

describe('a request is rejected', () => {
  test.each([
    ['without reads', {}, 'reads'],
    [
      'with more reads than are accepted',
      Object.fromEntries(Array.from({ length: 17 }, (_, at) => [`r${at}`, { get: 'employees', key }])),
      'reads',
    ],
    [
      'with pages of more than 1,000 together',
      {
        a: { range: 'employees', partition: { department }, top: 951 },
        b: { range: 'employees', partition: { department } },
      },
      'top',
    ],
    [
      'with a page size that hides another',
      {
        a: { range: 'employees', partition: { department }, top: 1000 },
        b: { range: 'employees', partition: { department }, top: -900 },
      },
      'top',
    ],
    ['with a name that is not accepted', { '1': { get: 'employees', key } }, 'reads.1'],
    ['with a read that is no object', { a: 5 }, 'reads.a'],
  ])('%s', async (_, reads, field) => {
    expect(await query(reads)).toMatchObject({ status: 400, body: { field } });
  });
});

test.each([
  ['an unknown entity', { get: 'salaries', key }, 'get'],
  ['a data series', { get: 'messagehours', key: { employeeId: '000001', day: '2026-11-20' } }, 'get'],
  ['an unknown index', { by: 'constructor', entity: 'employees', values: {} }, 'by'],
  ['an unknown option', { get: 'employees', key, topp: 1 }, 'topp'],
  ['no kind of read', { key }, 'by'],
  ['a part of a key', { get: 'employees', key: { department } }, 'employeeId'],
  [
    'a filter of the only entity of an index',
    { by: 'emailCompanyWide', entity: 'employees', values: { email: one?.email }, where: { age: 1 } },
    'where',
  ],
  [
    'a page of the only entity of an index',
    { by: 'emailCompanyWide', entity: 'employees', values: { email: one?.email }, top: 1 },
    'top',
  ],
  ['an unknown child', { get: 'employees', key, include: ['salaries'] }, 'include'],
  ['a filter of a child that is not included', { get: 'employees', key, where: { reviews: { rating: 4 } } }, 'where'],
  ['an encrypted filter', { range: 'employees', partition: { department }, where: { nationalId: '1' } }, 'nationalId'],
  ['an unknown operator', { range: 'employees', partition: { department }, where: { age: { like: 1 } } }, 'age'],
  ['an unknown field', { range: 'employees', partition: { department }, select: ['agee'] }, 'select'],
  ['a large field', { range: 'reviews', partition: { department }, select: ['comments'] }, 'select'],
  [
    'a large field of children',
    { get: 'employees', key, include: ['reviews'], select: ['reviews.comments'] },
    'select',
  ],
  ['a page size of none', { range: 'employees', partition: { department }, top: 0 }, 'top'],
  [
    'a value of an index that is no field',
    { by: 'hireDate', entity: 'employees', values: { department, __proto__x: 1 } },
    undefined,
  ],
])('a read with %s has a problem, and the others have results', async (_, bad, field) => {
  const { status, body } = await query({ bad, good: { get: 'departments', key: { department } } });
  expect(status).toBe(200);
  expect(body.reads.bad).toMatchObject({
    status: 400,
    problem: { code: 'invalid-input', ...(field ? { field } : {}) },
  });
  expect(body.reads.bad.transactions).toBe(0);
  expect(body.reads.good.status).toBe(200);
});

test('includes groups of fields, with the ETag of the GET', async () => {
  const body = { categoryId: 78, productId: 1, productName: 'Tea', description: 'Green', specification: 'Leaf' };
  expect((await hr('POST', '/api/products', { body })).status).toBe(201);
  const tea = { get: 'products', key: { categoryId: 78, productId: 1 } };
  expect((await read(tea)).entity).not.toHaveProperty('description');
  for (const [more, suffix] of [
    [{}, ''],
    [{ select: ['productName'] }, '&select=productName'],
  ] as const) {
    const got = await hr('GET', `/api/products/78/1?include=text${suffix}`);
    expect(await read({ ...tea, include: ['text'], ...more })).toEqual({
      status: 200,
      transactions: 1,
      etag: got.headers.get('etag'),
      entity: got.body,
    });
    expect(got.body).toMatchObject({ description: 'Green', specification: 'Leaf' });
  }
});

test('is explained, and not recorded in the audit log', async () => {
  const reads = {
    me: { get: 'employees', key, select: ['age'] },
    team: { range: 'employees', partition: { department } },
  };
  const { status, body } = await query(reads, hr, '?explain=true');
  expect(status).toBe(200);
  expect(body.transactions).toBe(2);
  expect(body.steps).toContainEqual(
    expect.objectContaining({ read: 'row', select: ['age', 'EntityType', 'SourceRow'] }),
  );
  expect((await query(reads)).headers.get('server-timing')).toContain('"2 transactions"');
});

test('reads that begin when the response is full have a problem', { tags: ['slow'] }, async () => {
  for (const half of [0, 1]) {
    const actions = Array.from({ length: 75 }, (_, at) => {
      const productId = half * 75 + at;
      const system = { EntityType: 'products', EntityVersion: 1, WriteId: 'w', Incarnation: 'i' };
      const properties = { categoryId: 77, productId, productName: 'x'.repeat(30_000), ...system };
      return { kind: 'insert', row: String(productId).padStart(8, '0'), properties } as const;
    });
    await storageRows.submit(product.storage, { table: 'products', partition: '00077', actions });
  }
  const big = { range: 'products', partition: { categoryId: 77 }, top: 200 };
  const { body } = await query({ a: big, b: big, c: big, d: big, e: { get: 'departments', key: { department } } });
  expect(body.reads.a.status).toBe(200);
  expect(body.reads.a.continuation).toBeDefined();
  expect(body.reads.e).toMatchObject({ status: 413, transactions: 0, problem: { code: 'too-large' } });
});
