import { hash, randomUUID } from 'node:crypto';
import pMap from 'p-map';
import { ROW_TYPES, SYSTEM_PARTITIONS } from '../base/engine-names.ts';
import { busy, RowkeyError } from '../base/errors.ts';
import type { Entity } from '../define/declaration/entity.ts';
import type { IndexEntry } from '../define/declaration/projection.ts';
import { CLAIM, indexEntriesOf, isContested, isSameEntry } from '../define/places/index-entries.ts';
import type { Engine } from '../engine/engine.ts';
import { journalNamed } from '../engine/journal-named.ts';
import { readLive, requireRekeyed } from '../engine/read/entity-rows.ts';
import { settleEntries } from '../engine/reconcile/reconcile.ts';
import { isOwnedBy } from '../engine/reconcile/unique-claim.ts';
import { writePartitions } from '../engine/write/entity-batch.ts';
import { type NewEntityWrite, prepareCreate } from '../engine/write/entity-write.ts';
import { measureCost } from '../storage/cost.ts';
import { timeOf, withAttempt } from '../storage/row-journal.ts';
import {
  type Action,
  type Address,
  deleteSame,
  type Row,
  readRow,
  scanTable,
  tryAction,
  trySubmit,
} from '../storage/rows.ts';
import { SYSTEM_TABLE } from '../storage/slot-row.ts';
import {
  findSharedTables,
  keyOf,
  type StoredEntity,
  WRITE_CONCURRENCY,
  writeBatches,
  writeDerived,
} from './write-derived.ts';

/**
 * A bulk load: creates all entities of a declaration that has none, from rows of another store. The tables then have what creates would have
 * stored, but for the ids of writes. In windows of some thousand rows:
 *
 *   rows, validated -> unique values are claimed, in transactions of their partitions -> the entities, planned as by creates, with all that
 *   is in their partitions, in transactions -> entries in other partitions, in transactions of those
 *
 * No intent is sent, so nobody may change an entity between its transaction and its entries. A load begins only if the entity has no rows,
 * so there is nothing that an app serves, and a mark in the system table has its id. An app that creates other entities meanwhile does no
 * harm: unique values, lists and totals are written under conditions. One that changes a row of the load within the seconds of a window
 * leaves stale entries, which the consistency check finds.
 *
 * A load that died is run again with the same rows. The id of the load and the values of a row give the entity its incarnation, which tells
 * the entities of the load from others. Their entries are written again, and they are added to the journal of a backup again. The mark also says
 * that a run works, so there is one at a time: the end of one would take the mark from another, which could then not be run again.
 *
 * A row that has the key or a unique value of an earlier one of the window is created after the others, one by one, in their order. So it may refer to later
 * rows, which a create in its turn would not find.
 */

/** A row that is not stored, and has left nothing behind. */
interface RejectedRow {
  /** Its position in the load, from 0. */
  readonly position: number;
  readonly input: unknown;
  readonly error: RowkeyError;
}

export interface BulkLoaded {
  readonly read: number;
  readonly created: number;
  /** Created by an earlier run of the same load. */
  readonly existing: number;
  readonly rejected: number;
  /** Storage transactions. */
  readonly transactions: number;
}

export interface BulkLoadOptions {
  readonly signal?: AbortSignal | undefined;
  /** Called after each window. */
  readonly onProgress?: ((loaded: BulkLoaded) => void) | undefined;
  readonly onRejected?: ((row: RejectedRow) => void) | undefined;
  /**
   * True to store a reference to an entity that does not exist, such as one of a later row or of an entity that is loaded later. The
   * consistency check reports those that are left.
   */
  readonly leavesReferences?: boolean | undefined;
  /** The most rows of a window, which is in memory. */
  readonly windowRows?: number | undefined;
}

const WINDOW_ROWS = 10_000;
const WINDOW_CHARACTERS = 16_000_000;

/** False for entities in tables of periods or of another program, series, and archives, whose rows arrive by transfers. */
export function canBulkLoad({ series, period, isArchive, existing }: Entity): boolean {
  return !series && !period && !isArchive && !existing;
}

