import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { defineKeys } from '../../../kit/define.ts';

const instantAlone = defineKeys.compileTemplate('{at~}');
const digitsOf = (at: string) => defineKeys.buildKey(instantAlone, { at });
const instantOf = (digits: string) => defineKeys.parseKey(instantAlone, digits)?.at;

describe('inverted ticks', () => {
  // Output of .NET 10: (DateTime.MaxValue.Ticks - at.Ticks).ToString("D19").
  test.each([
    ['0001-01-01T00:00:00.000Z', '3155378975999999999'],
    ['2026-11-20T00:00:00.000Z', '2516071679999999999'],
    ['2026-11-20T08:30:15.1234567Z', '2516071373848765432'],
    ['9999-12-31T23:59:59.9999999Z', '0000000000000000000'],
  ])('of %s equal those of .NET', (instant, digits) => {
    expect(digitsOf(instant)).toBe(digits);
    expect(instantOf(digits)).toBe(instant);
  });

  test.each(['0000-12-31T23:59:59Z', '2026-11-20T09:00:00+01:00', 'yesterday'])('name the field of %s', (at) => {
    expect(() => digitsOf(at)).toThrow(expect.objectContaining({ code: 'invalid-input', field: 'at' }));
  });

  test('parse back to their instant and sort the newest first', () => {
    const instants = fc.date({
      min: new Date('0001-01-01T00:00:00Z'),
      max: new Date('9999-12-31T23:59:59Z'),
      noInvalidDate: true,
    });
    fc.assert(
      fc.property(instants, instants, (one, other) => {
        const [a, b] = [one.toISOString(), other.toISOString()];
        expect(instantOf(digitsOf(a))).toBe(a);
        expect(digitsOf(a) < digitsOf(b)).toBe(a > b);
      }),
    );
  });

  test('make a key that parses back, and a range of whole days', () => {
    const template = defineKeys.compileTemplate('{at~}_{claimId}');
    const key = (at: string) => defineKeys.buildKey(template, { at, claimId: 'x' });
    expect(defineKeys.parseKey(template, key('2026-11-20T08:00:00.000Z'))).toEqual({
      at: '2026-11-20T08:00:00.000Z',
      claimId: 'x',
    });
    const { from, before } = defineKeys.keyRange(template, { from: '2026-11-01', to: '2026-11-20' });
    const inside = (at: string) => key(at) >= from && key(at) < String(before);
    expect(
      [
        '2026-10-31T23:59:59.999Z',
        '2026-11-01T00:00:00.000Z',
        '2026-11-20T23:59:59.999Z',
        '2026-11-21T00:00:00.000Z',
      ].map(inside),
    ).toEqual([false, true, true, false]);
    expect(() => key('yesterday')).toThrow('instant');
  });

  test.each([
    [{ from: '2026-11', to: '2026-11' }, '2026-11-01T00:00:00.000Z', '2026-11-30T23:59:59.9999999Z'],
    [{ from: '2024-02-29', to: '2024-02' }, '2024-02-29T00:00:00.000Z', '2024-02-29T23:59:59.9999999Z'],
    [{ from: '2025', to: '2026' }, '2025-01-01T00:00:00.000Z', '2026-12-31T23:59:59.9999999Z'],
    [{ from: '9999', to: '9999' }, '9999-01-01T00:00:00.000Z', '9999-12-31T23:59:59.9999999Z'],
    [
      { from: '2026-11-20T08:00:00Z', to: '2026-11-20T09:00:00.5Z' },
      '2026-11-20T08:00:00.000Z',
      '2026-11-20T09:00:00.500Z',
    ],
  ])('are bounded by %j from %s to %s', (bounds, first, last) => {
    const { from, before = '' } = defineKeys.keyRange(instantAlone, bounds);
    expect(instantOf(from)).toBe(last);
    const oldest = digitsOf(first);
    const older = String(BigInt(oldest) + 1n).padStart(oldest.length, '0');
    expect([oldest < before, older < before]).toEqual([true, false]);
  });

  test.each(['2026-13', '2026-11-31', '26', '2026-11-20T09', 'May', ''])('are not bounded by "%s"', (from) => {
    expect(() => defineKeys.keyRange(instantAlone, { from })).toThrow(
      '"from" must be an instant, a day, a month or a year, in UTC.',
    );
  });
});
