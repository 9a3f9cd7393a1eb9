// @module-tag long

import { describe, expect, test, vi } from 'vitest';
import { clientOf, FIELDS, found, json, KEY, lost, PERSON, problem, through, usePausedTime } from './fake-api.ts';

usePausedTime();

describe('retries', () => {
  test('wait as long as Retry-After says, and share one idempotency key', async () => {
    const at: number[] = [];
    const noted = (response: () => Response | Error) => () => {
      at.push(Date.now());
      return response();
    };
    const { client, sent } = clientOf([
      noted(() => problem(503, 'busy', { 'retry-after': '7' })),
      noted(() => problem(429, 'too-many-requests', { 'retry-after': '3' })),
      noted(lost),
      noted(() => json(PERSON, { etag: '"1"' }, 201)),
    ]);
    await through(client.employees.create(PERSON));
    const waits = at.slice(1).map((time, index) => time - Number(at[index]));
    expect(waits[0]).toBeGreaterThanOrEqual(7_000);
    expect(waits[1]).toBeGreaterThanOrEqual(3_000);
    expect(waits[2]).toBeLessThanOrEqual(8_000);
    const keys = new Set(sent.map(({ headers }) => headers['idempotency-key']));
    expect([...keys]).toEqual([expect.stringMatching(/^[\w-]{20,200}$/)]);
  });

  test('are not made if Retry-After is longer than a minute', async () => {
    const { client, calls } = clientOf([problem(429, 'too-many-requests', { 'retry-after': '61' })]);
    await expect(client.employees.create(PERSON)).rejects.toMatchObject({ code: 'too-many-requests', retryAfter: 61 });
    expect(calls.filter(({ path }) => path === '/employees')).toHaveLength(1);
  });

  test('use a new idempotency key for each call, or that of the caller', async () => {
    const created = () => json(PERSON, { etag: '"1"' }, 201);
    const { client, sent } = clientOf([created(), created(), created()]);
    for (const idempotencyKey of [undefined, undefined, 'mine'])
      await client.employees.create(PERSON, idempotencyKey === undefined ? {} : { idempotencyKey });
    const keys = sent.map(({ headers }) => headers['idempotency-key']);
    expect(new Set(keys).size).toBe(3);
    expect(keys[2]).toBe('mine');
  });

  test('end after three, and do not begin if an operator must act', async () => {
    const always = Array.from({ length: 4 }, () => problem(503, 'storage-unavailable', { 'retry-after': '1' }));
    const { client, sent } = clientOf([...always, problem(503, 'needs-repair'), problem(500, 'internal')]);
    await expect(through(client.employees.get(KEY))).rejects.toMatchObject({ code: 'storage-unavailable' });
    expect(sent).toHaveLength(4);
    await expect(through(client.employees.get(KEY))).rejects.toMatchObject({
      code: 'needs-repair',
      retryAfter: undefined,
    });
    await expect(through(client.employees.get(KEY))).rejects.toMatchObject({ code: 'internal' });
    expect(sent).toHaveLength(6);
  });

  test('repeat what a gateway failed, and say that a response is not from the API', async () => {
    const gateway = () => new Response('<html>', { status: 502, headers: { 'content-type': 'text/html' } });
    const { client, sent } = clientOf([gateway(), found(), new Response('<html>', { status: 403 })]);
    expect(await through(client.employees.get(KEY))).toMatchObject({ etag: '"1"' });
    expect(sent).toHaveLength(2);
    await expect(client.employees.get(KEY)).rejects.toMatchObject({ code: 'unexpected-response', status: 403 });
  });

  test('of a write whose reply was lost return success if the entity is as wanted', async () => {
    const mismatch = () => problem(412, 'etag-mismatch');
    const { client, left } = clientOf([
      ...[found('"1"'), lost, mismatch, found('"2"', { phone: '1' })],
      ...[lost, mismatch, found('"3"', { phone: 'another' })],
      ...[lost, () => problem(404, 'not-found')],
    ]);
    await client.employees.get(KEY);
    expect(await through(client.employees.update(KEY, { phone: '1', jobTitle: null }))).toMatchObject({ etag: '"2"' });
    await expect(through(client.employees.update(KEY, { phone: '1' }))).rejects.toMatchObject({
      code: 'etag-mismatch',
      current: { etag: '"3"' },
    });
    await through(client.employees.delete(KEY));
    expect(left()).toBe(0);
  });

  test('of a replace whose reply was lost conflict if the entity has a field that it should not have', async () => {
    const mismatch = problem(412, 'etag-mismatch');
    const { client } = clientOf([found('"1"'), lost, mismatch, found('"2"', { phone: '1' })]);
    await client.employees.get(KEY);
    await expect(through(client.employees.put(KEY, FIELDS))).rejects.toMatchObject({ code: 'etag-mismatch' });
  });

  test('do not hide that nothing was found to delete', async () => {
    const { client } = clientOf([problem(404, 'not-found')]);
    await expect(client.employees.delete(KEY)).rejects.toMatchObject({ code: 'not-found' });
  });
});

