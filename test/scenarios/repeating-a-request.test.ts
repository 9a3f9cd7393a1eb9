import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { eventually, useProduct } from '../product.ts';
import { somebody } from '../world.ts';

/** A caller without a response repeats its request with the same Idempotency-Key, and the request is executed once. */

const product = useProduct(import.meta.url);
const hr = product.as('hr');
const keyed = (body?: unknown, key: string = randomUUID()) => ({
  ...(body === undefined ? {} : { body }),
  headers: { 'idempotency-key': key },
});

describe('a create that is repeated', () => {
  test('returns the same entity, also after a change, and a conflict to another caller', {
    tags: ['slow'],
  }, async () => {
    const one = somebody();
    const request = keyed(one);
    const first = await hr('POST', '/api/employees', request);
    expect(first.status).toBe(201);
    const again = await eventually(
      () => hr('POST', '/api/employees', request),
      ({ status }) => status !== 503,
    );
    expect(again).toMatchObject({ status: 201, body: one });
    expect(again.headers.get('location')).toBe(first.headers.get('location'));
    const path = first.headers.get('location') ?? '';
    await hr('PATCH', path, { body: { phone: '5' } });
    const later = await eventually(
      () => hr('POST', '/api/employees', request),
      ({ status }) => status !== 503,
    );
    expect(later).toMatchObject({ status: 201, body: { ...one, phone: '5' } });
    const other = (options: object) =>
      eventually(
        () => hr('POST', '/api/employees', options),
        ({ status }) => status !== 503,
      );
    expect((await other({ body: one })).status).toBe(409);
    expect((await other(keyed(one))).status).toBe(409);
    expect((await other(keyed({ ...one, phone: '6' }, request.headers['idempotency-key']))).status).toBe(409);
    const stranger = product.as('hr', 'stranger@contoso.com');
    const theirs = await eventually(
      () => stranger('POST', '/api/employees', request),
      ({ status }) => status !== 503,
    );
    expect(theirs.status).toBe(409);
  });

  test('creates one entity when a part of the key is generated', async () => {
    const request = keyed({ employeeId: '000321', succeeded: true });
    const first = await hr('POST', '/api/logins', request);
    const again = await hr('POST', '/api/logins', request);
    expect(again).toMatchObject({ status: 201, body: first.body });
    expect((await hr('GET', '/api/logins/000321')).body.items).toEqual([first.body]);
    expect((await hr('POST', '/api/logins', keyed(request.body))).body.loginId).not.toBe(first.body.loginId);
  });
});

describe('a batch that is repeated', () => {
  const of = (employeeId: string) => ({ employeeId, succeeded: true });
  const loginsOf = async (employeeId: string) => (await hr('GET', `/api/logins/${employeeId}`)).body.items;

  test.each([false, true])(
    'creates each entity once whose key is generated, of equal actions one each (atomic: %s)',
    { tags: ['slow'] },
    async (atomic) => {
      const id = atomic ? '000331' : '000330';
      const actions = [{ create: of(id) }, { put: of(id) }, { put: of(id) }];
      const request = keyed({ actions, atomic });
      expect((await hr('POST', '/api/logins/batch', request)).status).toBe(200);
      const items = await loginsOf(id);
      expect(items).toHaveLength(3);
      const { results } = (await hr('POST', '/api/logins/batch', request)).body;
      expect(results.map(({ status }: { status: number }) => status)[0]).toBe(201);
      expect(await loginsOf(id)).toEqual(items);
      await hr('POST', '/api/logins/batch', keyed({ actions, atomic }));
      expect(await loginsOf(id)).toHaveLength(6);
    },
  );

  test('recognizes its actions in another batch with the same key, beside new ones', { tags: ['slow'] }, async () => {
    const key = randomUUID();
    const [one, two] = [of('000332'), { ...of('000332'), succeeded: false }];
    await hr(
      'POST',
      '/api/logins/batch',
      keyed({ actions: [{ put: one }, { put: { ...one, address: 'nowhere' } }] }, key),
    );
    const [first] = await loginsOf('000332');
    await hr('POST', '/api/logins/batch', keyed({ actions: [{ put: two }, { put: one }] }, key));
    const items = await loginsOf('000332');
    expect(items).toHaveLength(2);
    expect(items).toContainEqual(first);
  });

  test('rejects an action whose value is deep and long', async () => {
    const value = `[${'['.repeat(10_000)}${']'.repeat(10_000)}${',1'.repeat(150_000)}]`;
    const body = `{"actions":[{"put":{"employeeId":"000333","succeeded":${value}}}]}`;
    const { status, body: sent } = await hr('POST', '/api/logins/batch', keyed(body));
    expect([status, sent.results[0]]).toMatchObject([
      200,
      { status: 400, problem: { field: expect.stringMatching(/^succeeded\.0/) } },
    ]);
  });

  test('returns 201 for what it has created, and the conflict of what it has not', { tags: ['slow'] }, async () => {
    const [mine, theirs] = [somebody(), somebody()];
    await hr('POST', '/api/employees', { body: theirs });
    const request = keyed({ actions: [{ create: mine }, { create: theirs }] });
    const send = () =>
      eventually(
        () => hr('POST', '/api/employees/batch', request),
        ({ body }) => !body.results.some(({ status }: { status: number }) => status === 503),
      );
    for (const { body } of [await send(), await send()])
      expect(body.results).toMatchObject([{ status: 201, etag: expect.any(String) }, { status: 409 }]);
    expect((await hr('POST', '/api/employees/batch', keyed(request.body))).body.results).toMatchObject([
      { status: 409 },
      { status: 409 },
    ]);
  });
});

describe('other requests that are repeated', () => {
  test('increment once, and start one archive operation', { tags: ['slow'] }, async () => {
    const path = '/api/messagehours/000111/2026-11-20/9/increments';
    const add = keyed({ by: 5 });
    expect([(await hr('POST', path, add)).body, (await hr('POST', path, add)).body]).toEqual([
      { count: 5 },
      { count: 5 },
    ]);
    expect((await hr('POST', path, keyed({ by: 5 }))).body).toEqual({ count: 10 });

    const one = somebody();
    const created = await hr('POST', '/api/employees', { body: one });
    const archive = `${created.headers.get('location')}/archive`;
    const request = keyed();
    const first = await hr('POST', archive, request);
    expect(first.status).toBe(202);
    await eventually(
      () => hr('GET', first.headers.get('location') ?? ''),
      ({ body }) => body.status === 'succeeded',
    );
    const again = await hr('POST', archive, request);
    expect(again.status).toBe(202);
    expect(again.headers.get('location')).toBe(first.headers.get('location'));
    expect((await hr('POST', archive, keyed())).status).toBe(404);
  });

  test('require a valid key', async () => {
    for (const key of ['a b', 'x'.repeat(201)])
      expect(await hr('POST', '/api/employees', keyed(somebody(), key))).toMatchObject({
        status: 400,
        body: { field: 'Idempotency-Key' },
      });
  });
});
