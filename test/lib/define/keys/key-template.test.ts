import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  buildKey,
  compileTemplate,
  keyRange,
  parseKey,
  prefixOfChildren,
} from '../../../../lib/define/keys/key-template.ts';
import { anyText } from '../../../any-text.ts';

const text = anyText({ minLength: 1, maxLength: 30 });
const two = compileTemplate('{department}_{employeeId}');

describe('a key template', () => {
  test.each(['{department', 'department}', '{a}_{b', '{{a}}'])('rejects an unpaired brace: %s', (template) => {
    expect(() => compileTemplate(template)).toThrow('a brace without its pair');
  });

  test('parses every text that it built a key from', () => {
    fc.assert(
      fc.property(text, text, (department, employeeId) => {
        const key = buildKey(two, { department, employeeId });
        expect(parseKey(two, key)).toEqual({ department, employeeId });
        // biome-ignore lint/suspicious/noControlCharactersInRegex: the service rejects these characters
        expect(key).not.toMatch(/[/\\#?\u0000-\u001f\u007f-\u009f]/);
      }),
    );
  });

  test('builds different keys from different fields', () => {
    fc.assert(
      fc.property(text, text, text, text, fc.boolean(), fc.boolean(), (a, b, one, other, isSame, isAlsoSame) => {
        // Two random texts are hardly ever equal.
        const [c, d] = [isSame ? a : one, isAlsoSame ? b : other];
        const same = a === c && b === d;
        expect(
          buildKey(two, { department: a, employeeId: b }) === buildKey(two, { department: c, employeeId: d }),
        ).toBe(same);
      }),
    );
  });

  test('keeps the order of texts that need no escaping', () => {
    const plain = fc.stringMatching(/^[A-Za-z0-9 .@-]{1,20}$/);
    const one = compileTemplate('lastname_{lastName}');
    fc.assert(
      fc.property(plain, plain, (a, b) => {
        expect(buildKey(one, { lastName: a }) < buildKey(one, { lastName: b })).toBe(a < b);
      }),
    );
  });

  test('keeps the order of zero-padded numbers and parses them as numbers', () => {
    const year = compileTemplate('y_{year:4}');
    fc.assert(
      fc.property(fc.nat(9999), fc.nat(9999), (a, b) => {
        expect(buildKey(year, { year: a }) < buildKey(year, { year: b })).toBe(a < b);
        expect(parseKey(year, buildKey(year, { year: a }))).toEqual({ year: a });
      }),
    );
    expect(() => buildKey(year, { year: 10_000 })).toThrow('at most 4 digits');
  });

  test('always hashes a field to the same two hexadecimal digits', () => {
    expect(buildKey(compileTemplate('email_{email#}'), { email: 'jonesj@contoso.com' })).toMatch(/^email_[0-9a-f]{2}$/);
  });

  test('spreads keys with one first letter evenly', () => {
    const template = compileTemplate('{name#}');
    const counts = new Map<string, number>();
    for (let index = 0; index < 25_600; index += 1) {
      const key = buildKey(template, { name: `smith${index}` });
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    // 100 for each of 256 hashes on average; five standard deviations to each side.
    expect(counts.size).toBe(256);
    expect(Math.min(...counts.values())).toBeGreaterThan(50);
    expect(Math.max(...counts.values())).toBeLessThan(150);
  });

  test('returns a prefix that the keys of all children begin with, for any characters in the key of the parent', () => {
    for (const parent of ['{department}_{employeeId}', 'e_{employeeId}', 'e_{employeeId}_x', '{employeeId#}', 'e'])
      fc.assert(
        fc.property(text, text, text, (department, employeeId, child) => {
          const [template, more] = [compileTemplate(parent), compileTemplate(`${parent}_d_{child}`)];
          const prefix = prefixOfChildren(template, buildKey(template, { department, employeeId }));
          expect(buildKey(more, { department, employeeId, child }).startsWith(`${prefix}d_`)).toBe(true);
        }),
      );
  });

  test('treats both bounds of a range as prefixes', () => {
    const template = compileTemplate('{at}_{loginId}');
    const range = keyRange(template, { from: '2026-11-01', to: '2026-11-20' });
    const inside = (at: string) => {
      const key = buildKey(template, { at, loginId: 'x' });
      return key >= range.from && key < String(range.before);
    };
    expect(inside('2026-11-01T00:00:00.000Z')).toBe(true);
    expect(inside('2026-11-20T23:59:59.999Z')).toBe(true);
    expect(inside('2026-10-31T23:59:59.999Z')).toBe(false);
    expect(inside('2026-11-21T00:00:00.000Z')).toBe(false);
  });

  test.each([[''], [undefined], ['\ud800'], ['x'.repeat(600)]])('rejects %j and names the field', (employeeId) => {
    expect(() => buildKey(two, { department: 'Sales', employeeId })).toThrow(
      expect.objectContaining({
        code: 'invalid-input',
        field: expect.any(String),
      }),
    );
  });
});

describe('a period in a key', () => {
  const month = compileTemplate('{customerId}_{at.month}-{orderId}');

  test('is the beginning of its instant, and leads to the same key again', () => {
    const key = buildKey(month, { customerId: 'A', at: '2026-11-20T09:00:00Z', orderId: 'x' });
    expect(key).toBe('A_2026!2d11-x');
    const parsed = parseKey(month, key);
    expect(parsed).toEqual({ customerId: 'A', at: '2026-11', orderId: 'x' });
    expect(buildKey(month, parsed ?? {})).toBe(key);
  });

  test.each(['2026', '2026-13', '2026-11-20', 'November'])('is no other text: %s', (text) => {
    expect(parseKey(month, `A_${text.replaceAll('-', '!2d')}-x`)).toBeUndefined();
  });

  test('is refused for a text that is no date', () => {
    expect(() => buildKey(month, { customerId: 'A', at: 'soon', orderId: 'x' })).toThrow('the month of an ISO date');
  });

  test.each(['{at.hour}', '{at.month:2}', '{at~.day}'])('has a known unit and no other mark: %s', (template) => {
    expect(() => compileTemplate(template)).toThrow('unreadable field');
  });
});
