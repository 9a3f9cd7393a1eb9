import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PNG } from '../../local/walk/png.ts';
import { useProduct } from '../product.ts';
import { useBrowser } from '../use-browser.ts';
import { somebody } from '../world.ts';

/**
 * Pages in a real browser, with the unchanged script of docs/browsers.md, from an allowed origin and from another
 * one.
 */

interface Seen {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  // biome-ignore lint/suspicious/noExplicitAny: each test knows what it asked for
  readonly body: any;
}

interface Grant {
  readonly url: string;
  readonly token: string;
  readonly partition: string;
}

// The globals of the page.
declare const API: string;
declare const TOKEN: string;
declare const Image: new () => { crossOrigin: string; src: string; naturalWidth: number; decode(): Promise<void> };
declare const ROWS: Record<string, string>;
declare function call(method: string, path: string, body?: object, headers?: Record<string, string>): Promise<Seen>;
declare function readResponse(response: Response): Promise<Seen>;
declare function grantFor(entity: string, permissions: string): Promise<Grant>;
declare function readOwn(): Promise<Seen>;
declare function submitExpense(claim: object): Promise<Seen>;
declare function countMessages(day: string, counts: object): Promise<Seen>;
declare function uploadPhoto(path: string, file: Blob): Promise<Seen>;
declare function readPhoto(path: string): Promise<Seen>;

const [, script] =
  /^```js\n(.*?)^```$/ms.exec(readFileSync(new URL('../../docs/browsers.md', import.meta.url), 'utf8')) ?? [];
const server = createServer((_request, response) => {
  response.setHeader('content-type', 'text/html; charset=utf-8').end(`<!doctype html><script>${script}</script>`);
});
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
const { port } = server.address() as AddressInfo;
/** Two origins for the browser, served by one server. */
const allowed = `http://127.0.0.1:${port}`;
const other = `http://localhost:${port}`;

const product = useProduct(import.meta.url, { cors: ['https://app.contoso.com', allowed] });
const browser = await useBrowser();
const one = somebody({ employeeId: '000888', department: 'Browsing' });
const path = `/api/employees/Browsing/${one.employeeId}`;

beforeAll(async () => {
  expect((await product.as('hr')('POST', '/api/employees', { body: one })).status).toBe(201);
});
afterAll(() => {
  server.close();
});

/** Opens a page of an origin for a user with a token of this role. */
async function open(origin: string, role: string): Promise<Page> {
  const page = await browser().newPage();
  const given = { API: product.url, TOKEN: await product.token(role, one.email) };
  await page.addInitScript((values) => Object.assign(globalThis, values), given);
  // The reporter treats a failure location in the page as a file, and fails for a folder.
  await page.goto(`${origin}/page.html`);
  return page;
}

