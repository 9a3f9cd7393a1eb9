import { afterAll, beforeAll, expect, test } from 'vitest';
import { testStorage } from '../../storage.ts';
import { type HostProcess, startHost } from './host-process.ts';

let host: HostProcess;
beforeAll(async () => {
  host = await startHost({ TEST_STORAGE: testStorage(import.meta.url) });
});
afterAll(() => host.stop());

const call = (path: string, init?: RequestInit) => fetch(`${host.url}${path}`, init);

test('functions are tried in order of name, and their methods count', async () => {
  expect(await (await call('/api/order/fixed')).text()).toBe('a-parameter');
  expect(await (await call('/api/order/fixed', { method: 'PUT' })).text()).toBe('c-put');
});

test('a wrong method, a missing prefix and an unknown route are 404 with an empty body', async () => {
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

test('literals match in any case, parameters keep theirs and are decoded but for %2F', async () => {
  const response = await call('/API/echo/A%20%C3%BC%2Fb%252F/y%2fz/?q=1');
  expect(await response.json()).toEqual({ first: 'A ü%2Fb%2F', rest: 'y%2fz' });
  expect((await call('/api/echo/one')).status).toBe(404);
});

test('query and url arrive, repeated names joined by commas', async () => {
  const { url, query } = (await (await call('/api/echo-query?a=1&b=%26%20x&a=2&c=')).json()) as Record<string, unknown>;
  expect(query).toEqual({ a: '1,2', b: '& x', c: '' });
  expect(url).toBe(`${host.url}/api/echo-query?a=1&b=%26%20x&a=2&c=`);
});

test('bytes, headers, status and cookies go through unchanged', async () => {
  const body = Uint8Array.from({ length: 100_000 }, (_, index) => index % 256);
  const response = await call('/api/echo-body', { method: 'POST', body, headers: { 'x-sent': 'Some Value' } });
  expect(response.status).toBe(201);
  expect(response.headers.get('content-type')).toBe('application/octet-stream');
  expect(response.headers.get('content-length')).toBe('100000');
  expect(response.headers.get('x-echo')).toBe('Some Value');
  expect(response.headers.get('set-cookie')).toBe('seen=a%20b; path=/; samesite=strict; httponly');
  expect(new Uint8Array(await response.arrayBuffer())).toEqual(body);
});

test('a stream is answered as its bytes', async () => {
  expect(await (await call('/api/stream')).text()).toBe('one two');
});

test('a handler that returns nothing is 204', async () => {
  expect((await call('/api/nothing')).status).toBe(204);
});

test('a handler that throws is 500 with an empty body, and the log says why', async () => {
  const response = await call('/api/throws');
  expect(response.status).toBe(500);
  expect(await response.text()).toBe('');
  const [line] = await host.logged('secret of the house');
  expect(line).toMatch(/^\[error\] throws Error: secret of the house \| at /);
});

test('hooks change the inputs and the result', async () => {
  expect(await (await call('/api/hooked')).json()).toEqual({ input: 'from the hook', after: true });
});

test('the admin route runs timers alone', async () => {
  const post = (name: string) => call(`/admin/functions/${name}`, { method: 'POST', body: '{"input":""}' });
  expect((await post('hooked')).status).toBe(404);
  expect((await post('none')).status).toBe(404);
  expect((await call('/admin/functions/monthly')).status).toBe(404);
});
