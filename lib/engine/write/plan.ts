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
  whyClosed,
} from '../../define/declaration/change.ts';
import type { Entity, EntityChange } from '../../define/declaration/entity.ts';
import type { IndexEntry, Projection } from '../../define/declaration/projection.ts';
import { buildKey } from '../../define/keys/key-template.ts';
import { isSameEntry, isSibling, projectionsOf, siblingsByFeature } from '../../define/places/index-entries.ts';
import {
  type Action,
  ANY_ETAG,
  MAX_TRANSACTION_ACTIONS,
  MAX_TRANSACTION_BYTES,
  type Properties,
  transactionBytes,
  type transactionLimits,
} from '../../storage/rows.ts';
import { atAction, EntityChanged } from './conflict.ts';
import {
  claimsOf,
  duplicateClaim,
  type Followed,
  type FollowUp,
  follow,
  followUpsOf,
  leavesTombstone,
  type PlannedClaim,
  remainsOf,
} from './follow-up.ts';
import { planFurtherRows } from './further-rows.ts';
import { combineSteps, type LeftRows, leaveRows, rebase, relatedAfter, sameRow, siblingsAfter } from './steps.ts';

/**
 * Planning is pure. From the state that was read and the wanted state, it computes the actions of one entity group
 * transaction and the index entries outside the partition. Several changes of one partition, as in an import, make one
 * plan. Each feature plans its own rows. A transaction of actions that depend on each other is planned in steps: see steps.ts.
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

/** Too many rows go where an entity goes: an operation of the queue deletes or moves it, in several transactions. */
export class TooManyCarried extends PlanTooLarge {}

/** The error of a plan that does not fit: with fewer of the rows that an entity carries, it may. */
function tooLargeFor(actions: readonly PlannedAction[]): typeof PlanTooLarge {
  return actions.some(({ part }) => part.of === 'sibling' && part.isCarried) ? TooManyCarried : PlanTooLarge;
}

/** Splits two or more changes that failed together: into halves, or into parts that may fit into a transaction. */
export function splitAfter<Change>(error: unknown, changes: readonly Change[]): Change[][] {
  const share = error instanceof PlanTooLarge ? error.share : 1 / 2;
  const size = Math.min(changes.length - 1, Math.max(1, Math.floor(changes.length * share)));
  return Array.from({ length: Math.ceil(changes.length / size) }, (_, part) =>
    changes.slice(part * size, (part + 1) * size),
  );
}

/** An action, and the change that it follows from; one of them if several are planned in one step. */
interface ActionOfChange extends PlannedAction {
  readonly by: EntityChange;
}

export interface Plan {
  readonly actions: readonly ActionOfChange[];
  /** The first one is that of the declaration of the first change; the others have work. */
  readonly followUps: readonly FollowUp[];
  /** True if nothing was stored under the keys of the entities. */
  readonly isNew: boolean;
  /** Contested rows to claim before the transaction. */
  readonly claims: readonly PlannedClaim[];
  /** The properties of each entity that are not in its own row, by row key. */
  readonly further: ReadonlyMap<string, Properties>;
}

/** The id and the time of a write, in milliseconds, the related rows that it has read, and the limits of its transaction. */
export type WriteMark = Pick<PlanDraft, 'writeId' | 'now' | 'guard' | 'isShared' | 'leavesReferences'> &
  Partial<Pick<PlanDraft, 'related'>> &
  Partial<ReturnType<typeof transactionLimits>> & {
    /** True if the caller claims the contested rows before the transaction, and writes all index entries after it. */
    readonly isBulk?: boolean | undefined;
  };

/** The keys of the rows that must be read before these changes are planned: in a shared table, all that they replace or delete. */
export function siblingRowsOf(changes: readonly EntityChange[], isShared = false): string[] {
  const rows = actingOf(changes).flatMap((change) => {
    const { entity } = change;
    const ofFeatures = entity.features.flatMap(({ write }) => [...(write?.siblings?.(entity, change) ?? [])]);
    const copies = isShared ? copyRowsOf(entity, change) : change.other ? sharedRowsOf(entity, change) : [];
    return [...ofFeatures, ...listRowsOf(entity, change), ...copies];
  });
  return [...new Set(rows)];
}

