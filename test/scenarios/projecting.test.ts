import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { sampleRuns } from '../points.ts';
import { useProduct } from '../product.ts';
import { somebody } from '../world.ts';

/** Reads of selected fields only. */

const product = useProduct(import.meta.url);
const hr = product.as('hr');
const reader = product.as('reader');
const operator = product.as(['operator', 'hr']);

const department = 'Projected';
const one = somebody({
  department,
  lastName: 'Berg',
  phone: '1',
  jobTitle: 'Sales Manager',
  hireDate: '2020-01-01',
  birthDate: '1980-01-01',
  nationalId: '123',
  vacationHours: 8.5,
  age: 40,
});
const path = `/api/employees/${department}/${one.employeeId}`;

beforeAll(async () => {
  expect((await hr('POST', '/api/employees', { body: one })).status).toBe(201);
  for (const year of [2019, 2020]) {
    const body = { department, employeeId: one.employeeId, year, rating: 4, comments: 'x'.repeat(400_000) };
    expect((await hr('POST', '/api/reviews', { body })).status).toBe(201);
  }
});

interface Step {
  readonly read: string;
  readonly select?: readonly string[];
}

async function stepsOf(target: string): Promise<Step[]> {
  const { body } = await operator('GET', `${target}${target.includes('?') ? '&' : '?'}explain=true`);
  return body.steps;
}

const PATHS = [
  path,
  `/api/employees/${department}`,
  `/api/employees/by/email/${department}/${one.email}`,
  `/api/employees/by/emailCompanyWide/${one.email}`,
  `/api/employees/by/id/${one.employeeId}`,
  `/api/employees/by/hireDate/${department}`,
  `/api/employees/by/birthDate/${department}`,
  `/api/employees/by/lastName/${department}/Berg`,
  `/api/employees/by/managers/${department}`,
  '/api/employees/by/lastNameCompanyWide/Berg',
  '/api/operations/scan/employees',
];

test.each(PATHS)(
  'GET %s returns the selected fields alone, for the same number of transactions',
  { tags: ['slow'] },
  async (target) => {
    const whole = await operator('GET', target);
    const valuesOf = (body: { items?: object[] }) => (body.items ? body.items[0] : body);
    const full = Object.entries(valuesOf(whole.body) ?? {});
    expect(full).toHaveLength(Object.keys(one).length);
    const fields = fc.subarray(Object.keys(one), { minLength: 1 });
    await fc.assert(
      fc.asyncProperty(fields, async (select) => {
        const { status, body, headers } = await operator('GET', `${target}?select=${select.join(',')}`);
        expect(status).toBe(200);
        expect(valuesOf(body)).toEqual(Object.fromEntries(full.filter(([field]) => select.includes(field))));
        expect(headers.get('content-location')).toBe(whole.headers.get('content-location'));
      }),
      sampleRuns(8),
    );
    const [steps, selecting] = [await stepsOf(target), await stepsOf(`${target}?select=age`)];
    expect(selecting).toHaveLength(steps.length);
    // A condition of an index may use any field. The rows of references and lists are small.
    if (!target.includes('managers')) expect(selecting.at(-1)?.select).toContain('age');
    expect(selecting.at(-1)?.select ?? []).not.toContain('nationalId');
  },
);

describe('an encrypted field and a large text', () => {
  test('are not opened unless they are selected', async () => {
    const broken = await hr('POST', '/api/employees', { body: somebody({ department: 'Broken', nationalId: '1' }) });
    const { employeeId, email } = broken.body;
    for (const [table, partition, row] of [
      ['employees', 'Broken', `empid_${employeeId}`],
      ['employees', 'Broken', `email_${email}`],
    ] as const)
      await product.storage
        .table(table)
        .updateEntity({ partitionKey: partition, rowKey: row, nationalId: 'v1.a.b.c.d' }, 'Merge');
    for (const target of [`/api/employees/Broken/${employeeId}`, `/api/employees/by/email/Broken/${email}`]) {
      expect((await hr('GET', target)).body).toMatchObject({ code: 'needs-repair', field: 'nationalId' });
      expect((await hr('GET', `${target}?select=nationalId`)).body).toMatchObject({ code: 'needs-repair' });
      expect(await hr('GET', `${target}?select=email`)).toMatchObject({ status: 200, body: { email } });
    }
  });

  test('are read from a blob only if they are selected', async () => {
    const review = `/api/reviews/${department}/${one.employeeId}/2019`;
    expect((await stepsOf(review)).map(({ read }) => read)).toEqual(['row', 'blob']);
    expect((await stepsOf(`${review}?select=rating`)).map(({ read }) => read)).toEqual(['row']);
    const { body, headers } = await hr('GET', `${review}?select=rating`);
    expect(body).toEqual({ rating: 4 });
    expect(headers.get('server-timing')).toContain('"1 transaction"');
  });
});

