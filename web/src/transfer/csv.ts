import Papa from 'papaparse';
import type { Values } from '../api/model.ts';

/**
 * A spreadsheet executes a cell that begins with one of these characters. The export puts an apostrophe before it, and another one
 * before a text that has apostrophes already, so that the import reads each text back.
 */
const FORMULA = /^'*[=+\-@\t\r]/;

/** The lines of rows. Objects and lists are JSON, as the import reads them. */
export function toCsv(columns: readonly string[], items: readonly Values[]): string {
  const cell = (value: unknown) => (typeof value === 'object' && value !== null ? JSON.stringify(value) : value);
  const rows = items.map((item) => columns.map((column) => cell(item[column])));
  return `${Papa.unparse(rows, { escapeFormulae: FORMULA })}\r\n`;
}

/** The text of a cell as it was before the export. */
export function unescapeFormula(text: string): string {
  return text.startsWith("'") && FORMULA.test(text) ? text.slice(1) : text;
}

/** How many values are null: storage has them, and the API cannot read them. */
export function countUnreadable(columns: readonly string[], items: readonly Values[]): number {
  return items.flatMap((item) => columns.filter((column) => item[column] === null)).length;
}
