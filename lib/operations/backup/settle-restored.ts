import { hasCode } from '../../base/errors.ts';
import { TOMBSTONE } from '../../define/codec/entity-codec.ts';
import { type Entity, withArchives } from '../../define/declaration/entity.ts';
import { consumerOf, type Log } from '../../engine/consume/consume.ts';
import type { Engine } from '../../engine/engine.ts';
import { unlessTableMissing } from '../../engine/period-tables.ts';
import { listParts } from '../../engine/reconcile/queues.ts';
import { endTransfer } from '../../engine/transfer/end-transfer.ts';
import { addressOfOperation, findById, isOperationId } from '../../engine/write/operation.ts';
import { deleteMessage, receiveMessages } from '../../storage/messages.ts';
import { toTime } from '../../storage/row-journal.ts';
import { type Address, deleteSame, type Row, readRow, scanTable, tryAction } from '../../storage/rows.ts';
import { SYSTEM_TABLE } from '../../storage/slot-row.ts';
import { accountsOf, type Storage } from '../../storage/storage.ts';
import { tablesIn } from '../app-tables.ts';
import { startMovesOfRestored } from '../model-record.ts';
import { rekeyPage } from '../rekey.ts';
import { resourcesOf } from '../resources.ts';
import { tablesInBackup } from './journal.ts';
import { type RowSource, readJournal, readState, rowsOf, snapshotFor } from './read-backup.ts';
import { restoreRows } from './restore-rows.ts';
import { CLOCKS_MS } from './snapshot.ts';

/**
 * Ends what was in the middle of something when the backup was cut. The messages with which the app would go on are gone:
 *
 *   tombstone                   its entries are not in a backup, so nothing is left to settle: deleted
 *   move, archive, large delete finished after its point of no return, else undone; its record says so (end-transfer.ts)
 *   move to another key         continued until all entities are at the key of the model. One that had left its former key has arrived
 *
 * Nobody else writes meanwhile.
 */

export interface Settled {
  readonly tombstones: number;
  readonly finished: number;
  readonly undone: number;
  /** Entities that got the key of the model. */
  readonly rekeyed: number;
  /** What could not be ended, and why. */
  readonly left: readonly string[];
}

interface SettleOptions {
  readonly source: RowSource;
  readonly at: string;
  readonly entities: readonly Entity[];
  readonly signal?: AbortSignal | undefined;
}

const PAGE_SIZE = 1_000;
/** An operation may wait for another one. */
const ROUNDS = 5;

export async function settleRestored(engine: Engine, options: SettleOptions): Promise<Settled> {
  const rekey = await rekeyRestored(engine, options);
  const { operations, tombstones } = await findUnfinished(engine, options);
  const ended = await endOperations(engine, [...operations], options);
  await drainQueues(engine, options);
  for (const { etag, ...address } of tombstones)
    await deleteSame(engine.storage, { ...address, etag }, ({ properties }) => properties.EntityType === TOMBSTONE);
  return { tombstones: tombstones.length, rekeyed: rekey.moved, ...ended, left: [...rekey.left, ...ended.left] };
}

/** Moves entities from their former key, at which the cut may have some of them or all. */
async function rekeyRestored(engine: Engine, options: SettleOptions) {
  const { entities, signal } = options;
  let moved = 0;
  const left: string[] = [];
  for (const entity of entities) {
    if (!entity.formerKey) continue;
    for (const { table } of withArchives([entity])) await openArrived(engine, table, options);
    await startMovesOfRestored(engine, entity);
    let position: Parameters<typeof rekeyPage>[2]['position'];
    do {
      signal?.throwIfAborted();
      const page = await rekeyPage(engine, entity, { position, top: PAGE_SIZE, maxTransactions: Infinity });
      for (const { repaired, reason, partition, row } of page.findings)
        if (repaired) moved += 1;
        else left.push(`${entity.name} at ${JSON.stringify([partition, row])} is at its former key: ${reason}`);
      position = page.next;
    } while (position);
  }
  return { moved, left };
}

/** Opens entities that had left their former key, although the cut has no tombstone of them: without one, their move would be undone. */
async function openArrived({ storage }: Engine, table: string, { source, at, signal }: SettleOptions): Promise<void> {
  for await (const { partition, row, etag, properties } of selectRows(storage, table, signal)) {
    const { MovingFrom, Incarnation: operationId } = properties;
    if (!MovingFrom || typeof operationId !== 'string' || isOperationId(operationId)) continue;
    const [fromPartition, fromRow] = JSON.parse(String(MovingFrom)) as [string, string];
    const from = { table, partition: fromPartition, row: fromRow };
    if ((await readRow(storage, from)) || !(await wasMovedAway(source, at, { from, operationId }))) continue;
    await tryAction(storage, { table, partition }, { kind: 'merge', row, properties: { MovingFrom: '' }, etag });
  }
}

const SELECTED = [
  'EntityType',
  'SourceRow',
  'MovedTo',
  'MovingFrom',
  'Leaving',
  'Incarnation',
  'operationId',
  'status',
];

