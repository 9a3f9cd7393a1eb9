import { expect, test } from 'vitest';
import { contains } from './contains.ts';

test.each([
  ['"000123"', '000123', true],
  ['W/"4f000123a"', '000123', false],
  ['0.000123', '000123', false],
  ['"Zoffice10"', 'Zoffice10', true],
  ['"Zoffice10_a"', 'Zoffice10', true],
  ['"Zoffice100"', 'Zoffice10', false],
  ['"Zoffice100","Zoffice10"', 'Zoffice10', true],
  ['a (b).c1', '(b).c1', true],
  ['"Jones-Smith"', 'Jones', true],
])('%s contains %s: %s', (text, value, expected) => {
  expect(contains(text, value)).toBe(expected);
});
