import { expect, test } from 'vitest';
import { useProduct } from '../product.ts';
import { somebody } from '../world.ts';

/** A page ends before it becomes too large. */

const product = useProduct(import.meta.url);
const hr = product.as('hr');
const operator = product.as(['operator', 'hr']);

test('omits large fields of a list unless selected, and ends a page that is full', { tags: ['slow'] }, async () => {
  const one = somebody({ department: 'Large' });
  expect((await hr('POST', '/api/employees', { body: one })).status).toBe(201);
  const comments = 'x'.repeat(3_000_000);
  for (const year of [2001, 2002, 2003, 2004, 2005]) {
    const body = { department: 'Large', employeeId: one.employeeId, year, rating: 3, comments };
    expect((await hr('POST', '/api/reviews', { body })).status).toBe(201);
  }
  const list = await hr('GET', '/api/reviews/Large');
  expect(list.body.items).toHaveLength(5);
  expect(list.body.items.every((item: object) => !('comments' in item))).toBe(true);
  for (const [read, first] of [
    [hr, '/api/reviews/Large?select=year,comments'],
    [operator, '/api/operations/scan/reviews'],
  ] as const) {
    const sizes: number[] = [];
    for (let next: string | undefined = first; next; ) {
      const { status, body, headers } = await read('GET', next);
      expect(status).toBe(200);
      expect(body.items.every((item: { comments: string }) => item.comments === comments)).toBe(true);
      sizes.push(body.items.length);
      next = /<(.*?)>/.exec(headers.get('link') ?? '')?.[1];
    }
    expect(sizes).toEqual([2, 2, 1]);
  }
});

test('omits large fields of included children unless selected, and rejects more than a page of them', {
  tags: ['slow'],
}, async () => {
  const comments = 'x'.repeat(3_000_000);
  const [one, other] = [somebody({ department: 'Included' }), somebody({ department: 'Included' })];
  for (const body of [one, other]) expect((await hr('POST', '/api/employees', { body })).status).toBe(201);
  const review = { department: 'Included', reviewer: 'Ben', rating: 3, comments };
  for (const { employeeId, year } of [
    { employeeId: one.employeeId, year: 2001 },
    { employeeId: one.employeeId, year: 2002 },
    { employeeId: one.employeeId, year: 2003 },
    { employeeId: other.employeeId, year: 2001 },
  ])
    expect((await hr('POST', '/api/reviews', { body: { ...review, employeeId, year } })).status).toBe(201);
  const read = (employeeId: string, query: string) => hr('GET', `/api/employees/Included/${employeeId}?${query}`);
  const { employeeId } = one;
  const whole = await read(employeeId, 'include=reviews');
  expect(whole.body).toMatchObject({
    ...one,
    reviews: [{ year: 2001, reviewer: 'Ben' }, { year: 2002 }, { year: 2003 }],
  });
  expect(whole.body.reviews.some((item: object) => 'comments' in item)).toBe(false);
  const years = await read(employeeId, 'include=reviews&select=reviews.year');
  expect(years.body).toMatchObject(one);
  expect(years.body.reviews).toEqual([{ year: 2001 }, { year: 2002 }, { year: 2003 }]);
  const full = await read(other.employeeId, 'include=reviews&select=reviews.year,reviews.comments');
  expect(full.body.reviews).toEqual([{ year: 2001, comments }]);
  for (const [query, status, field] of [
    ['include=reviews&select=reviews.comments', 413, 'include'],
    ['include=reviews&select=reviews.nothing', 400, 'select'],
    ['include=reviews&select=year', 400, 'select'],
    ['select=reviews.year', 400, 'select'],
  ] as const)
    expect(await read(employeeId, query)).toMatchObject({ status, body: { field } });
});

test('links to the next page by a URL that the host accepts, or says that it cannot', { tags: ['slow'] }, async () => {
  for (const employeeId of ['700001', '700002', '700003'])
    expect((await hr('POST', '/api/employees', { body: somebody({ department: 'Linked', employeeId }) })).status).toBe(
      201,
    );
  const path = (length: number) => `/api/employees/Linked?top=1&select=${'employeeId,'.repeat(length / 11)}employeeId`;
  const ids: string[] = [];
  for (let next: string | undefined = path(6_000); next; ) {
    const { status, body, headers } = await hr('GET', next);
    expect(status).toBe(200);
    ids.push(...body.items.map((item: { employeeId: string }) => item.employeeId));
    next = /<(.*?)>/.exec(headers.get('link') ?? '')?.[1];
  }
  expect(ids).toEqual(['700001', '700002', '700003']);
  const refused = await hr('GET', path(7_900));
  expect(refused).toMatchObject({
    status: 400,
    body: { code: 'invalid-input', field: 'top', accepted: expect.stringContaining('POST /api/query') },
  });
  expect((await hr('GET', path(7_900).replace('top=1', 'top=3'))).body.items).toHaveLength(3);
});
