import type { RowkeyError } from '../../base/errors.ts';
import { isSame } from '../../base/is-same.ts';
import type { Values } from '../../base/values.ts';
import { type Change, liveValues } from '../../define/declaration/change.ts';
import { type Entity, type EntityChange, hasRowsBeside } from '../../define/declaration/entity.ts';
import type { IndexEntry } from '../../define/declaration/projection.ts';
import { indexEntriesOf, isContested, isSameEntry, remoteIndexesOf } from '../../define/places/index-entries.ts';
import type { Address, Properties } from '../../storage/rows.ts';
import type { IntentItem } from '../reconcile/intent.ts';
import { atAction, duplicateEntry } from './conflict.ts';

/** What follows from changes outside their partition: the items of the intent, the fan-out and the claims. Pure. */

/** The work outside the partition that follows from the changes of the entities of one declaration. */
export interface FollowUp {
  readonly entity: Entity;
  /** The entities whose remote index entries or tombstones the reconciler must settle. */
  readonly items: readonly IntentItem[];
  /** Entities on which others of any partition depend and whose change must reach them. */
  readonly fanOut: readonly Pick<Address, 'partition' | 'row'>[];
}

/** A contested row that a change needs. */
export interface PlannedClaim extends Pick<EntityChange, 'entity' | 'position'> {
  readonly indexEntry: IndexEntry;
  readonly owner: Address;
}

/** A change with the index entries that it may concern. */
export interface Followed extends EntityChange {
  readonly entries: ChangeOfEntries;
}

export function follow(change: EntityChange): Followed {
  const before = liveValues(change.before);
  const entries = entriesOfChange(change.entity, before, change.after);
  if (!change.other || change.after) return { ...change, entries };
  const kept = indexEntriesOf(change.other.entity, before);
  const former = entries.former.filter((entry) => !kept.some((other) => isSameEntry(entry, other)));
  return { ...change, entries: { ...entries, former } };
}

/** The work outside the partition that follows from changes, by declaration: of a bulk load, the fan-out alone. */
export function followUpsOf(
  [first]: readonly EntityChange[],
  followed: readonly Followed[],
  { isBulk = false }: { readonly isBulk?: boolean | undefined } = {},
): FollowUp[] {
  const byEntity = Map.groupBy(followed, ({ entity }) => entity);
  const main = first?.entity;
  const entities = new Set([...(main ? [main] : []), ...byEntity.keys()]);
  return [...entities]
    .map((entity) => followUp(entity, byEntity.get(entity) ?? []))
    .map((one) => (isBulk ? { ...one, items: [] } : one))
    .filter((one) => one.entity === main || hasWork(one));
}

export function hasWork({ items, fanOut }: Pick<FollowUp, 'items' | 'fanOut'>): boolean {
  return items.length + fanOut.length > 0;
}

function followUp(entity: Entity, changes: readonly Followed[]): FollowUp {
  const items = changes.flatMap((change) => intentItem(entity, change) ?? []);
  const sources = changes.filter((change) => entity.features.some(({ fanOut }) => fanOut?.isNeeded(entity, change)));
  return {
    entity,
    items: [...Map.groupBy(items, ({ row }) => row).values()].flatMap(joinItems),
    fanOut: sources.map(({ address: { partition, row } }) => ({ partition, row })),
  };
}

/** One item for several changes of one entity. */
function joinItems([first, ...others]: readonly IntentItem[]): IntentItem[] {
  if (!first || others.length === 0) return first ? [first] : [];
  const all = [first, ...others].map(({ indexEntries }) => indexEntries);
  return [{ ...first, indexEntries: unionOfEntries(...all) }];
}

function intentItem(entity: Entity, change: Followed): IntentItem | undefined {
  const { partition, row } = change.address;
  const { before, entries } = change;
  // Entries of an earlier version were made of other values.
  const isUpgraded = before.state === 'live' && before.system.EntityVersion !== entity.version;
  const indexEntries = isUpgraded ? unionOfEntries(entries.former, entries.next) : changedEntries(entity, entries);
  // A move deletes its own tombstone.
  const isLeft = leavesTombstone(entity, change) && !(change.isRekey && change.movedTo);
  return indexEntries.length > 0 || isLeft ? { partition, row, indexEntries } : undefined;
}

/** The values of an entity before and after a change, and the index entries that follow from each. */
interface ChangeOfEntries {
  readonly before: Values | undefined;
  readonly after: Values | undefined;
  readonly former: readonly IndexEntry[];
  readonly next: readonly IndexEntry[];
}

function entriesOfChange(entity: Entity, before: Values | undefined, after: Values | undefined): ChangeOfEntries {
  return {
    before,
    after,
    former: before ? indexEntriesOf(entity, before) : [],
    next: after ? indexEntriesOf(entity, after) : [],
  };
}

/**
 * The entries that a change of an entity adds, removes or gives other properties. Another entry stays what it is, also while an
 * earlier change is still being settled: the intent of that change names it.
 */
function changedEntries(entity: Entity, { before, after, former, next }: ChangeOfEntries): IndexEntry[] {
  const isIn = (entries: readonly IndexEntry[], entry: IndexEntry) =>
    entries.some((other) => isSameEntry(other, entry));
  const changed = remoteIndexesOf(entity).filter(
    ({ properties }) => before && after && !isSame(properties?.(before), properties?.(after)),
  );
  return unionOfEntries(former, next).filter(
    (entry) => !isIn(former, entry) || !isIn(next, entry) || changed.some(({ name }) => name === entry.index),
  );
}

/** The entries of all lists without duplicates. */
function unionOfEntries(...lists: readonly (readonly IndexEntry[])[]): IndexEntry[] {
  const all = lists.flat();
  return all.filter((indexEntry, index) => all.findIndex((other) => isSameEntry(indexEntry, other)) === index);
}

/** A move hands its contested rows over. Any other write claims the rows that the entity did not have. */
export function claimsOf({ entity, position, address: owner, entries, arrival }: Followed): PlannedClaim[] {
  if (arrival) return [];
  const isHeld = (indexEntry: IndexEntry) => entries.former.some((other) => isSameEntry(indexEntry, other));
  return entries.next
    .filter((indexEntry) => isContested(entity, indexEntry) && !isHeld(indexEntry))
    .map((indexEntry) => ({ entity, position, indexEntry, owner }));
}

/** A delete of more than one row leaves a tombstone, which the reconciler of its intent removes. */
export function leavesTombstone(entity: Entity, change: Change): boolean {
  // No intent is sent for a row that is never deleted.
  if (change.after || remainsOf(entity, change)) return false;
  const { before, movedTo } = change;
  const hasFurtherRows = before.state === 'live' && before.system.FurtherRows !== undefined;
  return movedTo !== undefined || hasFurtherRows || entity.features.some(hasRowsBeside);
}

/** The properties of a row that permanently replaces the deleted entity. */
export function remainsOf(entity: Entity, { before, after }: Change): Properties | undefined {
  if (after || before.state !== 'live') return undefined;
  return entity.features.map(({ write }) => write?.remains?.properties(entity, before)).find((remains) => remains);
}

/** The error of a claim of a unique value that another entity has. */
export function duplicateClaim({ entity, position, indexEntry }: PlannedClaim): RowkeyError {
  return atAction({ position }, duplicateEntry(entity, indexEntry));
}