/**
 * Creates an entity from each row. Throws `wrong-operation` if the entity cannot be loaded or has other rows, `busy` if it gets another key or
 * another run loads it, and `storage-unavailable`: then run it again with the same rows.
 */
export function bulkLoad(
  engine: Engine,
  entity: Entity,
  rows: AsyncIterable<unknown>,
  { signal, onProgress, onRejected, leavesReferences = false, windowRows = WINDOW_ROWS }: BulkLoadOptions = {},
): Promise<BulkLoaded> {
  return measureCost(async (cost) => {
    const { run, ...begun } = await begin(engine, entity);
    const running = keepRunning(engine, entity, run);
    const counts = { read: 0, created: 0, existing: 0, rejected: 0 };
    const report = (): BulkLoaded => ({ ...counts, transactions: cost.transactions });
    let isDone = false;
    try {
      const load: Load = {
        ...{ engine, entity, leavesReferences, ...begun, counts },
        signal: signal ? AbortSignal.any([signal, running.lost]) : running.lost,
        shared: await findSharedTables(engine.storage, entity),
        reject({ position, input }, error) {
          counts.rejected += 1;
          onRejected?.({ position, input, error });
        },
      };
      for await (const window of toWindows(rows, windowRows)) {
        counts.read += window.length;
        await loadWindow(load, window);
        onProgress?.(report());
      }
      isDone = true;
    } finally {
      await running.end(isDone);
    }
    return report();
  });
}

interface Load {
  readonly engine: Engine;
  readonly entity: Entity;
  readonly signal: AbortSignal;
  readonly leavesReferences: boolean;
  readonly id: string;
  /** True if an earlier run may have created the entities. */
  readonly isResumed: boolean;
  /** The tables of entries in which another program has rows. */
  readonly shared: ReadonlySet<string>;
  readonly counts: { created: number; existing: number };
  readonly reject: (row: InputRow, why: RowkeyError) => void;
}

interface InputRow {
  readonly position: number;
  readonly input: unknown;
}

/** A row that is valid. */
interface LoadRow extends InputRow {
  readonly write: NewEntityWrite;
  readonly incarnation: string;
  /** Its entries in unique indexes. */
  readonly unique: readonly IndexEntry[];
}

async function* toWindows(rows: AsyncIterable<unknown>, most: number): AsyncGenerator<InputRow[]> {
  let window: InputRow[] = [];
  let position = 0;
  let characters = 0;
  for await (const input of rows) {
    window.push({ position, input });
    position += 1;
    characters += JSON.stringify(input)?.length ?? 0;
    if (window.length < most && characters < WINDOW_CHARACTERS) continue;
    yield window;
    [window, characters] = [[], 0];
  }
  if (window.length > 0) yield window;
}

async function loadWindow(load: Load, window: readonly InputRow[]): Promise<void> {
  const { engine, signal, leavesReferences, counts, reject } = load;
  signal.throwIfAborted();
  const valid = window.flatMap((row) => prepare(load, row) ?? []);
  const stored: StoredEntity[] = [];
  const absent = load.isResumed ? await withoutStored(load, valid, stored) : valid;
  counts.existing += stored.length;
  const { alone, together } = separate(absent);
  const refused = await claimAll(load, together);
  const held = together.filter((row) => !refused.has(row));
  const links = linksOf(load);
  const later = new LaterRows(links, [...refused, ...alone]);
  const again: LoadRow[] = [];
  for (const rows of inRounds(links, held)) {
    signal.throwIfAborted();
    const outcomes = await writePartitions(
      engine,
      rows.map(({ write }) => write),
      { isBulk: true, leavesReferences },
    );
    const refusals = new Map<LoadRow, RowkeyError>();
    for (const row of rows) {
      const outcome = outcomes.get(row.write);
      if (outcome instanceof RowkeyError) refusals.set(row, outcome);
      else if (outcome) {
        counts.created += 1;
        stored.push({ address: row.write.address, values: outcome.values });
      }
    }
    const before = stored.length;
    // A request of the former run may have arrived late.
    const failed = load.isResumed ? await withoutStored(load, [...refusals.keys()], stored) : [...refusals.keys()];
    counts.existing += stored.length - before;
    for (const row of failed) {
      const why = refusals.get(row);
      if (why && !later.hasTargetOf(row)) reject(row, why);
      else {
        again.push(row);
        later.add(row);
      }
    }
    await release(load, failed);
  }
  await writeEntries(load, stored);
  // A unique value may be that of an entity which has expired, and which an ordinary create deletes.
  const left = [...refused, ...alone, ...again].sort((one, other) => one.position - other.position);
  await release(load, [...refused]);
  for (const row of left) {
    signal.throwIfAborted();
    const outcome = (await writePartitions(engine, [row.write], { leavesReferences })).get(row.write);
    if (outcome instanceof RowkeyError) reject(row, outcome);
    else if (outcome) {
      counts.created += 1;
      // Some entries would wait for the queue, whose functions may run later.
      await writeEntries(load, [{ address: row.write.address, values: outcome.values }]);
    }
  }
}

