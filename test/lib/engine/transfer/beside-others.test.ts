import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, interPartitionIndex, type Values } from '../../../../lib/index.ts';
import { IS_EVERY_CALL, outcomeOf, SMALL, tryFaults, tryInterruptions } from '../../../fault-driver.ts';
import { faultyHttpClient } from '../../../faulty-http-client.ts';
import { deploy } from '../../../fixtures/deploy.ts';
import type { Entity } from '../../../kit/define.ts';
import { type Engine, engineTransfer, engineWrite, type Transfer } from '../../../kit/engine.ts';
import { expectIndexesToAgree, laterBy, openWorld, QUICK } from '../../../world.ts';

/**
 * Archives and moves of one small entity, beside whatever else may happen to it, before each storage call of the operation.
 * archiving-and-moving.test.ts has entities with more features.
 */

const cups = deploy(
  defineEntity('cups', {
    schema: z.object({
      shelf: z.string(),
      cupId: z.string(),
      code: z.string(),
      spot: z.string(),
      note: z.string().optional(),
    }),
    table: 'cups',
    key: { partition: '{shelf}', row: 'c_{cupId}' },
    indexes: {
      code: interPartitionIndex({ table: 'cupsbycode', partition: 'c', row: '{code}', unique: true }),
      spot: interPartitionIndex({ table: 'cupsbyspot', partition: '{shelf}', row: '{spot}', unique: true }),
    },
    archive: { table: 'oldcups' },
    movable: ['shelf'],
    access: { read: [], write: [] },
  }),
).cups as Entity;
const old = cups.archive as Entity;
const world = await openWorld(import.meta.url, [cups]);
/** Its claims are over for the others at once, as those of a process that has died. */
const later = (of: Engine): Engine => laterBy(of, () => 2 * of.timing.claimForMs);
const engine = later(world.engine);
const handle = (transfer: Transfer, by: Engine = engine) => engineTransfer.runTransfer(by, cups, transfer);

/** A crash before a call is one after the call before it. */
const CRASH = ['crash after'] as const;

type Operation = 'archive' | 'move';
let made = 0;

/** A cup whose operation has been requested. */
async function begin(operation: Operation) {
  made += 1;
  const key = { shelf: 'a', cupId: String(made) };
  const cup: Values = { ...key, code: `code${made}`, spot: `spot${made}` };
  await engineWrite.createEntity(world.engine, cups, cup);
  const isMove = operation === 'move';
  const operationId = await (isMove
    ? engineTransfer.requestMove(engine, cups, key, { shelf: 'b' })
    : engineTransfer.requestArchive(engine, cups, key));
  const transfer = (await world.take('transfers', operationId)).body as Transfer;
  const [destination, there] = isMove ? [cups, { ...cup, shelf: 'b' }] : [old, cup];
  const arrivedKey = { ...key, shelf: there.shelf };
  return { operation, operationId, transfer, key, cup, destination, there, arrivedKey };
}
type Begun = Awaited<ReturnType<typeof begin>>;

/** How an operation has ended, and the entities with the id of its cup. */
interface Ended {
  readonly status: string;
  readonly reason?: unknown;
  readonly left: readonly (readonly [Entity, Values])[];
}

/** All rows that the operations have left are those that follow from these entities. */
async function expectEnded(ends: ReadonlyMap<Begun, Ended>): Promise<void> {
  await world.settle();
  const here = Map.groupBy(await expectIndexesToAgree(world.storage, cups), ({ cupId }) => cupId);
  const archived = Map.groupBy(await expectIndexesToAgree(world.storage, old), ({ cupId }) => cupId);
  const byShelf = (all: readonly Values[] = []) =>
    all.toSorted((one, two) => (String(one.shelf) < String(two.shelf) ? -1 : 1));
  for (const [begun, { status, reason, left }] of ends) {
    const { operation, operationId, cup } = begun;
    const found = await engineWrite.readOperation(engine, { operation, operationId, entity: 'cups' });
    expect({ status: found.status, reason: found.reason, cupId: cup.cupId }).toEqual({
      status,
      reason,
      cupId: cup.cupId,
    });
    const of = (kind: Entity) => left.flatMap(([entity, values]) => (entity === kind ? [values] : []));
    expect(byShelf(here.get(cup.cupId))).toEqual(byShelf(of(cups)));
    expect(archived.get(cup.cupId) ?? []).toEqual(of(old));
  }
}

const done = ({ destination, there }: Begun): Ended => ({ status: 'succeeded', left: [[destination, there]] });
const GONE = 'The entity was deleted, or its key changed, before the operation ran.';
const TAKEN = 'Another entity has this key at the destination.';

