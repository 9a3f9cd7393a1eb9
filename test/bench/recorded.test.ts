import { describe, expect, test } from 'vitest';
import type { Result, Round } from './measure.ts';
import { findWorse, withRatios } from './recorded.ts';

const name = 'GET by key | 1 | product';
const recorded = {
  [`${name} | p50`]: { median: 1, least: 1, most: 1 },
  [`${name} | cpu`]: { median: 1.5, least: 1.4, most: 1.7 },
  [`${name} | perSecond`]: { median: 0.8, least: 0.7, most: 0.9 },
};

/** Rounds of a product with these ratios to the plain code. */
function resultOf({ cpu, perSecond }: { cpu: number; perSecond: number }, side = 'product'): Result {
  const round = (figures: Partial<Round>) => ({ p50: 1, p99: 1, perSecond: 100, cpu: 1, ...figures });
  const rounds = { plain: [round({}), round({})], [side]: Array(2).fill(round({ cpu, perSecond: perSecond * 100 })) };
  return { name: 'GET by key', callers: 1, rounds };
}

describe('the check of the benchmarks', () => {
  test('accepts ratios that differ by at most the recorded spread', () => {
    expect(findWorse(resultOf({ cpu: 1.79, perSecond: 0.61 }), recorded)).toEqual([]);
  });

  test('accepts better ratios', () => {
    expect(findWorse(resultOf({ cpu: 0.5, perSecond: 2 }), recorded)).toEqual([]);
  });

  test('names each ratio that is worse by more than the recorded spread', () => {
    expect(findWorse(resultOf({ cpu: 1.81, perSecond: 0.59 }), recorded)).toEqual([
      'GET by key | 1 | product | perSecond: 0.59, recorded 0.80 with a spread of 0.20',
      'GET by key | 1 | product | cpu: 1.81, recorded 1.50 with a spread of 0.30',
    ]);
  });

  test('ignores plain code', () => {
    expect(findWorse(resultOf({ cpu: 9, perSecond: 0.1 }, 'plain function'), recorded)).toEqual([]);
  });

  test('names each ratio of the product that was not recorded', () => {
    const { [`${name} | cpu`]: _, ...others } = recorded;
    expect(findWorse(resultOf({ cpu: 1, perSecond: 1 }), others)).toEqual([
      `${name} | cpu: not recorded; npm run bench -- --record records it`,
    ]);
  });

  test('keeps the ratios of other comparisons when a few are recorded', () => {
    const others = { 'Import | 1 | product | cpu': { median: 1, least: 1, most: 1 } };
    const all = withRatios(others, [resultOf({ cpu: 2, perSecond: 0.5 })]);
    expect(all).toMatchObject({ ...others, [`${name} | cpu`]: { median: 2, least: 2, most: 2 } });
  });
});
