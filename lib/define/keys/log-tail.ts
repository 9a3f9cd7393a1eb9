import { RowkeyError } from '../../errors.ts';

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
const INSTANT = /^(\d{4}-\d{2}-\d{2})(?:T(\d{2}:\d{2}:\d{2})(?:\.(\d{1,7}))?Z)?$/;

/** The 19 digits of an ISO instant in UTC with up to seven fractional digits. Throws `invalid-input` naming `field`. */
export function invertedTicks(instant: string, field?: string): string {
  return String(MAX_TICKS - ticksOf(instant, field)).padStart(DIGITS, '0');
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

/** The first and the last instant of two bounds. A day as a bound means the whole day. Throws `invalid-input`. */
export function invertedBounds(bounds: { from?: string | undefined; to?: string | undefined }): {
  from: string;
  to: string;
} {
  const end = (bound: string) => (bound.includes('T') ? bound : `${bound}T23:59:59.9999999Z`);
  return {
    from: bounds.to === undefined ? '' : invertedTicks(end(bounds.to), 'to'),
    to: bounds.from === undefined ? '' : invertedTicks(bounds.from, 'from'),
  };
}

function ticksOf(instant: string, field: string | undefined): bigint {
  const [, day, time = '00:00:00', fraction = ''] = INSTANT.exec(instant) ?? [];
  const milliseconds = Date.parse(`${day}T${time}Z`);
  if (Number.isNaN(milliseconds))
    throw new RowkeyError('invalid-input', 'An instant is needed.', {
      ...(field === undefined ? {} : { field }),
      accepted: 'an ISO instant in UTC, such as 2026-11-20T08:00:00Z',
    });
  return (BigInt(milliseconds) + EPOCH_MS) * TICKS_PER_MILLISECOND + BigInt(fraction.padEnd(7, '0'));
}
