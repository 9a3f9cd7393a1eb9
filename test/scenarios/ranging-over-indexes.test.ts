import { beforeAll, describe, expect, test } from 'vitest';
import { eventually, type Reply, useProduct } from '../product.ts';
import { somebody } from '../world.ts';

/** Lists of an index in its order: by date, by name and by year, as a caller gets them over HTTP. */

const product = useProduct(import.meta.url);
const hr = product.as('hr');
const reader = product.as('reader');

const nextOf = ({ headers }: Reply) => /<(.*?)>; rel="next"/.exec(headers.get('link') ?? '')?.[1];

/** The values of a field on all pages. */
async function listOf(path: string, field: string): Promise<unknown[]> {
  const values: unknown[] = [];
  for (let next: string | undefined = path; next; ) {
    const reply = await hr('GET', next);
    expect(reply.status, JSON.stringify(reply.body)).toBe(200);
    values.push(...reply.body.items.map((item: Record<string, unknown>) => item[field]));
    next = nextOf(reply);
  }
  return values;
}

async function explained(path: string): Promise<number> {
  return (await hr('GET', `${path}${path.includes('?') ? '&' : '?'}explain=true`)).body.transactions;
}

const NAMES = ['Adams', 'Berg', 'Berg', 'Chan', 'Dahl'];

beforeAll(async () => {
  const days = ['2019-12-31', '2020-01-01', '2020-06-15', '2021-03-01', '2021-12-31'];
  for (const [at, lastName] of NAMES.entries()) {
    const hired = { hireDate: days[at], birthDate: `19${80 + at}-05-05` };
    const one = somebody({ department: 'Ranges', lastName, firstName: `F${at}`, ...hired });
    expect((await hr('POST', '/api/employees', { body: one })).status).toBe(201);
  }
  const customers = NAMES.flatMap((name, at) =>
    ['London', 'Redmond'].map((city) => ({ city, customerId: `${city[0]}${at}`, companyName: 'C', contactName: name })),
  );
  for (const body of customers) expect((await hr('POST', '/api/customers', { body })).status).toBe(201);
  for (const year of [1931, 1918, 1921, 1925]) {
    const body = { title: `T${year}`, year, genres: ['Comedy'], cast: ['Charlie Chaplin'] };
    expect((await hr('POST', '/api/movies', { body })).status).toBe(201);
  }
  for (const path of ['customers/by/cityAndLastName/Redmond', 'customers/by/lastNameCompanyWide/Dahl'])
    await eventually(
      () => hr('GET', `/api/${path}`),
      ({ body }) => body.items.length === (path.endsWith('Redmond') ? 5 : 2),
    );
  await eventually(
    () => hr('GET', '/api/movies/by/actor/Charlie%20Chaplin'),
    ({ body }) => body.items.length === 4,
  );
});

test('employees of a department by a range of hire dates', async () => {
  const path = '/api/employees/by/hireDate/Ranges';
  expect(await listOf(`${path}?from=2020-01-01&to=2021-03-01`, 'firstName')).toEqual(['F1', 'F2', 'F3']);
  expect(await listOf(`${path}?prefix=2021`, 'firstName')).toEqual(['F3', 'F4']);
  expect(await listOf(`${path}?from=2021-03-02`, 'firstName')).toEqual(['F4']);
  expect(await listOf(`${path}?from=2022`, 'firstName')).toEqual([]);
  expect(await listOf(path, 'firstName')).toEqual(['F0', 'F1', 'F2', 'F3', 'F4']);
  expect(await listOf(`${path}/2020-06-15`, 'firstName')).toEqual(['F2']);
  expect(await explained(`${path}?from=2020-01-01`)).toBe(1);
});

