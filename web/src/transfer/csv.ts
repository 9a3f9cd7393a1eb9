import Papa from 'papaparse';
import { FORMULA } from '../../../lib/define/declaration/csv-value.ts';
import type { Entity, Values } from '../api/model.ts';

/** The lines of rows. A Json column has JSON in each cell, so that the import distinguishes the text "1" from the number 1. */
export function toCsv(
  { fields }: Pick<Entity, 'fields'>,
  columns: readonly string[],
  items: readonly Values[],
): string {
  const toCell = (column: string, value: unknown) => {
    if (value === undefined || value === null) return '';
    const isText = typeof value === 'string' && fields[column]?.type === 'Json';
    return isText || typeof value === 'object' ? JSON.stringify(value) : value;
  };
  const rows = items.map((item) => columns.map((column) => toCell(column, item[column])));
  return `${Papa.unparse(rows, { escapeFormulae: FORMULA })}\r\n`;
}

/** How many values are null: storage has them, and the API cannot read them. */
export function countUnreadable(columns: readonly string[], items: readonly Values[]): number {
  return items.flatMap((item) => columns.filter((column) => item[column] === null)).length;
}
