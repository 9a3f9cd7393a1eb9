import { hasCode } from '../../base/errors.ts';
import { isSame } from '../../base/is-same.ts';
import type { Values } from '../../base/values.ts';
import {
  currentValues,
  PLACEHOLDER,
  storedVersion,
  TOMBSTONE,
  toSnapshot,
  toValues,
} from '../../define/codec/entity-codec.ts';
import { type Live, liveValues, type Snapshot } from '../../define/declaration/change.ts';
import type { Hold } from '../../define/declaration/engine.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import type { IndexEntry } from '../../define/declaration/projection.ts';
import {
  indexEntriesOf,
  isConfirmed,
  isContested,
  isCopy,
  isSameEntry,
  remoteIndexOf,
} from '../../define/places/index-entries.ts';
import { isExplaining } from '../../storage/explain.ts';
import { isMarked } from '../../storage/row-marks.ts';
import {
  type Action,
  type Address,
  deleteSame,
  type Properties,
  type Row,
  readRow,
  tryAction,
  trySubmit,
} from '../../storage/rows.ts';
import { inPattern } from '../../telemetry/span.ts';
import type { Engine } from '../engine.ts';
import { unlessTableMissing } from '../period-tables.ts';
import { readJoinedRow } from '../read/entity-rows.ts';
import { allEnded, deleteEntries, deleteTogether } from './delete-together.ts';
import { holdFor } from './hold.ts';
import type { Intent, IntentItem } from './intent.ts';
import { hasLiveClaim, isOwnedBy } from './unique-claim.ts';

/**
 * Eventually consistent transactions pattern, the reconciler's side: makes the index entries that an intent names agree with
 * the current state of their entity, in any order and number of intents.
 *
 *   only the entries that the intent names, concurrently, of two kinds:
 *   owned entries       read the entity -> write each entry under its own ETag; conflict: start over
 *                       -> read the entity again; changed: start over
 *   contested entries   read the row -> a live claim of another intent: leave the row -> only then read the entity
 *                       -> write under the row's ETag; conflict: read the row again; never create the row
 *                       -> the intent's own claim was confirmed: read the entity again; changed: start over
 *   tombstone           deleted when every named entry agrees, unless the writer has left entries to the queue; also under the ETag that a move to
 *                       another account has given it, as nobody else will do it
 *   several entities    the entries of deleted ones that are in one partition, and tombstones, are deleted in transactions under the
 *                       ETags that were read; after a conflict one by one, as above
 *
 * A writer that has just committed reconciles its own intent, which is still hidden: its commit replaces the first read of the
 * entity, and its claim replaces the read of the row.
 *
 * The second read of the entity makes reordered intents safe. Contested entries are safe without it, unless another reconciler
 * may have left the row to the claim.
 */

export interface ReconcileOptions {
  /** The hold on the intent's message. */
  readonly hold: Hold;
  /** The writer's own commit, if a writer reconciles its own intent. */
  readonly written?: Written | undefined;
  /** Rows of entities whose writer sends another message for other entries. That message deletes their tombstones. */
  readonly leftRows?: ReadonlySet<string>;
  /** True for a repair of the consistency check: see `SharedPart`. */
  readonly isRepair?: boolean;
}

/** A committed entity group transaction, which replaces the reconciler's first reads. */
export interface Written {
  /** The committed state of each entity, by row key. */
  readonly entities: ReadonlyMap<string, Committed>;
  /** The claimed rows of unique indexes. */
  readonly claimed: readonly Row[];
}

interface Committed {
  readonly etag: string;
  /** Undefined for an entity that was deleted. */
  readonly values: Values | undefined;
  /** True if nothing was stored under its key before, so that index entries are probably new too. */
  readonly isNew?: boolean;
}

/** Reconciles the items of an intent. Throws if it must be retried. */
export const reconcile = inPattern(
  'reconcile',
  async (
    engine: Engine,
    entity: Entity,
    {
      intent,
      table,
      items,
      isNew = false,
    }: Pick<Intent, 'intent' | 'table' | 'isNew'> & { readonly items: readonly IntentItem[] },
    options: ReconcileOptions,
  ): Promise<void> => {
    const work: Work = { engine, entity, intent, isNew, ...options };
    if (items.length === 1) {
      const [item] = items;
      return item && reconcileEntity(work, { ...item, table }, item.indexEntries);
    }
    const tombstones: Row[] = [];
    const begun = await beginTogether(work, table, items);
    await allEnded(begun, ({ item, ...first }) =>
      reconcileEntity({ ...work, tombstones }, { ...item, table }, item.indexEntries, first),
    );
    const refused = await deleteTogether(engine.storage, work.hold, tombstones);
    const again = items.filter((item) =>
      refused.some((row) => row.partition === item.partition && row.row === item.row),
    );
    await allEnded(again, (item) => reconcileEntity(work, { ...item, table }, item.indexEntries));
  },
);

