import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  defineEntity,
  indexEntity,
  interPartitionIndex,
  intraPartitionIndex,
  type Values,
} from '../../../../lib/index.ts';
import { outcomeOf, SMALL, tryFaults, tryInterruptions } from '../../../fault-driver.ts';
import { faultyHttpClient } from '../../../faulty-http-client.ts';
import { deploy } from '../../../fixtures/deploy.ts';
import { definePlaces, type Entity } from '../../../kit/define.ts';
import { type Engine, engineRead, engineTransfer, engineWrite, type Transfer } from '../../../kit/engine.ts';
import { operationsModel } from '../../../kit/operations.ts';
import { expectIndexesToAgree, laterBy, openWorld, QUICK, rowsOf } from '../../../world.ts';

/**
 * The move of one small entity to another key, beside whatever else may happen to it, before each storage call. rekeying.test.ts has
 * entities with more features, and the command.
 */

const declare = (key: { partition: string; row: string; former?: { partition: string; row: string } }) =>
  deploy(
    defineEntity('pots', {
      schema: z.object({
        shelf: z.string(),
        kind: z.string(),
        potId: z.string(),
        code: z.string(),
        note: z.string().optional(),
      }),
      table: 'pots',
      key,
      indexes: { code: interPartitionIndex({ table: 'potsbycode', partition: 'c', row: '{code}', unique: true }) },
      archive: { table: 'oldpots' },
      movable: ['shelf'],
      access: { read: [], write: [] },
    }),
  ).pots as Entity;
/** Cards whose two keys are in one partition, with rows there of each kind. Their tray counts them. */
const declareCards = (key: Parameters<typeof declare>[0]) => {
  const cards = defineEntity('cards', {
    schema: z.object({ tray: z.string(), cardId: z.string(), color: z.string(), suit: z.string() }),
    table: 'cards',
    key,
    indexes: {
      color: intraPartitionIndex({ row: 'color_{color}' }),
      ids: intraPartitionIndex({ row: 'by_{cardId}_{color}', copies: 'keys' }),
      suits: indexEntity({ row: 'suit_{suit}', holds: '{cardId}' }),
    },
    access: { read: [], write: [] },
  });
  const trays = defineEntity('trays', {
    schema: z.object({ tray: z.string(), cardCount: z.int32() }),
    table: 'cards',
    key: { partition: '{tray}', row: 'tray' },
    counts: { cardCount: cards },
    access: { read: [], write: [] },
  });
  return deploy(cards, trays).cards as Entity;
};
const OLD_CARD = { partition: '{tray}', row: 'c_{cardId}' } as const;
const NEW_CARD = { partition: '{tray}', row: 'card_{cardId}' } as const;
const cardsBefore = declareCards(OLD_CARD);
const cardsAfter = declareCards({ ...NEW_CARD, former: OLD_CARD });
const cardsBack = declareCards({ ...OLD_CARD, former: NEW_CARD });

const OLD = { partition: '{shelf}', row: '{kind}_{potId}' } as const;
const NEW = { partition: '{shelf}_{kind}', row: 'pot_{potId}' } as const;
const before = declare(OLD);
const after = declare({ ...NEW, former: OLD });
const back = declare({ ...OLD, former: NEW });
const archiveOf = ({ archive }: Entity) => archive as Entity;

/** The declaration of the queue functions. */
let running = after;
const world = await openWorld(import.meta.url, [after, cardsAfter], { rekeyed: () => running });
/** A process for which the claims of those that have died are over, without a record of where entities are. */
const later = (of: Engine): Engine => laterBy(of, () => 2 * of.timing.claimForMs);
const engine = later(world.engine);
/** A process of the release with this declaration. */
const processOf = (entity: Entity, of: Engine = engine): Engine => ({
  ...of,
  rekey: operationsModel.createRekey([entity]),
});

