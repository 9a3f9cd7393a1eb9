import { RowkeyError } from '../../base/errors.ts';
import { pick } from '../../base/values.ts';
import { toSnapshot } from '../../define/codec/entity-codec.ts';
import { type PlannedAction, relatedKey, type Siblings } from '../../define/declaration/change.ts';
import type { EntityChange } from '../../define/declaration/entity.ts';
import type { Action, Address, Row } from '../../storage/rows.ts';
import { notFound } from '../read/entity-rows.ts';
import { duplicateKey, EntityChanged } from './conflict.ts';

/**
 * A transaction of several actions is planned in their order, one action in each step: a step sees the rows as the earlier steps leave
 * them. So a child finds the parent that the same transaction creates, and two counted entities both count. In the end, the steps that
 * change one row become one action under the ETag that the first of them requires.
 */

/** The rows that earlier steps have written, by row key; undefined for a row that they have deleted. */
export type LeftRows = Map<string, Row | undefined>;

/** Adds the rows that the actions of a step leave. */
export function leaveRows(
  left: LeftRows,
  { table, partition }: Address,
  siblings: Siblings,
  actions: readonly PlannedAction[],
): void {
  for (const { action } of actions) {
    const { row } = action;
    if (action.kind === 'delete') {
      left.set(row, undefined);
      continue;
    }
    const etag = 'etag' in action ? action.etag : '';
    const isMerge = action.kind === 'merge' || action.kind === 'upsert-merge';
    const before = isMerge ? (left.get(row) ?? siblings.get(row)) : undefined;
    // No step needs the other properties of a row that nobody has read.
    if (isMerge && !before) continue;
    const properties = { ...before?.properties, ...action.properties };
    left.set(row, { table, partition, row, etag: before?.etag ?? etag, properties });
  }
}

/** The sibling rows of the next step. */
export function siblingsAfter(siblings: Siblings, left: LeftRows): Siblings {
  const rows = new Map<string, Row | undefined>([...siblings, ...left]);
  return new Map([...rows].flatMap(([key, row]) => (row ? [[key, row] as const] : [])));
}

/** The related rows of the next step. */
export function relatedAfter(related: ReadonlyMap<string, Row>, left: LeftRows): ReadonlyMap<string, Row> {
  const known = [...left.values()].flatMap((row) => (row ? [[relatedKey(row), row] as const] : []));
  return new Map([...related, ...known]);
}

/**
 * The change of an entity whose row an earlier step has changed, such as the count of its children. Throws `EntityChanged` if the step
 * has seen another state of the row, and `not-found` or `duplicate-key` if the change is no longer possible.
 */
export function rebase(change: EntityChange, left: LeftRows): EntityChange {
  const { entity, address, before, after } = change;
  if (!left.has(address.row) || before.state === 'unread') return change;
  const row = left.get(address.row);
  const key = pick(before.state === 'live' ? before.values : (after ?? {}), entity.keyFields);
  if (!row) throw notFound(entity, key);
  if (before.state !== 'absent' && before.etag !== row.etag) throw new EntityChanged();
  const further = before.state === 'live' ? before.further : undefined;
  const properties = Object.assign({}, ...(further?.values() ?? []), row.properties);
  const now = toSnapshot(entity, { ...row, properties, ...(further ? { further } : {}) });
  if (before.state === 'absent' && now.state === 'live') throw duplicateKey(entity, key);
  return { ...change, before: now };
}

/** The actions of all steps, one for each row, those on entities first. */
export function combineSteps<Planned extends PlannedAction>(steps: readonly (readonly Planned[])[]): Planned[] {
  const [only, ...others] = steps;
  if (only && others.length === 0) return [...only];
  const rows = new Map<string, Planned>();
  for (const planned of steps.flat()) {
    const earlier = rows.get(planned.action.row);
    rows.set(planned.action.row, earlier ? combine(earlier, planned) : planned);
  }
  const isOnEntity = ({ part }: PlannedAction) => part.of === 'entity';
  const all = [...rows.values()];
  return [...all.filter(isOnEntity), ...all.filter((planned) => !isOnEntity(planned))];
}

function combine<Planned extends PlannedAction>(earlier: Planned, later: Planned): Planned {
  const [one, other] = [earlier.action, later.action];
  if ('etag' in one && 'etag' in other && one.etag !== other.etag) throw new EntityChanged();
  const { kind } = other;
  const isPossible = 'properties' in one && (kind === 'merge' || kind === 'replace');
  if (!isPossible) throw sameRow();
  // What is replaced need not exist before the transaction, if an earlier step creates it.
  const action: Action =
    kind === 'merge'
      ? { ...one, properties: { ...one.properties, ...other.properties } }
      : one.kind === 'merge'
        ? { ...one, kind, properties: other.properties }
        : { ...one, properties: other.properties };
  const { part } = earlier.part.of === 'entity' ? earlier : later;
  return { ...earlier, action, part };
}

/** Two entities that swap a value, or want the same value, fail with it. */
export function sameRow(): RowkeyError {
  return new RowkeyError(
    'duplicate-value',
    'Two entities of the same batch need the same row: their keys or unique values are equal.',
  );
}
