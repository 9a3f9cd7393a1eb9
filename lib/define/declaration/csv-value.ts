import { isHeld, parseJson } from '../../base/parse-json.ts';
import type { FieldDescription } from './model-description.ts';

type ColumnType = FieldDescription['type'];

/** Values of text: the cells of a CSV file and the inputs of a form. The command line and the console use it. */

/** Number() also accepts hexadecimal, Infinity and spaces. */
const DECIMAL = /^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i;

/**
 * A spreadsheet executes a cell that begins with one of these characters. The export puts an apostrophe before it, and another one
 * before a text that has apostrophes already, so that an import reads each text back.
 */
export const FORMULA = /^'*[=+\-@\t\r]/;

/** Returns the number of a decimal text. Undefined for other text, and for one that a number cannot hold: see `isHeld`. */
export function parseDecimal(text: string, isInteger: boolean): number | undefined {
  const trimmed = text.trim();
  if (!DECIMAL.test(trimmed) || !isHeld(trimmed)) return undefined;
  const number = Number(trimmed);
  if (isInteger && Number.isInteger(number) && !Number.isSafeInteger(number)) return undefined;
  // JSON.stringify writes Infinity, the result for a number that is too large, as null.
  return Number.isFinite(number) ? number : undefined;
}

/** True if a cell has no value. Spaces are a valid text and not a number. */
export function isEmptyCell(type: ColumnType, text: string): boolean {
  return (isNumber(type) ? text.trim() : text) === '';
}

/** Returns the value of a cell. Text that cannot be converted stays unchanged, so that the API reports the error. */
export function parseCell(type: ColumnType, cell: string): unknown {
  const text = cell.startsWith("'") && FORMULA.test(cell) ? cell.slice(1) : cell;
  // Excel writes TRUE.
  if (type === 'Boolean') return /^true$/i.test(text) ? true : /^false$/i.test(text) ? false : text;
  if (type === 'Json') {
    try {
      return parseJson(text);
    } catch {
      return text;
    }
  }
  return isNumber(type) ? (parseDecimal(text, type !== 'Double') ?? text) : text;
}

function isNumber(type: ColumnType): boolean {
  return type === 'Int32' || type === 'Int64' || type === 'Double';
}
