import { client } from './api/client.gen.ts';
import * as api from './api/index.ts';

/** A program of a user of @hey-api/openapi-ts: the folder api is generated, and the test compiles and runs both. */

const { ROWKEY_URL = '', ROWKEY_TOKEN = '' } = process.env;
client.setConfig({ baseUrl: ROWKEY_URL, auth: ROWKEY_TOKEN });
const photo = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);
const path = { department: 'Hey', employeeId: '000801' };

for (const employeeId of ['000801', '000802', '000803']) {
  const body = { ...path, employeeId, email: `h${employeeId}@contoso.com`, firstName: 'Ann', lastName: 'Lee', age: 30 };
  const { response, data } = await api.employeesCreate({ body: { ...body, phone: null } });
  if (employeeId === path.employeeId) console.log('create', response?.status, data?.email, data?.phone ?? 'none');
}

const read = await api.employeesGet({ path });
const etag = read.response?.headers.get('etag') ?? '';
const unchanged = await api.employeesGet({ path, headers: { 'If-None-Match': etag } });
console.log('read', read.data?.firstName, unchanged.response?.status);

const change = { path, headers: { 'If-Match': etag }, body: { phone: '1' } };
const patched = await api.employeesPatch(change);
const stale = await api.employeesPatch(change);
console.log('patch', patched.data?.phone, stale.response?.status, stale.error?.code);

const pages: number[] = [];
for (let continuation: string | undefined, isLast = false; !isLast; ) {
  const query = { top: 2, age: ['ge:30'], ...(continuation ? { continuation } : {}) };
  const { response, data } = await api.employeesRange({ path, query });
  pages.push(data?.items.length ?? 0);
  const [, next] = /<(.*)>; rel="next"/.exec(response?.headers.get('link') ?? '') ?? [];
  continuation = next && (new URL(next, ROWKEY_URL).searchParams.get('continuation') ?? undefined);
  isLast = next === undefined;
}
console.log('pages', ...pages);

const stored = await api.employeesFilePhotoPut({
  path,
  body: new Blob([photo]),
  headers: { 'Content-Type': 'image/png' },
});
const loaded = await api.employeesFilePhotoGet({ path, parseAs: 'blob' });
const bytes = loaded.data instanceof Blob ? await loaded.data.arrayBuffer() : new ArrayBuffer();
console.log('photo', stored.data?.type, photo.equals(Buffer.from(bytes)));

const promoted = await api.promote({ body: { ...path, jobTitle: 'Manager' } });
console.log('operation', promoted.data?.jobTitle, promoted.data?.before ?? 'none');

const current = (await api.employeesGet({ path })).response?.headers.get('etag') ?? '';
const deleted = await api.employeesDelete({ path, headers: { 'If-Match': current } });
const missing = await api.employeesGet({ path });
console.log('delete', deleted.response?.status, missing.response?.status, missing.error?.code);
