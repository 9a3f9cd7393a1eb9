import { MINUTE_MS } from '../base/time.ts';

/** How long a signature is valid. */
export const VALID_FOR_MS = 15 * MINUTE_MS;
/** The clocks of storage may be behind; the documentation of shared access signatures advises 15 minutes. */
const CLOCK_SKEW_MS = 15 * MINUTE_MS;

/** When a signature issued at `now` (milliseconds) is valid, in whole seconds as in signatures. */
export function validityAt(now: number): { readonly startsAt: Date; readonly expiresAt: Date } {
  return { startsAt: toWholeSeconds(now - CLOCK_SKEW_MS), expiresAt: toWholeSeconds(now + VALID_FOR_MS) };
}

function toWholeSeconds(milliseconds: number): Date {
  return new Date(Math.floor(milliseconds / 1000) * 1000);
}
