import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readSegments } from '../../../lib/http/request-path.ts';
import { RowkeyError } from '../../../lib/index.ts';
import { anyText } from '../../any-text.ts';
import { receivePath, type TestHost } from '../../hosted-path.ts';

const HOSTS: readonly TestHost[] = ['local', 'azure', 'tools'];
/** Texts that a host decodes, splits or removes, among any others. */
const HARD = [
  '/',
  '%2F',
  '%2f',
  '%',
  '%25',
  '%252F',
  '.',
  '..',
  '%2e',
  '\\',
  '+',
  ' ',
  ';',
  '?',
  '#',
  '%E4',
  '%zz',
  '\u0001',
  '\u{1f600}',
];
const value = fc
  .array(fc.oneof(fc.constantFrom(...HARD), anyText({ minLength: 1, maxLength: 3 })), { minLength: 1, maxLength: 4 })
  .map((parts) => parts.join(''))
  // No host passes a NUL on, and clients remove dots.
  .filter((text) => !/\0|^\.{1,2}$/.test(text));

function read(host: TestHost, sent: string, given: Readonly<Record<string, string>> = {}): readonly string[] | string {
  const { path, headers } = receivePath(host, sent, given);
  try {
    return readSegments(path, new Headers(headers));
  } catch (error) {
    if (error instanceof RowkeyError) return error.code;
    throw error;
  }
}

const pathOf = (values: readonly string[]) => values.map(encodeURIComponent).join('/');

describe.each(HOSTS)('from the host %s', (host) => {
  test('reads each value of a path as it was sent, or refuses it', () => {
    fc.assert(
      fc.property(fc.array(value, { minLength: 1, maxLength: 4 }), (values) => {
        const sent = pathOf(['things', ...values]);
        const found = read(host, sent);
        if (found !== 'invalid-input') expect(found).toEqual(['things', ...values]);
        else expect(host === 'tools' && /%2f|\//i.test(values.join())).toBe(true);
        // The typed client sends the path in the header, too.
        expect(read(host, sent, { 'x-waws-unencoded-url': `https://example.org/other/api/${sent}` })).toEqual([
          'things',
          ...values,
        ]);
      }),
    );
  });
});

test('takes a value without a slash and its text from Core Tools', () => {
  for (const text of ['a b', '100%', '%25', 'é', 'a.', '..a', '%252F'])
    expect(read('tools', pathOf(['things', text]))).toEqual(['things', text]);
});

test.each(['things/./photo', 'things/%2e%2e/photo', 'things/a%FF', 'things/a%zz'])(
  'refuses a path that a host changes: %s',
  (sent) => {
    expect(read('local', sent)).toBe('invalid-input');
  },
);

test('does not believe a header with another path', () => {
  const headers = { 'x-waws-unencoded-url': '/api/things/a%2Fc' };
  expect(read('tools', 'things/a', headers)).toEqual(['things', 'a']);
  expect(read('tools', 'things/a%2Fb', headers)).toBe('invalid-input');
});