describe('a restricted field', () => {
  test('is not returned to a caller who selects it', async () => {
    for (const target of PATHS.filter((each) => !/operations|birthDate/.test(each))) {
      const { status, body } = await reader('GET', `${target}?select=nationalId,birthDate`);
      expect([status, body.items ? body.items[0] : body], target).toEqual([200, {}]);
    }
  });
});

test('children are included with the selected fields of both', async () => {
  const years = [{ year: 2019 }, { year: 2020 }];
  const read = (query: string) => hr('GET', `${path}?include=reviews&select=${query}`);
  expect((await read('age,reviews.year')).body).toEqual({ age: 40, reviews: years });
  expect((await read('reviews.year')).body).toEqual({ ...one, reviews: years });
  expect(Object.keys((await read('age')).body.reviews[0])).toEqual(['department', 'employeeId', 'year', 'rating']);
  const [step] = await stepsOf(`${path}?include=reviews&select=age,reviews.year`);
  expect(step?.select).toEqual(['age', 'EntityType', 'SourceRow', 'year']);
});

test.each([
  [`${path}?select=agee`, 'select'],
  [`${path}?select=reviews.year`, 'select'],
  [`${path}?include=reviews&select=reviews.years`, 'select'],
  [`/api/employees/${department}?select=age,`, 'select'],
  [`/api/movies/by/actor/A?select=genres`, 'select'],
])('GET %s is rejected', async (target, field) => {
  expect(await hr('GET', target)).toMatchObject({ status: 400, body: { field } });
});

describe('the ETag of a selection', () => {
  test('differs from that of the whole and of other selections, and revalidates only the same', {
    tags: ['slow'],
  }, async () => {
    const queries = ['', '?select=age', '?select=age,phone', '?include=reviews', '?include=reviews&select=age'];
    const etags = await Promise.all(queries.map(async (query) => (await hr('GET', path + query)).headers.get('etag')));
    expect(new Set(etags.slice(0, 3)).size).toBe(3);
    for (const [at, query] of queries.entries())
      for (const [of, etag] of etags.entries()) {
        const { status } = await hr('GET', path + query, { headers: { 'if-none-match': String(etag) } });
        const isSame = etag === etags[at] && !query.includes('include');
        expect(status, `${query} with the ETag of ${queries[of]}`).toBe(isSame ? 304 : 200);
      }
    expect((await hr('GET', `${path}?select=phone,age`)).headers.get('etag')).toBe(etags[2]);
  });

  test('is a precondition of a write, and changes with the entity', async () => {
    const { headers } = await hr('GET', `${path}?select=age`);
    const etag = String(headers.get('etag'));
    const phone = randomUUID();
    expect((await hr('PATCH', path, { body: { phone }, headers: { 'if-match': etag } })).status).toBe(200);
    expect((await hr('PATCH', path, { body: { phone: '1' }, headers: { 'if-match': etag } })).status).toBe(412);
    expect((await hr('GET', `${path}?select=age`, { headers: { 'if-none-match': etag } })).status).toBe(200);
  });
});

test('a row of an older version is read as a whole', async () => {
  const old = {
    partitionKey: 'IS',
    rowKey: 'e-2',
    country: 'IS',
    personId: 'e-2',
    kind: 'employee',
    name: 'Cy Dahl',
    jobTitle: 'Clerk',
    EntityType: 'people',
    EntityVersion: 1,
    WriteId: 'w',
    Incarnation: 'i',
  };
  await product.storage.table('people').createEntity(old);
  expect((await hr('GET', '/api/people/IS/e-2?select=lastName')).body).toEqual({ lastName: 'Dahl' });
});
