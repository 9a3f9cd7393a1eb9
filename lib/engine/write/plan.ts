import { isDeepStrictEqual } from 'node:util';
import { busy, RowkeyError } from '../../base/errors.ts';
import { onceFor } from '../../base/once.ts';
import type { Values } from '../../base/values.ts';
import { fieldsToProperties, TOMBSTONE, toProperties, toSnapshot } from '../../define/codec/entity-codec.ts';
import {
  type Change,
  liveValues,
  type PlanDraft,
  type PlannedAction,
  type Siblings,
  type SystemProperties,
} from '../../define/declaration/change.ts';
import { type Entity, hasRowsBeside } from '../../define/declaration/entity.ts';
import type { IndexEntry, Projection } from '../../define/declaration/projection.ts';
import {
  indexEntriesOf,
  isContested,
  isSameEntry,
  isSibling,
  projectionsByFeature,
  projectionsOf,
  remoteIndexesOf,
} from '../../define/places/index-entries.ts';
import {
  type Action,
  type Address,
  ANY_ETAG,
  MAX_TRANSACTION_ACTIONS,
  MAX_TRANSACTION_BYTES,
  type Properties,
  transactionBytes,
} from '../../storage/rows.ts';
import type { IntentItem } from '../reconcile/intent.ts';
import { duplicateEntry, EntityChanged } from './conflict.ts';
import { planFurtherRows } from './further-rows.ts';

/**
 * Planning is pure. From the state that was read and the wanted state, it computes the actions of one entity group
 * transaction and the index entries outside the partition. Several changes of one partition, as in an import, make one
 * plan. Each feature plans its own rows.
 */

/** The changes do not fit into one transaction or intent. */
export class PlanTooLarge extends RowkeyError {
  /** The share of the changes that may fit. */
  readonly share: number;

  constructor(
    message: string,
    {
      needed,
      limit,
      accepted = 'fewer or shorter entities or index entries at once',
    }: { readonly needed: number; readonly limit: number; readonly accepted?: string },
  ) {
    super('too-large', message, { accepted });
    this.share = limit / needed;
  }
}

/** Splits two or more changes that failed together: into halves, or into parts that may fit into a transaction. */
export function splitAfter<Change>(error: unknown, changes: readonly Change[]): Change[][] {
  const share = error instanceof PlanTooLarge ? error.share : 1 / 2;
  const size = Math.min(changes.length - 1, Math.max(1, Math.floor(changes.length * share)));
  return Array.from({ length: Math.ceil(changes.length / size) }, (_, part) =>
    changes.slice(part * size, (part + 1) * size),
  );
}

export interface Plan {
  readonly actions: readonly PlannedAction[];
  /** The items of the intent: the entities whose remote index entries or tombstones the reconciler must settle. */
  readonly items: readonly IntentItem[];
  /** True if nothing was stored under the keys of the entities. */
  readonly isNew: boolean;
  /** Entities on which others of any partition depend and whose change must reach them. */
  readonly fanOut: readonly Pick<Address, 'partition' | 'row'>[];
  /** The `items` and `fanOut` of the entities of other declarations that the plan changes. */
  readonly dependents: readonly (Pick<Plan, 'items' | 'fanOut'> & { readonly entity: Entity })[];
  /** Contested rows to claim before the transaction. */
  readonly claims: readonly { readonly indexEntry: IndexEntry; readonly owner: Address }[];
  /** The properties of each entity that are not in its own row, by row key. */
  readonly further: ReadonlyMap<string, Properties>;
}

/** The id and the time of a write, in milliseconds, and the related rows that it has read. */
export type WriteMark = Pick<PlanDraft, 'writeId' | 'now'> & Partial<Pick<PlanDraft, 'related'>>;

/** The keys of the rows that must be read before these changes are planned. */
export function siblingRowsOf(entity: Entity, changes: readonly Change[]): string[] {
  const acting = actingOf(changes);
  const rows = entity.features.flatMap(({ write }) =>
    acting.flatMap((change) => [...(write?.siblings?.(entity, change) ?? [])]),
  );
  return [...new Set([...rows, ...acting.flatMap((change) => listRowsOf(entity, change))])];
}

/** The changes that have an effect. */
export function actingOf(changes: readonly Change[]): Change[] {
  return changes.filter(({ isUnchanged }) => !isUnchanged);
}

