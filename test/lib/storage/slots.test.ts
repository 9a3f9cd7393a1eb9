import { expect, test } from 'vitest';
import { slotOf } from '../../../lib/storage/slots.ts';

test('spreads texts that are alike, and never changes', () => {
  expect(['Sales', 'Engineering', ''].map(slotOf)).toEqual(['8de', '729', 'e3b']);
  const slots = Array.from({ length: 4_096 }, (_, index) => slotOf(`tenant-${index}`));
  expect(slots.every((slot) => /^[\da-f]{3}$/.test(slot))).toBe(true);
  // Thrown at random, 4,096 texts reach 63% of 4,096 slots.
  expect(new Set(slots).size).toBeGreaterThan(2_400);
});