interface Work extends ReconcileOptions {
  readonly engine: Engine;
  readonly entity: Entity;
  readonly intent: string;
  /** True if the index entries are probably new. */
  readonly isNew: boolean;
  /** Collects the tombstones of several entities, which are deleted together. */
  readonly tombstones?: Row[];
}

/** The state of an entity when its reconciliation begins. */
interface First {
  readonly before: Committed;
  /** True if the entity is deleted, and its tombstone only waits for its entries. */
  readonly isTombstone: boolean;
  /** The entries that agree with the entity already. */
  readonly settled: ReadonlySet<IndexEntry>;
}

/** Reads several entities, and deletes the entries of deleted ones together. */
async function beginTogether(
  work: Work,
  table: string,
  items: readonly IntentItem[],
): Promise<readonly (First & { readonly item: IntentItem })[]> {
  const { engine, entity, isNew, written, hold } = work;
  const begun = await allEnded(items, async (item) => {
    const address = { table, partition: item.partition, row: item.row };
    const committed = written?.entities.get(item.row);
    if (committed) return { item, address, before: committed, isTombstone: false };
    const snapshot = await readSnapshot(work, address);
    const isTombstone = snapshot.state === 'tombstone' && !snapshot.movedTo;
    return { item, address, before: { ...toCommitted(snapshot), isNew }, isTombstone };
  });
  const known = begun.flatMap((one) => one ?? []);
  const left = known
    .filter(({ before }) => !before.values)
    .flatMap(({ item, address }) => item.indexEntries.map((indexEntry) => ({ address, indexEntry })))
    .filter(({ indexEntry }) => !isContested(entity, indexEntry) && !remoteIndexOf(entity, indexEntry)?.merge);
  const isOwn = (row: Row, address: Address) => isEntryOf(entity, address, row);
  const settled = await deleteEntries(engine.storage, hold, { left, isOwn });
  return known.map(({ address: _, ...one }) => ({ ...one, settled }));
}

async function reconcileEntity(
  work: Work,
  { table, partition, row }: Address,
  named: readonly IndexEntry[],
  begun?: First,
): Promise<void> {
  const { engine, entity, hold } = work;
  const address = { table, partition, row };
  // Contested index entries only: if the entity changed while another entry was written, no message would name that entry any more.
  const contested = named.filter((indexEntry) => isContested(entity, indexEntry));
  let committed = work.written?.entities.get(row);
  let first = begun;
  const isWanted = wantedBy(entity);
  for (let { isNew } = work; ; isNew = false) {
    // A commit replaces the first read, because every write below comes after it.
    const before = committed ?? first?.before ?? { ...toCommitted(await readSnapshot(work, address)), isNew };
    const known = committed;
    const { settled: done, isTombstone = false } = first ?? {};
    const settled = await allEnded(named, async (indexEntry) => {
      if (done?.has(indexEntry)) return 'settled';
      if (contested.includes(indexEntry)) return settleContested({ ...work, isWanted }, address, indexEntry, known);
      return (await settleOwn({ ...work, isWanted }, { address, of: before, indexEntry })) ? 'settled' : 'conflict';
    });
    first = undefined;
    if (settled.includes('conflict')) {
      committed = undefined;
      continue;
    }
    // Deleted under the ETag that was read: that the entity is unchanged needs no other read.
    if (isTombstone && work.tombstones && !work.leftRows?.has(row)) {
      work.tombstones.push({ ...address, etag: before.etag, properties: {} });
      return;
    }
    // Only a deleted entity has a tombstone.
    const isJudged = contested.length === named.length && !settled.includes('claim confirmed');
    if (before.values && isJudged) return;
    const after = await readSnapshot(work, address);
    const isExplained = committed !== undefined && isExplaining();
    committed = undefined;
    if (toCommitted(after).etag !== before.etag && !isExplained) continue;
    // A move deletes its own tombstone.
    const isDeleted = isExplained ? before.values === undefined : after.state === 'tombstone' && !after.movedTo;
    if (isDeleted && !work.leftRows?.has(row)) {
      if (work.tombstones) work.tombstones.push({ ...address, etag: before.etag, properties: {} });
      else {
        const tombstone = { ...address, etag: before.etag, signal: await hold.keep() };
        const isSame = ({ properties: { EntityType, WriteId } }: Row) =>
          EntityType === TOMBSTONE && after.state === 'tombstone' && WriteId === after.writeId;
        await deleteSame(engine.storage, tombstone, isSame);
      }
    }
    return;
  }
}

