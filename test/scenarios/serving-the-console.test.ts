import { readdir, readFile, stat } from 'node:fs/promises';
import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { useProduct } from '../product.ts';

/** The host serves the folder `console` beside the bundle, and the API below /api. */

const BUILT = new URL('../../dist/console/', import.meta.url);
const INDEX = await readFile(new URL('index.html', BUILT), 'utf8');
const product = useProduct(import.meta.url);

/** Sends a path as it is, which `fetch` would normalize. */
async function send(path: string, method = 'GET') {
  const { promise, resolve, reject } = Promise.withResolvers<import('node:http').IncomingMessage>();
  request(product.url, { path, method }, resolve).on('error', reject).end();
  const response = await promise;
  return { status: response.statusCode, headers: response.headers, body: await text(response) };
}

test('the address of the app leads to the console, whose pages any path below it opens', async () => {
  const root = await send('/');
  expect([root.status, root.headers.location]).toEqual([302, '/console']);
  for (const path of ['/console', '/console/', '/console/employees/Sales', '/CONSOLE']) {
    const page = await send(path);
    expect([page.status, page.body, page.headers['cache-control']], path).toEqual([200, INDEX, 'no-cache']);
    expect(page.headers['content-security-policy']).toContain("default-src 'self'");
  }
});

test('every file that the console names is served compressed, and cached for good', { tags: ['slow'] }, async () => {
  const assets = await readdir(new URL('assets/', BUILT));
  const names = assets.filter((name) => /\.(js|css)$/.test(name));
  expect(names.length).toBeGreaterThan(1);
  for (const name of names) {
    const address = new URL(`/console/assets/${name}`, product.url);
    const { headers } = await fetch(address, { method: 'HEAD', headers: { 'accept-encoding': 'br' } });
    expect(headers.get('cache-control'), name).toContain('immutable');
    const { size } = await stat(new URL(`assets/${name}`, BUILT));
    if (size > 2_000) expect(headers.get('content-encoding'), name).toBe('br');
  }
});

test('the console gets the issuer of the instance and the address of the API', async () => {
  const { body } = await send('/console/config.json');
  const { issuer, ...others } = JSON.parse(body);
  expect(others).toEqual({ clientId: 'console', scope: 'openid', apiUrl: '/api' });
  expect(issuer).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
  const { connectSrc } = /connect-src (?<connectSrc>[^;]*)/.exec(
    String((await send('/console')).headers['content-security-policy']),
  )?.groups ?? { connectSrc: '' };
  expect(connectSrc?.split(' ')).toEqual([
    "'self'",
    new URL(product.storage.tables.url).origin,
    new URL(product.storage.blobs.url).origin,
    issuer,
  ]);
});

test.each([
  ...['/console/../app.js', '/console/../../package.json', '/console/%2e%2e/app.js', '/console/..%2fapp.js'],
  ...[
    '/console/..%5chost.json',
    '/console//host.json',
    '/console/assets/../../app.js',
    '/console/%252e%252e/host.json',
  ],
  ...['/host.json', '/package.json', '/app.js', '/../host.json'],
])('no path reads a file outside the console: %s', async (path) => {
  const { status, body } = await send(path);
  expect(status === 404 || body === INDEX, `${status} ${body}`).toBe(true);
});

test('the API and its problems stay below /api', async () => {
  expect((await send('/api/health')).status).toBe(200);
  expect((await send('/health')).status).toBe(404);
  for (const path of ['/api', '/api/none', '/none'])
    expect(JSON.parse((await send(path)).body), path).toMatchObject({ code: 'not-found' });
});
