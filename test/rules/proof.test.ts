import fc from 'fast-check';
import { expect, test } from 'vitest';
import { openAccessApp } from '../access-app.ts';
import { defineKeys } from '../kit/define.ts';
import { operationsModel, operationsMove } from '../kit/operations.ts';
import { storageSlots } from '../kit/storage.ts';
import { createAccounts } from '../lib/storage/several-accounts.ts';
import { IS_EVERY_POINT } from '../points.ts';
import { define } from './proof-model.ts';
import { Reads } from './proof-reads.ts';
import { Transfers } from './proof-transfers.ts';
import { World } from './proof-world.ts';
import { Writes } from './proof-writes.ts';
import { movableOf, plans, plansToChange, plansToMove } from './random-model.ts';
import { callers as anyCaller, anyWrite, beginnings, type Step, steps } from './random-requests.ts';

/** The decisions to compare: of a caller, an action and a row. A model has some hundreds. */
const DECISIONS = Number(process.env.RULES_DECISIONS ?? (IS_EVERY_POINT ? 50_000 : 2_000));
/** Of which slots move meanwhile. Each takes some seconds. */
const MOVED_MODELS = IS_EVERY_POINT ? 20 : 1;
/** The same cases in each run; `npm run rules-proof` with another seed searches for new ones. */
const SEED = Number(process.env.RULES_SEED ?? 1);

interface Sent {
  readonly sentReads: Reads;
  readonly sentWrites: Writes;
}

async function take(world: World, { sentReads, sentWrites }: Sent, { callers, reads, writes }: Step): Promise<void> {
  for (const [at, caller] of callers.entries()) {
    await sentReads.query(caller, reads);
    const read = reads[at];
    if (!read) continue;
    await sentReads.get(caller, read);
    await sentReads.total(caller, read);
    if (at < 2) await sentReads.why(caller, read);
    if (at < 1) await sentReads.pages(caller, read);
    if (at < 3) await sentReads.mine(caller, read.kind);
  }
  for (const [at, write] of writes.entries()) {
    const caller = callers[at];
    if (caller) await sentWrites.write(caller, write);
  }
  await world.check();
}

const stats = { cases: 0, decisions: 0, models: 0, refused: 0 };

test('callers see and do what the rules say, whatever the model, the token and the request', {
  tags: ['slow'],
  timeout: 7_200_000,
}, async () => {
  const since = Date.now();
  const tell = () =>
    process.env.RULES_DECISIONS && console.log(JSON.stringify({ ...stats, seconds: (Date.now() - since) / 1_000 }));
  await fc.assert(
    fc.asyncProperty(plans, beginnings, steps(6), async (plan, beginning, some) => {
      const defined = define(plan);
      if (!defined) stats.refused += 1;
      if (!defined || stats.decisions >= DECISIONS) return;
      const app = await openAccessApp(import.meta.url, defined.model, { settleInline: 10_000 });
      const world = new World(defined.plan, app, defined.model);
      const sentReads = new Reads(world);
      const sentWrites = new Writes(world);
      await world.begin(beginning);
      for (const step of some) await take(world, { sentReads, sentWrites }, step);
      const [last] = some;
      const [caller] = last?.callers ?? [];
      if (last && caller) await sentReads.hide(caller, last.reads);
      stats.cases += world.cases;
      stats.decisions += world.decisions;
      stats.models += 1;
      if (stats.models % 50 === 0) tell();
    }),
    {
      seed: SEED,
      ...(process.env.RULES_PATH ? { path: process.env.RULES_PATH } : {}),
      numRuns: Math.ceil(DECISIONS / 250),
      endOnFailure: process.env.RULES_SHRINK === undefined,
    },
  );
  tell();
  expect(stats.models).toBeGreaterThan(0);
});

