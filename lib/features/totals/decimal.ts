/**
 * Exact sums of JSON numbers. A sum is a decimal text, because sums of floating-point numbers depend on their order and keep a
 * remainder when a number is subtracted again.
 */

interface Decimal {
  /** The value is `units` / 10 ** `scale`. */
  readonly units: bigint;
  readonly scale: number;
}

const DECIMAL = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/;

/** The sum of decimal texts and numbers, in the one form that a value has: without trailing zeros and exponent. */
export function addDecimals(...values: readonly (string | number)[]): string {
  const decimals = values.map(parseDecimal);
  const scale = Math.max(0, ...decimals.map((decimal) => decimal.scale));
  const units = decimals.reduce((sum, decimal) => sum + decimal.units * 10n ** BigInt(scale - decimal.scale), 0n);
  const digits = String(units < 0n ? -units : units).padStart(scale + 1, '0');
  const fraction = digits.slice(digits.length - scale).replace(/0+$/, '');
  return `${units < 0n ? '-' : ''}${digits.slice(0, digits.length - scale)}${scale > 0 && fraction !== '' ? `.${fraction}` : ''}`;
}

/** Reads a number as the decimal that JSON shows: 0.1 is exactly a tenth. */
function parseDecimal(value: string | number): Decimal {
  const [, sign, whole, fraction = '', exponent = '0'] = DECIMAL.exec(String(value)) ?? [];
  if (whole === undefined) throw new Error(`${JSON.stringify(value)} is not a decimal number.`);
  const units = BigInt(`${sign}${whole}${fraction}`);
  const scale = fraction.length - Number(exponent);
  return scale >= 0 ? { units, scale } : { units: units * 10n ** BigInt(-scale), scale: 0 };
}
