import { beforeAll, describe, expect, test } from 'vitest';
import { PNG } from '../../local/walk/png.ts';
import { storageKeys } from '../kit/storage.ts';
import { type Reply, useProduct } from '../product.ts';
import { rowsOf, somebody } from '../world.ts';

/** Photos, long texts and secrets over HTTP, and the roles that can read and write them. */

const product = useProduct(import.meta.url);
const hr = product.as('hr');
const one = somebody({ department: 'Pictured', nationalId: '295847284' });
const path = `/api/employees/Pictured/${one.employeeId}`;
const owner = product.as('reader', one.email);
const stranger = product.as('reader', 'stranger@contoso.com');

beforeAll(async () => {
  expect((await hr('POST', '/api/employees', { body: one })).status).toBe(201);
});

async function send(
  method: string,
  where: string,
  {
    email = '',
    headers = {} as Record<string, string>,
    body,
  }: { email?: string; headers?: Record<string, string>; body?: Uint8Array<ArrayBuffer> } = {},
) {
  const token = await product.token(email ? 'reader' : 'hr', email || undefined);
  const init = { method, headers: { authorization: `Bearer ${token}`, ...headers } };
  return fetch(new URL(where, product.url), body ? { ...init, body } : init);
}

describe('a photo over HTTP', () => {
  test('is written by its owner, read by any reader, and deleted', { tags: ['slow'] }, async () => {
    expect((await hr('GET', `${path}/photo`)).status).toBe(404);
    const put = await send('PUT', `${path}/photo`, {
      email: one.email,
      body: new Uint8Array(PNG),
      headers: { 'content-type': 'text/html' },
    });
    expect(put.status).toBe(200);
    expect(await put.json()).toMatchObject({ type: 'image/png', bytes: PNG.length });
    const got = await send('GET', `${path}/photo`, { email: 'anyone@contoso.com' });
    expect(got.headers.get('content-type')).toBe('image/png');
    expect(got.headers.get('x-content-type-options')).toBe('nosniff');
    expect(got.headers.get('server-timing')).toContain('"2 transactions"');
    expect(Buffer.from(await got.arrayBuffer())).toEqual(PNG);
    const etag = got.headers.get('etag') ?? '';
    const again = await send('GET', `${path}/photo`, { headers: { 'if-none-match': etag } });
    expect(again.status).toBe(304);
    expect(again.headers.get('server-timing')).toContain('"1 transaction"');
    // The second transaction reads the properties of the blob.
    for (const [headers, status, length, cost] of [
      [{}, 200, PNG.length, '"2 transactions"'],
      [{ range: 'bytes=2-5' }, 206, 4, '"2 transactions"'],
      [{ 'if-none-match': etag }, 304, undefined, '"1 transaction"'],
    ] as const) {
      const head = await send('HEAD', `${path}/photo`, { headers });
      expect([head.status, head.headers.get('etag')]).toEqual([status, etag]);
      expect(head.headers.get('content-length') ?? undefined).toBe(length === undefined ? undefined : String(length));
      expect(head.headers.get('server-timing')).toContain(cost);
    }
    expect((await owner('GET', path)).body.photo).toMatchObject({ type: 'image/png' });
    expect((await owner('DELETE', `${path}/photo`)).status).toBe(204);
    expect((await owner('GET', `${path}/photo`)).status).toBe(404);
    expect((await owner('GET', path)).body.photo).toBeUndefined();
  });

  test('is written and deleted with its own ETag, or with If-None-Match: *', async () => {
    const put = (headers: Record<string, string>) =>
      send('PUT', `${path}/photo`, { body: new Uint8Array(PNG), headers });
    expect((await put({ 'if-match': '*' })).status).toBe(412);
    const first = await put({ 'if-none-match': '*' });
    expect(first.status).toBe(200);
    const etag = first.headers.get('etag') ?? '';
    expect((await send('GET', `${path}/photo`)).headers.get('etag')).toBe(etag);
    const second = await put({ 'if-none-match': '*' });
    expect(second.status).toBe(412);
    expect(second.headers.get('etag')).toBe(etag);
    // A role that cannot read the secret can still read the other fields.
    expect((await hr('PATCH', path, { body: { phone: '5' } })).status).toBe(200);
    expect((await put({ 'if-match': etag })).status).toBe(200);
    const remove = (header: string) => send('DELETE', `${path}/photo`, { headers: { 'if-match': header } });
    expect((await remove('"another"')).status).toBe(412);
    expect((await remove(etag)).status).toBe(204);
  });

  test('is rejected from another caller, and with bytes of another type', async () => {
    const body = new Uint8Array(PNG);
    expect((await send('PUT', `${path}/photo`, { email: 'stranger@contoso.com', body })).status).toBe(403);
    expect((await stranger('DELETE', `${path}/photo`)).status).toBe(403);
    expect((await stranger('POST', `${path}/photo/uploads`, { body: { type: 'image/png', bytes: 10 } })).status).toBe(
      403,
    );
    const text = await send('PUT', `${path}/photo`, {
      body: new TextEncoder().encode('<script>'),
      headers: { 'content-type': 'image/png' },
    });
    expect(text.status).toBe(415);
    expect(await text.json()).toMatchObject({ field: 'photo', accepted: 'image/jpeg, image/png, image/webp' });
    const large = await send('PUT', `${path}/photo`, { body: new Uint8Array(5_000_001) });
    expect(large.status).toBe(413);
    const spoofed = await hr('PATCH', path, {
      body: { photo: { blob: 'x', type: 'image/png', bytes: 1, sha256: '' } },
    });
    expect(spoofed).toMatchObject({ status: 400, body: { field: 'photo' } });
    expect((await hr('GET', `${path}/photo`)).status).toBe(404);
  });

  test('is read in ranges, for as long as it is the same file', async () => {
    const etag = (await send('PUT', `${path}/photo`, { body: new Uint8Array(PNG) })).headers.get('etag') ?? '';
    const read = (headers: Record<string, string>) => send('GET', `${path}/photo`, { headers });
    const part = await read({ range: 'bytes=8-15', 'if-range': etag });
    const { headers } = part;
    expect([part.status, headers.get('content-range'), headers.get('content-length'), headers.get('etag')]).toEqual([
      206,
      `bytes 8-15/${PNG.length}`,
      '8',
      etag,
    ]);
    expect(part.headers.get('server-timing')).toContain('"2 transactions"');
    expect(Buffer.from(await part.arrayBuffer())).toEqual(PNG.subarray(8, 16));
    const end = await read({ range: 'bytes=-4' });
    expect(Buffer.from(await end.arrayBuffer())).toEqual(PNG.subarray(-4));
    const whole = await read({ range: 'bytes=8-15', 'if-range': '"another"' });
    expect([whole.status, (await whole.arrayBuffer()).byteLength]).toEqual([200, PNG.length]);
    expect(whole.headers.get('accept-ranges')).toBe('bytes');
    expect((await read({ range: 'bytes=8-15', 'if-none-match': etag })).status).toBe(304);
    const beyond = await read({ range: `bytes=${PNG.length}-` });
    expect([beyond.status, beyond.headers.get('content-range')]).toEqual([416, `bytes */${PNG.length}`]);
    expect(await beyond.json()).toMatchObject({ code: 'range-not-satisfiable' });
    expect((await owner('DELETE', `${path}/photo`)).status).toBe(204);
  });

  test('is uploaded directly to storage and accepted', async () => {
    const asked = await owner('POST', `${path}/photo/uploads`, { body: { type: 'image/png', bytes: PNG.length } });
    expect(asked.status).toBe(201);
    const { url, headers } = asked.body;
    const accept = asked.headers.get('location') ?? '';
    expect((await owner('POST', accept)).status).toBe(404);
    const put = await fetch(url, { method: 'PUT', headers, body: new Uint8Array(PNG) });
    expect(put.status).toBe(201);
    expect((await stranger('POST', accept)).status).toBe(403);
    expect(await owner('POST', accept)).toMatchObject({ status: 200, body: { type: 'image/png' } });
    expect((await send('GET', `${path}/photo`)).status).toBe(200);
    const explain = (client: typeof owner) => client('PUT', `${path}/photo?explain=true`, { body: 'x' });
    // Explaining a write requires read access to all fields.
    expect((await explain(owner)).status).toBe(403);
    expect((await explain(hr)).status).toBe(415);
  });
});

