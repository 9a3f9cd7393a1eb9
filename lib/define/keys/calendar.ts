/**
 * Calendar days, months and years in UTC. A period is the beginning of its ISO dates (`2026-11-20`, `2026-11`, `2026`), so
 * that periods of one unit sort by time.
 */

export const CALENDAR_UNITS = ['day', 'month', 'year'] as const;
export type CalendarUnit = (typeof CALENDAR_UNITS)[number];

const TEXT_LENGTH = { day: '2026-11-20'.length, month: '2026-11'.length, year: '2026'.length };

/** An offset that is not zero. */
const WITH_OFFSET = /^\d{4}-\d{2}-\d{2}T.*[+-](?!00:?00$)\d{2}:?\d{2}$/;

/** The period in UTC of an instant: milliseconds, or a text that begins with an ISO date. Undefined for any other text. */
export function periodOf(unit: CalendarUnit, instant: number): string;
export function periodOf(unit: CalendarUnit, instant: string): string | undefined;
export function periodOf(unit: CalendarUnit, instant: number | string): string | undefined {
  const text = typeof instant === 'number' ? new Date(instant).toISOString() : inUtc(instant);
  const period = text.slice(0, TEXT_LENGTH[unit]);
  return isPeriod(unit, period) ? period : undefined;
}

function inUtc(text: string): string {
  const milliseconds = WITH_OFFSET.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(milliseconds) ? text : new Date(milliseconds).toISOString();
}

function isPeriod(unit: CalendarUnit, text: string): boolean {
  if (text.length !== TEXT_LENGTH[unit] || !/^\d{4}(-\d{2}){0,2}$/.test(text)) return false;
  const start = Date.parse(text);
  // `Date.parse` accepts 30 February and returns a day in March.
  return !Number.isNaN(start) && new Date(start).toISOString().startsWith(text);
}

/** The period `count` periods later, or earlier if `count` is negative. */
export function addPeriods(unit: CalendarUnit, period: string, count: number): string {
  return startOf(unit, period, count).toISOString().slice(0, TEXT_LENGTH[unit]);
}

/** When the period begins that is `count` periods later. */
function startOf(unit: CalendarUnit, period: string, count: number): Date {
  const start = new Date(period);
  if (unit === 'day') start.setUTCDate(start.getUTCDate() + count);
  if (unit === 'month') start.setUTCMonth(start.getUTCMonth() + count);
  if (unit === 'year') start.setUTCFullYear(start.getUTCFullYear() + count);
  return start;
}

/** Every period from first to last, both included. Empty if last is before first. */
export function periodsBetween(unit: CalendarUnit, first: string, last: string): string[] {
  const periods: string[] = [];
  // The year after 9999 has no such text.
  for (let period = first; period <= last && isPeriod(unit, period); period = addPeriods(unit, period, 1))
    periods.push(period);
  return periods;
}

/**
 * The first and the last period that a row may have: the kept periods, the current one, and the next one because clocks
 * differ.
 */
export function keptPeriods(
  { per, keep }: { readonly per: CalendarUnit; readonly keep: number },
  now: number,
): { first: string; last: string } {
  const current = periodOf(per, now);
  return { first: addPeriods(per, current, -keep), last: addPeriods(per, current, 1) };
}

/** The first and the last millisecond of a period. */
export function boundsOf(unit: CalendarUnit, period: string): { first: string; last: string } {
  const next = startOf(unit, period, 1).getTime();
  return { first: new Date(period).toISOString(), last: new Date(next - 1).toISOString() };
}

/** The number of digits of the period in a table name. */
export const PERIOD_DIGITS = { day: 8, month: 6, year: 4 };

/** The name of the table for a period: `logins20261120`, `logins202611` or `logins2026`. */
export function tableOfPeriod(table: string, period: string): string {
  return table + period.replaceAll('-', '');
}

/** The period that a table name ends with, or undefined for another table. */
export function periodOfTable(unit: CalendarUnit, table: string, name: string): string | undefined {
  const digits = name.startsWith(table) ? name.slice(table.length) : '';
  const [, ...parts] = /^(\d{4})(\d{2})?(\d{2})?$/.exec(digits) ?? [];
  const period = parts.filter((part) => part !== undefined).join('-');
  return isPeriod(unit, period) ? period : undefined;
}