/** Entities begin to move to the key of this declaration. */
async function start(entity: Entity): Promise<void> {
  await operationsModel.guardModel(world.engine, [entity], undefined);
  await operationsModel.startRekey(world.engine, entity);
  await operationsModel.startMoves(world.engine, entity);
}
beforeAll(async () => {
  await operationsModel.guardModel(world.engine, [before], undefined);
  // Without an entity, the new key is in use at once.
  const pot = await create();
  await start(after);
  await move(pot);
});

let made = 0;
const KEY = ['shelf', 'kind', 'potId'];
const keyOf = (pot: Values): Values => Object.fromEntries(KEY.map((field) => [field, pot[field]]));

/** A pot that a process of the former release has created. */
async function create(declared = before): Promise<Values> {
  made += 1;
  const pot = { shelf: 'a', kind: 'red', potId: String(made), code: `code${made}` };
  await engineWrite.createEntity(world.engine, declared, pot);
  return pot;
}

const valuesOf = (by: Engine, entity: Entity, key: Values) =>
  engineRead.readEntity(by, entity, key).then(
    ({ values }) => values,
    (error: { readonly code?: string }) => {
      if (error.code !== 'not-found') throw error;
      return undefined;
    },
  );

/** The pots that the tests of a declaration have left: all are at its key, and all other rows follow from them. */
async function expectLeft(entity: Entity, wanted: readonly Values[], archived: readonly Values[] = []): Promise<void> {
  running = entity;
  await world.settle();
  const ids = new Set([...wanted, ...archived].map(({ potId }) => potId));
  for (const [kind, pots] of [
    [entity, wanted],
    [archiveOf(entity), archived],
  ] as const) {
    const found = (await expectIndexesToAgree(world.storage, kind)).filter(({ potId }) => ids.has(potId));
    expect(found).toHaveLength(pots.length);
    expect(found).toEqual(expect.arrayContaining([...pots]));
    for (const pot of pots) expect(await valuesOf(world.engine, kind, pot)).toEqual(pot);
  }
}

const move = (pot: Values, by: Engine = engine, entity = after) => engineTransfer.moveToKey(by, entity, keyOf(pot));

test('an entity gets its key after a crash at any call, and is read meanwhile', async () => {
  const pots = await tryFaults(
    async ({ client, timing, label }) => {
      const pot = await create();
      await outcomeOf(move(pot, later(world.engineThrough(client, timing))));
      expect(await valuesOf(processOf(after), after, pot), label).toEqual(pot);
      for (const _ of [1, 2]) expect(await move(pot), label).toBeUndefined();
      return pot;
    },
    { faults: ['crash after'], ...SMALL },
  );
  await expectLeft(after, pots);
});

test.each([
  ['another process moves', (pot: Values) => move(pot)],
  ['a request reads', (pot: Values) => valuesOf(processOf(after), after, pot)],
])('an entity gets its key once if %s it meanwhile', async (_, happen) => {
  const pots: Values[] = [];
  const set = async () => {
    const pot = await create();
    pots.push(pot);
    return {
      act: async (through: Engine) => expect(await move(pot, later(through))).toBeUndefined(),
      interrupt: () => happen(pot),
      check: () => move(pot),
    };
  };
  await tryInterruptions(world, set, { sides: ['before'], ...SMALL });
  await expectLeft(after, pots);
});

test('what a request changes or deletes meanwhile stays so', { tags: ['slow'] }, async () => {
  const left: Values[] = [];
  const gone: Values[] = [];
  const set = async () => {
    const [changed, deleted] = [await create(), await create()];
    left.push({ ...changed, note: 'changed', code: `${changed.code}b` });
    gone.push(deleted);
    return {
      act: async (through: Engine) => {
        for (const pot of [changed, deleted]) expect(await move(pot, later(through))).toBeUndefined();
      },
      interrupt: async () => {
        const by = processOf(after);
        await engineWrite.patchEntity(by, after, keyOf(changed), { note: 'changed', code: `${changed.code}b` });
        await engineWrite.deleteEntity(by, after, keyOf(deleted));
      },
      check: async () => {
        for (const pot of [changed, deleted]) expect(await move(pot)).toBeUndefined();
      },
    };
  };
  await tryInterruptions(world, set, { sides: ['before'], ...SMALL });
  await expectLeft(after, left);
  for (const pot of gone) expect(await valuesOf(processOf(after), after, pot)).toBeUndefined();
});

