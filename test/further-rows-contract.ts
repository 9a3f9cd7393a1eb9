import pMap from 'p-map';
import { describe, expect, test } from 'vitest';
import { RowkeyError, type Values } from '../lib/index.ts';
import { CONSUMER_FAULTS, tryFaults } from './fault-driver.ts';
import { type FaultyHttpClient, faultyHttpClient } from './faulty-http-client.ts';
import { baseValues } from './kit/base.ts';
import { definePlaces, type Entity, type Finding } from './kit/define.ts';
import { engineConsume, engineRead, engineTransfer, engineWrite } from './kit/engine.ts';
import { log } from './silent-log.ts';
import { expectIndexesToAgree, QUICK, rowsOf, type World } from './world.ts';
import { type WriteSubject, wholeOf } from './write-contract.ts';

/** What holds for every entity of several rows. */

interface FurtherRows {
  readonly archive: Entity;
  /** All entities of the table. */
  readonly entities: readonly Entity[];
  /** Values of another partition, to which the entity moves. */
  readonly elsewhere: Values;
  /** Returns an entity with texts in blobs, in a partition of this name. */
  readonly long: (name: string) => Values;
  /** Gives fields in several rows one value. */
  readonly together: (text: string) => Values;
  /** Changes another field; numbers have fields of their own or share one. */
  readonly alone: (number: number) => Values;
  /** The name of a further row that every newcomer has. */
  readonly further: string;
  readonly verify: (repair: boolean) => Promise<readonly Finding[]>;
}

const TRANSFERS = ['archive', 'move'] as const;
type Transfer = (typeof TRANSFERS)[number];

export function testFurtherRows(subject: WriteSubject, rows: FurtherRows): void {
  const { world, entity, newcomer } = subject;
  const create = async (one: Values) => {
    await engineWrite.createEntity(world().engine, entity, one);
    return one;
  };

  describe('all rows of an entity', () => {
    test.each(TRANSFERS)('go with it: %s', (transfer) =>
      tryTransfer(subject, rows, transfer, rows.long(`From ${transfer}`)),
    );

    test('are in one place after a fault at any call of an archive or a move', () =>
      tryFaultsOfTransfers(subject, rows));

    test('have every change of concurrent writers, and no reader sees two states', async () => {
      const one = await create(newcomer('Raced'));
      await engineWrite.patchEntity(world().engine, entity, one, rows.together('0'));
      const statesOf = (values: Values = {}) =>
        new Set(Object.keys(rows.together('')).map((field) => values[field])).size;
      const key = baseValues.pick(one, entity.keyFields);
      const range = { from: String(one[entity.row.fields[0] ?? '']), top: 1, select: Object.keys(entity.columns) };
      let isDone = false;
      let reads = 0;
      const reader = async () => {
        for (; !isDone; reads += 1) {
          expect(statesOf(await untilNotBusy(() => wholeOf(subject, one)))).toBe(1);
          const { items } = await untilNotBusy(() => engineRead.readEntities(world().engine, entity, key, range));
          expect(statesOf(items[0])).toBe(1);
        }
      };
      const numbers = Array.from({ length: 24 }, (_, index) => index + 1);
      const isAlone = (number: number) => number % 3 === 0;
      const writers = pMap(
        numbers,
        async (number) => {
          const engine = number % 2 === 0 ? world().engine : world().engineThrough(faultyHttpClient());
          const change = isAlone(number) ? rows.alone(number) : rows.together(`${number}`);
          await untilNotBusy(() => engineWrite.patchEntity(engine, entity, one, change));
        },
        { concurrency: 4 },
      ).finally(() => {
        isDone = true;
      });
      await Promise.all([writers, reader()]);
      const values = await wholeOf(subject, one);
      expect(statesOf(values)).toBe(1);
      const alone = numbers.filter(isAlone).flatMap((number) => Object.entries(rows.alone(number)));
      for (const [field, given] of Map.groupBy(alone, ([field]) => field))
        expect(given.map(([, value]) => value)).toContain(values[field]);
      expect(reads).toBeGreaterThan(0);
      await world().settle();
    });

    test('are replaced or deleted if one of them is lost', async () => {
      const one = await create(newcomer('Renewed'));
      const { table, partition, row } = definePlaces.addressOf(entity, one);
      const lose = () => world().storage.table(table).deleteEntity(partition, `${row}!-${rows.further}`);
      await lose();
      await engineWrite.replaceEntity(world().engine, entity, one, one);
      expect(await wholeOf(subject, one)).toEqual(one);
      await lose();
      await engineWrite.deleteEntity(world().engine, entity, one);
      await world().settle();
      expect(await rowKeysOf(world(), entity, one)).toEqual([]);
    });

    test('leave nothing for the consistency check', async () => {
      await world().settle();
      expect(await rows.verify(false)).toEqual([]);
      await expectIndexesToAgree(world().storage, { ...entity, children: [] });
    });
  });
}

