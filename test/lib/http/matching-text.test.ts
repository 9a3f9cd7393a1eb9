import { expect, test, vi } from 'vitest';
import { httpDoor } from '../../kit/http.ts';

test.each([
  [String.raw`^\d{6}$`, '123456'],
  ['^[A-Z0-9]{2,10}$', '12'],
  [String.raw`^\d{4}(0[1-9]|1[0-2])(?:T|x)$`, '123405T'],
  [String.raw`^[A-Z]{3}\d*x?$`, 'ABC4x'],
  [String.raw`^\+[^\s0-9]a.$`, '+Aa2'],
])('makes a text that matches %s', (pattern, text) => {
  expect(httpDoor.createMatchingText(pattern)).toBe(text);
  expect(text).toMatch(new RegExp(pattern, 'u'));
});

test.each([
  [String.raw`^\d{3}\-\d{4}$`, '', '123-4567'],
  [String.raw`^\@x$`, '', '@x'],
  [String.raw`^[\w\_]+$`, '', '1'],
  [String.raw`^[\p{L}--[a-z]]{2}$`, 'v', 'AB'],
  [String.raw`^[\p{L}\d]{11}$`, 'u', '1234567890A'],
  [String.raw`^[\w&&\d]{11}$`, 'v', '12345678901'],
])('makes a text that matches %s with the flags "%s"', (pattern, flags, text) => {
  expect(httpDoor.createMatchingText(pattern)).toBe(text);
  expect(text).toMatch(new RegExp(pattern, flags));
});

test.each(['(', '[b-a]', String.raw`((\d{1000}){1000}){1000}`, String.raw`^(?!1)\d$`])(
  'makes no text for %s, which has none or none that is found',
  (pattern) => {
    expect(httpDoor.createMatchingText(pattern)).toBeUndefined();
    expect(httpDoor.matchesPattern(pattern, '1')).toBe(false);
  },
);

test('makes a text of many repetitions with one expression for each class', () => {
  const compile = vi.spyOn(globalThis, 'RegExp');
  expect(httpDoor.createMatchingText(String.raw`^\d{20000}$`)).toHaveLength(20_000);
  expect(compile.mock.calls.length).toBeLessThan(10);
  compile.mockRestore();
});

test('stops repetitions of the empty text', () => {
  expect(httpDoor.createMatchingText('(?:(?:){1000000000}){1000000000}')).toBe('');
});
