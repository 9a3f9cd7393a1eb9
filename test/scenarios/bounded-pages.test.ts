import { expect, test } from 'vitest';
import { useProduct } from '../product.ts';
import { somebody } from '../world.ts';

/** A page ends early where it would be too large. */

const product = useProduct(import.meta.url);
const hr = product.as('hr');
const operator = product.as(['operator', 'hr']);

test('leaves large fields out of a list unless they are selected, and ends a page that is full', async () => {
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
