import { expect, test } from 'vitest';
import { readBoolean, readList } from '../../../lib/http/query.ts';

const query = (text: string) => new URLSearchParams(text);

test.each([
  ['', false],
  ['repair=false', false],
  ['repair=true', true],
])('reads a Boolean parameter in %j as %s', (text, expected) => {
  expect(readBoolean(query(text), 'repair')).toBe(expected);
});

test.each(['repair=', 'repair', 'repair=TRUE', 'repair=1', 'repair=true%00', 'repair=%20true'])(
  'rejects %j as a Boolean parameter',
  (text) => {
    expect(() => readBoolean(query(text), 'repair')).toThrow(
      expect.objectContaining({
        code: 'invalid-input',
        message: 'Query parameter "repair" must be true or false.',
        field: 'repair',
        accepted: 'true, false',
      }),
    );
  },
);

test.each([
  ['', undefined],
  ['select=', ['']],
  ['select=a', ['a']],
  ['select=a,%20b%20,,a', ['a', 'b', '', 'a']],
])('reads a list parameter in %j as %j', (text, expected) => {
  expect(readList(query(text), 'select')).toEqual(expected);
});
