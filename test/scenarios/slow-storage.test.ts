import { beforeAll, describe, expect, test } from 'vitest';
import type { Timing } from '../../lib/engine/engine.ts';
import { createEntity, patchEntity } from '../../lib/engine/write/entity-store.ts';
import { RowkeyError } from '../../lib/errors.ts';
import { faultyHttpClient, slowHttpClient } from '../faulty-http-client.ts';
import { employees } from '../fixtures/model.ts';
import { samplePoints } from '../points.ts';
import { countEach, countTried } from '../tried-faults.ts';
import { expectIndexesToAgree, openWorld, somebody, type World } from '../world.ts';

/**
 * A writer gives up before its intent becomes visible, so that a reconciler never judges a transaction that may still
 * commit. A call that outlasts the time of the writer arrives late, and the indexes agree in the end.
 */

/** The minimum time between the end of a writer and the visibility of its intent, with a margin for a busy machine. */
const HASTY: Timing = { commitWithinMs: 2_500, claimForMs: 18_000, hideIntentForSeconds: 20, settleWithinMs: 15_000 };
/** Longer than the time for a commit and shorter than the life of a claim. */
const TOO_LONG_MS = HASTY.commitWithinMs + 500;

let world: World;
beforeAll(async () => {
  world = await openWorld(import.meta.url);
});

async function callsOf(act: (engine: World['engine']) => Promise<unknown>): Promise<number> {
  const counting = faultyHttpClient();
  await act(world.engineThrough(counting));
  return counting.calls;
}

describe('a storage call that takes longer than the time limit of the writer', () => {
  test('ends a write at any point before its intent is visible, and every index agrees', async () => {
    const create = (engine: World['engine']) => createEntity(engine, employees, somebody());
    const change = async (engine: World['engine']) => {
      const { values } = await createEntity(world.engine, employees, somebody());
      return patchEntity(engine, employees, values, { email: `x${values.email}`, lastName: 'Changed' });
    };
    const what = 'Write, each storage call: slower than the time limit';
    for (const act of [create, change]) {
      const calls = await callsOf(act);
      expect(calls).toBeGreaterThanOrEqual(4);
      await countEach(
        samplePoints(calls),
        async (at) => {
          const since = performance.now();
          const error = await act(world.engineThrough(slowHttpClient(at, TOO_LONG_MS), HASTY)).catch(
            (failure: unknown) => failure,
          );
          if (error instanceof Error) {
            expect(error).toBeInstanceOf(RowkeyError);
            expect(['busy', 'storage-unavailable']).toContain((error as RowkeyError).code);
          }
          // Starts with the intent; the read and the claims before it have their own limit.
          expect(performance.now() - since).toBeLessThan(TOO_LONG_MS + HASTY.hideIntentForSeconds * 1_000);
        },
        { what, concurrency: 8 },
      );
    }
    await world.settleInTime();
    await countTried({ what, times: 0 }, () => expectIndexesToAgree(world.storage, employees));
  });

  test('before the transaction prevents the transaction', async () => {
    const one = somebody();
    // The second call of a create claims the email.
    const slow = slowHttpClient(2, TOO_LONG_MS);
    await expect(createEntity(world.engineThrough(slow, HASTY), employees, one)).rejects.toMatchObject({
      code: 'storage-unavailable',
    });
    // The reconciler releases the other claim of the refused write, on the employee's number.
    await world.settleInTime();
    const { values } = await createEntity(world.engine, employees, { ...one, email: `other-${one.email}` });
    await world.settleInTime();
    expect(
      (await expectIndexesToAgree(world.storage, employees)).find(({ employeeId }) => employeeId === one.employeeId),
    ).toEqual(values);
  });

  test('is not awaited when it is the transaction', async () => {
    // The fourth call of a create is its transaction, after the intent and two claims.
    const one = somebody({ department: 'Slow' });
    const lateMs = 4 * HASTY.commitWithinMs;
    const slow = slowHttpClient(4, lateMs);
    const since = performance.now();
    await expect(createEntity(world.engineThrough(slow, HASTY), employees, one)).rejects.toMatchObject({
      code: 'storage-unavailable',
    });
    expect(performance.now() - since).toBeLessThan(lateMs);
    // The transaction arrives anyway, before its intent is visible.
    await world.settleInTime();
    expect(await expectIndexesToAgree(world.storage, employees)).toContainEqual(one);
  });
});