describe('a grant to read a photo', () => {
  const grants = `${path}/photo/grants`;
  const put = (body: Buffer) => send('PUT', `${path}/photo`, { body: new Uint8Array(body) });

  test('opens the file directly in storage for the roles that read it, with two transactions and none for the file', async () => {
    expect((await put(PNG)).status).toBe(200);
    const explained = await hr('POST', `${grants}?explain=true`);
    expect(explained.body.transactions).toBe(2);
    const granted = await stranger('POST', grants);
    expect(granted.status).toBe(201);
    expect(granted.headers.get('cache-control')).toBe('no-store');
    expect(granted.headers.get('server-timing')).toContain('"2 transactions"');
    const { url, type, bytes, etag, expiresAt } = granted.body;
    expect({ type, bytes }).toEqual({ type: 'image/png', bytes: PNG.length });
    expect((await send('GET', `${path}/photo`)).headers.get('etag')).toBe(etag);
    expect(Date.parse(expiresAt) - Date.now()).toBeLessThanOrEqual(15 * 60_000);
    const file = await fetch(url);
    expect(Buffer.from(await file.arrayBuffer())).toEqual(PNG);
    expect(Object.fromEntries(file.headers)).toMatchObject({
      'content-type': 'image/png',
      'content-disposition': 'inline',
      'cache-control': 'private, max-age=900, immutable',
    });
    expect((await fetch(url, { headers: { range: 'bytes=1-3' } })).status).toBe(206);
  });

  test('opens no other blob, allows no change, and ends when the file is replaced', async () => {
    await put(PNG);
    const { url } = (await stranger('POST', grants)).body;
    const headers = { 'x-ms-blob-type': 'BlockBlob' };
    expect((await fetch(url, { method: 'PUT', headers, body: 'other' })).status).toBe(403);
    expect((await fetch(url, { method: 'DELETE' })).status).toBe(403);
    const other = new URL(url);
    other.pathname += '0';
    expect((await fetch(other)).status).toBe(403);
    const asHtml = new URL(url);
    asHtml.searchParams.set('rsct', 'text/html');
    expect((await fetch(asHtml)).status).toBe(403);
    expect((await put(Buffer.concat([PNG, Buffer.alloc(1)]))).status).toBe(200);
    expect((await fetch(url)).status).toBe(404);
  });

  test('is not issued without a token, without a role that reads the entity, or for a missing photo', async () => {
    expect((await product.as(undefined)('POST', grants)).status).toBe(401);
    expect((await product.as('operator')('POST', grants)).status).toBe(403);
    expect((await owner('DELETE', `${path}/photo`)).status).toBe(204);
    expect((await stranger('POST', grants)).status).toBe(404);
  });
});

