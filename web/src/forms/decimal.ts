/** Number() also accepts hexadecimal, Infinity and spaces. */
const DECIMAL = /^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i;

/** Returns the number of a decimal text. Undefined for other text, and for an integer that a number cannot hold exactly. */
export function parseDecimal(text: string, isInteger: boolean): number | undefined {
  const trimmed = text.trim();
  if (!DECIMAL.test(trimmed)) return undefined;
  const number = Number(trimmed);
  if (isInteger && Number.isInteger(number) && !Number.isSafeInteger(number)) return undefined;
  return Number.isFinite(number) ? number : undefined;
}
