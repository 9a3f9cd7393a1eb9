import type { HttpMethod } from '@azure/functions';
import { describe, expect, test } from 'vitest';
import { RowkeyError } from '../../../lib/errors.ts';
import { createHandlers } from '../../../lib/http/other-requests.ts';
import type { Route } from '../../../lib/http/route.ts';
import { testApp, testInvocation, testRequest, testRoute } from './request.ts';

const app = testApp(import.meta.url);
const list = testRoute({ name: 'things-get', path: 'things', handle: async () => ({ status: 200, body: ['all'] }) });
const create = testRoute({
  name: 'things-create',
  method: 'POST',
  path: 'things',
  handle: async () => ({ status: 201 }),
});
const one = testRoute({
  name: 'things-one',
  path: 'things/{id}',
  handle: async ({ params }) => ({ status: 200, headers: { etag: '"1"' }, body: params }),
});
const remove = testRoute({
  name: 'jobs-delete',
  method: 'DELETE',
  path: 'jobs/{id}',
  handle: async () => ({ status: 204 }),
});
const handlers = createHandlers(() => app, [list, create, one, remove]);

async function other(method: HttpMethod, path: string, from = handlers) {
  const request = testRequest({ method, path: encodeURI(path), params: { path } });
  const { status, headers, body } = await from.forOthers(request, testInvocation().invocation);
  return {
    status,
    allow: new Headers(Object.entries(headers ?? {})).get('allow'),
    body: typeof body === 'string' ? JSON.parse(body) : body,
  };
}

async function routed(route: Route, method: HttpMethod, params: Record<string, string> = {}) {
  const request = testRequest({ method, path: route.path, params });
  const { status, headers, body } = await handlers.forRoute(route)(request, testInvocation().invocation);
  return { status, headers: new Headers(Object.entries(headers ?? {})), body };
}

describe('a path without a route', () => {
  test.each(['', '/', 'thing', 'things/1/2', 'things//', '/things', '__proto__', 'things/'.repeat(500), 'jobs'])(
    'is not found: %j',
    async (path) => {
      expect(await other('GET', path)).toMatchObject({ status: 404, body: { code: 'not-found', field: 'path' } });
    },
  );

  test('is not found with any method', async () => {
    for (const method of ['POST', 'PUT', 'OPTIONS'] as const) expect((await other(method, 'none')).status).toBe(404);
    expect(await other('HEAD', 'none')).toMatchObject({ status: 404, body: undefined });
  });
});

describe('a method that the path does not have', () => {
  test.each([
    ['PUT', 'things', 'GET, HEAD, POST, OPTIONS'],
    ['PUT', 'THINGS/', 'GET, HEAD, POST, OPTIONS'],
    ['PATCH', 'things/a', 'GET, HEAD, OPTIONS'],
    ['GET', 'jobs/1', 'DELETE, OPTIONS'],
  ] as const)('is rejected with the methods that it has: %s %s', async (method, path, allow) => {
    const reply = await other(method, path);
    expect(reply).toMatchObject({ status: 405, allow, body: { code: 'method-not-allowed', accepted: allow } });
  });
});

test('OPTIONS returns the methods of the path', async () => {
  expect(await other('OPTIONS', 'things/x')).toEqual({ status: 204, allow: 'GET, HEAD, OPTIONS', body: undefined });
});

describe('HEAD', () => {
  test('returns the status and headers of GET, without the body', async () => {
    const get = await routed(one, 'GET', { id: 'a' });
    const head = await routed(one, 'HEAD', { id: 'a' });
    expect(get.body).toBe('{"id":"a"}');
    expect(head).toMatchObject({ status: 200, body: undefined });
    expect(head.headers.get('etag')).toBe('"1"');
  });

  test('reaches the GET route when the host calls the function of another method', async () => {
    expect((await routed(create, 'HEAD')).status).toBe(200);
  });

  test('is rejected on a path without a GET route, and does not run its method', async () => {
    expect((await routed(remove, 'HEAD', { id: '1' })).status).toBe(405);
  });
});

test('fills a path from its parameters, with an encoded slash and a $ in them', async () => {
  const head = await routed(one, 'HEAD', { id: 'a%2F$1$&' });
  expect(head.status).toBe(200);
});

test('reports a wrong setting on every path, even an unknown one', async () => {
  const misconfigured = createHandlers(() => {
    throw new RowkeyError('wrong-setting', 'TOKEN_ISSUER is not set.');
  }, [list]);
  for (const path of ['things', 'none'])
    expect(await other('PUT', path, misconfigured)).toMatchObject({ status: 503, body: { code: 'wrong-setting' } });
});