type IsWanted = (values: Values | undefined, indexEntry: IndexEntry) => values is Values;

/** Tells whether an entity with some values has an entry. The entries of the last values are kept, because all entries of a change ask. */
function wantedBy(entity: Entity): IsWanted {
  let last: { readonly values: Values; readonly entries: readonly IndexEntry[] } | undefined;
  return (values, indexEntry): values is Values => {
    if (!values) return false;
    if (last?.values !== values) last = { values, entries: indexEntriesOf(entity, values) };
    return last.entries.some((other) => isSameEntry(other, indexEntry));
  };
}

/** Settles an entry that only this entity writes. False if the row changed concurrently. */
async function settleOwn(
  { engine, entity, hold, isWanted, isRepair = false }: Work & { readonly isWanted: IsWanted },
  {
    address,
    of: { values, isNew = false },
    indexEntry,
  }: {
    readonly address: Address;
    readonly of: Committed;
    readonly indexEntry: IndexEntry;
  },
): Promise<boolean> {
  const remote = remoteIndexOf(entity, indexEntry);
  const isNeeded = isWanted(values, indexEntry);
  const properties = isNeeded ? remote?.properties?.(values) : undefined;
  const isOwn = (row: Row) => isEntryOf(entity, address, row);
  if (remote?.merge)
    return remote.merge.settle(engine.storage, indexEntry, { isWanted: isNeeded, properties, isOwn, hold, isRepair });
  if (!properties) {
    const row = await readRow(engine.storage, indexEntry);
    if (!row || !isOwn(row)) return true;
    const where = { ...indexEntry, signal: await hold.keep() };
    return tryAction(engine.storage, where, { kind: 'delete', row: indexEntry.row, etag: row.etag });
  }
  const insert = async () => {
    const where = { ...indexEntry, signal: await hold.keep() };
    return tryAction(engine.storage, where, { kind: 'insert', row: indexEntry.row, properties });
  };
  if (isNew && (await insert())) return true;
  const row = await readRow(engine.storage, indexEntry);
  if (!row) return insert();
  // The row of another program stays, and the other entries are settled: the consistency check reports a conflict.
  if (!isMarked(row.properties)) return true;
  // The row is written even if it is right: a stalled reconciler may be about to delete it under its ETag, on behalf of a change
  // that another one has undone.
  const where = { ...indexEntry, signal: await hold.keep() };
  return tryAction(engine.storage, where, { kind: 'replace', row: indexEntry.row, properties, etag: row.etag });
}

/**
 * Settles a contested row: confirms or deletes it, never creates it. The row is read before the entity. The
 * claim of a writer that has committed since replaces both reads. A change of the entity between the two and the write leaves
 * the row to the claim of this intent, so the entity is read again after 'claim confirmed'.
 */
async function settleContested(
  work: Work & { readonly isWanted: IsWanted },
  address: Address,
  indexEntry: IndexEntry,
  committed: Committed | undefined,
): Promise<'settled' | 'claim confirmed'> {
  const { engine, entity, hold, written } = work;
  let claimed =
    committed && written?.claimed.find((row) => isSameEntry({ ...row, index: indexEntry.index }, indexEntry));
  for (;;) {
    // No claim can be in a table that does not exist, so a rejected write leaves nothing to settle.
    const row = claimed ?? (await unlessTableMissing(readRow(engine.storage, indexEntry), undefined));
    if (!row || !isEntryOf(entity, address, row)) return 'settled';
    if (hasLiveClaim(row, work, engine)) return 'settled';
    const read = claimed ? undefined : await readSnapshot(work, address);
    // An explanation has not committed, so there is nothing to read.
    const values = read && !(committed && isExplaining()) ? liveValues(read) : committed?.values;
    claimed = undefined;
    const where = { ...indexEntry, signal: await hold.keep() };
    if (!work.isWanted(values, indexEntry)) {
      if (await tryAction(engine.storage, where, { kind: 'delete', row: indexEntry.row, etag: row.etag }))
        return 'settled';
      continue;
    }
    const properties = confirmedRow(entity, values, indexEntry);
    if (isConfirmed(row) && !row.properties.Claim && sameCopy(entity, row, properties)) return 'settled';
    if (await tryAction(engine.storage, where, { kind: 'replace', row: indexEntry.row, properties, etag: row.etag }))
      return row.properties.Claim === work.intent ? 'claim confirmed' : 'settled';
  }
}

