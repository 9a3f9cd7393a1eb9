import { isDeepStrictEqual } from 'node:util';
import { RowkeyError } from '../../base/errors.ts';
import { omit, pick, type Values } from '../../base/values.ts';
import { storedVersion, toSnapshot, toValues } from '../../define/codec/entity-codec.ts';
import { validate, validateTexts } from '../../define/codec/validation.ts';
import type { Live } from '../../define/declaration/change.ts';
import type { ColumnType } from '../../define/declaration/declaration.ts';
import { decidedFields, type Entity, isWrittenByClients, type NumberedRows } from '../../define/declaration/entity.ts';
import { parseKey } from '../../define/keys/key-template.ts';
import { addressIfAny, isCopy } from '../../define/places/index-entries.ts';
import type { Row } from '../../storage/rows.ts';

/**
 * Decides whether a row is an entity, for every read, every write and the consistency check.
 *
 * If only the API writes an entity, the type of the row decides. Clients with a grant write some entities directly to
 * storage, and a grant limits only the keys: any property of such a row may have any value. For these entities, system
 * properties are ignored, the keys of the row decide the values of the key fields, and all other fields must match the
 * schema.
 */
type Judged =
  | { readonly is: 'entity'; readonly snapshot: Live }
  /** `isReachable`: the keys are valid for an entity, so its routes can replace and delete the row. */
  | { readonly is: 'invalid'; readonly reason: string; readonly snapshot: Live; readonly isReachable: boolean }
  /** A row of another entity, a copy, a tombstone, a placeholder. */
  | { readonly is: 'other' };

export function judgeRow(entity: Entity, row: Row): Judged {
  const isClients = isWrittenByClients(entity);
  const isOwn = isClients || (row.properties.EntityType === entity.name && !isCopy(row));
  const snapshot = isOwn ? toSnapshot(entity, row) : undefined;
  if (snapshot?.state !== 'live') return { is: 'other' };
  if (!isClients) return { is: 'entity', snapshot };
  const key = readKey(entity, row, snapshot.values);
  const judged = key ? readFields(entity, row, key) : { reason: 'No entity has keys of this form.' };
  if ('values' in judged) return { is: 'entity', snapshot: { ...snapshot, values: judged.values } };
  return { is: 'invalid', ...judged, snapshot: { ...snapshot, values: {} }, isReachable: key !== undefined };
}

/** Returns the entity in a row, or undefined if the row is not an entity. */
export function entityIn(entity: Entity, row: Row): Live | undefined {
  const judged = judgeRow(entity, row);
  return judged.is === 'entity' ? judged.snapshot : undefined;
}

/** Returns the key fields as read from the keys of the row, or undefined if the API never writes such keys. */
function readKey(entity: Entity, row: Row, stored: Values): Values | undefined {
  const inPartition = parseKey(entity.partition, row.partition);
  const inRow = parseKey(entity.row, entityRow(entity, row));
  if (!inPartition || !inRow) return undefined;
  // A field that a key contains only as a hash cannot be read back.
  const parsed: Values = { ...pick(stored, entity.keyFields), ...inPartition, ...inRow };
  const texts = Object.entries(pick(parsed, entity.keyFields)).map(([field, value]) => [field, String(value)]);
  try {
    const key = validateTexts(entity, Object.fromEntries(texts), entity.keyFields);
    return hasKeys(entity, row, key) ? key : undefined;
  } catch (error) {
    if (error instanceof RowkeyError) return undefined;
    throw error;
  }
}

function hasKeys(entity: Entity, row: Row, values: Values): boolean {
  const address = addressIfAny(entity, values);
  if (address?.table !== row.table || address.partition !== row.partition) return false;
  return address.row === entityRow(entity, row);
}

function numberedRowsOf(entity: Entity): NumberedRows | undefined {
  return entity.features.find(({ layout }) => layout?.numbered)?.layout?.numbered;
}

/** The row key of the entity that a row belongs to. */
function entityRow(entity: Entity, { row }: Row): string {
  return numberedRowsOf(entity)?.entityRow(entity, row) ?? row;
}

function readFields(entity: Entity, row: Row, key: Values): { values: Values } | { reason: string } {
  const form = numberedRowsOf(entity);
  if (form) {
    const reason = form.reasonToRefuse(entity, row);
    return reason === undefined ? { values: key } : { reason };
  }
  const other = Object.entries(entity.columns).find(([name, type]) => !isOfType(type, row.properties[name]));
  // An earlier version may have had another type.
  if (other && storedVersion(entity, row.properties) === entity.version)
    return { reason: `The property "${other[0]}" has the wrong type; ${other[1]} is expected.` };
  try {
    const values: Values = { ...key, ...toValues(entity, row.properties) };
    const field = entity.keyFields.find((name) => !hasKeys(entity, row, { ...key, [name]: values[name] }));
    if (field) return { reason: `The field "${field}" differs from the keys of the row.` };
    const checked = validate(entity, omit(values, decidedFields(entity)));
    const derived = Object.keys(entity.derived).find((name) => !isDeepStrictEqual(values[name], checked[name]));
    if (derived) return { reason: `The derived field "${derived}" differs from its computed value.` };
    // A field that is not stored has no value, even if the schema has a default.
    return { values: pick(checked, Object.keys(values)) };
  } catch (error) {
    if (error instanceof RowkeyError) return { reason: error.message };
    // An upgrade throws on rows that no earlier version of the API has written.
    return { reason: 'The row cannot be upgraded: no earlier version of the declaration writes such rows.' };
  }
}

/** True if the API stores a field of this type in this form. Number types are not distinguished. */
function isOfType(type: ColumnType, property: unknown): boolean {
  if (property === undefined) return true;
  if (type === 'String' || type === 'Json') return typeof property === 'string';
  if (type === 'Boolean') return typeof property === 'boolean';
  return typeof property === 'number' || typeof property === 'bigint';
}