/** Runs an operation once for each of its storage calls, each on another cup, while something happens to the cup. */
async function during(
  operation: Operation,
  expected: readonly string[],
  happen: (begun: Begun) => Promise<unknown>,
  endOf: (begun: Begun, outcome: string) => Ended,
): Promise<void> {
  const ends = new Map<Begun, Ended>();
  const outcomes = new Set<string>();
  const set = async () => {
    const begun = await begin(operation);
    return {
      act: (through: Engine) => handle(begun.transfer, later(through)),
      async interrupt() {
        const outcome = await outcomeOf(happen(begun));
        outcomes.add(outcome);
        ends.set(begun, endOf(begun, outcome));
      },
      // Late duplicates of the message.
      check: async () => {
        for (const _ of [1, 2]) await handle(begun.transfer);
      },
    };
  };
  await tryInterruptions(world, set, { sides: ['before'], ...SMALL });
  await expectEnded(ends);
  if (IS_EVERY_CALL) expect(outcomes).toEqual(new Set(expected));
}

describe.each(['archive', 'move'] as const)('the %s of an entity', (operation) => {
  test('ends after a crash at any call', async () => {
    const ends = new Map<Begun, Ended>();
    const options = { faults: CRASH, ...SMALL };
    await tryFaults(async ({ client, timing }) => {
      const begun = await begin(operation);
      await outcomeOf(handle(begun.transfer, later(world.engineThrough(client, timing))));
      for (const _ of [1, 2]) await handle(begun.transfer);
      ends.set(begun, done(begun));
    }, options);
    await expectEnded(ends);
  });

  test('is done once if another process handles its message meanwhile', async () => {
    await during(operation, ['done'], ({ transfer }) => handle(transfer), done);
  });

  test('takes along what a caller changes before it leaves', async () => {
    const changed = ({ cup }: Begun) => ({ note: 'changed', code: `${cup.code}b` });
    await during(
      operation,
      ['done', 'not-found'],
      (begun) => engineWrite.patchEntity(engine, cups, begun.key, changed(begun)),
      (begun, outcome) => {
        const change = outcome === 'done' ? changed(begun) : {};
        return { status: 'succeeded', left: [[begun.destination, { ...begun.there, ...change }]] };
      },
    );
  });

  test('takes along a change of a unique value that another entity takes over at once', async () => {
    const isMove = operation === 'move';
    const changed = ({ cup }: Begun) => ({ code: `${cup.code}b` });
    const other = ({ cup }: Begun) => ({ ...cup, shelf: 'c' });
    const patched = new Set<Begun>();
    await during(
      operation,
      isMove ? ['done', 'not-found', 'duplicate-value'] : ['done', 'not-found'],
      async (begun) => {
        await engineWrite.patchEntity(engine, cups, begun.key, changed(begun));
        patched.add(begun);
        await engineWrite.createEntity(engine, cups, other(begun));
      },
      (begun, outcome) => {
        const change = patched.has(begun) ? changed(begun) : {};
        const left = [[begun.destination, { ...begun.there, ...change }] as const];
        return { status: 'succeeded', left: outcome === 'done' ? [...left, [cups, other(begun)]] : left };
      },
    );
  });

  test('fails if the entity is deleted before it leaves', async () => {
    await during(
      operation,
      ['done', 'not-found'],
      ({ key }) => engineWrite.deleteEntity(engine, cups, key),
      (begun, outcome) => (outcome === 'done' ? { status: 'failed', reason: GONE, left: [] } : done(begun)),
    );
  });

  test('leaves an entity that is created in place of the deleted one', async () => {
    const deleted = new Set<Begun>();
    const heir = ({ cup }: Begun) => ({ ...cup, note: 'heir' });
    await during(
      operation,
      // A move that has the code gives it up only when its message is handled again.
      ['done', 'not-found', ...(operation === 'move' ? ['duplicate-value'] : [])],
      async (begun) => {
        await engineWrite.deleteEntity(engine, cups, begun.key);
        deleted.add(begun);
        await engineWrite.createEntity(engine, cups, heir(begun));
      },
      (begun, outcome) => {
        if (!deleted.has(begun)) return done(begun);
        return { status: 'failed', reason: GONE, left: outcome === 'done' ? [[cups, heir(begun)]] : [] };
      },
    );
  });

  test('does not restore an entity that is deleted at its destination', async () => {
    await during(
      operation,
      ['done'],
      async ({ transfer, destination, arrivedKey }) => {
        await handle(transfer);
        await engineWrite.deleteEntity(engine, destination, arrivedKey);
      },
      () => ({ status: 'succeeded', left: [] }),
    );
  });

  test('leaves a later entity with its key and its code, and what it has become', async () => {
    const isMove = operation === 'move';
    const changed = ({ there }: Begun) => (isMove ? { ...there, code: `${there.code}b` } : there);
    const heir = ({ cup }: Begun) => ({ ...cup, note: 'heir' });
    await during(
      operation,
      ['done'],
      async (begun) => {
        await handle(begun.transfer);
        if (isMove) await engineWrite.putEntity(engine, cups, begun.arrivedKey, changed(begun));
        await engineWrite.createEntity(engine, cups, heir(begun));
      },
      (begun) => ({
        status: 'succeeded',
        left: [
          [begun.destination, changed(begun)],
          [cups, heir(begun)],
        ],
      }),
    );
  });

  test('fails if an entity is created at its destination, and leaves both', async () => {
    const other = ({ there }: Begun) => ({ ...there, code: `${there.code}o`, spot: `${there.spot}o` });
    await during(
      operation,
      ['done', 'duplicate-key'],
      (begun) => engineWrite.createEntity(engine, begun.destination, other(begun)),
      (begun, outcome) => {
        if (outcome !== 'done') return done(begun);
        return {
          status: 'failed',
          reason: TAKEN,
          left: [
            [cups, begun.cup],
            [begun.destination, other(begun)],
          ],
        };
      },
    );
  });
});

