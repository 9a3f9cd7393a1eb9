import type { Entity, Values } from '../../define/entity.ts';
import {
  liveValues,
  PLACEHOLDER,
  type Snapshot,
  type SystemProperties,
  TOMBSTONE,
  toProperties,
  toSnapshot,
} from '../../define/entity-codec.ts';
import {
  copyProperties,
  type IndexEntry,
  indexEntriesOf,
  isIndexed,
  isSameEntry,
  isUnique,
  unionOfEntries,
} from '../../define/index-entries.ts';
import { buildKey } from '../../define/key-template.ts';
import { busy, RowkeyError } from '../../errors.ts';
import { childActions, touchedParents } from '../../patterns/compound-key.ts';
import { type Denormalized, referredTo, withCopies } from '../../patterns/denormalization.ts';
import { countAction, countChanges, countFields, keptCounts } from '../../patterns/maintained-count.ts';
import { listAction } from '../../patterns/member-list.ts';
import { type Action, type Address, MAX_TRANSACTION_ACTIONS, type Properties, type Row } from '../../storage/rows.ts';

/**
 * Planning is pure: from what was read and what is wanted to the actions of one entity group transaction and the places
 * outside the partition. Several changes of one partition make one plan, as an import needs.
 */

export interface Change {
  readonly address: Address;
  readonly before: Snapshot;
  /** Undefined deletes. */
  readonly after: Values | undefined;
  /** Of one that is created: how its creator knows it again. */
  readonly incarnation?: string | undefined;
  /** Kept by an entity that arrives from another partition. */
  readonly arrival?: { readonly incarnation: string; readonly movingFrom: string };
  /** With an arrival, the rows of its children: as they are to be, and those that are no more. */
  readonly children?: {
    readonly put: readonly { row: string; properties: Properties }[];
    readonly drop: readonly string[];
  };
  /** Kept by the tombstone of one that departs: the id of the operation. */
  readonly movedTo?: string;
}

/** Rows of the same partition that a plan must know, by row key; one that is not in the map counts as absent. */
export type Siblings = ReadonlyMap<string, Row>;

export interface PlannedAction {
  readonly action: Action;
  /** What a refusal of this action means: the entity itself, a value that another one holds, or a sibling row that changed. */
  readonly part:
    | { readonly of: 'entity' }
    | { readonly of: 'copy'; readonly index: string }
    | { readonly of: 'sibling' };
}

export interface IntentItem {
  readonly partition: string;
  readonly row: string;
  readonly indexEntries: readonly IndexEntry[];
}

export interface Plan {
  readonly actions: readonly PlannedAction[];
  /** What the intent names: each entity whose places outside the partition, or whose tombstone, need a reconciler. */
  readonly items: readonly IntentItem[];
  /** Rows of unique indexes to claim before the transaction. */
  readonly claims: readonly { readonly indexEntry: IndexEntry; readonly owner: Address }[];
}

/** The row keys that a plan for these changes needs read first: lists, counts, and both sides of denormalized copies. */
export function siblingRowsOf(entity: Entity, changes: readonly Change[]): string[] {
  const rows = changes.flatMap((change) => {
    const before = liveValues(change.before);
    const lists = listChanges(entity, before, change.after).map((list) => list.row);
    const sources = entity.denormalized.flatMap((link) =>
      [before, change.after].flatMap((values) => sourceRow(link, values) ?? []),
    );
    const targets = change.before.state === 'live' ? [change.before.system.DenormalizedTo] : [];
    const parent = entity.childOf && buildKey(entity.childOf.row, change.after ?? before ?? {});
    return [...lists, ...sources, ...[...targets, parent].filter((row) => row !== undefined)];
  });
  return [...new Set([...rows, ...countChanges(entity, changes).keys()])];
}