test('archives and moves take what the rules allow when they run, with the children that may go along', {
  tags: ['slow'],
  timeout: 7_200_000,
}, async () => {
  const transferred = { models: 0, done: 0, refused: 0 };
  await fc.assert(
    fc.asyncProperty(
      plansToMove,
      beginnings,
      fc.array(fc.tuple(anyCaller, fc.constantFrom('move', 'move', 'archive'), anyWrite), {
        minLength: 16,
        maxLength: 16,
      }),
      async (plan, beginning, some) => {
        const defined = define(plan);
        if (!defined) return;
        const app = await openAccessApp(import.meta.url, defined.model, { settleInline: 10_000 });
        const world = new World(defined.plan, app, defined.model);
        const transfers = new Transfers(world);
        await world.begin(beginning);
        for (const [caller, kind, write] of some)
          if (kind === 'archive' || movableOf(plan).length > 0) await transfers.transfer(caller, kind, write);
        await world.check();
        transferred.models += 1;
        transferred.done += transfers.done;
        transferred.refused += transfers.refused;
      },
    ),
    { seed: SEED, numRuns: Math.ceil(DECISIONS / 250), endOnFailure: process.env.RULES_SHRINK === undefined },
  );
  if (process.env.RULES_DECISIONS) console.log(JSON.stringify(transferred));
  expect(transferred.done).toBeGreaterThan(0);
  expect(transferred.refused).toBeGreaterThan(0);
});

test('updates make the transitions that the rules allow, and a repetition of one changes nothing', {
  tags: ['slow'],
  timeout: 7_200_000,
}, async () => {
  const changed = { models: 0, repeated: 0, made: 0 };
  const changes = fc.tuple(anyCaller, fc.constantFrom('put', 'patch', 'patch'), anyWrite);
  await fc.assert(
    fc.asyncProperty(
      plansToChange,
      beginnings,
      fc.array(changes, { minLength: 24, maxLength: 24 }),
      async (plan, beginning, some) => {
        const defined = define(plan);
        if (!defined) return;
        const app = await openAccessApp(import.meta.url, defined.model, { settleInline: 10_000 });
        const world = new World(defined.plan, app, defined.model);
        const writes = new Writes(world);
        await world.begin(beginning);
        for (const [caller, write, other] of some)
          await writes.write(caller, { ...other, write, kind: 'tasks', isAtomic: true });
        await world.check();
        changed.models += 1;
        changed.repeated += writes.repeated;
        changed.made += writes.made;
      },
    ),
    { seed: SEED, numRuns: Math.ceil(DECISIONS / 250), endOnFailure: process.env.RULES_SHRINK === undefined },
  );
  if (process.env.RULES_DECISIONS) console.log(JSON.stringify(changed));
  expect(changed.repeated).toBeGreaterThan(0);
  expect(changed.made).toBeGreaterThan(0);
});

/** Accounts in memory execute no request late. A busy machine renews a hold late. */
const MOVING = { ...operationsMove.MOVE_TIMING, lateMs: 1_000, holdMs: 60_000, keepMs: 0 };

test('callers see and do what the rules say on three accounts, while slots move', {
  tags: ['slow'],
  timeout: 7_200_000,
}, async () => {
  let [rows, models] = [0, 0];
  // A row that moves gets another ETag.
  const isUnconditional = (step: Step): Step => ({
    ...step,
    reads: step.reads.map((read) => ({ ...read, etag: false })),
    writes: step.writes.map((write) => ({ ...write, condition: 'none' })),
  });
  await fc.assert(
    fc.asyncProperty(plansToMove, beginnings, steps(6), async (plan, beginning, some) => {
      const defined = define(plan);
      if (!defined || models >= MOVED_MODELS) return;
      models += 1;
      const { open } = createAccounts();
      const app = await openAccessApp(import.meta.url, defined.model, { storage: open(), settleInline: 10_000 });
      const world = new World(defined.plan, app, defined.model);
      const [sentReads, sentWrites] = [new Reads(world), new Writes(world)];
      await world.begin(beginning);
      const given = {
        timing: MOVING,
        resources: operationsModel.resourcesOf(defined.model.list, Date.now(), defined.model),
      };
      const slots = [
        ...new Set(
          beginning.tasks.map((task) =>
            storageSlots.slotOf(defineKeys.buildKey(world.entityOf('tasks').partition, task)),
          ),
        ),
      ];
      const mover = { isOver: false };
      const move = async () => {
        for (const to of ['second', 'first'])
          rows += (await operationsMove.moveSlots(open(), [{ slots, to }], given)).rows;
      };
      const moving = move().finally(() => {
        mover.isOver = true;
      });
      const walk = async () => {
        for (let at = 0; at < some.length || !mover.isOver; at += 1) {
          const step = some[at % some.length];
          if (step) await take(world, { sentReads, sentWrites }, isUnconditional(step));
        }
      };
      await Promise.all([moving, walk()]);
    }),
    { seed: SEED, numRuns: 4 * MOVED_MODELS, endOnFailure: process.env.RULES_SHRINK === undefined },
  );
  expect([models, rows > 0]).toEqual([MOVED_MODELS, true]);
});