/** The row of a unique index after its entity is committed. */
export function confirmedRow(entity: Entity, values: Values, indexEntry: IndexEntry): Properties {
  return { ...remoteIndexOf(entity, indexEntry)?.properties?.(values), Confirmed: true };
}

/**
 * True if the row is the expected copy and belongs to the expected entity. A copy of an earlier version is not: it may lack fields
 * that an upgrade uses.
 */
export function sameCopy(entity: Entity, row: Row, expected: Properties): boolean {
  return (
    isCopyOf(row, expected) &&
    storedVersion(entity, row.properties) >= entity.version &&
    isSame(currentValues(entity, row.properties), currentValues(entity, expected))
  );
}

/**
 * True if reads of the row, a copy of an earlier version, return what those of its entity do: they upgrade a full copy, and follow
 * a partial one.
 */
export function isUpgradable(
  entity: Entity,
  row: Row,
  { expected, isPartial = false }: { readonly expected: Properties; readonly isPartial?: boolean | undefined },
): boolean {
  if (storedVersion(entity, row.properties) >= entity.version) return false;
  if (!isCopyOf(row, expected)) return false;
  if (isPartial) return true;
  try {
    return isSame(toValues(entity, row.properties), toValues(entity, expected));
  } catch {
    // The index had partial copies when the row was written.
    return false;
  }
}

/** Reads by an index leave out a row of another type. */
function isCopyOf(row: Row, { EntityType, SourcePartition, SourceRow }: Properties): boolean {
  const owner = { partition: String(SourcePartition), row: String(SourceRow) };
  return row.properties.EntityType === EntityType && isOwnedBy(row, owner);
}

/** True if the row is a copy or a claim of this entity. Nothing else is deleted. */
function isEntryOf({ name }: Entity, address: Address, row: Row): boolean {
  const { EntityType } = row.properties;
  return (EntityType === name || EntityType === 'claim') && isOwnedBy(row, address);
}

/** Reads the entity. A row of another type, or a copy, counts as absent. */
async function readSnapshot({ engine, entity }: Work, address: Address): Promise<Snapshot> {
  const row = await readJoinedRow(engine, entity, address);
  const type = row?.properties.EntityType;
  const isDeleted = type === TOMBSTONE || type === PLACEHOLDER;
  const isLive = type === entity.name && row !== undefined && !isCopy(row);
  return toSnapshot(entity, isDeleted || isLive ? row : undefined);
}

function toCommitted(snapshot: Snapshot): Committed {
  return { etag: snapshot.state === 'absent' ? '' : snapshot.etag, values: liveValues(snapshot) };
}

/** Repairs of the consistency check. They are safe beside concurrent writers. */

/**
 * The id under which a check works on an entity and claims rows of unique indexes. All checks share it, so the claim of a
 * check that died does not block the next one. No check writes an entity, so sharing is safe.
 */
export function repairIntent({ partition, row }: Pick<Address, 'partition' | 'row'>): string {
  return JSON.stringify(['audit', partition, row]);
}

/** Makes index entries agree with their entity. False if a list that contains the entity is lost. */
export function repairEntries(
  engine: Engine,
  entity: Entity,
  address: Address,
  ...indexEntries: readonly IndexEntry[]
): Promise<boolean> {
  return settleEntries(engine, entity, address, { indexEntries, isRepair: true });
}

/** Makes index entries agree with their entity: a repair, or a part of the build of an index, whose totals grow with their contributions. */
export async function settleEntries(
  engine: Engine,
  entity: Entity,
  { table, partition, row }: Address,
  { indexEntries, isRepair }: { readonly indexEntries: readonly IndexEntry[]; readonly isRepair: boolean },
): Promise<boolean> {
  const intent = repairIntent({ partition, row });
  const items = [{ partition, row, indexEntries }];
  try {
    await reconcile(engine, entity, { intent, table, items }, { hold: holdFor(engine), isRepair });
    return true;
  } catch (error) {
    if (hasCode(error, 'needs-repair')) return false;
    throw error;
  }
}

/** Changes a sibling row if neither the row nor its entity has changed since they were read. */
export async function repairSibling(
  { storage }: Engine,
  { table, partition, row }: Address,
  { etag }: Live,
  action: Action,
): Promise<boolean> {
  const touch: Action = { kind: 'merge', row, properties: { TouchedBy: 'audit' }, etag };
  return (await trySubmit(storage, { table, partition, actions: [touch, action] })) !== undefined;
}
