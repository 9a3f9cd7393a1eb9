import { once } from 'node:events';
import { request as send } from 'node:http';
import { text } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import { eventually, useProduct } from '../product.ts';
import { UNDER_FUNC } from '../under-func.ts';
import { somebody } from '../world.ts';

/** The responses to methods, paths and bodies that no route accepts. */

const product = useProduct(import.meta.url);
const hr = product.as('hr');
const reader = product.as('reader');
const nobody = product.as(undefined);

describe('a path or a method without a route', () => {
  test('returns a problem that names the methods of the path', async () => {
    for (const path of ['/api/none', '/api/none/', '/api/employees/a/b/c/d/e?x=1', '/api//', '/api/health/x']) {
      const reply = await nobody('GET', path);
      expect(reply).toMatchObject({ status: 404, body: { type: '/api/problems#not-found', status: 404 } });
      expect(reply.headers.get('content-type')).toBe('application/problem+json');
    }
    for (const [method, path, allow] of [
      ['POST', '/api/health', 'GET, HEAD, OPTIONS'],
      ['GET', '/api/grants', 'POST, OPTIONS'],
      ['PUT', '/API/Employees', 'POST, OPTIONS'],
      ['POST', '/api/employees/Sales/1/', 'GET, HEAD, PUT, PATCH, DELETE, OPTIONS'],
      // `batch` may be a department as well.
      ['PUT', '/api/employees/batch?x=1', 'GET, HEAD, POST, DELETE, OPTIONS'],
    ] as const) {
      const reply = await nobody(method, path);
      expect(reply).toMatchObject({ status: 405, body: { type: '/api/problems#method-not-allowed', accepted: allow } });
      expect(reply.headers.get('allow')).toBe(allow);
    }
  });

  test('names the paths that read an entity to GET of its name', async () => {
    const reply = await nobody('GET', '/api/Employees/');
    const [, paths = ''] = /^Method GET is not supported by this path. To read employees, use (.*)\. They/.exec(
      reply.body.detail,
    ) ?? [reply.body.detail];
    expect(reply.status).toBe(405);
    expect(paths.split(', ')).toEqual(
      expect.arrayContaining([
        '/api/employees/{department}/{employeeId}',
        '/api/employees/{department}',
        '/api/employees/by/emailCompanyWide/{email}',
        '/api/employees/by/lastName/{department}',
      ]),
    );
    expect(paths).not.toMatch(/photo|archive|move|former/);
    expect(reply.body.detail).toMatch(/described in \/api\/openapi\.json\?tag=employees\.$/);
    expect((await nobody('PUT', '/api/employees')).body.detail).toBe('Method PUT is not supported by this path.');
    expect((await nobody('GET', '/api/doorminutes')).body.detail).toMatch(
      /^No route matches the path. To read doorminutes/,
    );
    expect((await nobody('GET', '/api/operations')).body.detail).toBe('No route matches the path.');
    for (const path of ['/api/employees/by/mail/ann', '/api/employees/1/2/3'])
      expect((await nobody('GET', path)).body.detail).toMatch(
        /^No route matches the path. To read employees, use \/api/,
      );
  });

  test('names the entity to a path that begins almost as its name does', async () => {
    for (const method of ['GET', 'POST'] as const)
      for (const path of ['/api/employee', '/api/Employee/Sales/1', '/api/employeeses/1'])
        expect((await nobody(method, path)).body.detail).toBe('No route matches the path. There is employees.');
    expect((await nobody('GET', '/api/em')).body.detail).toBe('No route matches the path.');
  });

  test('returns 404 to TRACE and logs nothing', async () => {
    const before = product.logged.length;
    // The real host returns its home page to a request for / that no function takes.
    for (const path of ['/api/employees/Sales/1', '/console', ...(UNDER_FUNC ? [] : ['/'])]) {
      const [response] = await once(send(new URL(path, product.url), { method: 'TRACE' }).end(), 'response');
      expect([response.statusCode, await text(response)]).toEqual([404, '']);
    }
    expect(product.logged.slice(before).filter((line) => /error|at /.test(line))).toEqual([]);
  });

  test('returns the methods of a path to OPTIONS, and 404 for an unknown path', async () => {
    const reply = await nobody('OPTIONS', '/api/employees/Sales/1');
    expect(reply).toMatchObject({ status: 204, body: '' });
    expect(reply.headers.get('allow')).toBe('GET, HEAD, PUT, PATCH, DELETE, OPTIONS');
    expect((await nobody('OPTIONS', '/api/none')).status).toBe(404);
  });

  test('returns the headers of GET to HEAD, without the body', async () => {
    const one = somebody({ department: 'R&D / Ünïted' });
    const created = await hr('POST', '/api/employees', { body: one });
    const path = created.headers.get('location') ?? '';
    const head = await reader('HEAD', path);
    expect(head).toMatchObject({ status: 200, body: '' });
    const get = await reader('GET', path);
    for (const name of ['etag', 'content-type', 'cache-control', 'vary'])
      expect(head.headers.get(name), name).toBe(get.headers.get(name));
    const etag = head.headers.get('etag') ?? '';
    expect((await reader('HEAD', path, { headers: { 'if-none-match': etag } })).status).toBe(304);
    expect((await nobody('HEAD', path)).status).toBe(401);
    const list = await reader('HEAD', path.slice(0, path.lastIndexOf('/')));
    expect(list.status).toBe(200);
    expect((await reader('HEAD', '/api/employees/None/999999')).status).toBe(404);
    expect((await reader('HEAD', '/api/employees/Sales?unknown=1')).status).toBe(400);
    expect((await nobody('HEAD', '/api/health')).status).toBe(200);
    expect((await nobody('HEAD', '/api/none')).status).toBe(404);
    expect((await nobody('HEAD', '/api/grants')).status).toBe(405);
  });
});

