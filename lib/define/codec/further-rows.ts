import { FURTHER_ROW } from '../../base/engine-names.ts';
import { hasValue, omit, type Values } from '../../base/values.ts';
import type { Properties, Row } from '../../storage/rows.ts';
import type { Entity } from '../declaration/entity.ts';

/**
 * An entity may be stored in further rows beside its own. Its own row lists them, each with the id of the write that last changed
 * it, so a reader recognizes a row that is missing, is left over or belongs to another state of the entity. Every change of a
 * further row also writes the entity's own row, so the ETag of that row is the ETag of the entity.
 */
export type ListedRows = Readonly<Record<string, string>>;

/** The groups of further rows that a read of these fields needs; without fields, a read of the entity. */
export function groupsToRead(entity: Entity, fields?: readonly string[]): readonly string[] {
  return entity.furtherRows?.groupsOf(entity, fields) ?? [];
}

/** Every row type of an entity that a read of these fields needs. */
export function typesToRead(entity: Entity, fields?: readonly string[]): string[] {
  return [entity.name, ...groupsToRead(entity, fields).map((group) => furtherRowType(entity.name, group))];
}

/** Returns `fields` and those that every read returns, from which keys, indexes and derived fields are computed. */
export function withDefaultFields(entity: Entity, fields: readonly string[]): readonly string[] {
  return [...Object.keys(withoutApart(entity, entity.columns)), ...fields];
}

/** The values by which indexes, copies and derived fields are computed: a write may not have read the others. */
export function withoutApart(entity: Entity, values: Values): Values {
  const { apartFields } = entity;
  return apartFields.length === 0 ? values : omit(values, apartFields);
}

/** The further rows that the row of an entity lists. Never throws, because rows are also changed by hand. */
export function listedRows({ FurtherRows }: { readonly FurtherRows?: unknown }): ListedRows {
  if (typeof FurtherRows !== 'string' || FurtherRows === '') return {};
  const pairs = FurtherRows.split(',').map((pair) => pair.split(':'));
  return Object.fromEntries(pairs.map(([name = '', id = '']) => [name, id]));
}

export function formatListedRows(listed: ListedRows): string {
  return Object.entries(listed)
    .map((pair) => pair.join(':'))
    .join(',');
}

/**
 * The row of an entity with the properties of its further rows of these groups. `lost` are the names of those that are missing or
 * belong to another state.
 */
export function joinRows(
  entity: Entity,
  own: Row,
  further: readonly Row[],
  groups: readonly string[],
): { readonly row: Row; readonly lost: readonly string[] } {
  const listed = listedRows(own.properties);
  const read = new Map<string, Properties>();
  for (const { row, properties } of further) {
    const { name = '' } = parseFurtherRowKey(row) ?? {};
    const isOwn = properties.EntityType === furtherRowType(entity.name, groupOfFurtherRow(name));
    if (isOwn && listed[name] === properties.WriteId) read.set(name, properties);
  }
  const lost = Object.keys(listed).filter((name) => groups.includes(groupOfFurtherRow(name)) && !read.has(name));
  // A projection may return null for a property that the row lacks.
  const all = [...read.values(), own.properties].flatMap((each) => Object.entries(each));
  const properties = Object.fromEntries(all.filter(([, value]) => hasValue(value)));
  return { row: { ...own, properties, further: read }, lost };
}

/**
 * The keys of the further rows of an entity: its row key, `!-` and a name. A key that is built from a template has `!` only before
 * two hexadecimal digits, so no entity, copy or list has such a key. `!` sorts below every other character but the space, so the
 * further rows follow their entity and precede its children.
 */
const SEPARATOR = FURTHER_ROW;
/** The first key after all keys with the separator. */
const AFTER_SEPARATOR = '!.';
const AFTER_DIGITS = ':';

/** The name of a further row is its group, and a number if the group has several rows. */
export const FURTHER_GROUP = /^[a-z][A-Za-z]{0,39}$/;
/** The length of the longest suffix: the separator, a group and a number below 100. */
export const MAX_FURTHER_SUFFIX = 44;

export function furtherRowKey(row: string, name: string): string {
  return row + SEPARATOR + name;
}

/** The row key of the entity and the name of its further row. Undefined for another row. */
export function parseFurtherRowKey(key: string): { readonly row: string; readonly name: string } | undefined {
  const [, row, name] = /^(.+)!-([A-Za-z]+\d*)$/s.exec(key) ?? [];
  return row === undefined || name === undefined ? undefined : { row, name };
}

/** The `EntityType` of the further rows of a group. No entity has a dot in its name. */
export function furtherRowType(entity: string, group: string): string {
  return `${entity}.${group}`;
}

export function groupOfFurtherRow(name: string): string {
  return name.replace(/\d+$/, '');
}

/** From the first further row of these groups to the end of the last one; without groups, of all. */
export function furtherRowRange(row: string, groups?: readonly string[]): { first: string; before: string } {
  const sorted = groups?.toSorted() ?? [];
  const [first, last] = [sorted.at(0), sorted.at(-1)];
  if (first === undefined || last === undefined) return { first: row + SEPARATOR, before: row + AFTER_SEPARATOR };
  return { first: furtherRowKey(row, first), before: furtherRowKey(row, last) + AFTER_DIGITS };
}
