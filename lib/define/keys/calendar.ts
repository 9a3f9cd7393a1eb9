/**
 * Calendar days, months and years, in UTC. A period is written as its ISO dates begin (`2026-11-20`, `2026-11`, `2026`),
 * so that periods of one unit sort as time does.
 */

export const CALENDAR_UNITS = ['day', 'month', 'year'] as const;
export type CalendarUnit = (typeof CALENDAR_UNITS)[number];

const TEXT_LENGTH = { day: '2026-11-20'.length, month: '2026-11'.length, year: '2026'.length };

/** The period of an instant: milliseconds, or a text that begins with an ISO date. Undefined for a text with no such date. */
export function periodOf(unit: CalendarUnit, instant: number): string;
export function periodOf(unit: CalendarUnit, instant: string): string | undefined;
export function periodOf(unit: CalendarUnit, instant: number | string): string | undefined {
  const text = typeof instant === 'number' ? new Date(instant).toISOString() : instant;
  const period = text.slice(0, TEXT_LENGTH[unit]);
  return isPeriod(unit, period) ? period : undefined;
}

function isPeriod(unit: CalendarUnit, text: string): boolean {
  if (text.length !== TEXT_LENGTH[unit] || !/^\d{4}(-\d{2}){0,2}$/.test(text)) return false;
  const start = Date.parse(text);
  // A parser may take 30 February for a day in March.
  return !Number.isNaN(start) && new Date(start).toISOString().startsWith(text);
}

/** The period that is `count` periods later, or earlier for a negative count. */
export function addPeriods(unit: CalendarUnit, period: string, count: number): string {
  const start = new Date(period);
  if (unit === 'day') start.setUTCDate(start.getUTCDate() + count);
  if (unit === 'month') start.setUTCMonth(start.getUTCMonth() + count);
  if (unit === 'year') start.setUTCFullYear(start.getUTCFullYear() + count);
  return start.toISOString().slice(0, TEXT_LENGTH[unit]);
}

/** Every period from the first to the last, both included; none where the last is before the first. */
export function periodsBetween(unit: CalendarUnit, first: string, last: string): string[] {
  const periods: string[] = [];
  // The year after 9999 has no such text.
  for (let period = first; period <= last && isPeriod(unit, period); period = addPeriods(unit, period, 1))
    periods.push(period);
  return periods;
}

/**
 * The first and the last period that a row may have: the kept ones, the current one, and the next one, as the clocks of
 * writers differ.
 */
export function keptPeriods(
  { per, keep }: { readonly per: CalendarUnit; readonly keep: number },
  now: number,
): { first: string; last: string } {
  const current = periodOf(per, now);
  return { first: addPeriods(per, current, -keep), last: addPeriods(per, current, 1) };
}

/** The first and the last instant of a period, to the millisecond. */
export function boundsOf(unit: CalendarUnit, period: string): { first: string; last: string } {
  const next = Date.parse(addPeriods(unit, period, 1));
  return { first: new Date(period).toISOString(), last: new Date(next - 1).toISOString() };
}

/** How many digits the name of a table has for its period. */
export const PERIOD_DIGITS = { day: 8, month: 6, year: 4 };

/** The name of the table for a period: `logins20261120`, `logins202611` or `logins2026`. */
export function tableOfPeriod(table: string, period: string): string {
  return table + period.replaceAll('-', '');
}

/** The period that the name of a table ends with, or undefined for a table of another kind. */
export function periodOfTable(unit: CalendarUnit, table: string, name: string): string | undefined {
  const digits = name.startsWith(table) ? name.slice(table.length) : '';
  const [, ...parts] = /^(\d{4})(\d{2})?(\d{2})?$/.exec(digits) ?? [];
  const period = parts.filter((part) => part !== undefined).join('-');
  return isPeriod(unit, period) ? period : undefined;
}
