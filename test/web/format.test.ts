import { describe, expect, test } from 'vitest';
import { type Cost, formatCosts } from '../../web/src/api/cost.ts';
import { formatBytes } from '../../web/src/files/format-bytes.ts';
import { boundsOf, spansOf } from '../../web/src/series/spans.ts';
import { formatAge, formatCount, formatDollars, formatInstant, plural } from '../../web/src/ui/format.ts';

const NOW = Date.parse('2026-11-22T12:00:00Z');

test.each([
  ['2026-11-22T12:00:05Z', '0 seconds'],
  ['2026-11-22T11:59:59Z', '1 second'],
  ['2026-11-22T11:58:01Z', '119 seconds'],
  ['2026-11-22T11:58:00Z', '2 minutes'],
  ['2026-11-22T10:00:01Z', '119 minutes'],
  ['2026-11-21T12:00:00Z', '24 hours'],
  ['2026-11-20T12:00:00Z', '2 days'],
  ['2026-10-01T12:00:00Z', '52 days'],
  ['2026-09-01T12:00:00Z', '2 months'],
  ['2024-11-20T12:00:00Z', '2 years'],
])('the age of %s is %s', (instant, age) => expect(formatAge(instant, NOW)).toBe(age));

test.each([
  [0, '$0.00'],
  [0.000_004, '< $0.01'],
  [0.009_999, '< $0.01'],
  [0.01, '$0.01'],
  [1.255, '$1.26'],
  [1_234_567.8, '$1,234,567.80'],
])('%d dollars are %s', (dollars, text) => expect(formatDollars(dollars)).toBe(text));

test('instants are in UTC, and counts have groups of thousands', () => {
  expect(formatInstant('2026-11-22T12:00:05.123Z')).toBe('2026-11-22 12:00:05 UTC');
  expect(formatCount(1_234_567)).toBe('1,234,567');
  expect([plural(0, 'row'), plural(1, 'row'), plural(2_000, 'row')]).toEqual(['0 rows', '1 row', '2,000 rows']);
  expect(plural(2, 'index', 'indexes')).toBe('2 indexes');
});

test('costs are summed up, and one request is not counted', () => {
  const cost: Cost = { method: 'GET', path: '/', status: 200, transactions: 1, milliseconds: 1_200 };
  expect(formatCosts([cost])).toBe('1 transaction, 1,200 ms');
  expect(formatCosts([cost, { ...cost, transactions: 1_000, milliseconds: 3 }])).toBe(
    '2 requests, 1,001 transactions, 1,203 ms',
  );
});

test.each([
  [0, '0 bytes'],
  [999, '999 bytes'],
  [1_000, '1 kB'],
  [1_540_000, '1.5 MB'],
  [5e12, '5,000 GB'],
])('%d bytes are %s', (bytes, text) => expect(formatBytes(bytes)).toBe(text));

describe('the spans of a chart', () => {
  const titles = (per: 'day' | 'month' | 'year', last: number) =>
    spansOf({ name: 'slot', first: 0, last, span: { field: 'day', per } }).map(({ title }) => title);

  test('are at least as long as a row, and within what the API accepts', () => {
    expect(titles('day', 23)).toEqual(['last 24 hours', 'last 7 days', 'last 30 days', 'last year']);
    expect(titles('day', 1_439)).toEqual(['last 24 hours', 'last 7 days', 'last 30 days']);
    expect(titles('year', 365)).toEqual(['last year', 'last 5 years']);
  });

  test.each([
    ['hours', 'day', 24, 7, '2026-11-15T13:00Z'],
    ['minutes', 'day', 1_440, 1, '2026-11-21T12:01Z'],
    ['seconds', 'day', 43_200, 1, '2026-11-21T12:01Z'],
    ['days of a month', 'month', 31, 30, '2026-10-24T12:00Z'],
    ['days of a year', 'year', 366, 365, '2025-11-23T12:00Z'],
    ['months', 'year', 12, 365, '2025-12-01T00:00Z'],
  ])('end now, and begin in the slot after their length ago: %s', (_, per, last, days, from) => {
    const series = { name: 'slot', first: 1, last, span: { field: 'day', per } };
    expect(boundsOf({ title: '', days }, series, NOW)).toEqual({ from, to: '2026-11-22T12:00Z' });
  });
});
