import { expect, test } from 'vitest';
import { engineCore } from '../../kit/engine.ts';

/** The time limit of storage for a write, and 20 seconds for pauses, delays and clocks: see "Time" in docs/internals/consistency.md. */
const LATE_MS = 15_000 + 20_000;

test('no other process writes while a request may still be executed', () => {
  const { commitWithinMs, claimForMs, hideIntentForSeconds, settleWithinMs } = engineCore.TIMING;
  expect(commitWithinMs + LATE_MS).toBeLessThanOrEqual(claimForMs);
  expect(commitWithinMs + LATE_MS).toBeLessThanOrEqual(hideIntentForSeconds * 1_000);
  expect(settleWithinMs + LATE_MS).toBeLessThanOrEqual(hideIntentForSeconds * 1_000);
});