/** The changes that have an effect. */
export function actingOf<Of extends Change>(changes: readonly Of[]): Of[] {
  return changes.filter(({ isUnchanged }) => !isUnchanged);
}

/** Throws `invalid-input` or `too-large` if the changes are impossible, and `EntityChanged` if an entity has changed. */
export function planPartition(given: readonly EntityChange[], siblings: Siblings, mark: WriteMark): Plan {
  const steps = planSteps(given, siblings, mark);
  const actions = combineSteps(steps.map((step) => step.actions));
  const { mostActions: limit = MAX_TRANSACTION_ACTIONS } = mark;
  if (actions.length > limit) {
    const message = `The change needs ${actions.length} rows in one transaction; at most ${limit} are possible.`;
    throw new (tooLargeFor(actions))(message, { needed: actions.length, limit });
  }
  // A part of a sibling row may be stored in a blob, so these rows are measured before they are sent.
  const measured = actions.filter(({ part }) => part.of !== 'sibling').map(({ action }) => action);
  checkTransactionBytes(given[0]?.address.partition ?? '', measured, mark);
  const followed = steps.flatMap(({ changes }) => changes.map(follow));
  const claims = followed.flatMap(claimsOf);
  const twice = claims.find(
    ({ indexEntry }, at) => claims.findIndex((other) => isSameEntry(indexEntry, other.indexEntry)) < at,
  );
  if (twice) throw duplicateClaim(twice);
  return {
    actions,
    further: new Map(steps.flatMap((step) => step.further)),
    followUps: followUpsOf(given, [...followed, ...steps.flatMap(dependentsOf)], mark),
    isNew: steps.every(({ changes }) => changes.every(({ before }) => before.state === 'absent')),
    claims: mark.isBulk ? [] : claims,
  };
}

/** The plan of one action of a transaction, or of all changes of one entity. */
interface Step {
  readonly changes: readonly EntityChange[];
  readonly actions: readonly ActionOfChange[];
  readonly further: readonly (readonly [row: string, Properties])[];
  readonly draft: PlanDraft;
}

/** Plans the actions of a transaction one after the other, and changes of one entity together. */
function planSteps(given: readonly EntityChange[], siblings: Siblings, mark: WriteMark): Step[] {
  if (given.every(({ position }) => position === undefined)) return planStep(given, siblings, mark);
  const left: LeftRows = new Map();
  return given.flatMap((change) => {
    try {
      const seen = siblingsAfter(siblings, left);
      const related = relatedAfter(mark.related ?? new Map(), left);
      const steps = planStep([rebase(change, left)], seen, { ...mark, related });
      for (const { actions } of steps) leaveRows(left, change.address, seen, actions);
      return steps;
    } catch (error) {
      throw atAction(change, error);
    }
  });
}

function planStep(given: readonly EntityChange[], siblings: Siblings, mark: WriteMark): Step[] {
  const [first] = given;
  if (!first) return [];
  const { entity } = first;
  const draft: PlanDraft = { related: new Map(), ...mark, siblings, actions: [], dependents: [] };
  const changes = actingOf(given).map((change) => complete(change, draft));
  const planned = changes.map((change) => ({ change, rows: planFurtherRows(entity, change, mark) }));
  for (const { change, rows } of planned)
    draft.actions.push({ action: entityAction(entity, change, rows, mark.writeId), part: { of: 'entity' } });
  for (const { rows } of planned) draft.actions.push(...rows.actions);
  for (const [{ write }, projections] of siblingsByFeature(entity)) {
    planProjections(projections, changes, draft);
    write?.plan?.(entity, changes, draft);
  }
  for (const change of given) if (change.isUnchanged) requireUnchanged(change, draft);
  const { actions } = draft;
  // A transaction may contain a row only once.
  if (new Set(actions.map(({ action }) => action.row)).size < actions.length) throw sameRow();
  const further = planned.map(({ change, rows }) => [change.address.row, rows.properties] as const);
  return [{ changes, actions: actions.map((action) => ({ ...action, by: first })), further, draft }];
}

