import { expect, test } from 'vitest';
import { sortRows } from '../../web/src/rows/sort-rows.ts';

const orderOf = (values: readonly unknown[], isDescending = false) =>
  sortRows(
    values.map((value) => ({ value })),
    { column: 'value', isDescending },
  ).map(({ value }) => value);

test('sorts numbers as numbers, and texts as people count', () => {
  expect(orderOf([10, 9, 1.5, -2])).toEqual([-2, 1.5, 9, 10]);
  expect(orderOf(['item 10', 'Item 9', 'alpha'])).toEqual(['alpha', 'Item 9', 'item 10']);
});

test.each([true, false])('keeps rows without a value last, descending: %s', (isDescending) => {
  expect(orderOf([undefined, 2, null, 1], isDescending).slice(2)).toEqual([undefined, null]);
});

test('keeps the order of the list where values are equal, and leaves the list as it is', () => {
  const rows = [
    { value: 1, n: 1 },
    { value: 0, n: 2 },
    { value: 1, n: 3 },
  ];
  expect(sortRows(rows, { column: 'value', isDescending: false }).map(({ n }) => n)).toEqual([2, 1, 3]);
  expect(rows.map(({ n }) => n)).toEqual([1, 2, 3]);
});