/** Repeats what meets too many other requests, as a caller would. */
async function untilNotBusy<Result>(work: () => Promise<Result>): Promise<Result> {
  for (;;)
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof RowkeyError && error.code === 'busy')) throw error;
    }
}

function requestTransfer({ world, entity }: WriteSubject, { elsewhere }: FurtherRows, transfer: Transfer, one: Values) {
  const { engine } = world();
  const key = baseValues.pick(one, entity.keyFields);
  return transfer === 'archive'
    ? engineTransfer.requestArchive(engine, entity, key)
    : engineTransfer.requestMove(engine, entity, key, elsewhere);
}

/** Fails unless all rows of an entity went with it. Returns the entity in its new place. */
async function expectTransferred(
  subject: WriteSubject,
  { archive, elsewhere }: FurtherRows,
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
async function tryTransfer(subject: WriteSubject, rows: FurtherRows, transfer: Transfer, one: Values): Promise<void> {
  const world = subject.world();
  await engineWrite.createEntity(world.engine, subject.entity, one);
  await requestTransfer(subject, rows, transfer, one);
  await world.settle();
  const { target, there } = await expectTransferred(subject, rows, transfer, one);
  await engineWrite.deleteEntity(world.engine, target, there);
  await world.settle();
  expect(await rowKeysOf(world, target, there)).toEqual([]);
}

/** The queue function of a transfer dies or loses a reply at a sample of its calls; the next one completes the transfer. */
async function tryFaultsOfTransfers(subject: WriteSubject, rows: FurtherRows): Promise<void> {
  const { newcomer, entity } = subject;
  const { entities } = rows;
  const world = subject.world();
  const run = async (transfer: Transfer, client: FaultyHttpClient) => {
    const one = newcomer(`Run ${transfer}`);
    await engineWrite.createEntity(world.engine, entity, one);
    await requestTransfer(subject, rows, transfer, one);
    const message = await world.take('transfers', String(one[entity.row.fields[0] ?? '']));
    const consumer = { engine: world.engineThrough(client, QUICK), entities, log };
    await engineConsume.consumeTransfer(consumer, message).catch(() => undefined);
    await engineConsume.consumeTransfer({ ...consumer, engine: world.engine }, { ...message, attempts: 2 });
    await world.settle();
    await expectTransferred(subject, rows, transfer, one);
  };
  for (const transfer of TRANSFERS) await tryFaults(({ client }) => run(transfer, client), { faults: CONSUMER_FAULTS });
}

/** Returns the keys of all rows of an entity. */
export async function rowKeysOf({ storage }: World, entity: Entity, one: Values): Promise<string[]> {
  const { partition, row } = definePlaces.addressOf(entity, one);
  const rows = (await rowsOf(storage, entity.table)).filter(({ partitionKey }) => partitionKey === partition);
  return rows.map(({ rowKey }) => String(rowKey)).filter((key) => key === row || key.startsWith(`${row}!-`));
}