test('a move to a place whose unique value is taken gives back what it has taken, also after a crash at any call', async () => {
  const ends = new Map<Begun, Ended>();
  await tryFaults(
    async ({ client, timing }) => {
      const [cupId, spot] = [`other${made}`, `spot${made + 1}`];
      await engineWrite.createEntity(engine, cups, { shelf: 'b', cupId, code: cupId, spot });
      const begun = await begin('move');
      await outcomeOf(handle(begun.transfer, later(world.engineThrough(client, timing))));
      for (const _ of [1, 2]) await handle(begun.transfer);
      ends.set(begun, { status: 'failed', reason: expect.stringMatching(/spot/), left: [[cups, begun.cup]] });
    },
    { faults: CRASH, ...SMALL },
  );
  await expectEnded(ends);
});

test('a move that gives back what it has taken leaves what a caller has changed meanwhile', async () => {
  const changed = ({ cup }: Begun) => ({ note: 'changed', code: `${cup.code}b`, spot: `${cup.spot}b` });
  const ends = new Map<Begun, Ended>();
  const set = async () => {
    const [cupId, spot] = [`other${made}`, `spot${made + 1}`];
    await engineWrite.createEntity(engine, cups, { shelf: 'b', cupId, code: cupId, spot });
    const begun = await begin('move');
    return {
      act: (through: Engine) => handle(begun.transfer, later(through)),
      async interrupt() {
        await engineWrite.patchEntity(engine, cups, begun.key, changed(begun));
      },
      async check() {
        await handle(begun.transfer);
        const { status } = await engineWrite.readOperation(engine, {
          operation: 'move',
          operationId: begun.operationId,
          entity: 'cups',
        });
        const isFailed = status === 'failed';
        const left = { ...(isFailed ? begun.cup : begun.there), ...changed(begun) };
        ends.set(begun, { status, reason: isFailed ? expect.stringMatching(/spot/) : undefined, left: [[cups, left]] });
      },
    };
  };
  await tryInterruptions(world, set, { sides: ['before'], ...SMALL });
  await expectEnded(ends);
});

test('a move does not open its destination to writers for another entity that arrives there', async () => {
  const set = async () => {
    const begun = await begin('move');
    const next = { ...begun.cup, shelf: 'c', code: `${begun.cup.code}c` };
    let isArriving = false;
    return {
      act: (through: Engine) => handle(begun.transfer, later(through)),
      async interrupt() {
        await handle(begun.transfer);
        await engineWrite.deleteEntity(engine, cups, begun.arrivedKey);
        await engineWrite.createEntity(engine, cups, next);
        const key = { shelf: 'c', cupId: begun.cup.cupId };
        const operationId = await engineTransfer.requestMove(engine, cups, key, { shelf: 'b' });
        const transfer = (await world.take('transfers', operationId)).body as Transfer;
        const isCopied = ({ body }: { readonly body?: unknown }) => String(body).includes('"MovingFrom":"[');
        const dying = later(world.engineThrough(faultyHttpClient('crash after', isCopied), QUICK));
        expect(await outcomeOf(handle(transfer, dying))).toBe('dead');
        isArriving = true;
      },
      async check(label: string) {
        if (!isArriving) return;
        const write = engineWrite.patchEntity(engine, cups, begun.arrivedKey, { note: 'early' });
        await expect(write, label).rejects.toMatchObject({ code: 'busy' });
      },
    };
  };
  await tryInterruptions(world, set, { sides: ['before'], ...SMALL });
});
