import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Values } from '../../lib/base/values.ts';
import type { Entity } from '../../lib/define/declaration/entity.ts';
import { createOnce } from '../../lib/engine/write/entity-store.ts';
import { listTables } from '../../lib/storage/provision.ts';
import { costOf } from '../cost-of.ts';
import { tryFaults } from '../fault-driver.ts';
import { employees, logins } from '../fixtures/model.ts';
import { eventually, useProduct } from '../product.ts';
import { countTried } from '../tried-faults.ts';
import { expectIndexesToAgree, openWorld, QUICK, rowsOf, somebody, type World } from '../world.ts';

/** A caller without a response repeats its request with the same Idempotency-Key, and the request is executed once. */

const product = useProduct(import.meta.url);
const hr = product.as('hr');
let world: World;
beforeAll(async () => {
  world = await openWorld(import.meta.url);
});
const keyed = (body?: unknown, key: string = randomUUID()) => ({
  ...(body === undefined ? {} : { body }),
  headers: { 'idempotency-key': key },
});

describe('a create that is repeated', () => {
  test('returns the same entity, also after a change, and a conflict to another caller', async () => {
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

  test('costs no extra transaction the first time', async () => {
    await createOnce(world.engine, employees, somebody({ department: 'Cheap' }), randomUUID());
    const transactions = await costOf(() =>
      createOnce(world.engine, employees, somebody({ department: 'Cheap' }), randomUUID()),
    );
    expect(transactions).toBe(10);
  });

  test('costs three transactions less while the claim of an earlier conflict waits for the queue', async () => {
    const one = somebody();
    await createOnce(world.engine, employees, one, randomUUID());
    // The first conflict claims the entity's row of the unique index and leaves its release to the queue. Until then, the next
    // one neither claims the row nor hands its own work over.
    const conflict = () =>
      costOf(() =>
        expect(createOnce(world.engine, employees, one, randomUUID())).rejects.toMatchObject({
          code: 'duplicate-key',
        }),
      );
    expect([await conflict(), await conflict()]).toEqual([11, 8]);
    await world.settle();
    expect(await conflict()).toBe(11);
  });

  test.each<[string, Entity, () => Values]>([
    ['with its whole key', employees, () => somebody()],
    ['with a part that is made up', logins, () => ({ employeeId: somebody().employeeId, succeeded: true })],
  ])('%s is created once, after any fault of the first attempt at any call', async (_, entity, make) => {
    const what = 'Create repeated after a fault at each storage call of the first attempt';
    await tryFaults(
      async ({ fault, label, client }) => {
        const [input, id] = [make(), randomUUID()];
        const unlucky = world.engineThrough(client, fault && QUICK);
        const first = createOnce(unlucky, entity, input, id).catch(() => undefined);
        // The run that counts has no other request beside the first.
        if (!fault) await first;
        const second = () => createOnce(world.engine, entity, input, id);
        // Concurrently with the first request, and then until it is no longer busy: the claim of a dead process holds
        // for a while.
        await Promise.all([first, second().catch(() => undefined)]);
        const done = await eventually(
          async () => ({
            status: 200,
            headers: new Headers(),
            body: await second().catch((error) => ({ error: error.code })),
          }),
          ({ body }) => body.error !== 'busy',
        );
        expect(done.body.error, label).toBeUndefined();
        const tables = entity.period ? await listTables(world.storage, entity.table) : [entity.table];
        const rows = (await Promise.all(tables.map((table) => rowsOf(world.storage, table)))).flat();
        const mine = rows.filter(
          (row) => row.EntityType === entity.name && row.SourceRow === undefined && row.employeeId === input.employeeId,
        );
        expect(mine).toHaveLength(1);
      },
      { what, concurrency: 12 },
    );
    await world.settle();
    await countTried({ what, times: 0 }, () => expectIndexesToAgree(world.storage, employees));
  });
});

describe('other requests that are repeated', () => {
  test('increment once, and start one archive operation', async () => {
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