describe('a body', () => {
  test('returns 413 when too large', async () => {
    const body = { lastName: 'x'.repeat(1_100_000) };
    expect(await hr('POST', '/api/departments', { body })).toMatchObject({
      status: 413,
      body: { type: '/api/problems#too-large', accepted: 'at most 1048576 bytes' },
    });
  });

  test('returns 415 for a media type other than JSON, and is read as JSON without one', async () => {
    const body = JSON.stringify({ department: 'Typed' });
    const create = (type: string) => hr('POST', '/api/departments', { body, headers: { 'content-type': type } });
    for (const type of ['text/plain;charset=UTF-8', 'application/x-www-form-urlencoded', 'text/json', 'json'])
      expect(await create(type)).toMatchObject({
        status: 415,
        body: { type: '/api/problems#unsupported-media-type', accepted: 'application/json' },
      });
    const bare = await ask('POST', '/api/departments', { 'content-length': String(body.length) }, body);
    expect(bare.status).toBe(201);
    const path = '/api/departments/Typed';
    for (const type of ['application/json; charset=utf-8', 'Application/JSON', 'application/merge-patch+json']) {
      const patched = await hr('PATCH', path, { body, headers: { 'content-type': type } });
      expect(patched.status, type).toBe(200);
    }
  });

  test('returns 411 without a declared length, because the host delivers it empty', async () => {
    const body = JSON.stringify({ department: 'Chunked' });
    for (const method of ['POST', 'PUT', 'PATCH']) {
      const path = method === 'POST' ? '/api/departments' : '/api/departments/Chunked';
      const chunked = { 'transfer-encoding': 'chunked', 'content-type': 'application/json' };
      const reply = await ask(method, path, chunked, body);
      expect(reply).toMatchObject({ status: 411, body: { type: '/api/problems#length-required' } });
    }
    expect((await reader('GET', '/api/departments/Chunked')).status).toBe(404);
  });
});

test('paths in response headers are ASCII, whatever the keys are', async () => {
  const department = 'Ünïted 🙂';
  const created = await hr('POST', '/api/employees', { body: somebody({ department }) });
  expect(created.status).toBe(201);
  expect(created.headers.get('location')).toMatch(/^\/api\/employees\/%C3%9Cn%C3%AFted%20%F0%9F%99%82\/\d+$/);
  const other = somebody({ department });
  await hr('POST', '/api/employees', { body: other });
  const byEmail = `/api/employees/by/email/${encodeURIComponent(department)}/${other.email}`;
  const found = await eventually(
    () => reader('GET', byEmail),
    ({ status }) => status === 200,
  );
  expect(found.headers.get('content-location')).toMatch(/^\/api\/employees\/%C3%9Cn%C3%AFted%20%F0%9F%99%82\/\d+$/);
  const path = `/api/employees/${encodeURIComponent(department)}`;
  const page = await reader('GET', `${path}?top=1&to=${encodeURIComponent('é')}`);
  expect(page.status).toBe(200);
  const next = /^<([ -~]+)>; rel="next"$/.exec(page.headers.get('link') ?? '')?.[1] ?? '';
  expect((await reader('GET', next)).body.items).toHaveLength(1);
});

/** Sends a request with exactly these headers. */
async function ask(method: string, path: string, headers: Record<string, string>, body: string) {
  const authorization = `Bearer ${await product.token('hr')}`;
  const asked = send(new URL(path, product.url), { method, headers: { authorization, ...headers } });
  asked.end(body);
  const [response] = await once(asked, 'response');
  return { status: response.statusCode, body: JSON.parse(await text(response)) };
}
