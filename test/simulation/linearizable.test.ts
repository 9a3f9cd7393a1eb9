import { expect, test } from 'vitest';
import { checkOrder, type Operation } from './linearizable.ts';

const write = (value: number, begun: number, ended: number, isOptional = false): Operation<number> => ({
  ...{ begun, ended, isOptional, text: `write ${value}` },
  apply: () => ({ state: value }),
});
const read = (value: number, begun: number, ended: number): Operation<number> => ({
  ...{ begun, ended, isOptional: false, text: `read ${value}` },
  apply: (state) => (state === value ? { state } : undefined),
});

test.each([
  ['a read after a write', [write(1, 0, 1), read(1, 2, 3)], 'linearizable'],
  ['a read during a write that returns either value', [write(1, 0, 9), read(0, 1, 2), read(1, 3, 4)], 'linearizable'],
  ['a read that goes back', [write(1, 0, 9), read(1, 1, 2), read(0, 3, 4)], 'not linearizable'],
  ['a lost write', [write(1, 0, 1), read(0, 2, 3)], 'not linearizable'],
  ['a write of an unknown outcome without effect', [write(1, 0, 1, true), read(0, 2, 3)], 'linearizable'],
  [
    'a write of an unknown outcome that happens late',
    [write(1, 0, 5, true), read(0, 2, 3), read(1, 4, 6)],
    'linearizable',
  ],
  ['a write that happens after its time', [write(1, 0, 5, true), read(0, 6, 7), read(1, 8, 9)], 'not linearizable'],
  ['a write that has an effect twice', [write(1, 0, 1), write(2, 2, 3), read(1, 4, 5)], 'not linearizable'],
])('judges %s', (_, operations, verdict) => {
  expect(checkOrder(operations, 0, String)).toBe(verdict);
});
