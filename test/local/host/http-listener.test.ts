import { once } from 'node:events';
import type { Server } from 'node:http';
import { connect, Server as NetServer } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { startHttpListener } from '../../../local/host/http-listener.ts';
import { testStorage } from '../../storage.ts';
import { HOST_KEY, type HostProcess, startHost } from './host-process.ts';

let host: HostProcess;
beforeAll(async () => {
  host = await startHost({ TEST_STORAGE: testStorage(import.meta.url) });
});
afterAll(() => host.stop());

const call = (path: string, init?: RequestInit) => fetch(`${host.url}${path}`, init);

test('the host matches functions in order of name, by route and method', async () => {
  expect(await (await call('/api/order/fixed')).text()).toBe('a-parameter');
  expect(await (await call('/api/order/fixed', { method: 'PUT' })).text()).toBe('c-put');
});

test('a wrong method, a missing prefix and an unknown route return 404 with an empty body', async () => {
  for (const response of [
    await call('/api/order/1', { method: 'DELETE' }),
    await call('/order/1'),
    await call('/api/none'),
    await call('/api/order'),
    await call('/api/order/1/2'),
  ]) {
    expect(response.status).toBe(404);
    expect(await response.text()).toBe('');
  }
});

test('literals match in any case; parameters keep their case and are decoded except for %2F', async () => {
  const response = await call('/API/echo/A%20%C3%BC%2Fb%252F/y%2fz/?q=1');
  expect(await response.json()).toEqual({ first: 'A ü%2Fb%2F', rest: 'y%2fz' });
  expect((await call('/api/echo/one')).status).toBe(404);
});

test('functions receive the URL and the query, with repeated names joined by commas', async () => {
  const { url, query } = (await (await call('/api/echo-query?a=1&b=%26%20x&a=2&c=')).json()) as Record<string, unknown>;
  expect(query).toEqual({ a: '1,2', b: '& x', c: '' });
  expect(url).toBe(`${host.url}/api/echo-query?a=1&b=%26%20x&a=2&c=`);
});

test('bytes, headers, status and cookies stay unchanged', async () => {
  const body = Uint8Array.from({ length: 100_000 }, (_, index) => index % 256);
  const response = await call('/api/echo-body', { method: 'POST', body, headers: { 'x-sent': 'Some Value' } });
  expect(response.status).toBe(201);
  expect(response.headers.get('content-type')).toBe('application/octet-stream');
  expect(response.headers.get('x-echo')).toBe('Some Value');
  expect(response.headers.get('set-cookie')).toBe('seen=a%20b; path=/; samesite=strict; httponly');
  expect(new Uint8Array(await response.arrayBuffer())).toEqual(body);
});

test('a stream is sent as its bytes', async () => {
  expect(await (await call('/api/stream')).text()).toBe('one two');
});

test('a handler that returns nothing sends 204', async () => {
  expect((await call('/api/nothing')).status).toBe(204);
});

test('a handler that throws sends 500 with an empty body, and the log contains the error', async () => {
  const response = await call('/api/throws');
  expect(response.status).toBe(500);
  expect(await response.text()).toBe('');
  const [line] = await host.logged('secret of the house');
  expect(line).toMatch(/^\[error\] throws Error: secret of the house \| at /);
});

test('hooks change the inputs and the result', async () => {
  expect(await (await call('/api/hooked')).json()).toEqual({ input: 'from the hook', after: true });
});

test('the admin route runs only timers and requires the host key and a JSON body', async () => {
  const json = { 'content-type': 'application/json' };
  const keyed = { ...json, 'x-functions-key': HOST_KEY };
  const post = async (name: string, headers: Record<string, string>, body = '{}') =>
    (await call(`/admin/functions/${name}`, { method: 'POST', headers, body })).status;
  expect(await post('monthly', json)).toBe(401);
  expect(await post('monthly', { ...keyed, 'x-functions-key': `${HOST_KEY}x` })).toBe(401);
  expect(await post('monthly', { ...keyed, 'content-type': 'text/plain' })).toBe(415);
  expect(await post('monthly', keyed, '')).toBe(400);
  expect(await post('monthly', keyed, '{')).toBe(400);
  expect(await post('hooked', keyed)).toBe(404);
  expect(await post('none', keyed)).toBe(404);
  expect((await call('/admin/functions/monthly', { headers: keyed })).status).toBe(404);
  expect(host.lines.filter((line) => line.includes('monthly monthly'))).toEqual([]);
  expect(await post('Monthly', keyed)).toBe(202);
});

test('the status of the host requires its key', async () => {
  const status = (headers: Record<string, string>) => call('/Admin/host/status', { headers });
  expect((await status({})).status).toBe(401);
  const response = await status({ 'x-functions-key': HOST_KEY });
  expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
  expect(await response.json()).toMatchObject({ state: 'Running' });
});

test('a function with authLevel function requires the key', async () => {
  expect((await call('/api/locked')).status).toBe(401);
  expect((await call('/api/locked?code=wrong')).status).toBe(401);
  expect((await call(`/api/locked?code=${HOST_KEY}`)).status).toBe(200);
  expect((await call('/api/locked', { headers: { 'x-functions-key': HOST_KEY } })).status).toBe(200);
});

