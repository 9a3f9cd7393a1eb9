import type { KeyRing } from '../../storage/key-ring.ts';
import type { Storage } from '../../storage/storage.ts';

/** Storage, a clock and time limits for the engine and the patterns. Tests control the clock. */
export interface Engine {
  readonly storage: Storage;
  /** Encrypt and decrypt fields. */
  readonly keys: KeyRing;
  readonly now: () => number;
  readonly timing: Timing;
  /** A writer settles an intent itself if it names at most this many index entries. With 0, the queue settles every intent. */
  readonly settleInline: number;
}

/**
 * Storage may execute a request `late` milliseconds after the time limit of its sender. Then commitWithinMs + late must be at most
 * claimForMs and the hiding time, so that a reconciler never judges a transaction that may still commit; and settleWithinMs + late at
 * most the hiding time, so that two processes never write for one message. test/model/time.mjs shows what happens otherwise.
 */
export interface Timing {
  /** A writer gives up this long after it sent its intent. */
  readonly commitWithinMs: number;
  readonly claimForMs: number;
  /** An intent is hidden for this long unless its writer shows it earlier. Queues count whole seconds. */
  readonly hideIntentForSeconds: number;
  /** A process that works on a hidden message may write for this long after it last hid the message. */
  readonly settleWithinMs: number;
}

/** The right to do the work of a queue message. */
export interface Hold {
  /**
   * Call this right before each write. Renews the hold when due and returns the signal that aborts the write. Throws `busy`
   * when the hold is lost.
   */
  keep(): Promise<AbortSignal>;
}
