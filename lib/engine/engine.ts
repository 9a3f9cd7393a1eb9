import { RULES_MAX_AGE_S } from '../define/declaration/access.ts';
import type { Engine, Timing } from '../define/declaration/engine.ts';
import { createLazyKeyRing } from '../storage/lazy-key-ring.ts';
import type { Storage } from '../storage/storage.ts';

export type { Engine, Rekey, RekeyPhase, Timing } from '../define/declaration/engine.ts';

/** Storage may execute a request 35 s late: it works for at most 15 s, and the rest is for pauses, delays and clocks. */
export const TIMING: Timing = {
  commitWithinMs: 15_000,
  claimForMs: 50_000,
  hideIntentForSeconds: 60,
  settleWithinMs: 25_000,
};
/** An index entry takes two or three storage calls, so a caller waits for at most some tens of calls. */
const SETTLE_INLINE = 16;

/** Without `keys` an engine reads and writes no encrypted field. */
export function createEngine(storage: Storage, options: Partial<Omit<Engine, 'storage'>> = {}): Engine {
  const { now = Date.now, timing = TIMING, settleInline = SETTLE_INLINE } = options;
  const { keys = createLazyKeyRing(() => undefined), rulesMaxAge = RULES_MAX_AGE_S, guard } = options;
  const { queueParts = 1, rekey, past } = options;
  return { storage, now, timing, keys, settleInline, rulesMaxAge, queueParts, rekey, past, guard };
}