test.each(['reject', 'throw'])(
  'an unhandled error (%s) returns 500 and restarts the app but not the host',
  async (how) => {
    const calls = async () => (await call('/api/counts')).json();
    await calls();
    expect(await calls()).toBeGreaterThan(1);
    const begun = host.lines.filter((line) => line.includes('stuck has begun')).length;
    const stuck = call('/api/stuck');
    await host.logged('stuck has begun', begun + 1);
    const failed = await call(`/api/counts?${how}=1`);
    expect([failed.status, await failed.text()]).toEqual([500, '']);
    expect((await stuck).status).toBe(500);
    await host.logged('nobody ');
    expect(await calls()).toBe(1);
    expect(host.child.exitCode).toBeNull();
  },
);

test('functions receive an empty body if its length is not declared', async () => {
  const init = { method: 'POST', body: new Blob(['abc']).stream(), duplex: 'half' } as const;
  expect(await (await call('/api/reads-body', init)).json()).toMatchObject({ text: '' });
  const whole = await call('/api/reads-body', { method: 'POST', body: 'äbc' });
  expect(await whole.json()).toEqual({ text: 'äbc', type: 'text/plain;charset=UTF-8' });
});

test('the host reads a body only when the function asks for it, and never a body over 100 MiB', async () => {
  const head = (bytes: number) => ['POST /api/ignores-body HTTP/1.1', 'Host: x', `Content-Length: ${bytes}`];
  // The client sends no byte of either body.
  expect(await raw(head(100 * 1_048_576))).toMatch(/^HTTP\/1\.1 200 [\s\S]*104857600/);
  expect(await raw(head(100 * 1_048_576 + 1))).toMatch(/^HTTP\/1\.1 500 [\s\S]*\r\n\r\n$/);
});

test('a client that expects 100 Continue gets it for the body of a function, and else only the response', async () => {
  const expecting = (path: string, bytes: number) =>
    raw([`POST ${path} HTTP/1.1`, 'Host: x', 'Expect: 100-continue', `Content-Length: ${bytes}`]);
  const interim = 'HTTP/1.1 100 Continue\r\n\r\n';
  expect(await expecting('/api/ignores-body', 2)).toMatch(new RegExp(`^${interim}HTTP/1\\.1 200 `));
  expect(await expecting('/api/ignores-body', 0)).toMatch(/^HTTP\/1\.1 200 /);
  expect(await expecting('/api/none', 2)).toMatch(/^HTTP\/1\.1 404 /);
  expect(await expecting('/api/ignores-body', 100 * 1_048_576 + 1)).toMatch(/^HTTP\/1\.1 500 /);
});

test('a response that refuses an expected body ends the connection, since the body may follow or not', async () => {
  const socket = connect(Number(new URL(host.url).port), '127.0.0.1');
  socket.write('POST /api/none HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n');
  expect(await text(socket)).toMatch(/^HTTP\/1\.1 404 /);
});

test('a response with a body is chunked', async () => {
  const response = await call('/api/order/1');
  expect(response.headers.get('content-length')).toBeNull();
  expect(response.headers.get('transfer-encoding')).toBe('chunked');
});

test('a response header outside ASCII returns 500', async () => {
  const response = await call('/api/says-umlaut');
  expect([response.status, await response.text()]).toEqual([500, '']);
});

test('repeated request headers are joined by commas and decoded as UTF-8', async () => {
  const reply = await raw([
    ...['GET /api/echo-headers HTTP/1.1', 'Host: x', 'Authorization: Bearer a', 'X-Word: \u00e9'],
    ...['authorization: Bearer b', 'X-Word: c'],
  ]);
  expect(reply).toContain('"authorization":"Bearer a,Bearer b"');
  expect(reply).toContain('"x-word":"é,c"');
});

test('a call without a trace has an empty traceParent', async () => {
  expect(await (await call('/api/echo-trace')).json()).toEqual({ traceParent: '' });
  const traceparent = `00-${'1'.repeat(32)}-${'2'.repeat(16)}-01`;
  expect(await (await call('/api/echo-trace', { headers: { traceparent } })).json()).toEqual({
    traceParent: traceparent,
  });
});

test('a catch-all route matches the rest of the path, and the URL is built from the decoded path', async () => {
  const seen = async (path: string) => (await call(path)).json();
  expect(await seen('/api/path/a%2Bb/%41%2f%C3%BC%3F?q=%41')).toEqual({
    url: `${host.url}/api/path/a+b/A%2f%C3%BC%3F?q=%41`,
    rest: 'a+b/A%2fü?',
  });
  expect(await seen('/api/path')).toMatchObject({ rest: '' });
});

test('functions receive the path as it was sent in the header of App Service, whatever the client sends in it', async () => {
  const target = '/api/echo-headers/../echo-headers?q=%252F#x';
  const reply = await raw([`GET ${target} HTTP/1.1`, 'Host: x', 'X-WAWS-Unencoded-URL: /api/other']);
  expect(reply).toContain(`"x-waws-unencoded-url":"${target}"`);
});

