import { expect, test } from 'vitest';
import { onceFor } from '../../../lib/base/once.ts';

test('computes once for a frozen object, and at each call for one that may still change', () => {
  let computed = 0;
  const lengthOf = onceFor((list: readonly string[]) => {
    computed += 1;
    return list.length;
  });
  const list = ['a'];
  expect(lengthOf(list)).toBe(1);
  list.push('b');
  expect(lengthOf(list)).toBe(2);
  Object.freeze(list);
  expect([lengthOf(list), lengthOf(list), computed]).toEqual([2, 2, 3]);
  expect([lengthOf(Object.freeze(['c'])), computed]).toEqual([1, 4]);
});
