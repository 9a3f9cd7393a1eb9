import { RowkeyError } from '../../base/errors.ts';
import { boundsOf, CALENDAR_UNITS, periodOf } from './calendar.ts';

/**
 * Log tail pattern: a key that begins with the time left until the maximum date sorts newest first, so the newest n rows
 * are the first n. The format is that of .NET, `(DateTime.MaxValue.Ticks - at.Ticks).ToString("D19")`, so that .NET code
 * can share the table.
 */

const TICKS_PER_MILLISECOND = 10_000n;
const MAX_TICKS = 3_155_378_975_999_999_999n;
const DIGITS = 19;
/** Milliseconds from 0001-01-01, where ticks begin, to 1970-01-01. */
const EPOCH_MS = 62_135_596_800_000n;
const INSTANT_EXAMPLE = 'an ISO instant in UTC, such as 2026-11-20T08:00:00Z';
const INSTANT = /^(\d{4}-\d{2}-\d{2})(?:T(\d{2}:\d{2}:\d{2})(?:\.(\d{1,7}))?Z)?$/;

/** The 19 digits of an ISO instant in UTC with up to seven fractional digits. Throws `invalid-input`. */
export function invertedTicks(instant: string): string {
  const ticks = ticksOf(instant);
  if (ticks === undefined)
    throw new RowkeyError('invalid-input', 'An instant is needed.', { accepted: INSTANT_EXAMPLE });
  return toDigits(ticks);
}

export function isInvertedTicks(text: string): boolean {
  return text.length === DIGITS && /^\d+$/.test(text) && BigInt(text) <= MAX_TICKS;
}

/** The instant of 19 digits, with three fractional digits unless it needs more. */
export function instantOf(digits: string): string {
  const ticks = MAX_TICKS - BigInt(digits);
  const milliseconds = ticks / TICKS_PER_MILLISECOND;
  const rest = ticks % TICKS_PER_MILLISECOND;
  const instant = new Date(Number(milliseconds - EPOCH_MS)).toISOString();
  return rest === 0n ? instant : instant.replace('Z', `${String(rest).padStart(4, '0')}Z`);
}

/**
 * The digits of two bounds. A day, a month or a year as a bound means all of it, so it begins at `from` and ends at `to`. Throws
 * `invalid-input`.
 */
export function invertedBounds({ from, to }: { from?: string | undefined; to?: string | undefined }): {
  from: string;
  to: string;
} {
  return {
    from: to === undefined ? '' : toDigits(boundTicks('to', to).last),
    to: from === undefined ? '' : toDigits(boundTicks('from', from).first),
  };
}

function boundTicks(field: string, bound: string): { readonly first: bigint; readonly last: bigint } {
  const unit = CALENDAR_UNITS.find((each) => periodOf(each, bound) === bound);
  const { first, last } = unit ? boundsOf(unit, bound) : { first: bound, last: bound };
  const [begin, end] = [ticksOf(first), ticksOf(last)];
  if (begin === undefined || end === undefined)
    throw new RowkeyError('invalid-input', `"${field}" must be an instant, a day, a month or a year, in UTC.`, {
      field,
      accepted: `${INSTANT_EXAMPLE}, or 2026-11-20, 2026-11 or 2026`,
    });
  return { first: begin, last: unit ? end + TICKS_PER_MILLISECOND - 1n : end };
}

function toDigits(ticks: bigint): string {
  return String(MAX_TICKS - ticks).padStart(DIGITS, '0');
}

function ticksOf(instant: string): bigint | undefined {
  const [, day, time = '00:00:00', fraction = ''] = INSTANT.exec(instant) ?? [];
  const milliseconds = Date.parse(`${day}T${time}Z`);
  // `Date.parse` accepts 31 November.
  if (Number.isNaN(milliseconds) || periodOf('day', instant) === undefined) return undefined;
  return (BigInt(milliseconds) + EPOCH_MS) * TICKS_PER_MILLISECOND + BigInt(fraction.padEnd(7, '0'));
}