/** Undefined for a row that is not valid. */
function prepare({ engine, entity, id, reject }: Load, row: InputRow): LoadRow | undefined {
  try {
    const incarnation = hash('sha256', JSON.stringify([id, row.input]), 'base64url');
    const write = prepareCreate(engine, entity, row.input, { incarnation });
    const unique = indexEntriesOf(entity, write.values).filter((entry) => isContested(entity, entry));
    return { ...row, write, incarnation, unique };
  } catch (error) {
    if (!(error instanceof RowkeyError)) throw error;
    reject(row, error);
    return undefined;
  }
}

/** Adds the entities that an earlier run has created to `stored`, and returns the other rows. */
async function withoutStored(
  { engine, entity }: Load,
  rows: readonly LoadRow[],
  stored: StoredEntity[],
): Promise<readonly LoadRow[]> {
  const found = await pMap(rows, ({ write }) => readLive(engine, entity, write.address), {
    concurrency: WRITE_CONCURRENCY,
  });
  const before = stored.length;
  const absent = rows.filter(({ write: { address }, incarnation }, index) => {
    const live = found[index];
    if (live?.system.Incarnation !== incarnation) return true;
    stored.push({ address, values: live.values });
    return false;
  });
  // The former run may have died before the journal had them.
  if (engine.storage.journal)
    await pMap(stored.slice(before), ({ address }) => journalNamed(engine, [address]), {
      concurrency: WRITE_CONCURRENCY,
    });
  return absent;
}

/** Separates the rows that have the key or a unique value of an earlier row: whether they are stored depends on whether that one is. */
function separate(rows: readonly LoadRow[]): Readonly<Record<'alone' | 'together', readonly LoadRow[]>> {
  const wanted = new Set<string>();
  const { alone = [], together = [] } = Object.groupBy(rows, ({ write, unique }) => {
    const keys = [write.address, ...unique].map(keyOf);
    const isAlone = keys.some((key) => wanted.has(key));
    for (const key of keys) wanted.add(key);
    return isAlone ? 'alone' : 'together';
  });
  return { alone, together };
}

/** How an entity refers to others of its kind. */
interface Link {
  readonly field: string;
  readonly by: string;
}

function linksOf({ entity: { references, denormalized, name }, leavesReferences }: Load): readonly Link[] {
  return [
    ...Object.values(leavesReferences ? {} : references).map(({ field, to, by }) => ({ field, to, by })),
    ...Object.values(denormalized).map(({ field, source: to, by }) => ({ field, to, by })),
  ].filter(({ to }) => to.name === name);
}

/** The rows that are written after the rounds. A row that refers to one before it is rejected only if it still is after that one. */
class LaterRows {
  /** The first position of a row with each value. */
  readonly #first: readonly (Link & { readonly positions: Map<unknown, number> })[];

