import createClient from 'openapi-fetch';
import type { paths } from './api.d.ts';

/** A program of a user of openapi-typescript: api.d.ts is generated, and the test compiles and runs both. */

const { ROWKEY_URL = '', ROWKEY_TOKEN = '' } = process.env;
const client = createClient<paths>({ baseUrl: ROWKEY_URL, headers: { authorization: `Bearer ${ROWKEY_TOKEN}` } });
const photo = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);
const path = { department: 'Fetch', employeeId: '000701' };
const one = '/api/employees/{department}/{employeeId}';

for (const employeeId of ['000701', '000702', '000703']) {
  const body = { ...path, employeeId, email: `f${employeeId}@contoso.com`, firstName: 'Ann', lastName: 'Lee', age: 30 };
  const { response, data } = await client.POST('/api/employees', { body: { ...body, phone: null } });
  if (employeeId === path.employeeId) console.log('create', response.status, data?.email, data?.phone ?? 'none');
}

const read = await client.GET(one, { params: { path } });
const etag = read.response.headers.get('etag') ?? '';
const unchanged = await client.GET(one, { params: { path, header: { 'If-None-Match': etag } } });
console.log('read', read.data?.firstName, unchanged.response.status);

const change = { params: { path, header: { 'If-Match': etag } }, body: { phone: '1' } };
const patched = await client.PATCH(one, change);
const stale = await client.PATCH(one, change);
console.log('patch', patched.data?.phone, stale.response.status, stale.error?.code);

const pages: number[] = [];
for (let continuation: string | undefined, isLast = false; !isLast; ) {
  const query = { top: 2, age: ['ge:30'], ...(continuation ? { continuation } : {}) };
  const { response, data } = await client.GET('/api/employees/{department}', { params: { path, query } });
  pages.push(data?.items.length ?? 0);
  const [, next] = /<(.*)>; rel="next"/.exec(response.headers.get('link') ?? '') ?? [];
  continuation = next && (new URL(next, ROWKEY_URL).searchParams.get('continuation') ?? undefined);
  isLast = next === undefined;
}
console.log('pages', ...pages);

const file = '/api/employees/{department}/{employeeId}/photo';
const stored = await client.PUT(file, {
  params: { path },
  // The type of bytes is a text.
  body: photo as unknown as string,
  bodySerializer: (bytes) => bytes,
  headers: { 'content-type': 'image/png' },
});
const loaded = await client.GET(file, { params: { path }, parseAs: 'arrayBuffer' });
console.log('photo', stored.data?.type, photo.equals(Buffer.from(loaded.data ?? new ArrayBuffer())));

const promoted = await client.POST('/api/promote', { body: { ...path, jobTitle: 'Manager' } });
console.log('operation', promoted.data?.jobTitle, promoted.data?.before ?? 'none');

const current = (await client.GET(one, { params: { path } })).response.headers.get('etag') ?? '';
const deleted = await client.DELETE(one, { params: { path, header: { 'If-Match': current } } });
const missing = await client.GET(one, { params: { path } });
console.log('delete', deleted.response.status, missing.response.status, missing.error?.code);
