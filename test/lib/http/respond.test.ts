import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, RowkeyError } from '../../../lib/index.ts';
import { deploy } from '../../fixtures/deploy.ts';
import { type ChangeRecord, engineCore, engineRead } from '../../kit/engine.ts';
import { type App, httpDoor, type Route } from '../../kit/http.ts';
import { respondWith } from '../../respond-with.ts';
import { type TestRequest, type TestRoute, testApp, testInvocation, testRequest, testRoute } from './request.ts';

const app = testApp(import.meta.url);

const ask = (over: TestRoute, request?: TestRequest & { app?: App }) => send(testRoute(over), request);

async function send(route: Route, { app: other = app, ...request }: TestRequest & { app?: App } = {}) {
  const { invocation, logged } = testInvocation();
  const response = await respondWith(() => other, route)(testRequest(request), invocation);
  const headers = new Headers(Object.entries(response.headers ?? {}));
  const { status, body } = response;
  return { status, headers, body: typeof body === 'string' ? JSON.parse(body) : body, logged };
}

const failing = (error: unknown) => ({ handle: () => Promise.reject(error) });

describe('every response', () => {
  test('has headers against caching and MIME sniffing, and its cost', async () => {
    for (const over of [{}, failing(new RowkeyError('not-found', 'Not there.')), failing(new Error('x'))]) {
      const { headers } = await ask(over);
      expect(headers.get('cache-control')).toBe('private, no-cache');
      expect(headers.get('vary')).toBe('Authorization, Origin');
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(headers.get('server-timing')).toBe('storage;dur=0.0;desc="0 transactions"');
      expect(headers.get('access-control-expose-headers')).toContain('ETag');
    }
  });

  test('has a header of the route in place of the default', async () => {
    const { headers } = await ask({ handle: async () => ({ status: 200, headers: { 'cache-control': 'no-store' } }) });
    expect(headers.get('cache-control')).toBe('no-store');
  });

  test('without a body has no content type', async () => {
    const { headers, body } = await ask({ handle: async () => ({ status: 204 }) });
    expect(headers.get('content-type')).toBeNull();
    expect(body).toBeUndefined();
  });
});

describe('an error', () => {
  test.each([
    ['unauthenticated', {}, 401, 'www-authenticate', 'Bearer'],
    ['method-not-allowed', { accepted: 'GET' }, 405, 'allow', 'GET'],
    ['etag-mismatch', { etag: '"1"' }, 412, 'etag', '"1"'],
    ['busy', { retryAfter: 7 }, 503, 'retry-after', '7'],
  ] as const)('%s has its status and header', async (code, fields, status, header, value) => {
    const reply = await ask(failing(new RowkeyError(code, 'No.', fields)));
    expect(reply).toMatchObject({ status, body: { code, status, detail: 'No.' } });
    expect(reply.headers.get('content-type')).toBe('application/problem+json');
    expect(reply.headers.get(header)).toBe(value);
  });

  test('that names a key to the caller is not logged', async () => {
    const error = new RowkeyError('not-found', 'things "…" not found.', { detail: 'things "s3cret" not found.' });
    const { body, logged } = await ask(failing(error));
    expect(body.detail).toBe('things "s3cret" not found.');
    expect(logged.join()).not.toContain('s3cret');
  });

  test.each([
    ['needs-repair', 503],
    ['wrong-setting', 500],
  ] as const)('%s is logged, and its message is not sent', async (code, expected) => {
    const { status, body, logged } = await ask(failing(new RowkeyError(code, 'the table s3cret')));
    expect(status).toBe(expected);
    expect(JSON.stringify(body)).not.toContain('s3cret');
    expect(logged).toEqual(['the table s3cret']);
  });

  test.each([
    ['is named to a caller who may read the whole entity', {}, true],
    ['is not named to a caller who may not read one of its fields', { restricted: { secret: ['hr'] } }, false],
    ['is not named to a caller who may not read the entity', { read: ['hr'] }, false],
  ])('the key of an entity that lost a row %s, and is not logged', async (_, access, isNamed) => {
    const schema = z.object({ team: z.string(), id: z.string(), secret: z.string() });
    const key = { partition: '{team}', row: '{id}' };
    const read = { read: ['reader'], write: ['hr'] };
    const things = defineEntity('things', { schema, table: 'things', key, access: { ...read, ...access } });
    const { things: entity } = deploy(things);
    const error = new engineRead.FurtherRowLost(entity, { partition: 'blue', row: 's3cret' }, ['text']);
    const { status, body, logged } = await ask(failing(error));
    expect(status).toBe(503);
    if (isNamed) expect(body.detail).toContain('the partition key "blue" and the row key "s3cret"');
    else expect(body).toEqual(httpDoor.toProblem(new RowkeyError('needs-repair', 'Else.')));
    expect(logged).toEqual([expect.stringContaining('A further row of an entity of things is lost: text.')]);
    expect(logged.join()).not.toContain('s3cret');
  });

  test('without a code is a 500, whose message is neither sent nor logged', async () => {
    const { status, body, logged } = await ask(failing(new TypeError('of s3cret')));
    expect({ status, code: body.code }).toEqual({ status: 500, code: 'internal' });
    expect(JSON.stringify([body, logged])).not.toContain('s3cret');
    expect(logged[0]).toMatch(/^An unexpected TypeError {5}at /);
  });

  test.each([['a string'], [undefined], [null]])('that is not an Error object is a 500: %j', async (thrown) => {
    expect(await ask(failing(thrown))).toMatchObject({ status: 500, body: { code: 'internal' } });
  });

  const looped: Record<string, unknown> = {};
  looped.self = looped;
  test.each([
    ['a BigInt', { count: 1n }],
    ['an object that contains itself', looped],
  ])('is sent in place of a body that cannot be serialized: %s', async (_, body) => {
    const reply = await ask({ handle: async () => ({ status: 200, body }) });
    expect(reply).toMatchObject({ status: 500, body: { code: 'internal', status: 500 } });
    expect(reply.headers.get('content-type')).toBe('application/problem+json');
    expect(reply.logged[0]).toMatch(/^An unexpected TypeError/);
  });
});

