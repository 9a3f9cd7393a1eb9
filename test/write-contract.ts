import { describe, expect, test } from 'vitest';
import { pick, type Values } from '../lib/base/values.ts';
import type { Entity } from '../lib/define/declaration/entity.ts';
import { addressOf } from '../lib/define/places/index-entries.ts';
import { consumeTransfer } from '../lib/engine/consume/consume.ts';
import type { Engine } from '../lib/engine/engine.ts';
import { readEntity } from '../lib/engine/read/retrieve.ts';
import { requestArchive, requestMove } from '../lib/engine/transfer/transfer.ts';
import { createEntity, deleteEntity, patchEntity, replaceEntity } from '../lib/engine/write/entity-store.ts';
import { CONSUMER_FAULTS, expectRetried, outcomeOf, tryFaults, UNANSWERED_INSERT } from './fault-driver.ts';
import type { Fault, FaultyHttpClient } from './faulty-http-client.ts';
import { countTried } from './tried-faults.ts';
import { expectIndexesToAgree, QUICK, rowsOf, type World } from './world.ts';

/** What holds for the writes of every form of entity, whichever storage call fails. */

const CONCURRENCY = 8;
const log = { warn: () => undefined, error: () => undefined };

export interface WriteSubject {
  readonly world: () => World;
  readonly entity: Entity;
  /** As the counts of tried faults name the entity. */
  readonly what: string;
  /** Returns an entity that no other test uses, in a partition for the tests of that name. */
  readonly newcomer: (name: string) => Values;
  /** Reads an entity with all its fields; by default those of a read by its key. */
  readonly whole?: (one: Values, entity?: Entity) => Promise<Values>;
}

interface Change {
  /** Creates the prerequisites without faults; by default the entity itself. */
  readonly prepare?: (one: Values) => Promise<unknown>;
  readonly act: (engine: Engine, one: Values) => Promise<unknown>;
  /** The entity after the change; undefined if it is deleted. A field without a value is absent. */
  readonly after: (one: Values) => Values | undefined;
  /** The faults after which the outcome may be unknown. */
  readonly unanswered?: readonly Fault[];
}

export const creating = (entity: Entity, change: Partial<Change> = {}): Change => ({
  prepare: async () => undefined,
  act: (engine, one) => createEntity(engine, entity, one),
  after: (one) => one,
  unanswered: UNANSWERED_INSERT,
  ...change,
});
export const patching = (entity: Entity, fields: Values, change: Partial<Change> = {}): Change => ({
  act: (engine, one) => patchEntity(engine, entity, one, fields),
  after: (one) => ({ ...one, ...fields }),
  ...change,
});
export const replacing = (entity: Entity, next: (one: Values) => Values, change: Partial<Change> = {}): Change => ({
  act: (engine, one) => replaceEntity(engine, entity, one, next(one)),
  after: next,
  ...change,
});
export const deleting = (entity: Entity): Change => ({
  act: (engine, one) => deleteEntity(engine, entity, one),
  after: () => undefined,
});

/** After a fault at each call of a change, the entity is as it was, or as it should be, and its indexes follow. */
export function testWrites(subject: WriteSubject, changes: Readonly<Record<string, Change>>): void {
  const { world, entity, what, newcomer } = subject;
  const stateOf = async (one: Values) => plainOf(await wholeOf(subject, one).catch(() => undefined));
  const create = (one: Values) => createEntity(world().engine, entity, one);

  describe('any fault at any call', () => {
    test.each(Object.entries(changes))(
      'of %s leaves it done completely or not at all, and the indexes agree',
      async (name, { prepare = create, act, after, unanswered }) => {
        await tryFaults(
          async (trial) => {
            const { client, fault, timing, label } = trial;
            const one = newcomer(`Faults ${name}`);
            await prepare(one);
            const before = await stateOf(one);
            const outcome = await outcomeOf(act(world().engineThrough(client, timing), one));
            expectRetried(trial, outcome, unanswered);
            const [state, wanted] = [await stateOf(one), plainOf(after(one))];
            if (outcome === 'done') expect(state, label).toEqual(wanted);
            else if (timing || fault === 'reply lost') expect([before, wanted], label).toContainEqual(state);
            else expect(state, label).toEqual(before);
          },
          { what: ({ fault }) => `${what}, each storage call: ${fault}`, concurrency: CONCURRENCY },
        );
        await world().settle();
        // Children are entities of their own.
        const agree = () => expectIndexesToAgree(world().storage, { ...entity, children: [] });
        await countTried({ what: `${what}: indexes agree afterwards` }, agree);
      },
    );
  });
}

