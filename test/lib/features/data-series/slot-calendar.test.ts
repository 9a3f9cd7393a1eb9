import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type CalendarUnit, modelParts } from '../../../kit/define.ts';
import { featureSeries } from '../../../kit/features.ts';

const slots = (first: number, count: number) => {
  return { name: 'slot', first, last: first + count - 1, perRow: count, overflow: undefined, span: undefined };
};

function between(first: number, count: number, per: CalendarUnit, from: string, to: string) {
  const [begin, end] = [featureSeries.instantsOf(from), featureSeries.instantsOf(to)];
  if (!begin || !end) throw new Error('These are not bounds.');
  return [
    ...featureSeries.slotsBetween(slots(first, count), { field: 'at', per }, { first: begin.first, last: end.last }),
  ];
}

const shown = (points: readonly { period: string; slot: number; at: number }[]) =>
  points.map(({ period, slot, at }) => `${period} ${slot} ${new Date(at).toISOString().slice(0, 16)}`);

describe('the slots between two instants', () => {
  test('cross from one day to the next', () => {
    expect(shown(between(0, 24, 'day', '2026-11-19T22', '2026-11-20T01:30'))).toEqual([
      '2026-11-19 22 2026-11-19T22:00',
      '2026-11-19 23 2026-11-19T23:00',
      '2026-11-20 0 2026-11-20T00:00',
      '2026-11-20 1 2026-11-20T01:00',
    ]);
  });

  test.each([
    [2024, 366],
    [2025, 365],
    [2000, 366],
    [1900, 365],
  ])('are as many as the year %i has days, %i', (year, days) => {
    const points = between(1, 366, 'year', `${year}`, `${year + 1}-01-01`);
    expect(points).toHaveLength(days + 1);
    expect(shown(points.slice(-2))).toEqual([
      `${year} ${days} ${year}-12-31T00:00`,
      `${year + 1} 1 ${year + 1}-01-01T00:00`,
    ]);
  });

  test('are as many as each month has days, and the months of years', () => {
    expect(shown(between(1, 31, 'month', '2024-02-28', '2024-03-01'))).toEqual([
      '2024-02 28 2024-02-28T00:00',
      '2024-02 29 2024-02-29T00:00',
      '2024-03 1 2024-03-01T00:00',
    ]);
    expect(shown(between(1, 12, 'year', '2025-12-31', '2026-01'))).toEqual([
      '2025 12 2025-12-01T00:00',
      '2026 1 2026-01-01T00:00',
    ]);
  });

  test('end with the calendar', () => {
    for (const [count, per] of [
      [24, 'day'],
      [31, 'month'],
      [12, 'year'],
    ] as const)
      expect(between(1, count, per, '9999-12-31', '9999-12-31T23:59:59.999Z').at(-1)?.period).toMatch(/^9999/);
    expect(between(0, 24, 'day', '0000', '0000-01-01')).toHaveLength(24);
  });

  test('follow each other without gaps or overlaps, from the one with the first instant to the one with the last', () => {
    const unit = fc.constantFrom<[number, CalendarUnit]>(
      [24, 'day'],
      [96, 'day'],
      [31, 'month'],
      [744, 'month'],
      [12, 'year'],
      [366, 'year'],
      [8_784, 'year'],
    );
    const start = fc.integer({ min: Date.UTC(1999, 0), max: Date.UTC(2030, 0) });
    fc.assert(
      fc.property(unit, start, fc.integer({ min: 0, max: 40 * 86_400_000 }), ([count, per], first, length) => {
        const instants = { first, last: first + length };
        const found = [...featureSeries.slotsBetween(slots(0, count), { field: 'at', per }, instants)];
        const [one, last] = [found.at(0), found.at(-1)];
        const ofSlot = modelParts.slotLength(per, count);
        const next = (at: number) =>
          ofSlot === 'month' ? new Date(at).setUTCMonth(new Date(at).getUTCMonth() + 1) : at + Number(ofSlot);
        if (!one || !last) return false;
        const isWithin =
          one.at <= first && first < next(one.at) && last.at <= instants.last && instants.last < next(last.at);
        return isWithin && found.every(({ at }, index) => index === 0 || at === next(found[index - 1]?.at ?? 0));
      }),
    );
  });
});

test.each([
  ['2026', '2026-01-01T00:00:00.000Z', '2026-12-31T23:59:59.999Z'],
  ['2024-02', '2024-02-01T00:00:00.000Z', '2024-02-29T23:59:59.999Z'],
  ['2026-11-20', '2026-11-20T00:00:00.000Z', '2026-11-20T23:59:59.999Z'],
  ['2026-11-20T09', '2026-11-20T09:00:00.000Z', '2026-11-20T09:59:59.999Z'],
  ['2026-11-20T09:30Z', '2026-11-20T09:30:00.000Z', '2026-11-20T09:30:59.999Z'],
  ['2026-11-20T09:30:15Z', '2026-11-20T09:30:15.000Z', '2026-11-20T09:30:15.999Z'],
  ['2026-11-20T09:30:15.250Z', '2026-11-20T09:30:15.250Z', '2026-11-20T09:30:15.250Z'],
])('the bound %s is from %s to %s', (text, first, last) => {
  const found = featureSeries.instantsOf(text);
  expect([found?.first, found?.last].map((at) => new Date(at ?? 0).toISOString())).toEqual([first, last]);
});

test.each([
  '',
  '26',
  '2026-13',
  '2026-02-30',
  '2026-11-20T24',
  '2026-11-20T9',
  '2026-11-20T09:30+01:00',
  '2026Z',
  ' 2026',
  '2026-11-20 09',
])('the bound "%s" is none', (text) => {
  expect(featureSeries.instantsOf(text)).toBeUndefined();
});
