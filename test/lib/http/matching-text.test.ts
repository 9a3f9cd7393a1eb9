import { expect, test } from 'vitest';
import { createMatchingText } from '../../../lib/http/matching-text.ts';

test.each([
  [String.raw`^\d{6}$`, '123456'],
  ['^[A-Z0-9]{2,10}$', '12'],
  [String.raw`^\d{4}(0[1-9]|1[0-2])(?:T|x)$`, '123405T'],
  [String.raw`^[A-Z]{3}\d*x?$`, 'ABC4x'],
  [String.raw`^\+[^\s0-9]a.$`, '+Aa2'],
])('makes a text that matches %s', (pattern, text) => {
  expect(createMatchingText(pattern)).toBe(text);
  expect(text).toMatch(new RegExp(pattern, 'u'));
});