/** Throws `invalid-input` or `too-large` when the changes cannot be made at all. */
export function planPartition(entity: Entity, changes: readonly Change[], siblings: Siblings, writeId: string): Plan {
  const actions: PlannedAction[] = [];
  const items: IntentItem[] = [];
  const claims: Plan['claims'][number][] = [];
  const lists = new Map<string, { add: string[]; remove: string[] }>();

  for (const original of changes) {
    const copied = withSiblingCopies(entity, original, siblings, actions);
    const change = { ...original, after: copied && { ...copied, ...keptCounts(entity, original.before) } };
    const { address, after } = change;
    const before = liveValues(change.before);
    const copies = copyActions(entity, before, after);
    const touched = unionOfEntries(indexEntriesOf(entity, before), indexEntriesOf(entity, after));
    actions.unshift({ action: entityAction(entity, change, writeId), part: { of: 'entity' } });
    actions.push(...copies, ...dependentActions(entity, change, siblings));
    for (const action of childActions(entity, change, siblings)) actions.push({ action, part: { of: 'sibling' } });
    if (touched.length > 0 || leavesTombstone(entity, change))
      items.push({ partition: address.partition, row: address.row, indexEntries: touched });
    for (const indexEntry of indexEntriesOf(entity, after)) {
      const held = indexEntriesOf(entity, before).some((other) => isSameEntry(indexEntry, other));
      if (isUnique(entity.indexes[indexEntry.index]) && !held && !change.arrival)
        claims.push({ indexEntry, owner: address });
    }
    for (const { row, add, remove } of listChanges(entity, before, after)) {
      const list = lists.get(row) ?? { add: [], remove: [] };
      lists.set(row, { add: [...list.add, ...add], remove: [...list.remove, ...remove] });
    }
  }
  for (const [row, etag] of touchedParents(entity, changes, siblings))
    actions.push({
      action: { kind: 'merge', row, properties: { TouchedBy: writeId }, etag },
      part: { of: 'sibling' },
    });
  for (const [row, by] of countChanges(entity, changes)) {
    const action = countAction(row, siblings.get(row), by);
    if (!action) continue;
    // The entity that has the count may change for another reason as well.
    const other = actions.find((planned) => planned.action.row === row)?.action;
    if (other && 'properties' in other && 'properties' in action) Object.assign(other.properties, action.properties);
    else actions.push({ action, part: { of: 'sibling' } });
  }
  for (const [row, change] of lists) {
    const found = siblings.get(row);
    const action = listAction(found, row, change);
    if (action) actions.push({ action, part: { of: 'sibling' } });
    // One that is in the list already relies on it: nobody may take it out for a stranger's before this commits.
    else if (found && change.add.length > 0)
      actions.push({
        action: { kind: 'merge', row, properties: { TouchedBy: writeId }, etag: found.etag },
        part: { of: 'sibling' },
      });
  }
  // Storage takes a row once in a transaction. Two entities that swap a value, or want one, meet here.
  if (new Set(actions.map(({ action }) => action.row)).size < actions.length)
    throw new RowkeyError(
      'duplicate-value',
      'Two entities of the same batch need the same row: their keys or unique values are equal.',
    );
  if (actions.length > MAX_TRANSACTION_ACTIONS)
    throw new RowkeyError(
      'too-large',
      `The change needs ${actions.length} rows in one transaction; at most ${MAX_TRANSACTION_ACTIONS} are possible.`,
    );
  return { actions, items, claims };
}

/** A delete of more than one row leaves a tombstone, which the reconciler of its intent removes. */
function leavesTombstone(entity: Entity, { after, movedTo }: Pick<Change, 'after' | 'movedTo'>): boolean {
  // Nobody is told of a placeholder that stays for good.
  if (after || countFields(entity).length > 0) return false;
  const others = [
    Object.keys(entity.indexes),
    entity.denormalized,
    entity.dependents,
    entity.children,
    entity.childOf ? [1] : [],
    // A count changes in the same transaction.
    entity.countedBy,
  ];
  const alone = others.every(({ length }) => length === 0);
  return !alone || movedTo !== undefined;
}

function entityAction(entity: Entity, change: Change, writeId: string): Action {
  const { address, before, after, arrival } = change;
  const { row } = address;
  if (!after) {
    if (before.state !== 'live') throw new RowkeyError('not-found', `${entity.name} entity not found.`);
    // A single operation can be conditional, a delete inside a transaction cannot: hence the tombstone.
    if (countFields(entity).length > 0) {
      const properties = { EntityType: PLACEHOLDER, WriteId: writeId, ...keptCounts(entity, before) };
      return { kind: 'replace', row, properties, etag: before.etag };
    }
    if (!leavesTombstone(entity, change)) return { kind: 'delete', row, etag: before.etag };
    const properties = { EntityType: TOMBSTONE, WriteId: writeId, MovedTo: change.movedTo ?? '' };
    return { kind: 'replace', row, properties, etag: before.etag };
  }
  if (before.state === 'tombstone' && before.movedTo) throw busy('The entity with this key is being moved.');
  // Only its own move writes it before it is open.
  if (before.state === 'live' && before.system.MovingFrom && !arrival)
    throw busy('The entity is being moved to this partition.');
  const kept: Partial<SystemProperties> = before.state === 'live' ? before.system : {};
  const system = {
    WriteId: writeId,
    Incarnation: arrival?.incarnation ?? kept.Incarnation ?? change.incarnation ?? writeId,
    ...(kept.DenormalizedTo ? { DenormalizedTo: kept.DenormalizedTo } : {}),
    ...(arrival ? { MovingFrom: arrival.movingFrom } : {}),
  };
  const properties = toProperties(entity, after, system);
  return before.state === 'absent'
    ? { kind: 'insert', row, properties }
    : { kind: 'replace', row, properties, etag: before.etag };
}

