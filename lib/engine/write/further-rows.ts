import { RowkeyError } from '../../base/errors.ts';
import { isSame } from '../../base/is-same.ts';
import type { Values } from '../../base/values.ts';
import { checkRowSize, currentValues, fieldsToProperties } from '../../define/codec/entity-codec.ts';
import {
  formatListedRows,
  furtherRowKey,
  furtherRowType,
  groupOfFurtherRow,
  type ListedRows,
  listedRows,
  MAX_FURTHER_SUFFIX,
} from '../../define/codec/further-rows.ts';
import type { Change, PlanDraft, PlannedAction } from '../../define/declaration/change.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { MAX_KEY_LENGTH } from '../../define/keys/key-template.ts';
import { type Action, type Address, type Properties, transactionBytes } from '../../storage/rows.ts';

/** A transaction has at most 4 MiB. The rest is for index copies, lists and children. */
const MAX_ENTITY_BYTES = 3_670_016;

/** The rows of an entity after a change. */
interface PlannedRows {
  /** The fields in the entity's own row. */
  readonly own: Values;
  /** Lists the further rows in the entity's own row. */
  readonly system: { readonly FurtherRows?: string };
  readonly actions: readonly PlannedAction[];
  /** The properties of all further rows that the change knows, for its result. */
  readonly properties: Properties;
}

/**
 * Plans the further rows of an entity. A row whose fields do not change is not written, and one that was not read stays as it is.
 * The ETag of the entity's own row protects them all, so they are written without conditions: in a
 * shared table, only those that the entity has.
 */
export function planFurtherRows(
  entity: Entity,
  { address, before, after }: Change,
  { writeId, isShared = false }: Pick<PlanDraft, 'writeId' | 'isShared'>,
): PlannedRows {
  const form = entity.furtherRows;
  const current = before.state === 'live' ? before : undefined;
  const listed = listedRows(current?.system ?? {});
  const deleted = (name: string) => ({ kind: 'delete', row: furtherRowKey(address.row, name) }) as const;
  if (!form || !after) {
    const actions = after ? [] : Object.keys(listed).map(deleted);
    return { own: after ?? {}, system: toSystem(listed), actions: actions.map(planned), properties: {} };
  }
  const read = current?.further ?? new Map<string, Properties>();
  const { own, further } = form.divide(entity, after, current);
  // A row of an earlier version has been upgraded as a whole.
  const isUpgraded = current !== undefined && current.system.EntityVersion !== entity.version;
  const next: Record<string, string> = {};
  const actions: Action[] = [];
  const all: Properties[] = [];
  for (const [name, values] of further) {
    const stored = read.get(name);
    if (name in listed && !stored) throw new Error(`A change of ${entity.name} has not read what it changes.`);
    const row = furtherRowKey(address.row, name);
    checkKey(entity, row);
    const fields = fieldsToProperties(entity, values);
    all.push(fields);
    const isUnchanged = stored && isSame(currentValues(entity, stored), currentValues(entity, fields));
    next[name] = isUnchanged && !isUpgraded ? (listed[name] ?? writeId) : writeId;
    if (next[name] !== writeId) continue;
    const EntityType = furtherRowType(entity.name, groupOfFurtherRow(name));
    const properties = { ...fields, EntityType, WriteId: writeId };
    checkRowSize(properties);
    actions.push({ kind: isShared && !(name in listed) ? 'insert' : 'upsert', row, properties });
  }
  if (all.length > 0) checkEntityBytes(address, [fieldsToProperties(entity, own), ...all]);
  for (const [name, id] of Object.entries(listed)) {
    if (further.has(name)) continue;
    if (read.has(name)) actions.push(deleted(name));
    else next[name] = id;
  }
  return { own, system: toSystem(next), actions: actions.map(planned), properties: Object.assign({}, ...all) };
}

/** An entity that arrives at another address is written as a whole, in one transaction with its children and index copies. */
function checkEntityBytes({ partition, row }: Address, rows: readonly Properties[]): void {
  const actions = rows.map((properties) => ({ kind: 'upsert', row, properties }) as const);
  const needed = transactionBytes(partition, actions);
  if (needed > MAX_ENTITY_BYTES)
    throw new RowkeyError('too-large', `The entity needs ${needed} bytes in its rows.`, {
      accepted: `at most ${MAX_ENTITY_BYTES} bytes, so that one transaction can write all rows`,
    });
}

function toSystem(listed: ListedRows): PlannedRows['system'] {
  return Object.keys(listed).length > 0 ? { FurtherRows: formatListedRows(listed) } : {};
}

function checkKey({ row: { fields } }: Entity, row: string): void {
  if (row.length <= MAX_KEY_LENGTH) return;
  throw new RowkeyError('invalid-input', `The key made from ${fields.join(', ')} leaves no room for further rows.`, {
    field: fields[0] ?? '',
    accepted: `a row key of at most ${MAX_KEY_LENGTH - MAX_FURTHER_SUFFIX} characters after escaping`,
  });
}

function planned(action: Action): PlannedAction {
  return { action, part: { of: 'further row' } };
}
