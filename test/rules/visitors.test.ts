import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, defineModel, defineOperation, RowkeyError, subject } from '../../lib/index.ts';
import { signToken, startIdentityProvider } from '../../local/instance/identity-provider.ts';
import { PNG } from '../../local/walk/png.ts';
import { openAccessApp } from '../access-app.ts';
import { accessChecks } from '../kit/access.ts';
import { httpDoor } from '../kit/http.ts';

/** Requests without a token, by the role that the model gives them. */

/** What the app publishes. */
const pages = defineEntity('pages', {
  schema: z.object({ pageId: z.string(), title: z.string() }),
  table: 'pages',
  key: { partition: 'pages', row: '{pageId}' },
  attachments: { photo: { container: 'photos', types: ['image/png'], maxBytes: 10_000 } },
  maxAge: 60,
  access: { read: ['visitor', 'user'], write: ['operator', 'visitor'] },
});
/** As `pages`, with rows that some callers may change. */
const tools = defineEntity('tools', {
  schema: z.object({ toolId: z.string(), ownerId: z.string(), name: z.string() }),
  table: 'tools',
  key: { partition: 'tools', row: '{toolId}' },
  maxAge: 60,
  access: { read: ['visitor', 'user'], write: [{ role: 'user', where: { ownerId: subject() } }] },
});
/** As `pages`, with a field that visitors do not see. */
const shops = defineEntity('shops', {
  schema: z.object({ shopId: z.string(), phone: z.string().optional() }),
  table: 'shops',
  key: { partition: 'shops', row: '{shopId}' },
  maxAge: 60,
  access: { read: ['visitor', 'user'], write: ['user'], restricted: { phone: ['user'] } },
});
/** What visitors send, and users read. */
const letters = defineEntity('letters', {
  schema: z.object({ shelf: z.string(), letterId: z.string().default(() => crypto.randomUUID()), text: z.string() }),
  table: 'letters',
  key: { partition: '{shelf}', row: '{letterId}' },
  movable: ['shelf'],
  access: { read: ['user'], write: ['visitor'] },
});
/** Visitors create what is new, and no more. */
const reports = defineEntity('reports', {
  schema: z.object({ reportId: z.string(), state: z.enum(['new', 'done']) }),
  table: 'reports',
  key: { partition: 'reports', row: '{reportId}' },
  access: { read: ['user'], write: ['user', { role: 'visitor', where: { state: 'new' } }] },
});
const limits = [{ role: 'visitor', requests: 1_000, per: 'day' }] as const;
const model = defineModel({
  roles: ['visitor', 'user', 'operator'],
  operatorRole: 'operator',
  signedIn: 'user',
  anyone: 'visitor',
  limits,
  entities: [pages, tools, shops, letters, reports],
  operations: [
    defineOperation('greet', {
      summary: 'Returns who the caller is',
      kind: 'write',
      roles: ['visitor'],
      input: z.strictObject({ code: z.string().optional() }),
      output: z.object({ subject: z.string() }),
    }),
  ],
});

let folder: string;
let provider: Awaited<ReturnType<typeof startIdentityProvider>>;
let app: Awaited<ReturnType<typeof openAccessApp>>;

/** Sends a request, without a token unless `headers` have one. */
const ask = (method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, body?: unknown, headers = {}) =>
  app.ask({}, method, path, body, headers);
async function tokenOf(sub: string, role: readonly string[] = [], now = Date.now()) {
  const { issuer, audience } = provider;
  return { authorization: `Bearer ${await signToken({ folder, issuer, audience, role, claims: { sub }, now })}` };
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rowkey-visitors-'));
  provider = await startIdentityProvider({ folder, port: 0 });
  app = await openAccessApp(import.meta.url, model, {
    authenticate: accessChecks.createAuthenticator(provider, model),
    trustedProxies: 1,
    operations: {
      async greet({ caller, store, input: { code } }) {
        if (code === 'old') throw new RowkeyError('forbidden', 'The invitation has expired.');
        if (code !== undefined) await store.letters.get({ shelf: 'a', letterId: code });
        return { subject: caller.subject };
      },
    },
  });
});
afterAll(async () => {
  await provider.stop();
  await rm(folder, { recursive: true, force: true });
});