describe('a caller', () => {
  test('without one of the roles is rejected before the query is read', async () => {
    expect(await ask({ roles: ['hr'] }, { path: 'things?unknown=1' })).toMatchObject({
      status: 403,
      body: { accepted: 'hr' },
    });
  });

  test('is not authenticated by a route without roles', async () => {
    const unavailable = testApp(import.meta.url, {
      authenticate: () => Promise.reject(new RowkeyError('unauthenticated', 'No.')),
    });
    expect((await ask({ roles: undefined }, { app: unavailable })).status).toBe(200);
    expect((await ask({}, { app: unavailable })).status).toBe(401);
  });

  test('gets no data while the model does not match what is stored', async () => {
    const refusing = testApp(import.meta.url, {
      ready: () => Promise.reject(new RowkeyError('wrong-setting', 'The model changed.')),
    });
    let calls = 0;
    const handle = async () => {
      calls += 1;
      return { status: 200 };
    };
    expect((await ask({ handle }, { app: refusing })).status).toBe(500);
    expect(calls).toBe(0);
    const health = await send(httpDoor.healthRoute, { app: refusing });
    expect(health).toMatchObject({ status: 500, body: { declaration: 'refused', settings: 'ok' } });
  });
});

describe('a query parameter', () => {
  test.each([
    ['things?nmae=1', 'nmae', 'is unknown'],
    ['things?name=1&name=2', 'name', 'is given more than once'],
    ['things?__proto__=1', '__proto__', 'is unknown'],
    ['things?NAME=1', 'NAME', 'is unknown'],
    ['things?explain=yes', 'explain', 'must be true or false'],
  ])('is rejected in %s', async (path, field, why) => {
    const reply = await ask({ query: { name: 'A name' } }, { path });
    expect(reply).toMatchObject({ status: 400, body: { field, detail: `Query parameter "${field}" ${why}.` } });
  });

  test('that is very long is shortened in the error', async () => {
    const { body } = await ask({}, { path: `things?${'x'.repeat(5_000)}=1` });
    expect(body.field).toHaveLength(100);
    expect(body.detail.length).toBeLessThan(200);
  });

  test('explain is accepted by every route, and no route sees it', async () => {
    const seen: string[] = [];
    const handle: Route['handle'] = async ({ query }) => {
      seen.push(query.toString());
      return { status: 200, body: {} };
    };
    expect((await ask({ handle, query: { name: 'A name' } }, { path: 'things?explain=false&name=a' })).status).toBe(
      200,
    );
    expect((await ask({ handle }, { path: 'things?explain=true' })).body).toEqual({ steps: [], transactions: 0 });
    expect(seen).toEqual(['name=a', '']);
  });
});