test('the first employees by name, and the page after them', async () => {
  const path = '/api/employees/by/lastName/Ranges';
  // The first continuation also reads the key that signs them.
  await hr('GET', `${path}?top=1`);
  const first = await hr('GET', `${path}?from=B&to=C&top=2`);
  expect(first.body.items.map(({ lastName }: { lastName: string }) => lastName)).toEqual(['Berg', 'Berg']);
  expect(first.headers.get('server-timing')).toContain('"3 transactions"');
  expect(await listOf(String(nextOf(first)), 'lastName')).toEqual(['Chan']);
  // A page that ends within a list goes on there.
  expect(await listOf(`${path}?prefix=B&top=1`, 'firstName')).toEqual(['F1', 'F2']);
  expect(await explained(`${path}?from=B&to=C&top=2`)).toBe(3);
});

test('customers of a town by name, and of all towns by name alone', async () => {
  expect(await listOf('/api/customers/by/cityAndLastName/Redmond', 'lastName')).toEqual(NAMES);
  expect(await listOf('/api/customers/by/cityAndLastName/Redmond?from=B&to=C&top=1', 'customerId')).toEqual([
    'R1',
    'R2',
    'R3',
  ]);
  expect(await listOf('/api/customers/by/lastNameCompanyWide?from=C&top=3', 'lastName')).toEqual([
    'Chan',
    'Chan',
    'Dahl',
    'Dahl',
  ]);
  expect(await explained('/api/customers/by/cityAndLastName/Redmond')).toBe(1);
  // A query for each of the four buckets, and a lookup for each of two references.
  expect(await explained('/api/customers/by/lastNameCompanyWide?prefix=Dahl')).toBe(4 + 2);
});

test('films of an actor by year', async () => {
  const path = '/api/movies/by/actor/Charlie%20Chaplin';
  expect(await listOf(path, 'year')).toEqual([1918, 1921, 1925, 1931]);
  expect(await listOf(`${path}?from=1921&to=1925&order=ascending`, 'year')).toEqual([1921, 1925]);
  expect(await explained(`${path}?from=1921`)).toBe(1);
});

describe('a range is rejected', () => {
  test.each([
    ['with an order that the key does not have', 'movies/by/actor/A?order=descending', 'order', 'ascending'],
    ['with an unknown order', 'movies/by/actor/A?order=newest', 'order', 'ascending, descending'],
    ['with a text for a number', 'movies/by/actor/A?from=x', 'from', 'a whole number of at most 4 digits'],
    ['with the prefix of a number', 'movies/by/actor/A?prefix=19', 'prefix', 'from and to'],
    [
      'with a prefix and a bound',
      'employees/by/hireDate/Ranges?prefix=2&to=3',
      'prefix',
      'prefix alone, or from and to',
    ],
    ['after the whole key', 'employees/by/lastName/Ranges/Berg?from=a', 'from', undefined],
    ['for a value that no entity can have', `employees/by/hireDate/${'x'.repeat(201)}`, 'department', undefined],
  ])('%s', async (_, path, field, accepted) => {
    const { status, body } = await hr('GET', `/api/${path}`);
    expect([status, body.code, body.field]).toEqual([400, 'invalid-input', field]);
    if (accepted) expect(body.accepted).toBe(accepted);
  });

  test.each([
    ['employees/by/hireDate?from=2020', 'department', 'department'],
    ['employees/by/emailCompanyWide?prefix=a', 'email', 'email'],
    ['movies/by/actor?from=1920', 'cast', 'cast'],
    ['customers/by/cityAndLastName?from=A', 'city', 'city'],
    ['orders/by/date', 'orderDate', 'orderDate'],
  ])('without the partition key: %s', async (path, field, accepted) => {
    const { status, body } = await hr('GET', `/api/${path}`);
    expect([status, body.field, body.accepted]).toEqual([400, field, accepted]);
    expect(body.detail).toMatch(
      new RegExp(`^(A range over the|The) index "\\w+" of \\w+ (needs "${field}" first|has no range)`),
    );
  });

  test('with a continuation that is forged or of another range', async () => {
    const path = '/api/employees/by/hireDate/Ranges?top=2';
    const token = new URL(String(nextOf(await hr('GET', path))), product.url).searchParams.get('continuation') ?? '';
    expect((await hr('GET', `${path}&continuation=${token}`)).status).toBe(200);
    const [head, key, iv, position, tag] = token.split('.');
    const elsewhere = Buffer.from(JSON.stringify({ row: 'born_', aud: 'x' })).toString('base64url');
    for (const other of [
      `${path}&from=2020&continuation=${token}`,
      `/api/employees/by/hireDate/Others?top=2&continuation=${token}`,
      `/api/employees/by/birthDate/Ranges?top=2&continuation=${token}`,
      `${path}&continuation=${[head, key, iv, elsewhere, tag].join('.')}`,
      `${path}&continuation=${[head, key, iv, position].join('.')}`,
    ]) {
      const { status, body } = await hr('GET', other);
      expect([other, status, body.field]).toEqual([other, 400, 'continuation']);
    }
  });
});