describe('a request without a token', () => {
  test('does what its role may do', async () => {
    const page = { pageId: 'p1', title: 'Hello' };
    expect(await ask('POST', 'pages', page)).toMatchObject({ status: 201, body: page });
    expect(await ask('GET', 'pages/p1')).toMatchObject({ status: 200, body: page });
    expect(await ask('GET', 'pages')).toMatchObject({ status: 200, body: { items: [page] } });
    expect(await ask('POST', 'query', { reads: { p1: { entity: 'pages', key: { pageId: 'p1' } } } })).toMatchObject({
      status: 200,
    });
    expect(await ask('PATCH', 'pages/p1', { title: 'Hi' })).toMatchObject({ status: 200 });
    expect((await ask('PUT', 'pages/p1/photo', PNG)).status).toBe(200);
    expect((await ask('GET', 'pages/p1/photo')).status).toBe(200);
    expect(await ask('POST', 'transact', { actions: [{ pages: { delete: { pageId: 'p1' } } }] })).toMatchObject({
      status: 200,
    });
    expect(await ask('POST', 'greet', {})).toMatchObject({ status: 200, body: { subject: '' } });
    // What the app itself refuses, no token would change.
    expect(await ask('POST', 'greet', { code: 'old' })).toMatchObject({
      status: 403,
      body: { detail: 'The invitation has expired.' },
    });
    expect((await ask('POST', 'greet', { code: 'x' })).status).toBe(401);
    expect(await ask('GET', 'me')).toMatchObject({
      status: 200,
      body: { subject: '', roles: ['visitor'], claims: {} },
    });
  });

  test('is asked for a token by everything else', async () => {
    const user = await tokenOf('ann');
    await ask('PUT', 'tools/t1', { toolId: 't1', ownerId: 'ann', name: 'saw' }, user);
    await ask('PUT', 'shops/s1', { shopId: 's1', phone: '1' }, user);
    const { body } = await ask('POST', 'letters', { shelf: 'a', text: 'Hi' });
    const asked = [
      await ask('GET', `letters/a/${body.letterId}`),
      await ask('POST', 'tools', { toolId: 't2', ownerId: '', name: 'saw' }),
      await ask('PATCH', 'tools/t1', { name: 'axe' }),
      await ask('PATCH', 'shops/s1', { phone: '2' }),
      await ask('GET', 'operations/heat'),
      await ask('GET', 'tools/t1?explain=true'),
      await ask('POST', 'greet?explain=true', {}),
      await ask('POST', 'transact', {
        actions: [{ pages: { put: { pageId: 'p', title: '' } } }, { tools: { delete: { toolId: 't1' } } }],
      }),
      await ask('POST', 'pages/p1/photo/grants', {}),
      await ask('POST', 'pages/p1/photo/uploads', { type: 'image/png', bytes: 1 }),
    ];
    expect(
      asked.map(({ status, headers, body: { code, detail } }) => [
        status,
        headers.get('www-authenticate'),
        code,
        detail,
      ]),
    ).toEqual(asked.map(() => [401, 'Bearer', 'unauthenticated', 'A request without a bearer token may not do this.']));
    expect(asked[2]?.body.accepted).toBe('user');
    expect(await ask('GET', 'tools/t1')).toMatchObject({ body: { name: 'saw' } });
    expect((await ask('GET', 'shops/s1')).body).toEqual({ shopId: 's1' });
    const reads = { one: { get: 'letters', key: { shelf: 'a', letterId: body.letterId } } };
    expect((await ask('POST', 'query', { reads })).body).toMatchObject({
      reads: { one: { status: 401, problem: { code: 'unauthenticated' } } },
    });
  });

  test('is asked for a token by the actions of a batch that its rules refuse', async () => {
    const create = (reportId: string, state: string) => ({ create: { reportId, state } });
    const actions = [create('1', 'new'), create('2', 'done')];
    expect((await ask('POST', 'reports/batch', { actions })).body.results).toMatchObject([
      { status: 201 },
      { status: 401, problem: { code: 'unauthenticated' } },
    ]);
  });

  test('gets only the key of what it writes and may not read', async () => {
    const sent = await ask('POST', 'letters', { shelf: 'b', text: 'Hi' });
    expect(Object.keys(sent.body)).toEqual(['shelf', 'letterId']);
  });

  test('may not follow an operation, as every other visitor could', async () => {
    const { body } = await ask('POST', 'letters', { shelf: 'c', text: 'Hi' });
    const moved = await ask('POST', `letters/c/${body.letterId}/move`, { shelf: 'd' });
    expect(moved.status).toBe(202);
    const status = moved.headers.get('location') ?? '';
    expect((await ask('GET', status.replace('/api/', ''))).status).toBe(404);
  });

  test('is in the audit log without a subject', async () => {
    const { body } = await ask('POST', 'letters', { shelf: 'e', text: 'Hi' });
    const operator = await tokenOf('op', ['operator', 'user']);
    const audit = await ask(
      'GET',
      `operations/audit?from=${new Date(Date.now() - 60_000).toISOString()}&to=${new Date(Date.now() + 60_000).toISOString()}`,
      undefined,
      operator,
    );
    expect(audit.text).toContain(body.letterId);
    expect(audit.body.items.find(({ row }: { row: string }) => row === body.letterId)).toMatchObject({ by: '' });
  });
});

