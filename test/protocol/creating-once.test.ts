import { randomUUID } from 'node:crypto';
import { expect, test, vi } from 'vitest';
import type { Values } from '../../lib/index.ts';
import { costOf } from '../cost-of.ts';
import { tryFaults } from '../fault-driver.ts';
import { employees, logins } from '../fixtures/model.ts';
import type { Entity } from '../kit/define.ts';
import { engineWrite } from '../kit/engine.ts';
import { storageTables } from '../kit/storage.ts';
import { PATIENCE_MS } from '../patience.ts';
import { countTried } from '../tried-faults.ts';
import { expectIndexesToAgree, openWorld, QUICK, rowsOf, somebody } from '../world.ts';

/** A create with a request id happens once, whatever happened to its first attempt. */

const world = await openWorld(import.meta.url);

test('costs no extra transaction the first time', async () => {
  await engineWrite.createOnce(world.engine, employees, somebody({ department: 'Cheap' }), randomUUID());
  const transactions = await costOf(() =>
    engineWrite.createOnce(world.engine, employees, somebody({ department: 'Cheap' }), randomUUID()),
  );
  expect(transactions).toBe(10);
});

test('costs three transactions less while the claim of an earlier conflict waits for the queue', async () => {
  const one = somebody();
  await engineWrite.createOnce(world.engine, employees, one, randomUUID());
  // The first conflict claims the entity's row of the unique index and leaves its release to the queue. Until then, the next
  // one neither claims the row nor hands its own work over.
  const conflict = () =>
    costOf(() =>
      expect(engineWrite.createOnce(world.engine, employees, one, randomUUID())).rejects.toMatchObject({
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
])(
  '%s is created once, after any fault of the first attempt at any call',
  { tags: ['slow'] },
  async (_, entity, make) => {
    const what = 'Create repeated after a fault at each storage call of the first attempt';
    await tryFaults(
      async ({ fault, label, client }) => {
        const [input, id] = [make(), randomUUID()];
        const unlucky = world.engineThrough(client, fault && QUICK);
        const first = engineWrite.createOnce(unlucky, entity, input, id).catch(() => undefined);
        // The run that counts has no other request beside the first.
        if (!fault) await first;
        const second = () => engineWrite.createOnce(world.engine, entity, input, id);
        // Concurrently with the first request, and then until it is no longer busy: the claim of a dead process holds
        // for a while.
        await Promise.all([first, second().catch(() => undefined)]);
        await vi.waitFor(() => expect(second(), label).resolves.toBeDefined(), { timeout: PATIENCE_MS, interval: 50 });
        const tables = entity.period ? await storageTables.listTables(world.storage, entity.table) : [entity.table];
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
  },
);
