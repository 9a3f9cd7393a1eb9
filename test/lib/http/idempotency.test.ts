import { describe, expect, test } from 'vitest';
import { httpDoor, type RequestContext } from '../../kit/http.ts';
import { testApp, testContext, testRoute } from './request.ts';

const app = testApp(import.meta.url);

interface Repeated {
  readonly key?: string | undefined;
  readonly subject?: string;
  readonly route?: string;
  readonly params?: Record<string, string>;
  readonly body?: string;
}

function idOf({ key = 'k', subject = 'ann', route = 'things-create', params = {}, body = '{}' }: Repeated = {}) {
  const over: Partial<RequestContext> = {
    caller: { subject, roles: [], claims: {} },
    params,
    route: testRoute({ name: route }),
    headers: { get: (name) => (name === 'idempotency-key' ? key : null) },
    bytes: async () => new TextEncoder().encode(body),
  };
  return httpDoor.readRequestId(testContext(app, over));
}

describe('the id of a request', () => {
  test('is a UUID that a repetition of the request has too', async () => {
    const id = await idOf();
    expect(id).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    expect(await idOf()).toBe(id);
  });

  test('differs for another key, caller, route, path or body', async () => {
    const variants: Repeated[] = [
      {},
      { key: 'K' },
      { subject: 'bob' },
      { route: 'orders-create' },
      { params: { id: '1' } },
      { params: { id: '2' } },
      { body: '{ }' },
    ];
    const ids = await Promise.all(variants.map(idOf));
    expect(new Set(ids).size).toBe(variants.length);
  });

  test('differs where the parts are equal only when joined', async () => {
    expect(await idOf({ subject: 'a', route: 'bc' })).not.toBe(await idOf({ subject: 'ab', route: 'c' }));
    expect(await idOf({ key: 'k', body: 'xy' })).not.toBe(await idOf({ key: 'kx', body: 'y' }));
  });

  test('is undefined without the header, and then the body is not read', async () => {
    const bytes = async () => {
      throw new Error('The body is read.');
    };
    expect(await httpDoor.readRequestId(testContext(app, { bytes }))).toBeUndefined();
  });

  test('accepts a key of 200 printable characters', async () => {
    expect(await idOf({ key: '~'.repeat(200) })).toBeDefined();
  });

  test.each(['', ' ', 'a b', 'a\t', 'a\0b', 'é', 'a\n', '~'.repeat(201)])('rejects the key %j', async (key) => {
    await expect(idOf({ key })).rejects.toMatchObject({
      code: 'invalid-input',
      field: 'Idempotency-Key',
    });
  });
});