test('an expired token is rejected at every route with roles', async () => {
  const expired = await tokenOf('ann', ['operator', 'user', 'visitor'], Date.now() - 86_400_000);
  const routes = httpDoor.createRoutes(model).filter(({ roles }) => roles);
  expect(routes.length).toBeGreaterThan(50);
  for (const { method, path } of routes) {
    const { status, body } = await ask(
      method,
      path.replaceAll(/\{\w+\}/g, 'x'),
      method === 'GET' ? undefined : {},
      expired,
    );
    expect([path, status, body.detail]).toEqual([path, 401, 'The token has expired.']);
  }
});

describe('two visitors with one Idempotency-Key', () => {
  const send = (text: string, key: string) => ask('POST', 'letters', { shelf: 'k', text }, { 'idempotency-key': key });

  test('that is short are refused, as they may have chosen it by chance', async () => {
    const refused = await send('Hi', '1');
    expect(refused).toMatchObject({ status: 400, body: { field: 'Idempotency-Key' } });
    expect(refused.body.accepted).toContain('32 to 200');
    const ann = await tokenOf('ann', ['visitor']);
    expect((await ask('POST', 'letters', { shelf: 'k', text: 'Hi' }, { ...ann, 'idempotency-key': '1' })).status).toBe(
      201,
    );
  });

  test('create a row each, unless one repeats all of what the other sent', async () => {
    const key = crypto.randomUUID();
    const [first, second, again] = [await send('one', key), await send('two', key), await send('one', key)];
    expect([first.status, second.status, again.status]).toEqual([201, 201, 201]);
    expect(second.body.letterId).not.toBe(first.body.letterId);
    expect(again.body.letterId).toBe(first.body.letterId);
  });
});

describe('a response to a visitor', () => {
  const cacheControl = async (path: string, headers = {}) => (await ask('GET', path, undefined, headers)).headers;

  test('may be kept by shared caches only if all readers see the same', async () => {
    const user = await tokenOf('ann');
    await ask('PUT', 'pages/c1', { pageId: 'c1', title: '' });
    await ask('PUT', 'tools/c1', { toolId: 'c1', ownerId: 'ann', name: '' }, user);
    await ask('PUT', 'shops/c1', { shopId: 'c1' }, user);
    const kept = await cacheControl('pages/c1');
    expect(kept.get('cache-control')).toBe('public, max-age=60');
    expect(kept.get('vary')).toContain('Authorization');
    for (const path of ['tools/c1', 'shops/c1'])
      expect((await cacheControl(path)).get('cache-control')).toBe('private, max-age=60');
    expect((await cacheControl('pages/c1', user)).get('cache-control')).toBe('private, max-age=60');
  });
});

test('OpenAPI says which operations need no token', async () => {
  const { body } = await ask('GET', 'openapi.json');
  const securityOf = (path: string, method: string) => body.paths[path][method].security ?? body.security;
  expect(securityOf('/api/pages/{pageId}', 'get')).toEqual([{}, { token: ['user'] }]);
  expect(securityOf('/api/tools', 'post')).toEqual([{ token: ['user'] }]);
  expect(securityOf('/api/pages/{pageId}/photo/grants', 'post')).toEqual([{ token: ['user'] }]);
});