describe('a page of an allowed origin', () => {
  test('writes through the API, and reads the headers and problems of its responses', { tags: ['slow'] }, async () => {
    const page = await open(allowed, 'hr');
    const another = somebody({ department: 'Browsing' });
    const { created, changed, stale, first, second } = await page.evaluate(async (employee) => {
      const created = await call('POST', '/api/employees', employee);
      const { location = '', etag = '' } = created.headers;
      const changed = await call('PATCH', location, { phone: '555' }, { 'if-match': etag });
      const stale = await call('PUT', location, employee, { 'if-match': etag });
      const create = () => call('POST', '/api/departments', { department: 'Browsed' });
      return { created, changed, stale, first: await create(), second: await create() };
    }, another);
    expect(created).toMatchObject({
      status: 201,
      headers: { location: `/api/employees/Browsing/${another.employeeId}` },
    });
    expect(created.headers['server-timing']).toContain('transactions');
    expect(changed).toMatchObject({ status: 200, body: { phone: '555' } });
    const { etag = 'none' } = changed.headers;
    expect(etag).not.toBe(created.headers.etag);
    expect(stale).toMatchObject({
      status: 412,
      headers: { etag },
      body: { type: '/api/problems#etag-mismatch', etag },
    });
    expect(first.status).toBe(201);
    expect(second).toMatchObject({ status: 409, body: { type: '/api/problems#duplicate-key' } });
    const { firstPage, nextPage, found, nobody } = await page.evaluate(async (email) => {
      const firstPage = await call('GET', '/api/employees/Browsing?top=1');
      return {
        firstPage,
        nextPage: await call('GET', /<(.*)>/.exec(firstPage.headers.link ?? '')?.[1] ?? ''),
        found: await call('GET', `/api/employees/by/email/Browsing/${email}`),
        nobody: await readResponse(await fetch(`${API}/api/employees/Browsing`)),
      };
    }, one.email);
    expect([firstPage, nextPage].flatMap(({ body }) => body.items)).toHaveLength(2);
    expect(found.headers['content-location']).toBe(path);
    expect(nobody).toMatchObject({ status: 401, headers: { 'www-authenticate': 'Bearer' } });
  });

  test('reads and writes its own rows directly in storage', { tags: ['slow'] }, async () => {
    const page = await open(allowed, 'reader');
    const done = await page.evaluate(
      async ({ path, png }) => ({
        own: await readOwn(),
        claim: await submitExpense({ amount: 12.5, category: 'Meals' }),
        counts: [
          await countMessages('2026-11-20', { Count009: 7 }),
          await countMessages('2026-11-20', { Count010: 3 }),
        ],
        photo: await uploadPhoto(path, await (await fetch(`data:image/png;base64,${png}`)).blob()),
      }),
      { path, png: PNG.toString('base64') },
    );
    expect(done.own).toMatchObject({ status: 200, body: { employeeId: one.employeeId, lastName: one.lastName } });
    expect(done.own.headers.etag).toMatch(/^W\//);
    expect(done.own.headers['x-ms-version']).toBeDefined();
    expect(done.claim.status).toBe(201);
    expect(done.counts.map(({ status }) => status)).toEqual([204, 204]);
    expect(done.photo).toMatchObject({ status: 200, body: { type: 'image/png' } });
    const hr = product.as('hr');
    expect((await hr('GET', `/api/expenses/${one.employeeId}`)).body.items).toMatchObject([{ amount: 12.5 }]);
    const { counts } = (await hr('GET', `/api/messagehours/${one.employeeId}/2026-11-20`)).body;
    expect(counts.slice(9, 11)).toEqual([7, 3]);
    expect((await hr('GET', path)).body.photo).toMatchObject({ type: 'image/png' });
  });

  test('shows a photo by a grant, and a public picture without a token', { tags: ['slow'] }, async () => {
    const page = await open(allowed, 'hr');
    const product1 = { categoryId: 1, productId: 1, productName: 'Chai' };
    expect((await product.as('hr')('POST', '/api/products', { body: product1 })).status).toBe(201);
    const seen = await page.evaluate(
      async ({ path, png }) => {
        const widthOf = async (src: string, origin?: string) => {
          const image = new Image();
          if (origin) image.crossOrigin = origin;
          image.src = src;
          await image.decode();
          return image.naturalWidth;
        };
        const file = await (await fetch(`data:image/png;base64,${png}`)).blob();
        await uploadPhoto(path, file);
        const photo = await readPhoto(path);
        const { body: granted } = await call('POST', `${path}/photo/grants`);
        const picture = new URL('/api/products/1/1/picture', API).href;
        const headers = { authorization: `Bearer ${TOKEN}` };
        const put = await fetch(picture, { method: 'PUT', headers, body: file });
        return {
          photo: { status: photo.status, type: photo.body.type, bytes: photo.body.size },
          widths: [await widthOf(granted.url), await widthOf(picture), await widthOf(picture, 'anonymous')],
          put: put.status,
          missing: await readPhoto('/api/employees/Browsing/999999'),
        };
      },
      { path, png: PNG.toString('base64') },
    );
    expect(seen.put).toBe(200);
    expect(seen.photo).toEqual({ status: 200, type: 'image/png', bytes: 70 });
    expect(seen.widths).toEqual([1, 1, 1]);
    expect(seen.missing).toMatchObject({ status: 404, body: { code: 'not-found' } });
  });

  test('gets an error for what its grant does not allow', { tags: ['slow'] }, async () => {
    const page = await open(allowed, 'reader');
    const refused = await page.evaluate(async (path) => {
      await submitExpense({ amount: 1, category: 'Meals' });
      const { url, token, partition } = await grantFor('expenses', 'ra');
      const { body } = await readResponse(
        await fetch(`${url}()?$filter=PartitionKey eq '${partition}'&${token}`, { headers: ROWS }),
      );
      const row = `${url}(PartitionKey='${partition}',RowKey='${body.value[0].RowKey}')?${token}`;
      const merge = { method: 'MERGE', headers: { ...ROWS, 'if-match': '*' }, body: '{"amount":1000}' };
      const remove = { method: 'DELETE', headers: { ...ROWS, 'if-match': '*' } };
      const { body: upload } = await call('POST', `${path}/photo/uploads`, { type: 'image/png', bytes: 1 });
      return {
        merged: await readResponse(await fetch(row, merge)),
        removed: await readResponse(await fetch(row, remove)),
        read: await readResponse(await fetch(upload.url)),
        unasked: await call('POST', '/api/grants', { entity: 'expenses', scope: 'own', permissions: 'u' }),
        unsigned: await readResponse(await fetch(url)),
      };
    }, path);
    const { merged, removed, read, unasked, unsigned } = refused;
    for (const answer of [merged, removed, read])
      expect(answer).toMatchObject({ status: 403, headers: { 'x-ms-error-code': expect.stringMatching(/^Auth/) } });
    expect(unsigned.status).toBe(403);
    expect(unasked).toMatchObject({ status: 403, body: { type: '/api/problems#forbidden' } });
  });
});

describe('the cache of a browser', () => {
  const secrets = { birthDate: '1980-04-03', nationalId: 'AB-12-34' };
  const two = somebody({ department: 'Caching', ...secrets });
  const pathOfTwo = `/api/employees/Caching/${two.employeeId}`;
  beforeAll(async () => {
    const hr = product.as('hr');
    expect((await hr('POST', '/api/employees', { body: two })).status).toBe(201);
    expect((await hr('POST', '/api/departments', { body: { department: 'Kept' } })).status).toBe(201);
  });

  test('shows a caller no cached response of another caller', { tags: ['slow'] }, async () => {
    const page = await open(allowed, 'hr');
    const tokens = { hr: await product.token('hr'), reader: await product.token('reader') };
    const bodies = await page.evaluate(
      async ({ path, tokens }) => {
        const as = async (authorization: Record<string, string>) =>
          readResponse(await fetch(new URL(path, API), { headers: authorization }));
        const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
        return {
          first: await as(bearer(tokens.hr)),
          reader: await as(bearer(tokens.reader)),
          again: await as(bearer(tokens.hr)),
          nobody: await as({}),
        };
      },
      { path: pathOfTwo, tokens },
    );
    expect(bodies.first.body).toMatchObject(secrets);
    expect(bodies.reader).toMatchObject({ status: 200, body: { employeeId: two.employeeId } });
    for (const field of Object.keys(secrets)) expect(bodies.reader.body).not.toHaveProperty(field);
    expect(bodies.again.body).toMatchObject(secrets);
    expect(bodies.nobody.status).toBe(401);
  });

  test('returns a cached response to nobody without a token', { tags: ['slow'] }, async () => {
    const page = await open(allowed, 'reader');
    const { kept, nobody } = await page.evaluate(async () => ({
      kept: await call('GET', '/api/departments/Kept'),
      nobody: await readResponse(await fetch(new URL('/api/departments/Kept', API))),
    }));
    expect(kept).toMatchObject({ status: 200, headers: { 'cache-control': 'private, max-age=60' } });
    expect(nobody.status).toBe(401);
  });

  test('gets Vary with every response, and an ETag for each view', { tags: ['slow'] }, async () => {
    const [hr, reader] = [product.as('hr'), product.as('reader')];
    const [whole, part] = [await hr('GET', pathOfTwo), await reader('GET', pathOfTwo)];
    const etags = [whole, part].map(({ headers }) => headers.get('etag') ?? '');
    expect(new Set(etags).size).toBe(2);
    for (const [ask, own, other] of [
      [hr, etags[0], etags[1]],
      [reader, etags[1], etags[0]],
    ] as const) {
      expect((await ask('GET', pathOfTwo, { headers: { 'if-none-match': own ?? '' } })).status).toBe(304);
      expect((await ask('GET', pathOfTwo, { headers: { 'if-none-match': other ?? '' } })).status).toBe(200);
    }
    for (const [ask, asked] of [
      [hr, pathOfTwo],
      [product.as(undefined), pathOfTwo],
      [reader, '/api/employees/Caching'],
      [reader, '/api/employees/Caching/000000'],
      [reader, '/api/departments/Kept'],
      [reader, '/api/health'],
    ] as const) {
      const origin = (await ask('GET', asked, { headers: { origin: allowed } })).headers.get('vary') ?? '';
      // The host adds Origin again if it allows several origins.
      expect([...new Set(origin.split(/, */))].sort(), asked).toEqual(['Authorization', 'Origin']);
    }
    // The ETags of both views stand for the same state of the entity.
    const change = (etag: string, phone: string) =>
      hr('PATCH', pathOfTwo, { body: { phone }, headers: { 'if-match': etag } });
    expect((await change(etags[1] ?? '', '1')).status).toBe(200);
    for (const etag of etags) expect((await change(etag, '2')).status).toBe(412);
  });
});

test('the browser rejects a page of another origin: for the API, tables and blobs', { tags: ['slow'] }, async () => {
  const ask = product.as('reader', one.email);
  const granted = async (entity: string, permissions: string): Promise<Grant> =>
    (await ask('POST', '/api/grants', { body: { entity, scope: 'own', permissions } })).body;
  const given = {
    path,
    own: await granted('employees', 'r'),
    series: await granted('messagehours', 'rau'),
    upload: (await ask('POST', `${path}/photo/uploads`, { body: { type: 'image/png', bytes: 3 } })).body,
  };
  // With and without a preflight. The result is the status, or that the browser got no response.
  const tryAll = async ({ path, own, series, upload }: typeof given) => {
    const row = `${series.url}(PartitionKey='${series.partition}',RowKey='2026-11-21')?${series.token}`;
    const tries = {
      health: () => fetch(`${API}/api/health`),
      api: () => call('GET', path),
      read: () => fetch(`${own.url}?${own.token}`, { headers: { accept: 'application/json' } }),
      merge: () => fetch(row, { method: 'MERGE', headers: ROWS, body: '{"Count009":7}' }),
      put: () => fetch(upload.url, { method: 'PUT', headers: upload.headers, body: 'abc' }),
      blob: () => fetch(upload.url),
    };
    const answers = Object.entries(tries).map(async ([name, go]) => {
      const status = await go().then(
        ({ status }) => status,
        (error: Error) => error.name,
      );
      return [name, status] as const;
    });
    return Object.fromEntries(await Promise.all(answers));
  };
  const refused = await open(other, 'reader');
  const complaints: string[] = [];
  refused.on('console', (message) => complaints.push(message.text()));
  expect(await refused.evaluate(tryAll, given)).toEqual({
    health: 'TypeError',
    api: 'TypeError',
    read: 'TypeError',
    merge: 'TypeError',
    put: 'TypeError',
    blob: 'TypeError',
  });
  expect(
    complaints.filter((text) => text.includes(`from origin '${other}' has been blocked by CORS policy`)),
  ).toHaveLength(6);
  // Only the origin made these requests fail, and no changing request was sent.
  expect((await product.as('hr')('GET', `/api/messagehours/${one.employeeId}/2026-11-21`)).status).toBe(404);
  const taken = await open(allowed, 'reader');
  expect(await taken.evaluate(tryAll, given)).toEqual({
    health: 200,
    api: 200,
    read: 200,
    merge: 204,
    put: 201,
    blob: 403,
  });
});
