import pMap from 'p-map';
import { commandLine } from '../command-line.ts';
import type { Entity } from '../define/declaration/entity.ts';
import { boundsOf, keptPeriods, periodOfTable } from '../define/keys/calendar.ts';
import type { Engine } from '../engine/engine.ts';
import { listParts } from '../engine/reconcile/queues.ts';
import { askAccount, awayIn, storageCall } from '../storage/errors.ts';
import { nameOfMove } from '../storage/fence-rows.ts';
import { listTables } from '../storage/provision.ts';
import { isOwned, newestLayers, numbersOf, type Owned, readOwned, stateOf, withLayers } from '../storage/slot-row.ts';
import { SLOTS, slotAt } from '../storage/slots.ts';
import { type Account, accountOfQueue, accountsOf, FIRST_ACCOUNT, type Storage } from '../storage/storage.ts';
import { readShapes } from './model-record.ts';
import { readMover } from './mover-hold.ts';
import { MOVE_TIMING } from './slot-mover.ts';

/** What operators see at a glance. Instants are in milliseconds. */

/**
 * Describes the queues of the engine and their poison queues. `messages` is the estimate of storage, with the hidden messages: intents of
 * writes in progress, reminders and delayed messages. Two storage transactions each. Of several accounts, names those that are away.
 */
export async function readQueueStates(engine: Engine) {
  const { storage } = engine;
  const names = listParts(engine).flatMap((queue) => [queue, `${queue}-poison`]);
  const found = await pMap(names, async (queue) => {
    const client = storage.queue(queue);
    const both = Promise.all([
      storageCall(client.getProperties(), client.name),
      storageCall(client.peekMessages({ numberOfMessages: 1 }), client.name),
    ]);
    return { queue, ...(await askAccount(accountOfQueue(storage, queue), both)) };
  });
  const items = found.flatMap(({ queue, result }) => {
    if (!result) return [];
    const [properties, peeked] = result;
    return {
      queue,
      messages: properties.approximateMessagesCount ?? 0,
      /** When the oldest message that a consumer could receive was sent; undefined if none waits. */
      oldestWaitingSince: peeked.peekedMessageItems[0]?.insertedOn.getTime(),
    };
  });
  return { items, away: awayIn(found) };
}

/**
 * What is left to do after changes of the model: compares the declared entities with what the model guard stored. One range query.
 */
export async function readModelState(engine: Engine, entities: readonly Entity[]) {
  const shapes = await readShapes(engine);
  return [...shapes].map(([entity, { shape }]) => ({
    entity,
    /** False if the model no longer has the entity, whose rows still exist. */
    isDeclared: entities.some(({ name }) => name === entity),
    version: shape.version,
    /** Indexes and copies that are not yet built from the existing entities. */
    unbuilt: shape.unbuilt,
    /** Former indexes whose rows still exist. */
    leftOver: Object.keys(shape.leftOver),
  }));
}

/**
 * Lists the tables of all periods by their names in the account, the oldest first for each entity. A table is due if it is past retention:
 * the timer archives or deletes it at its next run. One storage transaction per entity with a period, and account. Of several accounts, names
 * those that are away.
 */
export async function listPeriodTables({ storage, now }: Pick<Engine, 'storage' | 'now'>, entities: readonly Entity[]) {
  const listed = await Promise.all(
    entities.map(async ({ name, table: declared, period: kept }) => {
      if (!kept) return { items: [], found: [] };
      const { first } = keptPeriods(kept, now());
      const list = (account: Storage) => askAccount(account, listTables(account, declared));
      const found = await pMap(accountsOf(storage), list);
      const tables = [...new Set(found.flatMap(({ result = [] }) => result))];
      const items = (storage.accounts ? tables.sort() : tables).flatMap((table) => {
        const period = periodOfTable(kept.per, declared, table);
        if (period === undefined) return [];
        const from = Date.parse(boundsOf(kept.per, period).first);
        return [{ entity: name, table: storage.table(table).tableName, period, from, isDue: period < first }];
      });
      return { items, found };
    }),
  );
  return { items: listed.flatMap(({ items }) => items), away: awayIn(listed.flatMap(({ found }) => found)) };
}

/** Slots that leave an account for another one, or have left it and are not cleaned up. */
interface MoveState {
  readonly move: string;
  readonly from: string;
  readonly to: string;
  readonly slots: number;
  readonly gone: number;
  readonly phase: 'fencing' | 'copying' | 'handing over' | 'gone';
  /** When the last slot left the account. */
  readonly goneAt: number | undefined;
}

interface AccountState {
  readonly name: string;
  readonly isAway: boolean;
  /** How many of the 4,096 slots of layer 0 it owns; undefined if the account is away. */
  readonly slots?: number;
  readonly layers: { readonly name: string; readonly slots: number }[];
  readonly containers: string[];
}

interface AccountStates {
  readonly items: AccountState[];
  readonly moves: MoveState[];
  readonly mover?: Awaited<ReturnType<typeof readMover>>;
  readonly unowned: string[];
  readonly advice: string[];
}

