/**
 * The keys of the further rows of an entity: its row key, `!-` and a name. A key that is built from a template has `!` only before
 * two hexadecimal digits, so no entity, copy or list has such a key. `!` sorts below every other character but the space, so the
 * further rows follow their entity and precede its children.
 */
const SEPARATOR = '!-';
/** The first key after all keys with the separator. */
const AFTER_SEPARATOR = '!.';
/** The character after the digits. */
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
