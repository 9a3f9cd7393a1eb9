import type { Slots } from '../define/entity.ts';

/** How the rows of a data series are named, and what their properties may hold. */

export const MAX_COUNT = 2_147_483_647;

/** The row keys of a series. The first is as declared; the others have their number after it. */
export function seriesRowKeys({ first, last, perRow }: Slots, row: string): string[] {
  const rows = Math.ceil((last - first + 1) / perRow);
  return Array.from({ length: rows }, (_, index) => (index === 0 ? row : `${row}_${index + 1}`));
}

/** The first row key of the series that a row may belong to. */
export function firstRowKey(slots: Slots, row: string): string {
  const shorter = row.replace(/_\d+$/, '');
  return seriesRowKeys(slots, shorter).includes(row) ? shorter : row;
}

export function isCount(count: unknown): count is number {
  return typeof count === 'number' && Number.isInteger(count) && count >= 0 && count <= MAX_COUNT;
}