describe('a public picture', () => {
  const product1 = { categoryId: 1, productId: 1, productName: 'Chai' };
  const picture = '/api/products/1/1/picture';
  const anyone = (where: string, headers: Record<string, string> = {}) =>
    fetch(new URL(where, product.url), { headers });
  beforeAll(async () => {
    expect((await hr('POST', '/api/products', { body: product1 })).status).toBe(201);
    expect((await send('PUT', picture, { body: new Uint8Array(PNG) })).status).toBe(200);
  });

  test('is read without a token, and kept by caches for its declared time', async () => {
    const got = await anyone(picture);
    expect(got.status).toBe(200);
    expect(Buffer.from(await got.arrayBuffer())).toEqual(PNG);
    expect(Object.fromEntries(got.headers)).toMatchObject({
      'content-type': 'image/png',
      'content-disposition': 'inline',
      'cache-control': 'public, max-age=3600',
      'x-content-type-options': 'nosniff',
      vary: 'Origin',
    });
    const etag = got.headers.get('etag') ?? '';
    const again = await anyone(picture, { 'if-none-match': etag });
    expect([again.status, again.headers.get('cache-control')]).toEqual([304, 'public, max-age=3600']);
    const { blob } = (await hr('GET', '/api/products/1/1')).body.picture;
    const stored = await product.storage.container('pictures').getBlobClient(blob).getProperties();
    expect(stored).toMatchObject({
      contentType: 'image/png',
      contentDisposition: 'inline',
      cacheControl: 'public, max-age=31536000, immutable',
    });
  });

  test('never changes under a URL with its version', async () => {
    const version = ((await anyone(picture)).headers.get('etag') ?? '').replaceAll('"', '');
    const got = await anyone(`${picture}?version=${version}`);
    expect([got.status, got.headers.get('cache-control')]).toEqual([200, 'public, max-age=31536000, immutable']);
    const other = await anyone(`${picture}?version=other`);
    expect([other.status, other.headers.get('cache-control')]).toEqual([404, 'private, no-cache']);
    await send('PUT', `${path}/photo`, { body: new Uint8Array(PNG) });
    const own = await send('GET', `${path}/photo?version=${version}`);
    expect([own.status, own.headers.get('cache-control')]).toEqual([200, 'private, max-age=31536000, immutable']);
    expect((await send('GET', `${path}/photo`)).headers.get('cache-control')).toBe('private, no-cache');
  });

  test('reveals nothing of the entity, and is changed only with a role', async () => {
    await hr('POST', '/api/products', { body: { ...product1, productId: 2 } });
    const problemAt = async (where: string) => {
      const response = await anyone(where);
      expect(response.status).toBe(404);
      return response.json();
    };
    expect(await problemAt('/api/products/1/2/picture')).toEqual(await problemAt('/api/products/1/3/picture'));
    expect((await anyone('/api/products/1/1')).status).toBe(401);
    for (const [method, where] of [
      ['PUT', picture],
      ['DELETE', picture],
      ['POST', `${picture}/uploads`],
      ['POST', `${picture}/grants`],
    ] as const)
      expect((await fetch(new URL(where, product.url), { method })).status, where).toBe(401);
  });
});