/** Requests an operation by a process of the former release. */
async function request(operation: 'move' | 'archive', pot: Values): Promise<Transfer> {
  const operationId = await (operation === 'move'
    ? engineTransfer.requestMove(world.engine, before, keyOf(pot), { shelf: 'b' })
    : engineTransfer.requestArchive(world.engine, before, keyOf(pot)));
  return (await world.take('transfers', operationId)).body as Transfer;
}

async function statusOf({ operation, operationId }: Transfer) {
  const { status, reason } = await engineWrite.readOperation(engine, { operation, operationId, entity: 'pots' });
  return { status, reason };
}

describe.each(['move', 'archive'] as const)('%s that has died at any call at the former key', (operation) => {
  const there = (pot: Values) => (operation === 'move' ? { ...pot, shelf: 'b' } : pot);

  test.each(['the message', 'the command'])('ends at the new key if %s comes first', async (first) => {
    const pots = await tryFaults(
      async ({ client, timing, label }) => {
        const pot = await create();
        const transfer = await request(operation, pot);
        await outcomeOf(engineTransfer.runTransfer(later(world.engineThrough(client, timing)), before, transfer));
        const handle = () => engineTransfer.runTransfer(processOf(after), after, transfer);
        const walk = async () => {
          const walkOnce = async () => [
            await move(pot),
            await move(there(pot)),
            await engineTransfer.moveToKey(engine, archiveOf(after), keyOf(pot), { owner: after }),
          ];
          // The other end of the operation may be in the way of the first one.
          await walkOnce();
          expect(await walkOnce(), label).toEqual([undefined, undefined, undefined]);
        };
        for (const next of first === 'the message' ? [handle, walk, handle] : [walk, handle, walk]) await next();
        expect(await statusOf(transfer), label).toEqual({ status: 'succeeded', reason: undefined });
        return there(pot);
      },
      { faults: ['crash after'], ...SMALL },
    );
    await expectLeft(after, operation === 'move' ? pots : [], operation === 'move' ? [] : pots);
  });

  test('has succeeded if its entity, which has arrived, is deleted before the message comes again', async () => {
    const pot = await create();
    const transfer = await request(operation, pot);
    const isOpened = ({ body }: { readonly body?: unknown }) => String(body).includes('"MovingFrom":""');
    const dying = later(world.engineThrough(faultyHttpClient('crash after', isOpened), QUICK));
    expect(await outcomeOf(engineTransfer.runTransfer(dying, before, transfer))).toBe('dead');
    const entity = operation === 'move' ? after : archiveOf(after);
    await engineWrite.deleteEntity(processOf(after), entity, keyOf(there(pot)));
    await engineTransfer.runTransfer(processOf(after), after, transfer);
    expect(await statusOf(transfer)).toEqual({ status: 'succeeded', reason: undefined });
    await expectLeft(after, []);
  });
});

