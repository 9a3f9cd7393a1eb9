import { mkdir, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { beforeAll, expect, test } from 'vitest';
import { buildFixtures } from '../fixtures/build.ts';
import { model } from '../fixtures/model.ts';
import { useProduct } from '../product.ts';

/** The host serves the folder `console` beside the bundle, and the API below /api. */

const INDEX = '<!doctype html><title>Console</title>';
const app = {
  model,
  folder: fileURLToPath(new URL('../../dist/fixtures-with-console', import.meta.url)),
  packs: undefined,
};
beforeAll(async () => {
  await buildFixtures(app);
  await mkdir(join(app.folder, 'console', 'assets'), { recursive: true });
  await writeFile(join(app.folder, 'console', 'index.html'), INDEX);
  await writeFile(join(app.folder, 'console', 'assets', 'main-1.js'), 'export {};');
});
const product = useProduct(import.meta.url, { app });

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
  const script = await send('/console/assets/main-1.js');
  expect([script.status, script.body]).toEqual([200, 'export {};']);
  expect(script.headers['cache-control']).toContain('immutable');
  expect((await send('/console/assets/main-1.js', 'HEAD')).headers).toMatchObject({ etag: script.headers.etag });
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
  ...['/console/../host.json', '/console/../../package.json', '/console/%2e%2e/host.json', '/console/..%2fhost.json'],
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
