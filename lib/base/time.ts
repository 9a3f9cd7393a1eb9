import { setTimeout as sleep } from 'node:timers/promises';

/** Durations in milliseconds, and instants as text. Periods of the calendar are in lib/define/keys/calendar.ts. */

export const SECOND_MS = 1_000;
export const MINUTE_MS = 60 * SECOND_MS;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

/** An instant, in milliseconds, as ISO text in UTC: `2026-11-20T08:00:00.000Z`. */
export function isoInstant(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}

/** An instant without the fraction of its second, which is cut off: `2026-11-20T08:00:00Z`. */
export function isoSeconds(instant: number | Date): string {
  return new Date(instant).toISOString().replace(/\.\d{3}Z$/, 'Z');
}

/**
 * True if something began so recently: at `since` by the clock of the process, which stands still while its machine is suspended, and at `at` by
 * that of the machine, which may be set.
 */
export function isRecent({ since, at }: { readonly since: number; readonly at: number }, withinMs: number): boolean {
  return performance.now() - since < withinMs && Math.abs(Date.now() - at) < withinMs;
}

/** Waits for a random time before attempt `attempt + 1`: up to `stepMs` more for each attempt, at most `longestMs`. */
export async function backOff(attempt: number, stepMs: number, longestMs: number): Promise<void> {
  await sleep(Math.random() * Math.min(stepMs * attempt, longestMs));
}

/**
 * A signal that is aborted in so many milliseconds, or is aborted already: a timer of a process that has slept ends only after what the process
 * then begins.
 */
export function abortIn(milliseconds: number): AbortSignal {
  return milliseconds > 0
    ? AbortSignal.timeout(milliseconds)
    : AbortSignal.abort(new DOMException('The time is over.', 'TimeoutError'));
}

/** An ISO instant in UTC, with up to seven digits, as storage has. Undefined for another text. */
export function toUtc(text: string): string | undefined {
  const milliseconds = Date.parse(text);
  if (Number.isNaN(milliseconds)) return undefined;
  // A date has milliseconds, and two versions of a row may be closer.
  const [, further = ''] = /\.\d{3}(\d{1,4})/.exec(text) ?? [];
  return isoInstant(milliseconds).replace('Z', `${further}Z`);
}
