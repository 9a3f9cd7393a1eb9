const SECOND = 1_000;
const DAY = 86_400 * SECOND;
const UNITS = [
  ['year', 365 * DAY],
  ['month', 30 * DAY],
  ['day', DAY],
  ['hour', 3_600 * SECOND],
  ['minute', 60 * SECOND],
] as const;

/** `3 minutes`, from an instant until now. */
export function formatAge(instant: string, now = Date.now()): string {
  const age = Math.max(0, now - Date.parse(instant));
  const [unit, length] = UNITS.find(([, milliseconds]) => age >= 2 * milliseconds) ?? ['second', SECOND];
  return new Intl.NumberFormat('en', { style: 'unit', unit, unitDisplay: 'long' }).format(Math.floor(age / length));
}

export function formatInstant(instant: string): string {
  return `${instant.slice(0, 19).replace('T', ' ')} UTC`;
}

export function formatCount(count: number): string {
  return count.toLocaleString('en');
}

/** `1 row`, `2 rows`. */
export function plural(count: number, one: string, many = `${one}s`): string {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}

/** `a, b and c`. */
export function joinNames(names: readonly string[], word: 'and' | 'or'): string {
  const type = word === 'and' ? 'conjunction' : 'disjunction';
  return new Intl.ListFormat('en-GB', { type }).format(names);
}

/** Why a list through an index may not have a row. */
export function sayLeftOut(needs: readonly string[], index: string): string {
  return `Rows without ${joinNames(needs, 'or')} are not in ${index}.`;
}

/** `$1.25`. Amounts below a cent are not rounded to nothing: `< $0.01`. */
export function formatDollars(dollars: number): string {
  const format = (amount: number) => amount.toLocaleString('en', { style: 'currency', currency: 'USD' });
  return dollars > 0 && dollars < 0.01 ? `< ${format(0.01)}` : format(dollars);
}
