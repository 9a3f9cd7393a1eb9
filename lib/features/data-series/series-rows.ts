import type { Values } from '../../base/values.ts';
import type { Slots } from '../../define/declaration/declaration.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { addressOf } from '../../define/places/index-entries.ts';
import type { Address, Row } from '../../storage/rows.ts';

/** How the counts of a series are laid out over its rows. */

export const MAX_COUNT = 2_147_483_647;
/** The counts in the row of a series with a blob. The rest of 252 properties is for key fields and system properties. */
export const MAX_IN_ROW = 200;

/** The slots of a series. Throws a plain error if the entity is not a series. */
export function slotsOf({ name, series }: Entity): Slots {
  if (!series) throw new Error(`${name} does not declare a series.`);
  return series;
}

export function slotNumbers({ first, last }: Pick<Slots, 'first' | 'last'>): number[] {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}

/** All rows of a series, whether they exist or not. */
export function rowAddresses(entity: Entity, key: Values): [Address, ...Address[]] {
  const first = addressOf(entity, key);
  return [first, ...furtherRowKeys(slotsOf(entity), first.row).map((row) => ({ ...first, row }))];
}

/** The row keys after the declared one: `_2`, `_3` and so on are appended. */
function furtherRowKeys({ first, last, perRow }: Slots, row: string): string[] {
  const rows = Math.ceil((last - first + 1) / perRow);
  return Array.from({ length: rows - 1 }, (_, index) => `${row}_${index + 2}`);
}

/** The first row key of the series that a row may belong to. */
export function firstRowKey(slots: Slots, row: string): string {
  const shorter = row.replace(/_\d+$/, '');
  return furtherRowKeys(slots, shorter).includes(row) ? shorter : row;
}

/** The index of the row that has the slot. */
export function rowOf({ first, perRow }: Pick<Slots, 'first' | 'perRow'>, slot: number): number {
  return Math.floor((slot - first) / perRow);
}

/** The properties that are counts. */
export const COUNT = /^Count\d{3,}$/;

export function propertyOf(slot: number): string {
  return `Count${String(slot).padStart(3, '0')}`;
}

export function readCount(row: Row | undefined, slot: number): number {
  const count = row?.properties[propertyOf(slot)];
  // A client with a grant may have written any value.
  return isCount(count) ? count : 0;
}

export function isCount(count: unknown): count is number {
  return typeof count === 'number' && Number.isInteger(count) && count >= 0 && count <= MAX_COUNT;
}
