import pMap from 'p-map';
import { beforeAll, describe, expect, test } from 'vitest';
import { RowkeyError, type Values } from '../../lib/index.ts';
import { faultyHttpClient, slowHttpClient } from '../faulty-http-client.ts';
import { employees } from '../fixtures/model.ts';
import { engineWrite, type Timing } from '../kit/engine.ts';
import { createTurnClock } from '../patient-clock.ts';
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

async function callsOf(act: (engine: World['engine']) => Promise<unknown>): Promise<number> {
  const counting = faultyHttpClient();
  await act(world.engineThrough(counting));
  return counting.calls;
}

interface Outcome {
  /** Undefined if the write succeeded. */
  readonly error: unknown;
  readonly milliseconds: number;
}

async function timed(write: () => Promise<unknown>): Promise<Outcome> {
  // A busy machine delays everything else.
  const clock = createTurnClock();
  const since = clock.now();
  const error = await write().then(
    () => undefined,
    (failure: unknown) => failure,
  );
  clock.stop();
  return { error, milliseconds: clock.now() - since };
}

/** Writes with the `at`-th call delayed. */
function writeSlowly(act: (engine: World['engine']) => Promise<unknown>, at: number): Promise<Outcome> {
  return timed(() => act(world.engineThrough(slowHttpClient(at, TOO_LONG_MS), HASTY)));
}

const WHAT = 'Write, each storage call: slower than the time limit';
const create = (engine: World['engine']) => engineWrite.createEntity(engine, employees, somebody());
const change = async (engine: World['engine']) => {
  const { values } = await engineWrite.createEntity(world.engine, employees, somebody());
  return engineWrite.patchEntity(engine, employees, values, { email: `x${values.email}`, lastName: 'Changed' });
};

const prevented = somebody();
const LATE_MS = 4 * HASTY.commitWithinMs;
const MAX_ATTEMPTS = 40;

/** Creates an employee with the transaction delayed. On a busy machine, the time of a writer may end before the transaction is sent. */
async function createLate(): Promise<{ late: Values; outcome: Outcome }> {
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
    const late = somebody({ department: 'Slow' });
    const client = slowHttpClient('transaction', LATE_MS);
    const outcome = await timed(() => engineWrite.createEntity(world.engineThrough(client, HASTY), employees, late));
    if (client.isReached) return { late, outcome };
  }
  throw new Error('No writer sent its transaction in time.');
}

let late: Values;
let anywhere: readonly Outcome[];
let beforeTransaction: Outcome;
let inTransaction: Outcome;

/** All writes wait for the time limit and for hidden intents concurrently. */
beforeAll(async () => {
  world = await openWorld(import.meta.url);
  const points = [];
  for (const act of [create, change]) {
    const calls = await callsOf(act);
    expect(calls).toBeGreaterThanOrEqual(4);
    points.push(...samplePoints(calls).map((at) => ({ act, at })));
  }
  [anywhere, beforeTransaction, { late, outcome: inTransaction }] = await Promise.all([
    pMap(points, ({ act, at }) => writeSlowly(act, at), { concurrency: 8 }),
    // The second call of a create claims the email.
    writeSlowly((engine) => engineWrite.createEntity(engine, employees, prevented), 2),
    createLate(),
  ]);
  await world.settleInTime();
});

describe('a storage call that takes longer than the time limit of the writer', () => {
  test('ends a write at any point before its intent is visible, and every index agrees', async () => {
    const check = async ({ error, milliseconds }: Outcome) => {
      if (error !== undefined) {
        expect(error).toBeInstanceOf(RowkeyError);
        expect(['busy', 'storage-unavailable']).toContain((error as RowkeyError).code);
      }
      // Starts with the intent; the read and the claims before it have their own limit.
      expect(milliseconds).toBeLessThan(TOO_LONG_MS + HASTY.hideIntentForSeconds * 1_000);
    };
    expect(anywhere.length).toBeGreaterThan(0);
    await countEach(anywhere, check, { what: WHAT });
    await countTried({ what: WHAT, times: 0 }, () => expectIndexesToAgree(world.storage, employees));
  });

  test('before the transaction prevents the transaction', async () => {
    expect(beforeTransaction.error).toMatchObject({ code: 'storage-unavailable' });
    // The reconciler has released the other claim of the refused write, on the employee's number.
    const other = { ...prevented, email: `other-${prevented.email}` };
    const { values } = await engineWrite.createEntity(world.engine, employees, other);
    await world.settleInTime();
    expect(
      (await expectIndexesToAgree(world.storage, employees)).find(
        ({ employeeId }) => employeeId === prevented.employeeId,
      ),
    ).toEqual(values);
  });

  test('is not awaited when it is the transaction', async () => {
    expect(inTransaction.error).toMatchObject({ code: 'storage-unavailable' });
    expect(inTransaction.milliseconds).toBeLessThan(LATE_MS);
    // The transaction arrived anyway, before its intent was visible.
    expect(await expectIndexesToAgree(world.storage, employees)).toContainEqual(late);
  });
});