test('an index by a restricted field is read only by roles that may read the field', async () => {
  for (const path of ['', '?from=1980', '?top=1', '/1980-05-05', '?explain=true']) {
    const url = `/api/employees/by/birthDate/Ranges${path}`;
    expect((await reader('GET', url)).status, url).toBe(403);
    expect((await hr('GET', url)).status, url).toBe(200);
  }
  expect(await listOf('/api/employees/by/birthDate/Ranges?from=1983', 'birthDate')).toEqual([
    '1983-05-05',
    '1984-05-05',
  ]);
  const { body } = await reader('GET', '/api/employees/by/hireDate/Ranges');
  expect(body.items).toHaveLength(5);
  expect(body.items[0]).not.toHaveProperty('birthDate');
});

test('films follow their actors when the cast changes, under the same key', { tags: ['slow'] }, async () => {
  const body = { title: 'The Circus', year: 1928, genres: ['Comedy'], cast: ['Merna Kennedy', 'Al Garcia'] };
  const { status, headers, body: film } = await hr('POST', '/api/movies', { body });
  expect(status).toBe(201);
  const path = `/api/movies/Comedy/The%20Circus/1928/${film.filmId}`;
  expect(headers.get('location')).toContain(path);
  const pathOf = (actor: string) => `/api/movies/by/actor/${encodeURIComponent(actor)}`;
  const settle = async (former: string, cast: readonly string[]) => {
    await eventually(
      () => hr('GET', pathOf(former)),
      ({ body: { items } }) => items.length === 0,
    );
    for (const actor of cast) expect(await listOf(pathOf(actor), 'title')).toEqual(['The Circus']);
    expect((await hr('GET', path)).body).toEqual({ ...film, cast });
  };

  const patched = ['Merna Kennedy', 'Harry Crocker'];
  expect(await hr('PATCH', path, { body: { cast: patched } })).toMatchObject({ status: 200, body: { cast: patched } });
  await settle('Al Garcia', patched);
  const put = ['Merna Kennedy', 'George Davis'];
  expect((await hr('PUT', path, { body: { genres: ['Comedy'], cast: put } })).status).toBe(200);
  await settle('Harry Crocker', put);
  const key = { genre: 'Comedy', title: 'The Circus', year: 1928, filmId: film.filmId };
  const changed = ['Merna Kennedy', 'Henry Bergman'];
  const actions = [{ movies: { patch: { ...key, cast: changed } } }];
  expect((await hr('POST', '/api/transact', { body: { actions } })).status).toBe(200);
  await settle('George Davis', changed);
  // The film whose cast is that of the first one has its key, and needs an id of its own.
  expect(await hr('POST', '/api/movies', { body })).toMatchObject({ status: 409, body: { code: 'duplicate-key' } });
  const second = await hr('POST', '/api/movies', { body: { ...body, filmId: 'second' } });
  expect(second).toMatchObject({ status: 201, body: { filmId: 'second' } });
});