/** Throws `invalid-input` or `too-large` if the changes are impossible, and `EntityChanged` if an unchanged entity has changed. */
export function planPartition(entity: Entity, given: readonly Change[], siblings: Siblings, mark: WriteMark): Plan {
  const draft: PlanDraft = { related: new Map(), ...mark, siblings, actions: [], dependents: [] };
  const changes = actingOf(given).map((change) => complete(entity, change, draft));
  const planned = changes.map((change) => ({ change, rows: planFurtherRows(entity, change, mark.writeId) }));
  for (const { change, rows } of planned)
    draft.actions.push({ action: entityAction(entity, change, rows, mark.writeId), part: { of: 'entity' } });
  for (const { rows } of planned) draft.actions.push(...rows.actions);
  for (const [{ write }, projections] of projectionsByFeature(entity)) {
    planProjections(projections, changes, draft);
    write?.plan?.(entity, changes, draft);
  }
  for (const change of given) if (change.isUnchanged) requireUnchanged(change, draft);
  const { actions } = draft;
  // A transaction may contain a row only once. Two entities that swap a value, or want the same value, fail here.
  if (new Set(actions.map(({ action }) => action.row)).size < actions.length)
    throw new RowkeyError(
      'duplicate-value',
      'Two entities of the same batch need the same row: their keys or unique values are equal.',
    );
  if (actions.length > MAX_TRANSACTION_ACTIONS)
    throw new PlanTooLarge(
      `The change needs ${actions.length} rows in one transaction; at most ${MAX_TRANSACTION_ACTIONS} are possible.`,
      { needed: actions.length, limit: MAX_TRANSACTION_ACTIONS },
    );
  // A part of a sibling row may be stored in a blob, so these rows are measured before they are sent.
  const measured = actions.filter(({ part }) => part.of !== 'sibling').map(({ action }) => action);
  checkTransactionBytes(given[0]?.address.partition ?? '', measured);
  const followed = changes.map((change) => follow(entity, change));
  const claims = followed.flatMap((change) => claimsOf(entity, change));
  const twice = claims.find(
    ({ indexEntry }, at) => claims.findIndex((other) => isSameEntry(indexEntry, other.indexEntry)) < at,
  );
  if (twice) throw duplicateEntry(entity, twice.indexEntry);
  return {
    actions,
    further: new Map(planned.map(({ change, rows }) => [change.address.row, rows.properties])),
    ...followUp(entity, followed),
    dependents: followDependents(entity, given, draft),
    isNew: changes.every(({ before }) => before.state === 'absent'),
    claims,
  };
}

/** Adds the write of an entity that the transaction leaves as it is: it gets the id of the write, under its ETag. */
function requireUnchanged({ address: { row }, before }: Change, { actions, writeId }: PlanDraft): void {
  if (before.state !== 'live') return;
  const { etag } = before;
  const properties = { WriteId: writeId };
  // A feature may write the row already, as it was read then.
  const other = actions.find(({ action }) => action.row === row)?.action;
  if (!other) actions.push({ action: { kind: 'merge', row, properties, etag }, part: { of: 'entity' } });
  else if ('properties' in other && 'etag' in other && other.etag === etag) Object.assign(other.properties, properties);
  else throw new EntityChanged();
}

/** Throws `too-large`. The emulator accepts transactions of any size. */
export function checkTransactionBytes(partition: string, actions: readonly Action[]): void {
  const needed = transactionBytes(partition, actions);
  if (actions.length > 1 && needed > MAX_TRANSACTION_BYTES)
    throw new PlanTooLarge(
      `The change needs ${needed} bytes in one transaction; at most ${MAX_TRANSACTION_BYTES} are possible.`,
      { needed, limit: MAX_TRANSACTION_BYTES },
    );
}

/** The change with the fields that features set. */
function complete(entity: Entity, change: Change, draft: PlanDraft): Change {
  let { after } = change;
  for (const { write } of entity.features)
    if (after) after = write?.complete?.(entity, { ...change, after }, draft) ?? after;
  return { ...change, after };
}

interface Followed extends Change {
  readonly entries: ChangeOfEntries;
}

/** The change with the index entries that it may concern. */
function follow(entity: Entity, change: Change): Followed {
  return { ...change, entries: entriesOfChange(entity, liveValues(change.before), change.after) };
}

/** The work outside the partition that follows from changes. */
function followUp(entity: Entity, changes: readonly Followed[]): Pick<Plan, 'items' | 'fanOut'> {
  return {
    items: changes.flatMap((change) => intentItem(entity, change) ?? []),
    fanOut: changes
      .filter((change) => entity.features.some(({ fanOut }) => fanOut?.isNeeded(entity, change)))
      .map(({ address: { partition, row } }) => ({ partition, row })),
  };
}

