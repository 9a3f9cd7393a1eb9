import { afterAll, beforeAll, expect, test } from 'vitest';
import { testStorage } from '../../storage.ts';
import { type HostProcess, startHost } from './host-process.ts';

const env = { TEST_STORAGE: testStorage(import.meta.url) };
const APP = 'https://app.contoso.com';
const OTHER = 'https://contoso.com';
let named: HostProcess;
let any: HostProcess;
let none: HostProcess;
beforeAll(async () => {
  [named, any, none] = await Promise.all([
    startHost(env, '--cors', `http://localhost:5173,${APP}`),
    startHost(env, '--cors', '*'),
    startHost(env),
  ]);
});
afterAll(() => Promise.all([named, any, none].map((host) => host?.stop())));

/** Returns the status of a response and its headers about origins. */
async function ask(host: HostProcess, path: string, { method = 'GET', ...headers }: Record<string, string>) {
  const response = await fetch(`${host.url}${path}`, { method, headers });
  const said = [...response.headers].filter(([name]) => /^(access-control-|vary)/.test(name));
  return { status: response.status, ...Object.fromEntries(said) };
}

const preflight = (origin: string) => ({
  method: 'OPTIONS',
  origin,
  'access-control-request-method': 'PUT',
  'access-control-request-headers': 'authorization,if-match',
});
const granted = { 'access-control-allow-methods': 'PUT', 'access-control-allow-headers': 'authorization,if-match' };

test('the host responds to a preflight before it looks for a function', async () => {
  for (const path of ['/api/order/1', '/api/none', '/admin/functions/monthly']) {
    const allow = { ...granted, 'access-control-allow-origin': APP, vary: 'Origin' };
    expect(await ask(named, path, preflight(APP))).toEqual({ status: 204, ...allow });
    expect(await ask(any, path, preflight(APP))).toEqual({
      status: 204,
      ...granted,
      'access-control-allow-origin': '*',
    });
  }
});

test('every response names the allowed origin, including rejections and failures', async () => {
  for (const [path, status] of [
    ['/api/stream', 200],
    ['/api/nothing', 204],
    ['/api/none', 404],
    ['/api/throws', 500],
  ] as const) {
    const allow = { 'access-control-allow-origin': APP, vary: 'Origin' };
    expect(await ask(named, path, { origin: APP })).toEqual({ status, ...allow });
    expect(await ask(any, path, { origin: APP })).toEqual({ status, 'access-control-allow-origin': '*' });
  }
});

test('a response to an origin that is not allowed has no CORS header, so that browsers block it', async () => {
  for (const origin of [OTHER, `${APP}.evil.example`, 'http://app.contoso.com', 'null']) {
    expect(await ask(named, '/api/order/1', preflight(origin))).toEqual({ status: 204 });
    expect(await ask(named, '/api/order/1', { origin })).toEqual({ status: 200 });
  }
});

test('the host adds Vary to that of a function only if it allows several origins', { tags: ['slow'] }, async () => {
  expect(await ask(named, '/api/varies', { origin: APP })).toMatchObject({ vary: 'Origin, Authorization' });
  const one = await startHost(env, '--cors', APP);
  const allow = { 'access-control-allow-origin': APP };
  expect(await ask(one, '/api/order/1', { origin: APP })).toEqual({ status: 200, ...allow });
  await one.stop();
});

test('a request without an origin, and a host without allowed origins, get no CORS headers', async () => {
  expect(await ask(named, '/api/order/1', {})).toEqual({ status: 200 });
  expect(await ask(named, '/api/order/1', { method: 'OPTIONS', origin: APP })).toMatchObject({ status: 404 });
  expect(await ask(none, '/api/order/1', preflight(APP))).toEqual({ status: 404 });
  expect(await ask(none, '/api/order/1', { origin: APP })).toEqual({ status: 200 });
});