/** The ids of operations that rows name, or that their records say are running, and the tombstones of deleted entities. */
async function findUnfinished({ storage, now }: Engine, { entities, signal }: SettleOptions) {
  const isIn = tablesInBackup(entities);
  const operations = new Set<string>();
  const tombstones: (Address & Pick<Row, 'etag'>)[] = [];
  const note = (id: unknown) => typeof id === 'string' && isOperationId(id) && operations.add(id);
  const app = { storage, resources: resourcesOf(entities, now()) };
  for (const table of await tablesIn(app, ...accountsOf(storage))) {
    if (table === SYSTEM_TABLE || !isIn(table)) continue;
    for await (const { partition, row, etag, properties } of selectRows(storage, table, signal)) {
      const { EntityType, SourceRow, MovedTo, MovingFrom, Leaving, Incarnation, status, operationId } = properties;
      if (SourceRow) continue;
      note(MovedTo);
      note(Leaving);
      if (MovingFrom) note(Incarnation);
      if (status === 'running') note(operationId);
      if (EntityType === TOMBSTONE && !MovedTo) tombstones.push({ table, partition, row, etag });
    }
  }
  return { operations, tombstones };
}

async function* selectRows(storage: Storage, table: string, signal: AbortSignal | undefined): AsyncGenerator<Row> {
  for (let after: Row | undefined; ; ) {
    signal?.throwIfAborted();
    const { rows, more } = await scanTable(storage, { table, after, limit: PAGE_SIZE, select: SELECTED });
    yield* rows;
    after = rows.at(-1);
    if (!more || !after) return;
  }
}

async function endOperations(engine: Engine, ids: readonly string[], options: SettleOptions) {
  const counts = { finished: 0, undone: 0 };
  const { signal } = options;
  let waiting: readonly string[] = ids;
  let left: string[] = [];
  for (let round = 1; round <= ROUNDS && waiting.length > 0; round += 1) {
    const busy: string[] = [];
    left = [];
    for (const id of waiting) {
      signal?.throwIfAborted();
      try {
        const outcome = await endOperation(engine, id, options);
        if (outcome in counts) counts[outcome as keyof typeof counts] += 1;
        else left.push(outcome);
      } catch (error) {
        if (!hasCode(error, 'busy')) throw error;
        busy.push(id);
      }
    }
    waiting = busy;
  }
  return { ...counts, left: [...left, ...waiting.map((id) => `The operation ${id} waits for another one.`)] };
}

/** Returns what became of the operation, or why nothing did. */
async function endOperation(engine: Engine, id: string, { source, at, entities }: SettleOptions): Promise<string> {
  const recorded = (await findRecord(engine, id)) ?? (await restoreRecord(engine, id, { source, at }));
  if (!recorded) return `The operation ${id} has no record, so nobody can tell what it was to do.`;
  const entity = withArchives(entities).find(({ name }) => name === recorded.values.entity);
  if (!entity) return `The operation ${id} is of ${recorded.values.entity}, which the model does not have.`;
  return endTransfer(engine, entity, recorded, {
    hasLeft: (from, operationId) => wasMovedAway(source, at, { from, operationId }),
    leavesLater: (from, operationId) =>
      isMovedAway(source, { from: at, to: toTime(Date.parse(at) + CLOCKS_MS) ?? at }, { from, operationId }),
  });
}

async function findRecord(engine: Engine, id: string) {
  return unlessTableMissing(findById(engine, id), undefined);
}

const oneRow = (address: Address) => ({ table: address.table, entities: rowsOf([address]) });

/** A restore of one entity does not have the records of operations. */
async function restoreRecord(engine: Engine, id: string, { source, at }: Pick<SettleOptions, 'source' | 'at'>) {
  const address = addressOfOperation(id);
  if (!address) return undefined;
  const { rows } = await readState(source, at, oneRow(address));
  await restoreRows(engine.storage, rows, { isPart: true });
  return findRecord(engine, id);
}

/**
 * True if the operation had turned the entity at this address into a tombstone. The tombstone may be gone at the cut: its delete counts as earlier
 * than it was.
 */
async function wasMovedAway(
  source: RowSource,
  at: string,
  { from, operationId }: { readonly from: Address; readonly operationId: string },
): Promise<boolean> {
  const { begunAt, finishedAt } = await snapshotFor(source, at);
  if (await isMovedAway(source, { from: begunAt, to: at }, { from, operationId })) return true;
  for await (const { properties } of (await readState(source, finishedAt, oneRow(from))).rows)
    if (properties.MovedTo === operationId) return true;
  return false;
}

/** True if the journal has, in a period, that the operation turned the entity at this address into a tombstone. */
async function isMovedAway(
  source: RowSource,
  period: { readonly from: string; readonly to: string },
  { from, operationId }: { readonly from: Address; readonly operationId: string },
): Promise<boolean> {
  for await (const line of readJournal(source, period)) {
    if (line.table !== from.table || !('rows' in line) || line.partition !== from.partition) continue;
    for (const version of line.rows)
      if (version.row === from.row && 'properties' in version && version.properties.MovedTo === operationId)
        return true;
  }
  return false;
}

/** So long a message stays hidden from other receivers. There are none. */
const HIDDEN_SECONDS = 60;
const BATCH = 32;

/** Handles the messages that ending the operations has sent. What fails is found by the consistency check. */
async function drainQueues(engine: Engine, { entities, signal }: SettleOptions): Promise<void> {
  const log: Log = { warn: () => undefined, error: () => undefined };
  for (const queue of listParts(engine))
    for (;;) {
      signal?.throwIfAborted();
      const messages = await receiveMessages(engine.storage, queue, { limit: BATCH, hiddenFor: HIDDEN_SECONDS });
      for (const message of messages) {
        const { id, insertedAt, text, attempts } = message;
        const work = { queue, id, insertedAt, attempts, body: JSON.parse(text) as unknown };
        await consumerOf(queue)({ engine, entities, log }, work).catch(() => undefined);
        await deleteMessage(engine.storage, message);
      }
      if (messages.length === 0) break;
    }
}