describe('an entity stays at its former key', () => {
  const rowAt = (entity: Entity, pot: Values) => {
    const { table, partition, row } = definePlaces.addressOf(entity, pot);
    return { client: world.storage.table(table), partitionKey: partition, rowKey: row };
  };

  test('if it arrives there from an address that no entity has', async () => {
    const pot = await create();
    const { client, ...key } = rowAt(before, pot);
    await client.updateEntity({ ...key, MovingFrom: '["b","nothing"]' }, 'Merge');
    expect(await move(pot)).toBe('It arrives from an address that no entity has.');
    await client.updateEntity({ ...key, MovingFrom: '' }, 'Merge');
    expect(await move(pot)).toBeUndefined();
  });

  test('if an operation has taken it away and left no record', async () => {
    const pot = await create();
    const { client, ...key } = rowAt(before, pot);
    const movedTo = '2026-11-20-00000000-0000-0000-0000-000000000000';
    await client.upsertEntity({ ...key, EntityType: 'tombstone', WriteId: '', MovedTo: movedTo }, 'Replace');
    expect(await move(pot)).toBe('An operation has taken the entity away and has not ended, and its record is gone.');
    await client.deleteEntity(key.partitionKey, key.rowKey);
    await world.storage.table('potsbycode').deleteEntity('c', String(pot.code));
  });

  test('if another entity has its key', async () => {
    const pot = await create();
    const { client, ...key } = rowAt(after, pot);
    await client.createEntity({ ...key, EntityType: 'other' });
    expect(await move(pot)).toBeTypeOf('string');
    await client.deleteEntity(key.partitionKey, key.rowKey);
    expect(await move(pot)).toBeUndefined();
    await expectLeft(after, [pot]);
  });

  test('if its key has not changed', async () => {
    const pot = await create();
    expect(await move(pot, engine, before)).toBeUndefined();
    expect(await valuesOf(world.engine, before, pot)).toEqual(pot);
    expect(await move(pot)).toBeUndefined();
  });
});

test('an entity goes back to its former key after a crash at any call of the way there', async () => {
  for (const table of ['pots', 'potsbycode'])
    for (const { partitionKey, rowKey } of await rowsOf(world.storage, table))
      await world.storage.table(table).deleteEntity(String(partitionKey), String(rowKey));
  await start(back);
  const pots = await tryFaults(
    async ({ client, timing, label }) => {
      const pot = await create();
      await outcomeOf(move(pot, later(world.engineThrough(client, timing))));
      for (const _ of [1, 2]) expect(await move(pot, engine, back), label).toBeUndefined();
      return pot;
    },
    { faults: ['crash after'], ...SMALL },
  );
  await expectLeft(back, pots);
});

test.each([
  ['there', cardsAfter],
  ['back', cardsBack],
])('rows in the partition of both keys follow an entity that goes %s after a crash at any call', async (_, entity) => {
  const cards = await tryFaults(
    async ({ client, timing, label }) => {
      made += 1;
      const cardOf = (cardId: string) => ({ tray: `tray${made}`, cardId, color: `c${cardId}`, suit: 'cups' });
      const [card, other] = [cardOf('0001'), cardOf('0002')];
      for (const each of [card, other]) await engineWrite.createEntity(world.engine, cardsBefore, each);
      await outcomeOf(engineTransfer.moveToKey(later(world.engineThrough(client, timing)), cardsAfter, card));
      for (const each of [card, card, other])
        expect(await engineTransfer.moveToKey(engine, entity, each), label).toBeUndefined();
      const changed = { ...other, color: 'gold', suit: 'coins' };
      await engineWrite.patchEntity(world.engine, entity, { tray: other.tray, cardId: other.cardId }, changed);
      return [card, changed];
    },
    { faults: ['crash after'], ...SMALL },
  );
  running = entity;
  await world.settle();
  const found = await expectIndexesToAgree(world.storage, entity);
  const ids = new Set(cards.flat().map(({ tray }) => tray));
  const left = found.filter(({ tray }) => ids.has(`${tray}`));
  expect(left).toHaveLength(cards.flat().length);
  expect(left).toEqual(expect.arrayContaining(cards.flat()));
  // They are not at the key of the other declaration.
  for (const { partitionKey, rowKey } of await rowsOf(world.storage, 'cards'))
    await world.storage.table('cards').deleteEntity(String(partitionKey), String(rowKey));
});