  constructor(links: readonly Link[], rows: readonly LoadRow[]) {
    this.#first = links.map((link) => ({ ...link, positions: new Map<unknown, number>() }));
    for (const row of rows) this.add(row);
  }

  add({ position, write: { values } }: LoadRow): void {
    for (const { by, positions } of this.#first)
      positions.set(values[by], Math.min(position, positions.get(values[by]) ?? position));
  }

  hasTargetOf({ position, write: { values } }: LoadRow): boolean {
    return this.#first.some(({ field, positions }) => (positions.get(values[field]) ?? position) < position);
  }
}

/**
 * Rows of an entity that refers to itself, or copies fields of its own kind: each round is written after those before it, so that a row finds
 * the earlier rows that it refers to, and no later ones.
 */
function inRounds(links: readonly Link[], rows: readonly LoadRow[]): (readonly LoadRow[])[] {
  if (links.length === 0) return [rows];
  const rounds: LoadRow[][] = [];
  /** The last round with a row of each value, and with a row that refers to it. */
  const known = links.map((link) => ({
    ...link,
    there: new Map<unknown, number>(),
    referring: new Map<unknown, number>(),
  }));
  for (const row of rows) {
    const { values } = row.write;
    const after = known.flatMap(({ field, by, there, referring }) => [
      there.get(values[field]) ?? -1,
      referring.get(values[by]) ?? -1,
    ]);
    const round = Math.max(...after) + 1;
    for (const { field, by, there, referring } of known) {
      there.set(values[by], Math.max(round, there.get(values[by]) ?? 0));
      if (values[field] !== undefined) referring.set(values[field], Math.max(round, referring.get(values[field]) ?? 0));
    }
    const others = rounds[round];
    if (others) others.push(row);
    else rounds[round] = [row];
  }
  return rounds;
}

/**
 * Claims the rows of unique indexes. The entries of the entities confirm them. Returns those of `rows` whose value another entity has. The
 * consistency check deletes the claims of a load that dies and is not repeated.
 */
async function claimAll(
  { engine: { storage }, signal }: Load,
  rows: readonly LoadRow[],
): Promise<ReadonlySet<LoadRow>> {
  const owners = new Map<string, LoadRow>();
  const claims = rows.flatMap((row) =>
    row.unique.map((entry) => {
      owners.set(keyOf(entry), row);
      const { partition: SourcePartition, row: SourceRow } = row.write.address;
      return { entry, properties: { EntityType: CLAIM, SourcePartition, SourceRow, Confirmed: false } };
    }),
  );
  const refused = new Set<LoadRow>();
  await writeBatches(storage, claims, 'insert', async ({ table, partition, actions }) => {
    for (let left = actions; left.length > 0; ) {
      signal.throwIfAborted();
      if (await trySubmit(storage, { table, partition, actions: left, isRepeatable: true })) return;
      const found = await pMap(left, ({ row }) => readRow(storage, { table, partition, row }), {
        concurrency: WRITE_CONCURRENCY,
      });
      for (const row of found) {
        const owner = row && owners.get(keyOf(row));
        if (owner && !isOwnedBy(row, owner.write.address)) refused.add(owner);
      }
      left = left.filter((_, index) => !found[index]);
    }
  });
  return refused;
}

/** Deletes the rows of unique indexes that rejected rows have left, but for those of entities that have their keys. */
async function release({ engine, entity }: Load, rows: readonly LoadRow[]): Promise<void> {
  const { storage } = engine;
  await pMap(
    rows.filter(({ unique }) => unique.length > 0),
    async ({ write: { address }, unique }) => {
      const kept = indexEntriesOf(entity, (await readLive(engine, entity, address))?.values);
      for (const entry of unique.filter((one) => !kept.some((other) => isSameEntry(one, other)))) {
        const row = await readRow(storage, entry);
        if (row && isOwnedBy(row, address)) await deleteSame(storage, row, (same) => isOwnedBy(same, address));
      }
    },
    { concurrency: WRITE_CONCURRENCY },
  );
}

/** Writes the entries of entities in other partitions. */
async function writeEntries({ engine, entity, shared, signal }: Load, stored: readonly StoredEntity[]): Promise<void> {
  await writeDerived(engine, entity, stored, { isLeft: ({ table }) => shared.has(table), signal });
  if (shared.size === 0) return;
  await pMap(
    stored,
    async ({ address, values }) => {
      const indexEntries = indexEntriesOf(entity, values).filter(({ table }) => shared.has(table));
      if (indexEntries.length > 0) await settleEntries(engine, entity, address, { indexEntries, isRepair: false });
    },
    { concurrency: WRITE_CONCURRENCY },
  );
}

const markOf = ({ name }: Entity): Address => ({
  table: SYSTEM_TABLE,
  partition: SYSTEM_PARTITIONS.load,
  row: name,
});

/** So long a run that was killed keeps others from beginning. */
const HELD_MS = 60_000;
const RENEWED_MS = 15_000;

/** Returns the id of the load that a former run has begun, or of a new one, and that of this run. Throws `wrong-operation` and `busy`. */
async function begin(
  engine: Engine,
  entity: Entity,
): Promise<Pick<Load, 'id' | 'isResumed'> & { readonly run: string }> {
  const { storage } = engine;
  const { name, table } = entity;
  if (!canBulkLoad(entity))
    throw new RowkeyError(
      'wrong-operation',
      `${name} is a series, an archive, or in tables of periods or of another program. Create its entities one by one.`,
    );
  await requireRekeyed(engine, entity);
  const mark = markOf(entity);
  const { result: found, attempt } = await withAttempt(() => readRow(storage, mark));
  // Both times are of the clock of the account that has the mark.
  const heldUntil = Date.parse(timeOf(found?.etag) ?? '') + HELD_MS;
  if (found?.properties.Run && Date.parse(attempt?.date ?? '') < heldUntil) throw otherRun(entity);
  const { rows } = found ? { rows: [] } : await scanTable(storage, { table, type: name, limit: 1 });
  if (rows.length > 0)
    throw new RowkeyError(
      'wrong-operation',
      `The table ${storage.table(table).tableName} has rows of ${name}. Load an entity that has none.`,
    );
  const run = randomUUID();
  const id = found ? String(found.properties.Load) : run;
  const { row } = mark;
  const properties = { EntityType: ROW_TYPES.load, Load: id, Run: run };
  const action: Action = found
    ? { kind: 'replace', row, properties, etag: found.etag }
    : { kind: 'insert', row, properties };
  if (!(await tryAction(storage, mark, action))) throw otherRun(entity);
  return { id, run, isResumed: found !== undefined };
}

function otherRun({ name }: Entity): RowkeyError {
  return busy(`Another run loads ${name}, or was killed in the last ${HELD_MS / 1_000} seconds.`);
}

/**
 * Keeps other runs from beginning, until this one ends. The mark of a load that is not done stays. `lost` is aborted with `busy` if this process stood
 * still for so long that another run has begun.
 */
function keepRunning({ storage }: Engine, entity: Entity, run: string) {
  const mark = markOf(entity);
  const losing = new AbortController();
  const isOwn = ({ properties: { Run } }: Pick<Row, 'properties'>) => Run === run;
  const findOwn = async () => {
    const found = await readRow(storage, mark);
    return found && isOwn(found) ? found : undefined;
  };
  const write = async (Run: string) => {
    const found = await findOwn();
    if (!found) return losing.abort(otherRun(entity));
    await tryAction(storage, mark, { kind: 'merge', row: mark.row, properties: { Run }, etag: found.etag });
  };
  let renewing: Promise<unknown> | undefined;
  const timer = setInterval(() => {
    renewing = write(run).catch(() => undefined);
  }, RENEWED_MS);
  timer.unref();
  return {
    lost: losing.signal,
    async end(isDone: boolean): Promise<void> {
      clearInterval(timer);
      await renewing;
      // Why the load is not done matters more.
      if (!isDone) return void (await write('').catch(() => undefined));
      const found = await findOwn();
      if (found) await deleteSame(storage, found, isOwn);
    },
  };
}