test('a backslash and a hash in a path are characters of it', async () => {
  const reply = await raw(['GET /api/path/a\\b#c HTTP/1.1', 'Host: x']);
  expect(reply).toContain(`"rest":"a\\\\b#c"`);
});

test.each([
  ['a path that begins with two slashes', ['GET //api/order/1 HTTP/1.1', 'Host: x'], 404],
  ['two slashes within a path', ['GET /api/order//1 HTTP/1.1', 'Host: x'], 404],
  ['two slashes before the rest of a path', ['GET /api/path//x HTTP/1.1', 'Host: x'], 404],
  ['two slashes in the rest of a path', ['GET /api/path/x//y HTTP/1.1', 'Host: x'], 200],
  ['another host in the path', ['GET //evil.example/api/order/1 HTTP/1.1', 'Host: x'], 404],
  ['an expectation that nobody knows', ['GET /api/order/1 HTTP/1.1', 'Host: x', 'Expect: rain'], 200],
  ['an invalid host', ['GET /api/order/1 HTTP/1.1', 'Host: ['], 400],
  ['a host with a path', ['GET /order/1 HTTP/1.1', 'Host: x/api'], 400],
  ['an invalid port', ['GET /api/order/1 HTTP/1.1', 'Host: x:99999'], 400],
  ['two Host lines', ['GET /api/order/1 HTTP/1.1', 'Host: x', 'Host: x'], 400],
  ['a NUL in the path', ['GET /api/order/%00 HTTP/1.1', 'Host: x'], 400],
  ['a header that is not UTF-8', ['GET /api/order/1 HTTP/1.1', 'Host: x', 'X-Word: \xff'], 400],
  ['a request line of 8 KB', [`GET /api/order/${'x'.repeat(8_166)} HTTP/1.1`, 'Host: x'], 200],
  ['a longer request line', [`GET /api/order/${'x'.repeat(8_167)} HTTP/1.1`, 'Host: x'], 414],
  ['100 header lines', ['GET /api/order/1 HTTP/1.1', 'Host: x', ...Array(98).fill('X-Line: 1')], 200],
  ['101 header lines', ['GET /api/order/1 HTTP/1.1', 'Host: x', ...Array(99).fill('X-Line: 1')], 431],
  ['32 KB of headers', ['GET /api/order/1 HTTP/1.1', 'Host: x', `X-Long: ${'x'.repeat(32_768)}`], 431],
] as const)('%s has the same response as from the real host', async (_, lines, status) => {
  const reply = await raw(lines, lines.includes('X-Word: \xff') ? 'latin1' : 'utf8');
  expect(Number(/^HTTP\/1\.1 (\d{3})/.exec(reply)?.[1])).toBe(status);
});

/** Sends the head of a request unchanged, with `Connection: close`, and returns the whole response. */
async function raw(lines: readonly string[], encoding: BufferEncoding = 'utf8'): Promise<string> {
  const socket = connect(Number(new URL(host.url).port), '127.0.0.1');
  await once(socket, 'connect');
  socket.write([...lines, 'Connection: close', '', ''].join('\r\n'), encoding);
  return text(socket);
}

test('a client that goes away while it sends its body is not logged as an error', { tags: ['slow'] }, async () => {
  const { hostname, port } = new URL(host.url);
  const before = host.lines.filter((line) => line.startsWith('[error]')).length;
  const socket = connect(Number(port), hostname);
  const head = 'POST /api/reads-body HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 10\r\n\r\n';
  socket.write(head);
  // The function is called after the interim response.
  await once(socket, 'data');
  socket.write('half');
  socket.destroy();
  const whole = await call('/api/reads-body', { method: 'POST', body: 'whole' });
  expect(await whole.json()).toMatchObject({ text: 'whole' });
  await call('/api/slow');
  expect(host.lines.filter((line) => line.startsWith('[error]'))).toHaveLength(before);
});

test('a request whose body does not arrive in time returns 408 and closes the connection', async () => {
  const options = { port: 0, routePrefix: 'api', origins: [], key: HOST_KEY, runTimer: () => true };
  const listener = await startHttpListener([], { ...options, requestWithinMs: 400 });
  onTestFinished(() => listener.stop());
  const socket = connect(listener.port, '127.0.0.1');
  const head = `POST /admin/functions/x HTTP/1.1\r\nhost: x\r\nx-functions-key: ${HOST_KEY}\r\ncontent-type: application/json`;
  socket.write(`${head}\r\ncontent-length: 10\r\n\r\n{`);
  expect(await text(socket)).toMatch(/^HTTP\/1.1 408 /);
});

test('a request has a minute to arrive', async () => {
  const listen = vi.spyOn(NetServer.prototype, 'listen');
  onTestFinished(() => listen.mockRestore());
  const options = { port: 0, routePrefix: 'api', origins: [], key: HOST_KEY, runTimer: () => true };
  const listener = await startHttpListener([], options);
  onTestFinished(() => listener.stop());
  expect((listen.mock.contexts[0] as Server).requestTimeout).toBe(60_000);
});
