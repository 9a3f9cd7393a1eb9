import { jsonText } from '../../base/json-text.ts';
import type { Values } from '../../base/values.ts';
import { BLOB_PREFIX, columnFormOf, isInBlob } from '../../define/codec/entity-codec.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { fieldSchemas } from '../../define/schema/field-schema.ts';
import { type ReadBound, type Row, textLength } from '../../storage/rows.ts';

/** Bounds the length of a page and the memory that reading it takes. All lengths are in characters. */

/** A page ends with the item that reaches this length; it has at least one item. */
export const PAGE_LENGTH = 4_194_304;
/** The total length of the rows of one storage call. */
const CALL_LENGTH = 8 * PAGE_LENGTH;
/** 1 MiB at two bytes per character. */
const LONGEST_ROW = 524_288;
const LONGEST_PROPERTY = 32_768;
/** Keys and system properties. */
const SYSTEM_LENGTH = 4_096;

/** The bound for rows of unknown length. */
export const ANY_ROWS: ReadBound = { length: PAGE_LENGTH, rowsPerCall: CALL_LENGTH / LONGEST_ROW };

/** The bound for rows of these entities with these fields, from the longest row that the declarations allow. */
export function readBound(entities: readonly Entity[], select?: readonly string[]): ReadBound {
  const longest = Math.max(...entities.map((entity) => longestRow(entity, select ?? Object.keys(entity.columns))));
  return { length: PAGE_LENGTH, rowsPerCall: Math.floor(CALL_LENGTH / longest) };
}

function longestRow(entity: Entity, select: readonly string[]): number {
  // Clients may write undeclared properties.
  if (entity.isWrittenByClients) return LONGEST_ROW;
  const fields = fieldSchemas(entity.schema);
  const lengths = select.map((field) => {
    const { type, maxLength } = fields[field] ?? {};
    if (entity.keyFields.includes(field) || /^(number|integer|boolean)$/.test(type ?? '')) return SYSTEM_LENGTH / 4;
    const columns = columnFormOf(entity, field);
    if (columns) return columns.longest(entity, field);
    return Math.min(LONGEST_PROPERTY, (type === 'string' && maxLength) || LONGEST_PROPERTY);
  });
  return Math.min(
    LONGEST_ROW,
    lengths.reduce((sum, length) => sum + length, SYSTEM_LENGTH),
  );
}

/** Returns the first items, up to the one that fills the page. */
export function withinPage<Item>(items: readonly Item[], lengthOf: (item: Item) => number): readonly Item[] {
  let length = 0;
  const end = items.findIndex((item) => {
    length += lengthOf(item);
    return length >= PAGE_LENGTH;
  });
  return end < 0 ? items : items.slice(0, end + 1);
}

/** The length of a row. Includes texts in blobs, because a read fetches them with the row. */
export function rowLength({ properties }: Row): number {
  const inBlobs = Object.entries(properties).filter(([name]) => name.startsWith(BLOB_PREFIX));
  const length = (text: unknown) => Number(/"length":(\d+)/.exec(String(text))?.[1] ?? 0);
  return inBlobs.reduce((sum, [, text]) => sum + length(text), textLength(properties));
}

/** The length of an entity, computed as in `rowLength`. Free JSON may have the form of a reference to a blob. */
export function valuesLength({ referenceFields }: Entity, values: Values): number {
  const inBlobs = referenceFields.map((field) => values[field]).filter(isInBlob);
  return inBlobs.reduce((sum, { length }) => sum + length, jsonText(values).length);
}