/** A patch removes a field with null, and a create leaves out those that are undefined. */
const plainOf = (values: Values | undefined): unknown =>
  values === undefined ? null : JSON.parse(JSON.stringify(values, (_, value) => value ?? undefined));

async function wholeOf({ world, entity, whole }: WriteSubject, one: Values, of = entity): Promise<Values> {
  return whole ? whole(one, of) : (await readEntity(world().engine, of, one)).values;
}

interface Transferred {
  readonly archive: Entity;
  /** All entities of the table. */
  readonly entities: readonly Entity[];
  /** Values of another partition, to which the entity moves. */
  readonly elsewhere: Values;
}

export const TRANSFERS = ['archive', 'move'] as const;
type Transfer = (typeof TRANSFERS)[number];

function requestTransfer({ world, entity }: WriteSubject, { elsewhere }: Transferred, transfer: Transfer, one: Values) {
  const { engine } = world();
  const key = pick(one, entity.keyFields);
  return transfer === 'archive' ? requestArchive(engine, entity, key) : requestMove(engine, entity, key, elsewhere);
}

/** Fails unless all rows of an entity went with it. Returns the entity in its new place. */
async function expectTransferred(
  subject: WriteSubject,
  { archive, elsewhere }: Transferred,
  transfer: Transfer,
  one: Values,
): Promise<{ target: Entity; there: Values }> {
  const { world, entity } = subject;
  const isArchive = transfer === 'archive';
  const [target, there] = isArchive ? [archive, one] : [entity, { ...one, ...elsewhere }];
  expect(await wholeOf(subject, there, target)).toEqual(there);
  expect(await rowKeysOf(world(), entity, one)).toEqual([]);
  return { target, there };
}

/** Transfers an entity and deletes it in its new place. */
export async function tryTransfer(
  subject: WriteSubject,
  transferred: Transferred,
  transfer: Transfer,
  one: Values,
): Promise<void> {
  const world = subject.world();
  await createEntity(world.engine, subject.entity, one);
  await requestTransfer(subject, transferred, transfer, one);
  await world.settle();
  const { target, there } = await expectTransferred(subject, transferred, transfer, one);
  await deleteEntity(world.engine, target, there);
  await world.settle();
  expect(await rowKeysOf(world, target, there)).toEqual([]);
}

/** The queue function of a transfer dies or loses a reply at a sample of its calls; the next one completes the transfer. */
export async function tryFaultsOfTransfers(subject: WriteSubject, transferred: Transferred): Promise<void> {
  const { newcomer, entity } = subject;
  const { entities } = transferred;
  const world = subject.world();
  const run = async (transfer: Transfer, client: FaultyHttpClient) => {
    const one = newcomer(`Run ${transfer}`);
    await createEntity(world.engine, entity, one);
    await requestTransfer(subject, transferred, transfer, one);
    const message = await world.take('transfers', String(one[entity.row.fields[0] ?? '']));
    const consumer = { engine: world.engineThrough(client, QUICK), entities, log };
    await consumeTransfer(consumer, message).catch(() => undefined);
    await consumeTransfer({ ...consumer, engine: world.engine }, { ...message, attempts: 2 });
    await world.settle();
    await expectTransferred(subject, transferred, transfer, one);
  };
  for (const transfer of TRANSFERS) await tryFaults(({ client }) => run(transfer, client), { faults: CONSUMER_FAULTS });
}

/** Returns the keys of all rows of an entity. */
export async function rowKeysOf({ storage }: World, entity: Entity, one: Values): Promise<string[]> {
  const { partition, row } = addressOf(entity, one);
  const rows = (await rowsOf(storage, entity.table)).filter(({ partitionKey }) => partitionKey === partition);
  return rows.map(({ rowKey }) => String(rowKey)).filter((key) => key === row || key.startsWith(`${row}!-`));
}
