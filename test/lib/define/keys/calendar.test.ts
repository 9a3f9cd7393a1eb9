import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  addPeriods,
  boundsOf,
  CALENDAR_UNITS,
  type CalendarUnit,
  keptPeriods,
  PERIOD_DIGITS,
  periodOf,
  periodOfTable,
  periodsBetween,
  tableOfPeriod,
} from '../../../../lib/define/keys/calendar.ts';
import { baseValues } from '../../../kit/base.ts';

const unit = fc.constantFrom<CalendarUnit>(...CALENDAR_UNITS);
const anyInstant = fc
  .date({ min: new Date('1300-01-01'), max: new Date('8700-12-31'), noInvalidDate: true })
  .map((date) => date.getTime());
/** Instants near the ends of months and years, including leap years, where calendar arithmetic fails first. */
const edge = fc
  .record({
    year: fc.constantFrom(1900, 1999, 2000, 2024, 2025, 2026, 2028, 2099, 2100),
    month: fc.integer({ min: 0, max: 11 }),
    offset: fc.integer({ min: -1_500, max: 1_500 }),
  })
  .map(({ year, month, offset }) => Date.UTC(year, month, 1) + offset);
const instant = fc.oneof(anyInstant, edge);
const count = fc.integer({ min: -1_200, max: 1_200 });

describe('a period', () => {
  test.each([
    ['day', '2024-02-28', 1, '2024-02-29'],
    ['day', '2025-02-28', 1, '2025-03-01'],
    ['day', '2100-02-28', 1, '2100-03-01'],
    ['day', '2026-12-31', 1, '2027-01-01'],
    ['day', '2026-11-20', -60, '2026-09-21'],
    ['month', '2026-12', 1, '2027-01'],
    ['month', '2027-01', -1, '2026-12'],
    ['month', '2024-02', 12, '2025-02'],
    ['year', '2024', 1, '2025'],
    ['year', '2026', -30, '1996'],
  ] as const)('of a %s, %s, plus %i is %s', (per, period, by, expected) => {
    expect(addPeriods(per, period, by)).toBe(expected);
  });

  test('contains its instant and touches the next period', () => {
    fc.assert(
      fc.property(unit, instant, (per, at) => {
        const period = periodOf(per, at);
        const { first, last } = boundsOf(per, period);
        expect(Date.parse(first)).toBeLessThanOrEqual(at);
        expect(Date.parse(last)).toBeGreaterThanOrEqual(at);
        expect(periodOf(per, first)).toBe(period);
        expect(periodOf(per, last)).toBe(period);
        expect(periodOf(per, Date.parse(last) + 1)).toBe(addPeriods(per, period, 1));
        expect(periodOf(per, Date.parse(first) - 1)).toBe(addPeriods(per, period, -1));
      }),
    );
  });

  test('is the same for an instant as a number and as text', () => {
    fc.assert(
      fc.property(unit, instant, (per, at) => {
        expect(periodOf(per, new Date(at).toISOString())).toBe(periodOf(per, at));
      }),
    );
  });

  test('sorts chronologically', () => {
    fc.assert(
      fc.property(unit, instant, instant, (per, one, other) => {
        const [earlier, later] = [Math.min(one, other), Math.max(one, other)];
        expect(periodOf(per, earlier) <= periodOf(per, later)).toBe(true);
      }),
    );
  });

  test('has inverse addition and subtraction', () => {
    fc.assert(
      fc.property(unit, instant, count, (per, at, by) => {
        const period = periodOf(per, at);
        const other = addPeriods(per, period, by);
        expect(addPeriods(per, other, -by)).toBe(period);
        const [first, last] = by < 0 ? [other, period] : [period, other];
        const between = periodsBetween(per, first, last);
        expect(between).toHaveLength(Math.abs(by) + 1);
        expect([between[0], between.at(-1)]).toEqual([first, last]);
        if (by !== 0) expect(periodsBetween(per, last, first)).toEqual([]);
      }),
      { numRuns: 50 },
    );
  });

  test.each([
    ['day', '2026-02-29'],
    ['day', '2026-11-31'],
    ['day', '2026-13-01'],
    ['day', '2026-11'],
    ['day', '+010000-01-01'],
    ['month', '2026-00'],
    ['month', '2026-13'],
    ['month', '2026'],
    ['month', '2026 11'],
    ['year', '20-6'],
    ['year', 'next'],
  ] as const)('of a %s is not parsed from %s', (per, text) => {
    expect(periodOf(per, text)).toBeUndefined();
  });

  test('range ends with the last four-digit year', () => {
    expect(periodsBetween('day', '9999-12-30', '9999-12-31')).toEqual(['9999-12-30', '9999-12-31']);
    expect(periodsBetween('year', '9998', '9999')).toEqual(['9998', '9999']);
  });
});

describe('kept periods', () => {
  test('are the current, the previous and the next ones', () => {
    const now = Date.parse('2026-11-20T12:00:00Z');
    expect(keptPeriods({ per: 'day', keep: 60 }, now)).toEqual({ first: '2026-09-21', last: '2026-11-21' });
    expect(keptPeriods({ per: 'month', keep: 12 }, now)).toEqual({ first: '2025-11', last: '2026-12' });
    expect(keptPeriods({ per: 'year', keep: 7 }, now)).toEqual({ first: '2019', last: '2027' });
  });

  test('keep each row for at least the declared retention, and the number of periods is constant', () => {
    const keep = fc.integer({ min: 1, max: 100 });
    fc.assert(
      fc.property(unit, instant, keep, (per, written, kept) => {
        const period = periodOf(per, written);
        // The last instant before `keep` whole periods have passed since the end of the period of the row.
        const later = Date.parse(boundsOf(per, addPeriods(per, period, kept)).last);
        expect(keptPeriods({ per, keep: kept }, later).first <= period).toBe(true);
        expect(keptPeriods({ per, keep: kept }, later + 1).first > period).toBe(true);
        expect(periodsBetween(per, ...bounds(keptPeriods({ per, keep: kept }, written)))).toHaveLength(kept + 2);
      }),
    );
  });
});

describe('the table of a period', () => {
  test('is named by the digits of the period', () => {
    expect(CALENDAR_UNITS.map((per) => tableOfPeriod('logins', periodOf(per, Date.UTC(2026, 10, 20))))).toEqual([
      'logins20261120',
      'logins202611',
      'logins2026',
    ]);
  });

  test('parses back to its period and not to another unit or name', () => {
    fc.assert(
      fc.property(unit, instant, (per, at) => {
        const period = periodOf(per, at);
        const table = tableOfPeriod('logins', period);
        expect(table).toHaveLength('logins'.length + PERIOD_DIGITS[per]);
        expect(periodOfTable(per, 'logins', table)).toBe(period);
        for (const other of CALENDAR_UNITS.filter((one) => one !== per))
          expect(periodOfTable(other, 'logins', table)).toBeUndefined();
        for (const other of ['login', 'loginss', 'others']) expect(periodOfTable(per, other, table)).toBeUndefined();
      }),
    );
  });

  test('sorts chronologically', () => {
    fc.assert(
      fc.property(unit, instant, fc.integer({ min: 1, max: 40 * 366 }), (per, at, days) => {
        const [one, other] = [at, at + days * baseValues.DAY_MS].map((each) => tableOfPeriod('t', periodOf(per, each)));
        expect((one ?? '') <= (other ?? '')).toBe(true);
      }),
    );
  });
});

function bounds({ first, last }: { first: string; last: string }): [string, string] {
  return [first, last];
}
