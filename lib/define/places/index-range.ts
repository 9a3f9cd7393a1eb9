import { RowkeyError } from '../../base/errors.ts';
import type { Values } from '../../base/values.ts';
import type { Entity } from '../declaration/entity.ts';
import type { Index, InterPartitionIndex } from '../declaration/indexes.ts';
import { type KeyRange, keyRange, type Part } from '../keys/key-template.ts';
import { isUnique } from './index-entries.ts';

/**
 * What a read through an index requires. Rows are found by the whole partition key and a prefix of the row key, so a range
 * gives the fields of the partition key and the first fields of the row key, and bounds the next field.
 */

/** Bounds of the field after the given ones. Inclusive; a text is read as a prefix. */
export interface IndexBounds<Value = string | number> {
  readonly from?: Value | undefined;
  readonly to?: Value | undefined;
  /** The first characters, in place of `from` and `to`. */
  readonly prefix?: string | undefined;
  /** The order that the caller expects. Storage reads forward only: throws `invalid-input` if the key stores the other one. */
  readonly order?: Order | undefined;
}

export const ORDERS = ['ascending', 'descending'] as const;
type Order = (typeof ORDERS)[number];

/** The fields that a read by one value requires, partition first, in the order of its path. */
export function indexFields(entity: Entity, index: Index): string[] {
  const inRow = [...index.row.fields];
  // Key fields at the end of the row key only distinguish entities with the same value, so a read does not need them.
  if (isOfMany(entity, index)) while (entity.keyFields.includes(inRow.at(-1) ?? '')) inRow.pop();
  return [...new Set([...partitionFields(entity, index), ...inRow])];
}

/** True if several entities may share a value of the index. The keys of the rows then have those of the entities, at the end. */
export function isOfMany(entity: Entity, index: Index): boolean {
  if (index.kind === 'index-entity') return true;
  if (isUnique(index) || !entity.keyFields.includes(index.row.fields.at(-1) ?? '')) return false;
  // Without a part of the key, two entities of the partition would have one row, so the value is unique there.
  const inKeys = [...partitionFields(entity, index), ...index.row.fields];
  return entity.keyFields.every((field) => inKeys.includes(field));
}

/** The fields that each item of an index has; undefined if it has all. */
export function copiedFields({ keyFields }: Entity, index: Index): readonly string[] | undefined {
  if (index.kind === 'index-entity' || typeof index.copies === 'string') return undefined;
  return [...keyFields, ...index.copies];
}

/** The index with this name, if one range query over it reads a copy of every entity that has the fields of its row key. */
export function listOfAll({ indexes }: Entity, name = ''): InterPartitionIndex | undefined {
  const index = Object.hasOwn(indexes, name) ? indexes[name] : undefined;
  if (index?.kind !== 'inter-partition' || index.unique || index.copies === 'keys' || index.when) return undefined;
  return index.remote.partition.fields.length === 0 ? index : undefined;
}

/** The lists of fields that a range may give, in the order of its path; the shortest list first. */
export function rangeStarts(entity: Entity, index: Index): string[][] {
  const inPartition = partitionFields(entity, index);
  return index.row.parts
    .map((_, count) => [...new Set([...inPartition, ...index.row.parts.slice(0, count).map(({ field }) => field)])])
    .filter((fields, at, all) => fields.length !== all[at - 1]?.length)
    .filter((fields) => reasonNotToBound(entity, boundedPart(index, fields)) === undefined);
}

/** The range of the row keys. Throws `invalid-input` for bounds that no range of keys can have. */
export function indexRange(
  entity: Entity,
  index: Pick<Index, 'row'>,
  given: Values,
  { from, to, prefix, order }: IndexBounds = {},
): KeyRange {
  if ([from, to, prefix, order].every((bound) => bound === undefined)) return keyRange(index.row, {}, given);
  const part = boundedPart(index, Object.keys(given));
  const reason = reasonNotToBound(entity, part);
  const [first] = Object.entries({ from, to, prefix, order }).find(([, bound]) => bound !== undefined) ?? [];
  if (!part || reason !== undefined) throw boundError(String(first), `cannot be used: ${reason}.`, 'no bounds');
  const stored: Order = part.newestFirst ? 'descending' : 'ascending';
  if (order !== undefined && order !== stored)
    throw boundError('order', `must be ${stored}: storage reads "${part.field}" in the order of its key.`, stored);
  if (prefix === undefined) return keyRange(index.row, { from: toText(from), to: toText(to) }, given);
  if (part.width !== undefined || part.newestFirst)
    throw boundError('prefix', `needs a text, and "${part.field}" is a number or an instant.`, 'from and to');
  if (from !== undefined || to !== undefined)
    throw boundError('prefix', 'cannot be combined with "from" or "to".', 'prefix alone, or from and to');
  return keyRange(index.row, { from: prefix, to: prefix }, given);
}

interface Asked {
  /** What is read, in the message of an error; an index by default. */
  readonly what?: string;
  readonly name: string;
  readonly fields: readonly string[];
}

/** Throws `invalid-input` unless these are the fields of a range. */
export function requireRangeStart(entity: Entity, index: Index, asked: Asked): void {
  const { fields } = asked;
  const starts = rangeStarts(entity, index);
  if (starts.some((start) => start.length === fields.length && start.every((field) => fields.includes(field)))) return;
  throw incompleteError(entity, index, asked);
}

/** The error for fields that no range begins with; its message says which field comes first. */
export function incompleteError(entity: Entity, index: Index, { what = 'index', name, fields }: Asked): RowkeyError {
  const subject = `${what} "${name}" of ${entity.name}`;
  const starts = rangeStarts(entity, index);
  const [first, ...others] = starts.length > 0 ? starts : [indexFields(entity, index)];
  const missing = first?.find((field) => !fields.includes(field));
  const accepted = [first, ...(missing === undefined ? others : [])].map((start) => start?.join(', ')).join('; ');
  const details = { ...(missing === undefined ? {} : { field: missing }), accepted };
  if (starts.length === 0)
    return new RowkeyError('invalid-input', `The ${subject} has no range, only single values.`, details);
  const reason = missing === undefined ? 'its fields in the order of its key' : `"${missing}" first`;
  return new RowkeyError('invalid-input', `A range over the ${subject} needs ${reason}.`, details);
}

/** A read queries all buckets, so it needs no field that only chooses one. */
function partitionFields(entity: Entity, index: Index): string[] {
  const { partition } = index.remote ?? entity;
  return partition.parts.filter(({ buckets }) => buckets === undefined).map(({ field }) => field);
}

function boundedPart({ row }: Pick<Index, 'row'>, given: readonly string[]): Part | undefined {
  return row.parts.find(({ field }) => !given.includes(field));
}

function reasonNotToBound({ columns }: Entity, part: Part | undefined): string | undefined {
  if (!part) return 'every field of the key is given';
  const { field, hash, width, newestFirst, each } = part;
  if (hash) return `"${field}" is stored as a hash, which has no order`;
  if (width !== undefined || newestFirst || each || columns[field] === 'String') return undefined;
  return `"${field}" is stored without leading zeros, so its keys are not in its order`;
}

function toText(bound: string | number | undefined): string | undefined {
  return bound === undefined ? undefined : String(bound);
}

function boundError(field: string, why: string, accepted: string): RowkeyError {
  return new RowkeyError('invalid-input', `"${field}" ${why}`, { field, accepted });
}