describe('a text of 5 MB over HTTP', () => {
  test('is read back unchanged, and a longer one is rejected', { tags: ['slow'] }, async () => {
    const comments = 'Excellent! '.repeat(500_000).slice(0, 5_242_880);
    const review = { department: 'Pictured', employeeId: one.employeeId, year: 2025, rating: 5, comments };
    expect((await hr('POST', '/api/reviews', { body: review })).status).toBe(201);
    const read: Reply = await hr('GET', `/api/reviews/Pictured/${one.employeeId}/2025`);
    expect(read.body.comments === comments).toBe(true);
    const included = await hr('GET', `${path}?include=reviews`);
    expect(included.body.reviews[0]).not.toHaveProperty('comments');
    const selected = await hr('GET', `${path}?include=reviews&select=reviews.comments`);
    expect(selected.body.reviews[0].comments === comments).toBe(true);
    const longer = { ...review, year: 2024, comments: 'x'.repeat(5_500_001) };
    expect(await hr('POST', '/api/reviews', { body: longer })).toMatchObject({
      status: 400,
      body: { field: 'comments' },
    });
    expect((await hr('GET', `/api/reviews/Pictured?comments=x`)).status).toBe(400);
  });
});

test('a lost photo or text returns a problem, hides nothing else, and can be written again', {
  tags: ['slow'],
}, async () => {
  const comments = 'x'.repeat(400_000);
  const review = { department: 'Pictured', employeeId: one.employeeId, year: 2019, rating: 3, comments };
  const made = await hr('POST', '/api/reviews', { body: review });
  const reviewed = made.headers.get('location') ?? '';
  const put = () => send('PUT', `${path}/photo`, { email: one.email, body: new Uint8Array(PNG) });
  expect((await put()).status).toBe(200);
  for (const container of ['large', 'photos']) {
    const blobs = product.storage.blobs.getContainerClient(container);
    for await (const { name } of blobs.listBlobsFlat()) await blobs.deleteBlob(name);
  }
  const type = '/api/problems#needs-repair';
  expect(await hr('GET', `${path}/photo`)).toMatchObject({ status: 503, body: { type } });
  expect((await send('HEAD', `${path}/photo`)).status).toBe(503);
  expect(await hr('GET', reviewed)).toMatchObject({ status: 503, body: { type, field: 'comments' } });
  expect((await hr('GET', path)).status).toBe(200);
  const { items } = (await hr('GET', '/api/reviews/Pictured?year=2019')).body;
  const { comments: _, ...others } = review;
  expect(items).toEqual([others]);
  const { items: selected } = (await hr('GET', '/api/reviews/Pictured?year=2019&select=year,comments')).body;
  expect(selected).toEqual([{ year: 2019, comments: null }]);
  const patched = await hr('PATCH', reviewed, { body: { rating: 4 } });
  expect(patched).toMatchObject({ status: 200, body: { rating: 4, comments: null } });
  expect((await hr('PUT', reviewed, { body: review })).body).toEqual(review);
  expect((await put()).status).toBe(200);
  expect((await send('GET', `${path}/photo`)).status).toBe(200);
});

