import { expect, test } from 'vitest';
import { shrink } from './shrink.ts';

test('leaves the events that a failure needs', async () => {
  const events = Array.from({ length: 90 }, (_, index) => index);
  let tried = 0;
  const fails = async (left: readonly number[]) => {
    tried += 1;
    return [3, 41, 88].every((needed) => left.includes(needed));
  };
  expect(await shrink(events, fails)).toEqual([3, 41, 88]);
  expect(tried).toBeLessThan(90);
});
