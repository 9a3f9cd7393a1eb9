import { MINUTE_MS } from '../time.ts';

/** How long a signature is good. */
export const VALID_FOR_MS = 15 * MINUTE_MS;
/** The clocks of storage may be behind ours; the documentation of shared access signatures advises 15 minutes. */
const CLOCK_SKEW_MS = 15 * MINUTE_MS;

/** From when to when a signature given out at `now` (milliseconds) is good, in whole seconds as signatures carry them. */
export function validityAt(now: number): { readonly startsAt: Date; readonly expiresAt: Date } {
  return { startsAt: wholeSeconds(now - CLOCK_SKEW_MS), expiresAt: wholeSeconds(now + VALID_FOR_MS) };
}

function wholeSeconds(milliseconds: number): Date {
  return new Date(Math.floor(milliseconds / 1000) * 1000);
}