function followDependents(entity: Entity, [first]: readonly Change[], { dependents, siblings }: PlanDraft) {
  return dependents.flatMap(({ entity: name, row, after }): Plan['dependents'] => {
    const target = entity.dependents.map((link) => link.target()).find((each) => each.name === name);
    if (!first || !target) return [];
    const change = { address: { ...first.address, row }, before: toSnapshot(target, siblings.get(row)), after };
    const { items, fanOut } = followUp(target, [follow(target, change)]);
    return items.length + fanOut.length > 0 ? [{ entity: target, items, fanOut }] : [];
  });
}

function intentItem(entity: Entity, change: Followed): IntentItem | undefined {
  const { partition, row } = change.address;
  const { before, entries } = change;
  // Entries of an earlier version were made of other values.
  const isUpgraded = before.state === 'live' && before.system.EntityVersion !== entity.version;
  const indexEntries = isUpgraded ? unionOfEntries(entries.former, entries.next) : changedEntries(entity, entries);
  return indexEntries.length > 0 || leavesTombstone(entity, change) ? { partition, row, indexEntries } : undefined;
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
    ({ properties }) => before && after && !isDeepStrictEqual(properties?.(before), properties?.(after)),
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
function claimsOf(entity: Entity, { address: owner, entries, arrival }: Followed): Plan['claims'] {
  if (arrival) return [];
  const isHeld = (indexEntry: IndexEntry) => entries.former.some((other) => isSameEntry(indexEntry, other));
  return entries.next
    .filter((indexEntry) => isContested(entity, indexEntry) && !isHeld(indexEntry))
    .map((indexEntry) => ({ indexEntry, owner }));
}

/** A delete of more than one row leaves a tombstone, which the reconciler of its intent removes. */
function leavesTombstone(entity: Entity, change: Change): boolean {
  // No intent is sent for a row that is never deleted.
  if (change.after || remainsOf(entity, change)) return false;
  const { before, movedTo } = change;
  const hasFurtherRows = before.state === 'live' && before.system.FurtherRows !== undefined;
  return movedTo !== undefined || hasFurtherRows || entity.features.some(hasRowsBeside);
}

/** The properties of a row that permanently replaces the deleted entity. */
function remainsOf(entity: Entity, { before, after }: Change): Properties | undefined {
  if (after || before.state !== 'live') return undefined;
  return entity.features.map(({ write }) => write?.remains?.properties(entity, before)).find((remains) => remains);
}

function entityAction(
  entity: Entity,
  change: Change,
  rows: ReturnType<typeof planFurtherRows>,
  writeId: string,
): Action {
  const { address, before, after, arrival } = change;
  const { row } = address;
  if (before.state === 'unread') return unreadAction(entity, change, before.etag, writeId);
  // Until an arriving entity is opened, only its own move may write it, or delete it.
  if (before.state === 'live' && before.system.MovingFrom && !arrival)
    throw busy('The entity is being moved to this partition.');
  if (!after) {
    if (before.state !== 'live') throw new RowkeyError('not-found', `${entity.name} entity not found.`);
    const remains = remainsOf(entity, change);
    if (remains) return { kind: 'replace', row, properties: { WriteId: writeId, ...remains }, etag: before.etag };
    // A single operation can be conditional, a delete inside a transaction cannot: hence the tombstone.
    if (!leavesTombstone(entity, change)) return { kind: 'delete', row, etag: before.etag };
    const properties = { EntityType: TOMBSTONE, WriteId: writeId, MovedTo: change.movedTo ?? '' };
    return { kind: 'replace', row, properties, etag: before.etag };
  }
  if (before.state === 'tombstone' && before.movedTo) throw busy('The entity with this key is being moved.');
  const kept: Partial<SystemProperties> = before.state === 'live' ? before.system : {};
  const system = {
    WriteId: writeId,
    Incarnation: arrival?.incarnation ?? kept.Incarnation ?? change.incarnation ?? writeId,
    ...(kept.DenormalizedTo ? { DenormalizedTo: kept.DenormalizedTo } : {}),
    ...(arrival ? { MovingFrom: arrival.movingFrom } : {}),
    ...rows.system,
  };
  const properties = toProperties(entity, rows.own, system);
  return before.state === 'absent'
    ? { kind: 'insert', row, properties }
    : { kind: 'replace', row, properties, etag: before.etag };
}

/** The write of a row that was not read. */
function unreadAction(
  entity: Entity,
  { address: { row }, after, isPartial }: Change,
  etag: string | undefined,
  writeId: string,
): Action {
  if (!after) return { kind: 'delete', row, ...(etag === undefined ? {} : { etag }) };
  if (isPartial) {
    const properties = { ...fieldsToProperties(entity, after), WriteId: writeId };
    return { kind: 'merge', row, properties, etag: etag ?? ANY_ETAG };
  }
  const properties = toProperties(entity, after, { WriteId: writeId, Incarnation: writeId });
  return etag === undefined ? { kind: 'upsert', row, properties } : { kind: 'replace', row, properties, etag };
}

/** Plans the rows in the partition that follow from its entities: copies and lists. */

/** The row keys of the lists that an entity leaves or joins. They must be read before the change is planned. */
function listRowsOf(entity: Entity, change: Change): string[] {
  return listsOf(entity).flatMap((projection) => {
    const { left, joined } = compareRows(projection, change);
    return [...left, ...joined].map(({ row }) => row);
  });
}

const listsOf = onceFor((entity: Entity) =>
  projectionsOf(entity).filter((projection) => isSibling(projection) && projection.merge?.list),
);

/** Appends the actions of the projections of a feature for all changes of one partition. Pure. */
function planProjections(projections: readonly Projection[], changes: readonly Change[], draft: PlanDraft): void {
  const siblings = projections.filter(isSibling);
  if (siblings.length === 0) return;
  for (const change of changes)
    for (const projection of siblings) if (!projection.merge) planCopies(projection, change, draft);
  planLists(siblings, changes, draft);
}

/** A new copy is inserted, so that another entity's copy of the same key is a conflict and never overwritten. */
function planCopies(projection: Projection, change: Change, { actions }: PlanDraft): void {
  const { left, joined, kept } = compareRows(projection, change);
  const part = { of: 'copy', fields: projection.at.row.fields } as const;
  const put = (kind: 'insert' | 'upsert', { row }: IndexEntry, values: Values) =>
    actions.push({ action: { kind, row, properties: projection.properties?.(values) ?? {} }, part });
  const { after } = change;
  if (after) for (const entry of kept) put('upsert', entry, after);
  if (after) for (const entry of joined) put('insert', entry, after);
  for (const { row } of left) actions.push({ action: { kind: 'delete', row }, part });
}

/** Two indexes may have a list in one row, which a transaction can name only once. */
function planLists(
  projections: readonly Projection[],
  changes: readonly Change[],
  { siblings, actions, writeId }: PlanDraft,
): void {
  const members = changes.flatMap((change) =>
    projections.flatMap((projection) => {
      const list = projection.merge?.list;
      return list ? [{ list, ...compareRows(projection, change) }] : [];
    }),
  );
  const textsOf = (entries: readonly IndexEntry[], key: string) =>
    entries.flatMap(({ row, member }) => (row === key && member !== undefined ? [member] : []));
  for (const row of new Set(members.flatMap(({ left, joined }) => [...left, ...joined].map((entry) => entry.row)))) {
    const found = siblings.get(row);
    const add = members.flatMap(({ joined }) => textsOf(joined, row));
    const remove = members.flatMap(({ left }) => textsOf(left, row));
    const action = members[0]?.list.change(found, row, { add, remove });
    if (action) actions.push({ action, part: { of: 'sibling' } });
    // The member is already in the list. Writing the list makes a concurrent removal of the member conflict.
    else if (found && add.length > 0)
      actions.push({
        action: { kind: 'merge', row, properties: { TouchedBy: writeId }, etag: found.etag },
        part: { of: 'sibling' },
      });
  }
}

/** The rows, or members of lists, that a change removes, adds and keeps. */
function compareRows({ rows }: Projection, { before, after }: Change) {
  const values = liveValues(before);
  const former = values ? rows(values) : [];
  const next = after ? rows(after) : [];
  const [left, joined, kept]: [IndexEntry[], IndexEntry[], IndexEntry[]] = [[], [], []];
  for (const entry of former) if (!hasEntry(next, entry)) left.push(entry);
  for (const entry of next) (hasEntry(former, entry) ? kept : joined).push(entry);
  return { left, joined, kept };
}

function hasEntry(entries: readonly IndexEntry[], entry: IndexEntry): boolean {
  return entries.some((other) => isSameEntry(entry, other));
}
