import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { compareInstants, offsetOfForms, textsAround } from '../../../../lib/define/schema/instants.ts';
import { baseValues } from '../../../kit/base.ts';
import { defineKeys } from '../../../kit/define.ts';

/** A text of an instant, with its ticks of 100 nanoseconds. */
const instant = fc
  .record({
    seconds: fc.integer({ min: Date.parse('2026-11-19T00:00Z') / 1_000, max: Date.parse('2026-11-21T00:00Z') / 1_000 }),
    fraction: fc.constantFrom('', '0', '5', '50', '05', '51', '500', '1234567'),
    offset: fc.constantFrom(undefined, 0, 60, -60, 840, -840, 330),
  })
  .map(({ seconds, fraction, offset }) => {
    const local = new Date((seconds + (offset ?? 0) * 60) * 1_000).toISOString().slice(0, 19);
    const [hours, minutes] = [Math.trunc(Math.abs(offset ?? 0) / 60), Math.abs(offset ?? 0) % 60];
    const two = (number: number) => String(number).padStart(2, '0');
    const zone = offset === undefined ? 'Z' : `${offset < 0 ? '-' : '+'}${two(hours)}:${two(minutes)}`;
    const text = `${local}${fraction === '' ? '' : `.${fraction}`}${zone}`;
    return { text, ticks: BigInt(seconds) * 10_000_000n + BigInt(fraction.padEnd(7, '0')), offset };
  });

describe('instants', () => {
  test('are compared by their moment, whatever their fraction and offset', () => {
    fc.assert(
      fc.property(instant, instant, (one, other) => {
        const order = one.ticks < other.ticks ? -1 : one.ticks > other.ticks ? 1 : 0;
        expect(Math.sign(compareInstants(one.text, other.text))).toBe(order);
      }),
    );
  });

  test('are compared with a date as with its beginning', () => {
    expect(compareInstants('2026-11-20T00:00:00Z', '2026-11-20')).toBeGreaterThan(0);
    expect(compareInstants('2026-11-20T00:30:00+01:00', '2026-11-20')).toBeLessThan(0);
    expect(compareInstants('2026-11-30T23:59:59.9Z', '2026-12')).toBeLessThan(0);
  });

  test('have their texts between those around the moment of a bound', () => {
    fc.assert(
      fc.property(instant, instant, (one, bound) => {
        const hasOffsets = (one.offset ?? 0) !== 0;
        const around = textsAround(bound.text, hasOffsets ? baseValues.DAY_MS : 0);
        if (one.ticks >= bound.ticks) expect(one.text >= (around?.from ?? '~')).toBe(true);
        if (one.ticks <= bound.ticks) expect(one.text < (around?.before ?? '')).toBe(true);
      }),
    );
  });

  test('have texts before the bound of a moment in the last minutes of the year 9999', () => {
    for (const offset of [0, baseValues.DAY_MS])
      expect('9999-12-31T23:59:59.9Z' < (textsAround('9999-12-31T23:59:59Z', offset)?.before ?? '')).toBe(true);
  });

  test('are in the day of their moment in UTC', () => {
    fc.assert(
      fc.property(instant, ({ text, ticks }) => {
        const day = new Date(Number(ticks / 10_000n)).toISOString().slice(0, 10);
        expect(defineKeys.periodOf('day', text)).toBe(day);
      }),
    );
    expect(defineKeys.periodOf('year', '9999-12-31T23:59:59-14:00')).toBeUndefined();
  });
});

test.each([
  ['any fraction', z.iso.datetime(), 0],
  ['an offset', z.iso.datetime({ offset: true, precision: 3 }), baseValues.DAY_MS],
  ['any fraction and an offset', z.iso.datetime({ offset: true }), baseValues.DAY_MS],
  ['one form', z.iso.datetime({ precision: 3 }), undefined],
  ['a conversion', z.iso.datetime({ offset: true }).overwrite((at) => new Date(at).toISOString()), undefined],
  ['an optional field', z.iso.datetime().optional(), 0],
] as const)('a field with %s stores one instant in many texts, or in one', (_, at, expected) => {
  expect(offsetOfForms(z.object({ at }), 'at')).toBe(expected);
});