/**
 * The storage accounts, what each owns, and the moves between them. One point query for each account and one for the mover; nothing with one
 * account. An account that is away is named, and the others are described.
 */
export async function readAccountStates({ storage, now }: Pick<Engine, 'storage' | 'now'>): Promise<AccountStates> {
  const { accounts } = storage;
  if (!accounts) {
    const only = { name: FIRST_ACCOUNT, isAway: false, slots: SLOTS, layers: [], containers: [] };
    return { items: [only], moves: [], unowned: [], advice: [] };
  }
  const [states, { result: mover, away: moverAway }] = await Promise.all([
    pMap(accounts.list, async (account) => ({ account, ...(await askAccount(account, readOwned(account))) })),
    askAccount(accounts.list[0], readMover(accounts.list[0], now())),
  ]);
  const layers = newestLayers(states.flatMap(({ result }) => result ?? []));
  const known = states.flatMap(({ account, result }) =>
    result ? [{ account, owned: withLayers(result, layers) }] : [],
  );
  const moves = known.flatMap(({ account, owned }) => movesOf(account, owned, mover));
  const indexes = numbersOf(layers).flatMap(indexesOf);
  // The slots of an account that is away are its own.
  const isWhole = known.length === states.length;
  const unowned = indexes.filter((index) => isWhole && !known.some(({ owned }) => isOwned(owned, index))).map(slotAt);
  const isStuck = unowned.length > 0;
  // Without the first account, nobody knows whether a mover lives.
  const advice = moverAway ? [] : adviceOnMoves(moves, { isStuck, isAlive: mover?.isAlive ?? false, now: now() });
  const items = states.map(({ account: { name }, away }): AccountState => {
    const owned = known.find(({ account }) => account.name === name)?.owned;
    const count = (layer: number) => (owned ? indexesOf(layer).filter((index) => isOwned(owned, index)).length : 0);
    const containers = [...accounts.containers].filter(([, place]) => place.name === name);
    return {
      name,
      isAway: away !== undefined,
      ...(owned ? { slots: count(0) } : {}),
      layers: [...Map.groupBy(layers.list, ({ name, isFormer }) => (isFormer ? `${name} (former)` : name))]
        // Of a placement with several layers, their mean: all slots if it is in the account as a whole.
        .map(([of, parts]) => ({
          name: of,
          slots: Math.ceil(parts.reduce((sum, { number }) => sum + count(number), 0) / parts.length),
        }))
        .filter(({ slots }) => slots > 0),
      containers: containers.map(([container]) => container),
    };
  });
  return { items, moves, mover, unowned, advice };
}

const indexesOf = (layer: number) => Array.from({ length: SLOTS }, (_, index) => layer * SLOTS + index);

function movesOf({ name: from }: Account, owned: Owned, mover: Awaited<ReturnType<typeof readMover>>): MoveState[] {
  return [...Map.groupBy(owned.moves, ([, { move }]) => move)].map(([move, slots]) => {
    const [[, { to, isClosed }]] = slots as [(typeof slots)[number]];
    const phases = slots.map(([index]) => stateOf(owned, index).phase);
    const gone = phases.filter((phase) => phase === 'gone').length;
    const isHandedOver = gone > 0 || (phases.includes('draining') && !isClosed);
    const isCopied = mover?.isAlive === true && mover.phase !== 'waiting';
    const inMotion = isHandedOver ? 'handing over' : isCopied ? 'copying' : 'fencing';
    return {
      move: nameOfMove(move),
      from,
      to,
      slots: slots.length,
      gone,
      phase: gone === slots.length ? 'gone' : inMotion,
      // Too many for the arguments of one call, if several layers have moved.
      goneAt: gone > 0 ? slots.reduce((last, [, { goneAt }]) => Math.max(last, goneAt), 0) : undefined,
    };
  });
}

/** The commands that end what a mover has left, or make a move final. */
function adviceOnMoves(
  moves: readonly MoveState[],
  { isStuck, isAlive, now }: { readonly isStuck: boolean; readonly isAlive: boolean; readonly now: number },
): string[] {
  if (isAlive) return [];
  if (isStuck || moves.some(({ phase }) => phase !== 'gone'))
    return [
      `No command moves slots now. To continue, run ${commandLine('accounts', 'resume')}.`,
      `To leave the other slots where they are, run ${commandLine('accounts', 'abort')}.`,
    ];
  if (moves.length === 0) return [];
  const from = Math.max(...moves.map(({ goneAt = 0 }) => goneAt + MOVE_TIMING.keepMs));
  return [
    `To return the slots, run ${commandLine('accounts', 'back')}.`,
    `To delete what they have left, run ${commandLine('accounts', 'clean-up')}${from > now ? `, after ${new Date(from).toISOString().slice(11, 16)} UTC` : ''}. Then there is no way back but another move.`,
  ];
}
