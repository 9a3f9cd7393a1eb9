import type { KeyRing } from '../storage/key-ring.ts';
import type { Storage } from '../storage/storage.ts';

/** What the engine and the patterns work with: storage, a clock, and how long things may take. Tests hold the clock. */
export interface Engine {
  readonly storage: Storage;
  /** For encrypted fields. */
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

/** Permission to write what a queue message asks for. */
export interface Hold {
  /**
   * To be called right before each write: renews the hold when that is due, and returns the signal that aborts the write.
   * Throws `busy` when the hold is lost.
   */
  keep(): Promise<AbortSignal>;
}