test('a grant that has to wait does not keep a read waiting', async () => {
  const limited = problem(429, 'too-many-requests', { 'retry-after': '60' });
  const { client, calls } = clientOf([limited, found(), found()], { direct: ['employees'] });
  expect(await client.employees.get(KEY)).toMatchObject({ etag: '"1"' });
  await client.employees.get(KEY);
  expect(calls.map(({ path, status }) => `${path} ${status}`)).toEqual([
    '/model 200',
    '/grants 429',
    ...['/employees/Sales/000123 200', '/employees/Sales/000123 200'],
  ]);
});

const grant = (token: string) =>
  json(
    {
      url: "https://storage.example/employees(PartitionKey='Sales',RowKey='empid_000123')",
      partition: 'Sales',
      key: KEY,
      fields: ['email'],
      token,
      permissions: 'r',
      expiresAt: new Date(Date.now() + 900_000).toISOString(),
    },
    {},
    201,
  );

test('a grant that storage refused is renewed after a minute', async () => {
  const row = json({ EntityType: 'employees', EntityVersion: 1, email: 'a@example.com' }, { etag: '"1"' });
  const script = [grant('a=1'), problem(404, 'ResourceNotFound'), found(), found(), () => grant('a=2'), row];
  const { client, sent, left } = clientOf(script, { direct: ['employees'] });
  for (const _ of [1, 2]) await client.employees.get(KEY);
  vi.setSystemTime(Date.now() + 60_001);
  await client.employees.get(KEY);
  const grants = sent.filter(({ url }) => url.endsWith('/grants')).map(({ body }) => body);
  const body = { entity: 'employees', scope: 'own', permissions: 'r' };
  expect(grants).toEqual([body, { ...body, renew: true }]);
  expect([sent.at(-1)?.url.includes('a=2'), left()]).toEqual([true, 0]);
});

test('a row that an account has as it was before a move is read through the API, with a new grant later', async () => {
  const row = (etag: string) => json({ EntityType: 'employees', EntityVersion: 1, email: 'a@example.com' }, { etag });
  const { client, sent, left } = clientOf(
    [
      ...[() => grant('a=1'), row('"1"'), problem(412, 'etag-mismatch'), found('"2"')],
      ...[row('"1"'), found('"2"'), found('"3"')],
      ...[() => grant('a=2'), row('"3"')],
    ],
    { direct: ['employees'] },
  );
  await client.employees.get(KEY);
  await expect(client.employees.update(KEY, { phone: '1' })).rejects.toMatchObject({ code: 'etag-mismatch' });
  expect(await client.employees.get(KEY)).toMatchObject({ etag: '"2"' });
  expect(await client.employees.update(KEY, { phone: '1' })).toMatchObject({ etag: '"3"' });
  expect(sent.at(-1)?.headers['if-match']).toBe('"2"');
  vi.setSystemTime(Date.now() + 60_001);
  expect(await client.employees.get(KEY)).toMatchObject({ etag: '"3"' });
  expect([sent.at(-1)?.url.includes('a=2'), left()]).toEqual([true, 0]);
});

describe('no network', () => {
  test('is an error that says so, after the retries', async () => {
    const { client, sent } = clientOf([lost, lost, lost, lost]);
    await expect(through(client.employees.update(KEY, {}))).rejects.toMatchObject({
      ...{ code: 'network', status: 0, entity: 'employees' },
      message: 'PATCH /employees/Sales/000123 got no response. The change may have been made.',
    });
    expect(sent).toHaveLength(4);
  });

  test('that the device knows of is an error at once', async () => {
    const { client, sent } = clientOf([found()]);
    await client.employees.get(KEY);
    vi.stubGlobal('navigator', { onLine: false });
    await expect(client.employees.get(KEY)).rejects.toMatchObject({ code: 'offline' });
    expect(sent).toHaveLength(1);
  });
});

describe('signals', () => {
  test('end a call that waits for a retry', async () => {
    const stop = new AbortController();
    const { client, sent } = clientOf([problem(503, 'busy', { 'retry-after': '60' })]);
    const call = client.employees.get(KEY, { signal: stop.signal });
    const ended = expect(call).rejects.toThrow('enough');
    await vi.advanceTimersByTimeAsync(1_000);
    stop.abort(new Error('enough'));
    await ended;
    expect(sent).toHaveLength(1);
  });

  test('that are aborted send nothing', async () => {
    const { client, sent } = clientOf([]);
    const page = client.employees
      .range({ department: 'Sales' }, { signal: AbortSignal.abort(new Error('enough')) })
      .page();
    await expect(page).rejects.toThrow('enough');
    expect(sent).toEqual([]);
  });
});
