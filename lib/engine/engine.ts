import type { KeyRing } from '../storage/key-ring.ts';
import { lazyKeyRing } from '../storage/lazy-key-ring.ts';
import type { Storage } from '../storage/storage.ts';

/** What the patterns work with: storage, a clock, and how long things may take. Tests hold the clock. */
export interface Engine {
  readonly storage: Storage;
  /** For what is stored encrypted. */
  readonly keys: KeyRing;
  readonly now: () => number;
  readonly timing: Timing;
  /** A writer settles an intent itself when it names at most so many index entries; 0 leaves every intent to the queue. */
  readonly settleInline: number;
}

/**
 * The order is what matters: a writer stops well before its claims expire, and they expire before its intent is seen,
 * so that a reconciler never judges a transaction that may still commit.
 */
export interface Timing {
  /** A writer gives up this long after it sent its intent. */
  readonly commitWithinMs: number;
  /** A claim is live for this long. */
  readonly claimForMs: number;
  /** An intent is hidden for this long unless its writer shows it earlier. Whole seconds, as queues count. */
  readonly hideIntentForSeconds: number;
  /** Whoever works on a hidden message writes for so long after the message was hidden last. */
  readonly settleWithinMs: number;
}

/**
 * The service works on one request for 30 s at most: a commit that was given up lands within 45 s, and an index write that
 * was given up within 55 s.
 */
export const TIMING: Timing = {
  commitWithinMs: 15_000,
  claimForMs: 50_000,
  hideIntentForSeconds: 60,
  settleWithinMs: 25_000,
};
/** An index entry takes two or three calls, so that a caller waits for some tens of calls at most. */
const SETTLE_INLINE = 16;

/** Without `keys` an engine reads and writes no encrypted field. */
export function createEngine(storage: Storage, options: Partial<Omit<Engine, 'storage'>> = {}): Engine {
  const { now = Date.now, timing = TIMING, settleInline = SETTLE_INLINE } = options;
  const { keys = lazyKeyRing(() => undefined) } = options;
  return { storage, now, timing, keys, settleInline };
}
