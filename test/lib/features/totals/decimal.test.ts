import fc from 'fast-check';
import { expect, test } from 'vitest';
import { addDecimals } from '../../../../lib/features/totals/decimal.ts';

const number = fc.double({ noNaN: true, noDefaultInfinity: true });

test.each([
  [[], '0'],
  [[0.1, 0.2], '0.3'],
  [[-0.5, 0.25], '-0.25'],
  [[1e21, 1], '1000000000000000000001'],
  [[1e-7, '-0.0000001'], '0'],
  [['10.50', 0.5], '11'],
  [[-0], '0'],
])('adds %j to %s', (values, sum) => {
  expect(addDecimals(...values)).toBe(sum);
});

test('does not depend on the order', () => {
  fc.assert(
    fc.property(fc.array(number, { maxLength: 8 }), (values) => {
      const oneByOne = values.reduce((sum, value) => addDecimals(sum, value), '0');
      expect(oneByOne).toBe(addDecimals(...values.toReversed()));
    }),
  );
});

test('takes away exactly what was added', () => {
  fc.assert(
    fc.property(number, fc.array(number, { maxLength: 8 }), (kept, others) => {
      const all = [kept, ...others].reduce((sum, value) => addDecimals(sum, value), '0');
      const left = others.reduce((sum, value) => addDecimals(sum, -value), all);
      expect(left).toBe(addDecimals(kept));
      expect(Number(left)).toBe(kept === 0 ? 0 : kept);
    }),
  );
});