describe('a body', () => {
  const echo: TestRoute = {
    method: 'POST',
    requestBody: () => z.unknown(),
    handle: async ({ json, bytes }) => ({ status: 200, body: [await json(), (await bytes()).byteLength] }),
  };
  const post = (body: string, headers: Record<string, string> = {}) =>
    ask(echo, {
      method: 'POST',
      body,
      headers: { 'content-length': String(body.length), 'content-type': 'application/json', ...headers },
    });

  test('is read once, however often a route asks for it', async () => {
    expect((await post('{"a":1}')).body).toEqual([{ a: 1 }, 7]);
  });

  test('of another media type is rejected before it is read', async () => {
    const reply = await post('{}', { 'content-type': 'text/plain', 'content-length': '99999999' });
    expect(reply).toMatchObject({ status: 415, body: { accepted: 'application/json' } });
  });
});

describe('a blob that is gone', () => {
  const counting = (method: Route['method'], goneFor: number) => {
    const attempts: boolean[] = [];
    const route: TestRoute = {
      method,
      handle: async (_, { isLastAttempt }) => {
        attempts.push(isLastAttempt);
        if (attempts.length <= goneFor) throw new engineRead.BlobGone();
        return { status: 200, body: {} };
      },
    };
    return { route, attempts };
  };

  test('makes a read start again, as the row may be stale', async () => {
    const { route, attempts } = counting('GET', 3);
    expect((await ask(route)).status).toBe(200);
    expect(attempts).toEqual([false, false, false, true]);
  });

  test('is lost after the fourth read', async () => {
    const { route, attempts } = counting('GET', 9);
    const { status, body, logged } = await ask(route);
    expect({ status, code: body.code }).toEqual({ status: 503, code: 'needs-repair' });
    expect(attempts).toHaveLength(4);
    expect(logged).toEqual(['things-get: a blob is lost.']);
  });

  test('does not make a write start again', async () => {
    const { route, attempts } = counting('POST', 1);
    expect((await ask(route, { method: 'POST' })).status).toBe(503);
    expect(attempts).toEqual([true]);
  });
});

describe('the audit log', () => {
  const logging = (fails: { append?: boolean; catchUp?: boolean } = {}) => {
    const calls: string[] = [];
    const reject = () => Promise.reject(new RowkeyError('storage-unavailable', 'No.', { retryAfter: 5 }));
    const audited = testApp(import.meta.url, {
      audit: {
        append: async (changes: readonly ChangeRecord[]) => {
          calls.push(`append ${changes.map(({ operation, by }) => `${operation} by ${by}`)}`);
          if (fails.append) await reject();
        },
        catchUp: async () => {
          calls.push('catch up');
          if (fails.catchUp) await reject();
        },
      },
    });
    const change: TestRoute = {
      method: 'POST',
      handle: async (context) => {
        calls.push('handle');
        const address = { table: 'things', partition: 'p', row: 'r' };
        engineCore.noteChange(context.engine, { operation: 'delete', entity: 'things', address });
        return { status: 204 };
      },
    };
    return { calls, send: () => ask(change, { method: 'POST', app: audited }) };
  };

  test('has the change, with its caller, before the response is sent', async () => {
    const { calls, send } = logging();
    const { status, headers } = await send();
    expect(status).toBe(204);
    expect(calls).toEqual(['catch up', 'handle', 'append delete by ann']);
    expect(headers.get('server-timing')).toMatch(/, audit;dur=\d+\.\d;desc="appends, shared"$/);
  });

  test('makes the request fail when the change cannot be recorded', async () => {
    const { send } = logging({ append: true });
    const { status, headers } = await send();
    expect(status).toBe(503);
    expect(headers.get('retry-after')).toBe('5');
  });

  test('prevents a change while earlier changes cannot be recorded', async () => {
    const { calls, send } = logging({ catchUp: true });
    expect((await send()).status).toBe(503);
    expect(calls).toEqual(['catch up']);
  });
});
