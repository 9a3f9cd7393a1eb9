import { mkdir, mkdtemp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { brotliCompressSync } from 'node:zlib';
import { beforeAll, describe, expect, inject, test } from 'vitest';
import { type ConsoleApp, createConsoleHandler, createRootHandler } from '../../../lib/http/console.ts';
import { RowkeyError } from '../../../lib/index.ts';
import { testInvocation, testRequest } from './request.ts';

const INDEX = '<!doctype html><title>Console</title>';
const SCRIPT = 'console.log("a script that is long enough to be worth compressing");'.repeat(20);
const app: ConsoleApp = {
  storage: { tables: { url: 'https://a.table.example' }, blobs: { url: 'https://a.blob.example' } } as never,
  console: { issuer: 'https://login.example/tenant/v2.0', clientId: 'c1', connectTo: ['https://token.example/x'] },
};

const folder = await mkdtemp(join(inject('folder'), 'console-'));
beforeAll(async () => {
  const files = join(folder, 'console');
  await mkdir(join(files, 'assets'), { recursive: true });
  await writeFile(join(folder, 'secret.txt'), 'outside');
  await writeFile(join(files, 'index.html'), INDEX);
  await writeFile(join(files, 'assets', 'main-1a2b.js.br'), brotliCompressSync(SCRIPT));
});

async function get(path: string, { headers = {}, of = app, method = 'GET' as 'GET' | 'HEAD', root = false } = {}) {
  const options = { folder: join(folder, 'console'), root: '/api' };
  const handler = (root ? createRootHandler : createConsoleHandler)(() => of, options);
  const request = testRequest({ method, path: encodeURI(path), params: { path }, headers });
  const { status, headers: given, body, jsonBody } = await handler(request, testInvocation().invocation);
  return { status, headers: new Headers(Object.entries(given ?? {})), body, jsonBody };
}
const textOf = (body: unknown) => Buffer.from(body as Uint8Array).toString();

describe('a page of the console', () => {
  test.each(['', 'index.html', 'employees', 'employees/Sales/0001', 'config', 'a.b/c'])(
    'is the start page at any path, revalidated each time: %j',
    async (path) => {
      const { status, headers, body } = await get(path);
      expect([status, textOf(body)]).toEqual([200, INDEX]);
      expect(headers.get('content-type')).toBe('text/html; charset=utf-8');
      expect(headers.get('cache-control')).toBe('no-cache');
      expect(await get(path, { headers: { 'if-none-match': headers.get('etag') ?? '' } })).toMatchObject({
        status: 304,
        body: undefined,
      });
    },
  );

  test('has a policy that allows no inline script and no other origin than storage and the issuer', async () => {
    const policy = (await get('')).headers.get('content-security-policy') ?? '';
    const directives = Object.fromEntries(
      policy.split('; ').map((directive) => [directive.split(' ')[0], directive.split(' ').slice(1)]),
    );
    expect(directives['default-src']).toEqual(["'self'"]);
    expect(directives['connect-src']).toEqual([
      "'self'",
      ...['https://a.table.example', 'https://a.blob.example', 'https://login.example', 'https://token.example'],
    ]);
    expect(directives['frame-ancestors']).toEqual(["'none'"]);
    expect(directives).not.toHaveProperty('script-src');
    expect(policy).not.toMatch(/unsafe|\*|http:/);
  });

  test('has a policy that allows each of several storage accounts', async () => {
    const account = (name: string) => ({
      tables: { url: `https://${name}.table.example/` },
      blobs: { url: `https://${name}.blob.example/` },
    });
    const storage = { ...account('a'), accounts: { list: [account('a'), account('b')] } } as never;
    const policy = (await get('', { of: { ...app, storage } })).headers.get('content-security-policy') ?? '';
    for (const url of ['https://a.table.example', 'https://b.table.example', 'https://b.blob.example'])
      expect(/connect-src ([^;]*)/.exec(policy)?.[1]?.split(' ')).toContain(url);
    expect(/img-src ([^;]*)/.exec(policy)?.[1]).toContain('https://a.blob.example https://b.blob.example');
  });
});

describe('a file named by its hash', () => {
  test.each([
    ['br, gzip', 'br'],
    ['gzip, br;q=0', null],
    ['', null],
  ])('is immutable, and compressed for a client that accepts Brotli: %j', async (accepted, encoding) => {
    const { status, headers, body } = await get('assets/main-1a2b.js', { headers: { 'accept-encoding': accepted } });
    expect(status).toBe(200);
    expect(headers.get('content-encoding')).toBe(encoding);
    expect(headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
    expect(headers.get('vary')).toBe('Accept-Encoding, Origin');
    expect(headers.get('content-type')).toBe('text/javascript; charset=utf-8');
    if (encoding) expect((body as Uint8Array).length).toBeLessThan(SCRIPT.length / 4);
    else expect(textOf(body)).toBe(SCRIPT);
  });

  test('has another ETag for each encoding', async () => {
    const encodings = ['br', ''];
    const etags = await Promise.all(
      encodings.map(async (encoding) =>
        (await get('assets/main-1a2b.js', { headers: { 'accept-encoding': encoding } })).headers.get('etag'),
      ),
    );
    expect(new Set(etags).size).toBe(2);
  });

  test('is not found after a deployment has replaced it, in place of a page that is no script', async () => {
    expect(await get('assets/main-old.js')).toMatchObject({ status: 404 });
  });
});

test.each([
  '../secret.txt',
  'assets/../../secret.txt',
  '..%2fsecret.txt',
  '/etc/passwd',
  'assets/..',
  'assets',
  '\\..\\secret.txt',
])('no file outside the folder is served: %s', async (path) => {
  const { status, body } = await get(path);
  expect(status === 404 || textOf(body) === INDEX).toBe(true);
});

test('config.json says how to sign in', async () => {
  const { status, headers, jsonBody } = await get('config.json');
  expect([status, jsonBody]).toEqual([
    200,
    { issuer: 'https://login.example/tenant/v2.0', clientId: 'c1', scope: 'openid', apiUrl: '/api' },
  ]);
  expect(headers.get('cache-control')).toBe('no-cache');
});

test('HEAD returns the headers alone', async () => {
  const { status, headers, body } = await get('assets/main-1a2b.js', { method: 'HEAD' });
  expect([status, body, headers.get('etag')]).toEqual([200, undefined, expect.any(String)]);
});

test('without settings there is no console, and the problem names the setting', async () => {
  const of = { ...app, console: undefined };
  for (const path of ['', 'config.json', 'assets/main-1a2b.js'])
    expect(JSON.parse(String((await get(path, { of })).body))).toMatchObject({
      status: 404,
      accepted: 'the setting CONSOLE_CLIENT_ID',
    });
  expect((await get('', { of, root: true })).status).toBe(404);
});

test('a wrong setting is a problem, not a console', async () => {
  const handler = createConsoleHandler(
    () => {
      throw new RowkeyError('wrong-setting', 'secret detail');
    },
    { folder, root: '/api' },
  );
  const { status, body } = await handler(testRequest({ path: '', params: {} }), testInvocation().invocation);
  expect([status, String(body).includes('secret')]).toEqual([500, false]);
});

test('the root leads to the console, and no other path does', async () => {
  const { status, headers } = await get('', { root: true });
  expect([status, headers.get('location')]).toEqual([302, '/console']);
  expect((await get('employees', { root: true })).status).toBe(404);
});
