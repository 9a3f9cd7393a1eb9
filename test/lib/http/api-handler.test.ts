import type { HttpMethod } from '@azure/functions';
import { describe, expect, test } from 'vitest';
import { createApiHandler } from '../../../lib/http/api-handler.ts';
import { RowkeyError } from '../../../lib/index.ts';
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
const byName = testRoute({
  name: 'things-by-name',
  path: 'things/by/{name}',
  handle: async ({ params }) => ({ status: 200, body: { by: params } }),
});
const child = testRoute({
  name: 'things-child',
  path: 'things/{id}/{child}',
  handle: async ({ params }) => ({ status: 200, body: params }),
});
const handler = createApiHandler(() => app, [child, list, create, one, remove, byName]);

async function ask(method: HttpMethod, path: string, from = handler) {
  const request = testRequest({ method, path: encodeURI(path), params: { path } });
  const { status, headers, body } = await from(request, testInvocation().invocation);
  const all = new Headers(headers as ConstructorParameters<typeof Headers>[0]);
  const text = await new Response(body as ConstructorParameters<typeof Response>[0]).text();
  return {
    status,
    allow: all.get('allow'),
    etag: all.get('etag'),
    body: text === '' ? undefined : JSON.parse(text),
  };
}

describe('a request', () => {
  test('may have its method in any case, as the host routes it', async () => {
    const patch = testRoute({ name: 'p', method: 'PATCH', path: 'jobs/{id}', handle: async () => ({ status: 200 }) });
    const both = createApiHandler(() => app, [remove, patch]);
    expect(await ask('patch' as HttpMethod, 'jobs/1', both)).toMatchObject({ status: 200 });
    expect(await ask('Delete' as HttpMethod, 'jobs/1', both)).toMatchObject({ status: 204 });
  });

  test.each([
    ['GET', 'things', 200, ['all']],
    ['POST', 'things', 201, undefined],
    ['GET', 'THINGS/aB', 200, { id: 'aB' }],
    ['GET', 'things/by/x/', 200, { by: { name: 'x' } }],
    ['GET', 'things/__proto__', 200, JSON.parse('{"id":"__proto__"}')],
    ['GET', 'things/a%20b', 200, { id: 'a%20b' }],
    ['DELETE', 'jobs/1', 204, undefined],
  ] as const)('reaches the route of its method and path: %s %s', async (method, path, status, body) => {
    expect(await ask(method, path)).toMatchObject({ status, body });
  });

  test('reaches a literal before a parameter, in any case and in any order of the routes', async () => {
    expect((await ask('GET', 'things/BY/x')).body).toEqual({ by: { name: 'x' } });
    expect((await ask('GET', 'things/b/x')).body).toEqual({ id: 'b', child: 'x' });
  });
});

test.each([
  ['GET', 'things/', 'id'],
  ['GET', 'things/aB/', 'child'],
  ['GET', 'things/by/', 'name'],
] as const)(
  'an empty value is rejected, because another route has the path without it: %s %s',
  async (method, path, field) => {
    expect(await ask(method, path)).toMatchObject({ status: 400, body: { code: 'invalid-input', field } });
  },
);

describe('a path without a route', () => {
  test.each(['', '/', 'thing', 'things/1/2/3', 'things//', '/things', '__proto__', 'things/'.repeat(500), 'jobs'])(
    'is not found: %j',
    async (path) => {
      expect(await ask('GET', path)).toMatchObject({ status: 404, body: { code: 'not-found', field: 'path' } });
    },
  );

  test('is not found with any method', async () => {
    for (const method of ['POST', 'PUT', 'OPTIONS'] as const) expect((await ask(method, 'none')).status).toBe(404);
    expect(await ask('HEAD', 'none')).toMatchObject({ status: 404, body: undefined });
  });
});

describe('a method that the path does not have', () => {
  test.each([
    ['PUT', 'things', 'GET, HEAD, POST, OPTIONS'],
    ['PUT', 'THINGS/', 'GET, HEAD, POST, OPTIONS'],
    ['PATCH', 'things/a', 'GET, HEAD, OPTIONS'],
    ['GET', 'jobs/1', 'DELETE, OPTIONS'],
  ] as const)('is rejected with the methods that it has: %s %s', async (method, path, allow) => {
    const reply = await ask(method, path);
    expect(reply).toMatchObject({ status: 405, allow, body: { code: 'method-not-allowed', accepted: allow } });
  });
});

test.each([
  ['operations/history/things/1', ' The model declares no backup: add backup: { days: 35 } to defineModel.'],
  ['operations/undelete/things', ' The model declares no backup: add backup: { days: 35 } to defineModel.'],
  ['operations/users/block', ' The model does not declare blocksUsers: add blocksUsers: true to defineModel.'],
  ['me/data', ' The model has no entity with ofUser: name the field that has the subject of the user.'],
  ['operations/none', ''],
])('says what the model would have to declare for %s', async (path, hint) => {
  const detail = `No route matches the path.${hint}`;
  for (const method of ['GET', 'POST'] as const) expect((await ask(method, path)).body).toMatchObject({ detail });
  // Another path of a model that has such routes.
  const declared = ['operations/history/other/{id}', 'operations/users/block', 'me/data'];
  const routes = declared.map((each) => testRoute({ name: each, method: 'PUT', path: each, handle: remove.handle }));
  const reply = await ask(
    'DELETE',
    path,
    createApiHandler(() => app, routes),
  );
  expect(reply.body).not.toMatchObject({ detail: expect.stringContaining('The model') });
});

test('OPTIONS returns the methods of the path', async () => {
  expect(await ask('OPTIONS', 'things/x')).toMatchObject({ status: 204, allow: 'GET, HEAD, OPTIONS', body: undefined });
});

describe('HEAD', () => {
  test('returns the status and headers of GET, without the body', async () => {
    expect(await ask('HEAD', 'things/a')).toEqual({ ...(await ask('GET', 'things/a')), body: undefined });
    expect((await ask('HEAD', 'things/a')).etag).toBe('"1"');
  });

  test('is rejected on a path without a GET route, and does not run its method', async () => {
    expect((await ask('HEAD', 'jobs/1')).status).toBe(405);
  });
});

test('reports a wrong setting on every path, even an unknown one', async () => {
  const misconfigured = createApiHandler(() => {
    throw new RowkeyError('wrong-setting', 'TOKEN_ISSUER is not set.');
  }, [list]);
  for (const path of ['things', 'none'])
    expect(await ask('PUT', path, misconfigured)).toMatchObject({ status: 500, body: { code: 'wrong-setting' } });
});