/** Intra-partition secondary index pattern. */
function copyActions(entity: Entity, before: Values | undefined, after: Values | undefined): PlannedAction[] {
  return Object.entries(entity.indexes).flatMap(([name, index]) => {
    if (index.kind !== 'intra-partition') return [];
    const from = isIndexed(index, before) ? buildKey(index.row, before) : undefined;
    const to = isIndexed(index, after)
      ? { row: buildKey(index.row, after), properties: copyProperties(entity, after, index.copies) }
      : undefined;
    const part = { of: 'copy', index: name } as const;
    const actions: PlannedAction[] = [];
    // A new copy is inserted, so that another entity's copy of the same key is a conflict and never overwritten.
    if (to) actions.push({ action: { kind: from === to.row ? 'upsert' : 'insert', ...to }, part });
    if (from !== undefined && from !== to?.row) actions.push({ action: { kind: 'delete', row: from }, part });
    return actions;
  });
}

/** Index entities pattern, in the partition. */
function listChanges(entity: Entity, before: Values | undefined, after: Values | undefined) {
  return Object.values(entity.indexes).flatMap((index) => {
    if (index.kind !== 'index-entity' || index.remote) return [];
    const entry = (values: Values | undefined) =>
      isIndexed(index, values)
        ? { row: buildKey(index.row, values), member: buildKey(index.holds, values) }
        : undefined;
    const from = entry(before);
    const to = entry(after);
    if (from?.row === to?.row && from?.member === to?.member) return [];
    return [
      ...(from ? [{ row: from.row, add: [], remove: [from.member] }] : []),
      ...(to ? [{ row: to.row, add: [to.member], remove: [] }] : []),
    ];
  });
}

function sourceRow(link: Denormalized, target: Values | undefined): string | undefined {
  const key = referredTo(link, target);
  return key && buildKey(link.source.row, key);
}

/** Denormalization pattern, from the side that holds the copies: take them, and tell the source that they were taken. */
function withSiblingCopies(
  entity: Entity,
  change: Change,
  siblings: Siblings,
  actions: PlannedAction[],
): Values | undefined {
  let after = change.after;
  for (const link of entity.denormalized) {
    const from = sourceRow(link, liveValues(change.before));
    const to = sourceRow(link, after);
    const source = toSnapshot(link.source, to === undefined ? undefined : siblings.get(to));
    if (to !== undefined && source.state !== 'live') {
      const { field } = link.reference;
      throw new RowkeyError(
        'invalid-input',
        `"${field}" refers to no entity of ${link.source.name} in this partition.`,
        {
          field,
          accepted: `the key of an entity of ${link.source.name} in the same partition`,
        },
      );
    }
    if (after) after = withCopies(link, after, liveValues(source));
    const mark = (row: string | undefined, DenormalizedTo: string) => {
      const found = row === undefined ? undefined : siblings.get(row);
      if (found)
        actions.push({
          action: { kind: 'merge', row: found.row, properties: { DenormalizedTo }, etag: found.etag },
          part: { of: 'sibling' },
        });
    };
    if (from !== to) mark(from, '');
    // Always under the source's ETag: what was copied must still be so when the transaction commits.
    mark(to, change.address.row);
  }
  return after;
}

/** Denormalization pattern, from the side that is copied: change the copies along, or clear them. */
function dependentActions(entity: Entity, change: Change, siblings: Siblings): PlannedAction[] {
  if (change.before.state !== 'live' || !change.before.system.DenormalizedTo) return [];
  const found = siblings.get(change.before.system.DenormalizedTo);
  return entity.dependents.flatMap((link) => {
    const target = toSnapshot(link.target(), found);
    if (!found || target.state !== 'live' || target.system.EntityType !== link.target().name) return [];
    const properties = toProperties(link.target(), withCopies(link, target.values, change.after), target.system);
    return [
      { action: { kind: 'replace', row: found.row, properties, etag: found.etag }, part: { of: 'sibling' } } as const,
    ];
  });
}