describe('a secret over HTTP', () => {
  test('is returned on every route to callers with the role, and omitted for others', { tags: ['slow'] }, async () => {
    const ways = [
      path,
      '/api/employees/Pictured',
      '/api/employees/Pictured?select=nationalId',
      `/api/employees/by/email/Pictured/${one.email}`,
      `/api/employees/by/emailCompanyWide/${one.email}`,
      `/api/employees/by/lastName/Pictured/${one.lastName}`,
    ];
    for (const way of ways) {
      const seen = await hr('GET', way);
      expect(JSON.stringify(seen.body), way).toContain('295847284');
      const hidden = await owner('GET', way);
      expect(hidden.status).toBe(200);
      expect(JSON.stringify(hidden.body), way).not.toMatch(/295847284|nationalId|v1\./);
    }
    expect(JSON.stringify(await rowsOf(product.storage, 'employees'))).not.toContain('295847284');
    expect(await hr('PATCH', path, { body: { nationalId: '1' } })).toMatchObject({
      status: 400,
      body: { field: 'nationalId' },
    });
    expect((await hr('GET', '/api/employees/Pictured?nationalId=295847284')).status).toBe(400);
  });

  test('returns a problem when it does not decrypt, and null in a list and in the response to a write', {
    tags: ['slow'],
  }, async () => {
    const bad = somebody({ department: 'Broken', nationalId: '1' });
    const good = somebody({ department: 'Broken', nationalId: '2' });
    for (const body of [bad, good]) await hr('POST', '/api/employees', { body });
    const broken = { partitionKey: 'Broken', rowKey: `empid_${bad.employeeId}`, nationalId: 'v1.broken' };
    await product.storage.table('employees').updateEntity(broken, 'Merge');
    const one = `/api/employees/Broken/${bad.employeeId}`;
    const problem = { type: '/api/problems#needs-repair', field: 'nationalId' };
    expect(await hr('GET', one)).toMatchObject({ status: 503, body: problem });
    expect((await stranger('GET', one)).body).toEqual({ ...bad, nationalId: undefined });
    const items = [{ ...bad, nationalId: null }, good];
    expect(await hr('GET', '/api/employees/Broken')).toMatchObject({ status: 200, body: { items } });
    const patched = await hr('PATCH', one, { body: { phone: '1' } });
    expect(patched).toMatchObject({ status: 200, body: { ...bad, phone: '1', nationalId: null } });
    expect((await hr('PUT', one, { body: patched.body })).status).toBe(400);
    const body = { ...bad, nationalId: '3' };
    expect(await hr('PUT', one, { body })).toMatchObject({ status: 200, body });
    for (const { employeeId } of [bad, good]) await hr('DELETE', `/api/employees/Broken/${employeeId}`);
  });

  test('is rewrapped by an operator, page by page', async () => {
    await storageKeys.rotateLocalKey(product.keyFile);
    const operator = product.as('operator');
    expect((await hr('POST', '/api/operations/rewrap/employees')).status).toBe(403);
    expect((await operator('POST', '/api/operations/rewrap/employees?top=100')).body).toEqual({
      checked: 1,
      rewrapped: 1,
      failed: 0,
    });
    expect((await operator('POST', '/api/operations/rewrap/employees?top=100')).body).toEqual({
      checked: 1,
      rewrapped: 0,
      failed: 0,
    });
    expect((await operator('POST', '/api/operations/rewrap/formeremployees')).status).toBe(200);
    expect((await hr('GET', path)).body.nationalId).toBe('295847284');
  });
});