/** The changes of entities of other declarations that the actions of a step make. */
function dependentsOf({ changes: [first], draft: { dependents, siblings } }: Step): Followed[] {
  return dependents.flatMap(({ entity: name, row, after }) => {
    const target = first?.entity.dependents.map((link) => link.target()).find((each) => each.name === name);
    if (!first || !target) return [];
    const before = toSnapshot(target, siblings.get(row));
    return [follow({ entity: target, address: { ...first.address, row }, before, after })];
  });
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
export function checkTransactionBytes(
  partition: string,
  actions: readonly Action[],
  {
    mostBytes: limit = MAX_TRANSACTION_BYTES,
    planned = [],
  }: Pick<WriteMark, 'mostBytes'> & { readonly planned?: readonly PlannedAction[] },
): void {
  const needed = transactionBytes(partition, actions);
  if (actions.length <= 1 || needed <= limit) return;
  const message = `The change needs ${needed} bytes in one transaction; at most ${limit} are possible.`;
  throw new (tooLargeFor(planned))(message, { needed, limit });
}

/** The change with the fields that features set. */
function complete(change: EntityChange, draft: PlanDraft): EntityChange {
  const { entity } = change;
  let { after } = change;
  for (const { write } of entity.features)
    if (after) after = write?.complete?.(entity, { ...change, after }, draft) ?? after;
  return { ...change, after };
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
  // Only its own operation may write or delete an entity that arrives or leaves.
  const closed = before.state === 'live' && !arrival ? whyClosed(before.system) : undefined;
  if (closed !== undefined && change.leaving === undefined) throw busy(closed);
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
    ...(kept.Carried ? { Carried: kept.Carried } : {}),
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
function listRowsOf(entity: Entity, change: EntityChange): string[] {
  return listsOf(entity).flatMap((projection) => {
    const { left, joined } = compareRows(projection, change);
    return [...left, ...joined].map(({ row }) => row);
  });
}

const listsOf = onceFor((entity: Entity) =>
  projectionsOf(entity).filter((projection) => isSibling(projection) && projection.merge?.list),
);

/** The row keys of the copies in the partition, before and after a change. */
function copyRowsOf(entity: Entity, { before, after }: EntityChange): string[] {
  const copies = projectionsOf(entity).filter((projection) => isSibling(projection) && !projection.merge);
  const rowsIn = (values: Values | undefined) =>
    copies.flatMap((projection) => (values ? projection.rows(values) : []));
  return [...rowsIn(liveValues(before)), ...rowsIn(after)].map(({ row }) => row);
}

/** The row keys of the copies that an entity has under both of its keys. They must be read, too. */
function sharedRowsOf(entity: Entity, change: EntityChange): string[] {
  const copies = projectionsOf(entity).filter((projection) => isSibling(projection) && !projection.merge);
  return copies.flatMap((projection) => {
    const rows = [liveValues(change.before), change.after].flatMap((values) => (values ? projection.rows(values) : []));
    const there = underOtherKey(projection, change)?.rows ?? [];
    return rows.filter((entry) => hasEntry(there, entry)).map(({ row }) => row);
  });
}

/** The rows of a projection that an entity has under its other key. */
function underOtherKey({ name }: Projection, { other }: EntityChange) {
  if (!other) return undefined;
  const { entity, values } = other;
  const projection = projectionsOf(entity).find((each) => each.name === name);
  return {
    owner: buildKey(entity.row, values),
    rows: projection?.rows(values) ?? [],
    properties: projection?.properties?.(values),
  };
}

/** Appends the actions of the projections of a feature for all changes of one partition. Pure. */
function planProjections(siblings: readonly Projection[], changes: readonly EntityChange[], draft: PlanDraft): void {
  if (siblings.length === 0) return;
  for (const change of changes)
    for (const projection of siblings) if (!projection.merge) planCopies(projection, change, draft);
  planLists(siblings, changes, draft);
}

/**
 * A new copy is inserted, so that another entity's copy of the same key is a conflict and never overwritten. In a shared table, the others have
 * been read: a copy that the entity does not have yet, as its index is new, may be a row of another program.
 */
function planCopies(projection: Projection, change: EntityChange, { siblings, actions, isShared }: PlanDraft): void {
  const { left, joined, kept, shared } = compareRows(projection, change);
  const part = { of: 'copy', fields: projection.at.row.fields } as const;
  const put = (kind: 'insert' | 'upsert', { row }: IndexEntry, values: Values) =>
    actions.push({ action: { kind, row, properties: projection.properties?.(values) ?? {} }, part });
  const { address, after } = change;
  const ownCopy = ({ row }: IndexEntry) => {
    const found = siblings.get(row);
    return found?.properties.SourceRow === address.row ? found : undefined;
  };
  if (after)
    for (const entry of kept) {
      const own = isShared ? ownCopy(entry) : undefined;
      const properties = projection.properties?.(after) ?? {};
      if (own) actions.push({ action: { kind: 'replace', row: entry.row, properties, etag: own.etag }, part });
      else put(isShared ? 'insert' : 'upsert', entry, after);
    }
  if (after) for (const entry of joined) put('insert', entry, after);
  for (const entry of left) {
    const own = isShared ? ownCopy(entry) : undefined;
    if (own) actions.push({ action: { kind: 'delete', row: entry.row, etag: own.etag }, part });
    else if (!isShared) actions.push({ action: { kind: 'delete', row: entry.row }, part });
  }
  if (shared.length === 0) return;
  const other = underOtherKey(projection, change);
  // A copy goes to the key at which the entity will be.
  for (const { row } of shared) {
    const found = siblings.get(row);
    const owner = found?.properties.SourceRow;
    const isOwn = owner === address.row || (after && owner === other?.owner);
    const properties = (after ? projection.properties?.(after) : other?.properties) ?? {};
    if (found && isOwn) actions.push({ action: { kind: 'replace', row, properties, etag: found.etag }, part });
    else if (after) actions.push({ action: { kind: 'insert', row, properties }, part });
  }
}

/** Two indexes may have a list in one row, which a transaction can name only once. */
function planLists(
  projections: readonly Projection[],
  changes: readonly EntityChange[],
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

/**
 * The rows, or members of lists, that a change removes, adds and keeps. Those that an entity also has under its other key are apart, unless
 * they are members of a list.
 */
function compareRows(projection: Projection, change: EntityChange) {
  const { before, after } = change;
  const values = liveValues(before);
  const former = values ? projection.rows(values) : [];
  const next = after ? projection.rows(after) : [];
  const there = change.other && underOtherKey(projection, change)?.rows;
  const [left, joined, kept, shared]: [IndexEntry[], IndexEntry[], IndexEntry[], IndexEntry[]] = [[], [], [], []];
  for (const entry of former)
    if (there && hasEntry(there, entry)) shared.push(entry);
    else if (!hasEntry(next, entry)) left.push(entry);
  for (const entry of next) {
    const isShared = there && !projection.merge && hasEntry(there, entry);
    if (!isShared) (hasEntry(former, entry) ? kept : joined).push(entry);
    else if (!hasEntry(former, entry)) shared.push(entry);
  }
  return { left, joined, kept, shared };
}

function hasEntry(entries: readonly IndexEntry[], entry: IndexEntry): boolean {
  return entries.some((other) => isSameEntry(entry, other));
}
