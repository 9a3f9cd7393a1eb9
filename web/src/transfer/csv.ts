import Papa from 'papaparse';
import { FORMULA } from '../../../lib/define/csv-value.ts';
import type { Values } from '../api/model.ts';

/** The lines of rows. Objects and lists are JSON, as the import reads them. */
export function toCsv(columns: readonly string[], items: readonly Values[]): string {
  const cell = (value: unknown) => (typeof value === 'object' && value !== null ? JSON.stringify(value) : value);
  const rows = items.map((item) => columns.map((column) => cell(item[column])));
  return `${Papa.unparse(rows, { escapeFormulae: FORMULA })}\r\n`;
}

/** How many values are null: storage has them, and the API cannot read them. */
export function countUnreadable(columns: readonly string[], items: readonly Values[]): number {
  return items.flatMap((item) => columns.filter((column) => item[column] === null)).length;
}
