import { expect, test } from 'vitest';
import { pick, type Values } from '../lib/base/values.ts';
import type { Entity } from '../lib/define/declaration/entity.ts';
import { addressOf } from '../lib/define/places/index-entries.ts';
import { consumeTransfer } from '../lib/engine/consume/consume.ts';
import type { Engine } from '../lib/engine/engine.ts';
import { requestArchive, requestMove } from '../lib/engine/transfer/transfer.ts';
import { deleteEntity } from '../lib/engine/write/entity-store.ts';
import { CONSUMER_FAULTS, expectRetried, outcomeOf, tryFaults, UNANSWERED_INSERT } from './fault-driver.ts';
import type { FaultyHttpClient } from './faulty-http-client.ts';
import { QUICK, rowsOf, type World } from './world.ts';

/** Tests of faults that every pattern with further rows passes. */

const CONCURRENCY = 8;
const log = { warn: () => undefined, error: () => undefined };

interface Change {
  readonly act: (engine: Engine, one: Values) => Promise<unknown>;
  /** The entity after the change; undefined if it is deleted. */
  readonly after: (one: Values) => Values | undefined;
}

export interface FurtherRowSubject {
  readonly world: () => World;
  /** As the counts of tried faults name the entity. */
  readonly what: string;
  /** Returns an entity that no other test uses, in a partition for the tests of that name. */
  readonly newcomer: (name: string) => Values;
  readonly create: (one: Values) => Promise<unknown>;
  readonly whole: (one: Values, entity?: Entity) => Promise<Values>;
}

/** A fault at each call of a change leaves the entity as it was, or as it should be. The change `a create` begins without the entity. */
export function testFaultsOfChanges(subject: FurtherRowSubject, changes: Readonly<Record<string, Change>>): void {
  const { world, what, newcomer, create, whole } = subject;

  test.each(Object.entries(changes))('leave %s done completely or not at all', async (name, { act, after }) => {
    const isCreate = name === 'a create';
    const prepare = async () => {
      const one = newcomer(`Faults ${name}`);
      if (!isCreate) await create(one);
      return one;
    };
    await tryFaults(
      async (trial) => {
        const { client, timing, label } = trial;
        const one = await prepare();
        const outcome = await outcomeOf(act(world().engineThrough(client, timing), one));
        expectRetried(trial, outcome, isCreate ? UNANSWERED_INSERT : []);
        const state = (await whole(one).catch(() => undefined)) ?? null;
        const [before, expected] = [isCreate ? null : one, after(one) ?? null];
        if (outcome === 'done') expect(state, label).toEqual(expected);
        else expect([before, expected], label).toContainEqual(state);
      },
      { what: ({ fault }) => `${what}, each storage call: ${fault}`, concurrency: CONCURRENCY },
    );
  });
}

interface Transferred {
  readonly entity: Entity;
  readonly archive: Entity;
  /** All entities of the table. */
  readonly entities: readonly Entity[];
  /** Values of another partition, to which the entity moves. */
  readonly elsewhere: Values;
}

export const TRANSFERS = ['archive', 'move'] as const;
type Transfer = (typeof TRANSFERS)[number];

function requestTransfer({ engine }: World, { entity, elsewhere }: Transferred, transfer: Transfer, one: Values) {
  const key = pick(one, entity.keyFields);
  return transfer === 'archive' ? requestArchive(engine, entity, key) : requestMove(engine, entity, key, elsewhere);
}

/** Fails unless all rows of an entity went with it. Returns the entity in its new place. */
async function expectTransferred(
  { world, whole }: FurtherRowSubject,
  { entity, archive, elsewhere }: Transferred,
  transfer: Transfer,
  one: Values,
): Promise<{ target: Entity; there: Values }> {
  const isArchive = transfer === 'archive';
  const [target, there] = isArchive ? [archive, one] : [entity, { ...one, ...elsewhere }];
  expect(await whole(there, target)).toEqual(there);
  expect(await rowKeysOf(world(), entity, one)).toEqual([]);
  return { target, there };
}

/** Transfers an entity and deletes it in its new place. */
export async function tryTransfer(
  subject: FurtherRowSubject,
  transferred: Transferred,
  transfer: Transfer,
  one: Values,
): Promise<void> {
  const world = subject.world();
  await subject.create(one);
  await requestTransfer(world, transferred, transfer, one);
  await world.settle();
  const { target, there } = await expectTransferred(subject, transferred, transfer, one);
  await deleteEntity(world.engine, target, there);
  await world.settle();
  expect(await rowKeysOf(world, target, there)).toEqual([]);
}

/** The queue function of a transfer dies or loses a reply at a sample of its calls; the next one completes the transfer. */
export async function tryFaultsOfTransfers(subject: FurtherRowSubject, transferred: Transferred): Promise<void> {
  const { newcomer, create } = subject;
  const { entity, entities } = transferred;
  const world = subject.world();
  const run = async (transfer: Transfer, client: FaultyHttpClient) => {
    const one = newcomer(`Run ${transfer}`);
    await create(one);
    await requestTransfer(world, transferred, transfer, one);
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
