import { describe, expect, test } from 'vitest';
import { useProduct } from '../product.ts';
import { somebody } from '../world.ts';

/** Input beyond the limits of storage is rejected with a short response. */

const product = useProduct(import.meta.url);
const hr = product.as('hr');

describe('a bound of a range', () => {
  // URL-encoded, these values fit into the 8 KB that the host accepts for a request line.
  const bounds = ["'".repeat(2_500), 'x'.repeat(7_000), 'x'.repeat(513), '%'.repeat(513), 'é'.repeat(600)];

  test.each(['employees/Sales', 'reviews/Sales', 'orders/ALFKI', 'expenses/000001', 'logins/000001'])(
    'that is longer than a key is refused: %s',
    { tags: ['slow'] },
    async (range) => {
      for (const name of ['from', 'to'])
        for (const bound of bounds) {
          const query = `${name}=${encodeURIComponent(bound)}`;
          const { status, body, headers } = await hr('GET', `/api/${range}?${query}`);
          expect(status, `${query.slice(0, 40)} ${JSON.stringify(body)}`).toBe(400);
          expect(headers.get('content-type')).toBe('application/problem+json');
        }
    },
  );

  test('is accepted up to the length of a key', async () => {
    const bound = 'x'.repeat(512 - 'empid_'.length);
    expect((await hr('GET', `/api/employees/Sales?from=${bound}&to=${bound}`)).status).toBe(200);
    expect(await hr('GET', `/api/employees/Sales?from=${bound}x`)).toMatchObject({
      status: 400,
      body: { field: 'from' },
    });
  });
});

describe('a day after the year 9999', () => {
  // In UTC, this instant is in the year 10000.
  const at = '9999-12-31T23:59:59-14:00';
  const path = `${encodeURIComponent(at)}/9b2cbe2c-36c6-4b4b-8a2b-0f4a2f0b1a11`;

  test.each([
    ['GET', `logins/000001/${path}`, undefined],
    ['PUT', `logins/000001/${path}`, { succeeded: true }],
    ['PATCH', `logins/000001/${path}`, { succeeded: true }],
    ['DELETE', `logins/000001/${path}`, undefined],
    ['POST', 'logins', { employeeId: '000001', at, succeeded: true }],
    ['GET', `expenses/000001/${path}`, undefined],
    ['POST', 'expenses', { employeeId: '000001', at, amount: 1, category: 'Meals' }],
    ['GET', `logins/000001?to=${encodeURIComponent('+010000-01-01')}`, undefined],
  ])('is rejected: %s %s', async (method, route, body) => {
    const answer = await hr(method, `/api/${route}`, body ? { body } : {});
    expect(answer, JSON.stringify(answer.body)).toMatchObject({
      status: 400,
      body: { type: '/api/problems#invalid-input' },
    });
  });
});

test('a NUL in a key is rejected, because no path can contain it, and is accepted in another field', async () => {
  const one = somebody({ department: 'Nul\0', employeeId: '710001' });
  expect(await hr('POST', '/api/employees', { body: one })).toMatchObject({
    status: 400,
    body: { field: 'department', accepted: expect.stringContaining('NUL') },
  });
  const body = { ...one, department: 'Nul', firstName: 'A\0B' };
  expect((await hr('POST', '/api/employees', { body })).status).toBe(201);
  expect((await hr('GET', `/api/employees/Nul/${body.employeeId}`)).body).toMatchObject(body);
});

test.each(['Nul\0', '..', 'a%2Fb'])(
  'a derived key of %j is rejected, because no path can contain it',
  async (genre) => {
    const body = { genres: [genre], title: 'Lost', year: 1999, cast: [] };
    expect(await hr('POST', '/api/movies', { body })).toMatchObject({
      status: 400,
      body: { field: 'genre', accepted: expect.stringContaining('a text that a path can contain') },
    });
  },
);

test('lists a bounded number of errors, with a bounded length of each', { tags: ['slow'] }, async () => {
  const unknown = Array.from({ length: 70_000 }, (_, index) => [`f${index}`, 1]);
  for (const body of [
    Object.fromEntries(unknown),
    { ['x'.repeat(700_000)]: 1 },
    { lastName: ['\ud83d\ude00'.repeat(9)] },
  ]) {
    const answer = await hr('POST', '/api/employees', { body });
    expect(answer.status).toBe(400);
    expect(answer.body.errors.length).toBeLessThanOrEqual(20);
    expect(JSON.stringify(answer.body).length).toBeLessThan(10_000);
  }
  const { body } = await hr('POST', '/api/employees/batch', {
    body: { actions: [{ put: Object.fromEntries(unknown) }] },
  });
  expect(JSON.stringify(body).length).toBeLessThan(10_000);
});
