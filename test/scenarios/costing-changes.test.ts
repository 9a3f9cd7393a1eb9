import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { useProduct } from '../product.ts';
import { somebody } from '../world.ts';

const product = useProduct(import.meta.url);
const hr = product.as('hr');

type Options = Parameters<typeof hr>[2];

async function send(method: string, path: string, options: Options): Promise<number> {
  const { status, headers } = await hr(method, path, options);
  expect(status, `${method} ${path}`).toBeLessThan(300);
  return Number(/desc="(\d+) transaction/.exec(headers.get('server-timing') ?? '')?.[1]);
}

test('a change costs a storage transaction for what changes, and none for index entries that stay', {
  tags: ['slow'],
}, async () => {
  const { department, employeeId, ...one } = somebody({ department: 'Changes' });
  const person = { firstName: 'Ann', kind: 'employee', jobTitle: 'Clerk' };
  const film = { title: 'Film', year: 1999, genres: ['Drama'], cast: ['Ann First', 'Bo Second', 'Cy Third'] };
  await hr('POST', '/api/departments', { body: { department } });
  await hr('POST', '/api/employees', { body: { department, employeeId, ...one } });
  await hr('POST', '/api/people', { body: { country: 'UK', personId: '1', ...person } });
  const created = await hr('POST', '/api/movies', { body: film });
  const movie = String(created.headers.get('location'));
  const employee = `/api/employees/${department}/${employeeId}`;
  const entry = `/api/doorevents/${department}/${employeeId}/2026112008/${randomUUID()}`;
  const costs: Record<string, number> = {};
  const changes: [string, string, string, Options][] = [
    ['one row: put as new', 'PUT', entry, { body: { door: 'East' } }],
    ['one row: replaced', 'PUT', entry, { body: { door: 'West' } }],
    ['one row: a field', 'PATCH', entry, { body: { door: 'North' } }],
    ['one row: a field, minimal', 'PATCH', entry, { body: { door: 'South' }, headers: { prefer: 'return=minimal' } }],
    ['one row: deleted', 'DELETE', entry, {}],
    ['no index: a field', 'PATCH', '/api/people/UK/1', { body: { jobTitle: 'Boss' } }],
    ['no index: nothing', 'PATCH', '/api/people/UK/1', { body: { jobTitle: 'Boss' } }],
    ['no index: replaced', 'PUT', '/api/people/UK/1', { body: { ...person, firstName: 'Bea' } }],
    ['no index: put as new', 'PUT', '/api/people/UK/2', { body: person }],
    ['no index: put as new, if none', 'PUT', '/api/people/UK/3', { body: person, headers: { 'if-none-match': '*' } }],
    ['no index: deleted', 'DELETE', '/api/people/UK/2', {}],
    ['three entries with parts: another field', 'PATCH', movie, { body: { genres: ['Drama', 'Crime'] } }],
    ['two unique values and a list: a copied field', 'PATCH', employee, { body: { phone: '1' } }],
    ['two unique values and a list: a unique value', 'PATCH', employee, { body: { email: `x${one.email}` } }],
    ['two unique values and a list: the list', 'PATCH', employee, { body: { lastName: 'Other' } }],
    ['copied to its department', 'PATCH', `/api/departments/${department}`, { body: { managerId: employeeId } }],
  ];
  for (const [what, method, path, options] of changes) costs[what] = await send(method, path, options);
  expect(costs).toEqual({
    'one row: put as new': 1,
    'one row: replaced': 1,
    // The response has the whole entity.
    'one row: a field': 2,
    'one row: a field, minimal': 1,
    'one row: deleted': 1,
    // The kind decides the fields.
    'no index: a field': 2,
    'no index: nothing': 1,
    'no index: replaced': 1,
    'no index: put as new': 1,
    'no index: put as new, if none': 1,
    'no index: deleted': 1,
    'three entries with parts: another field': 2,
    'two unique values and a list: a copied field': 7,
    'two unique values and a list: a unique value': 10,
    'two unique values and a list: the list': 13,
    'copied to its department': 3,
  });
});
