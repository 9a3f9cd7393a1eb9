import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createHeavyHitters } from '../../../lib/telemetry/heavy-hitters.ts';

const HALF_LIFE_MS = 1_000;
const CAPACITY = 5;
/** Rounding of the powers of two. */
const CLOSE = 1 + 1e-9;

interface Added {
  readonly key: string;
  readonly weight: number;
  readonly afterMs: number;
}

/** Few keys are frequent, and some pauses are so long that the weights are scaled down. */
const additions = fc.array(
  fc.record<Added>({
    key: fc.oneof(fc.constantFrom('a', 'b', 'c'), fc.constantFrom(...'defghijklmnop')),
    weight: fc.integer({ min: 1, max: 100 }),
    afterMs: fc.oneof(
      { weight: 20, arbitrary: fc.integer({ min: 0, max: 100 }) },
      { weight: 1, arbitrary: fc.integer({ min: 0, max: 60_000 }) },
    ),
  }),
  { minLength: 1, maxLength: 200 },
);

/** Adds everything to a sketch, and weighs it exactly with the same decay, in its unit. */
function compare(added: readonly Added[]) {
  let now = 0;
  const sketch = createHeavyHitters({ capacity: CAPACITY, halfLifeMs: HALF_LIFE_MS, now: () => now });
  const times = added.map(({ key, weight, afterMs }) => {
    now += afterMs;
    sketch.add(key, weight, { weight });
    return now;
  });
  const exact = new Map<string, number>();
  for (const [index, { key, weight }] of added.entries())
    exact.set(key, (exact.get(key) ?? 0) + weight * 2 ** -((now - (times[index] ?? 0)) / HALF_LIFE_MS));
  const sum = [...exact.values()].reduce((total, one) => total + one, 0);
  // How many a minute is one unit of weight.
  const unit = sketch.total() / sum;
  return { sketch, total: sketch.total(), weightOf: (key: string) => (exact.get(key) ?? 0) * unit };
}

test('keeps every key above its share of the weight, within the error that it states', () => {
  fc.assert(
    fc.property(additions, (added) => {
      const { sketch, total, weightOf } = compare(added);
      const kept = new Map(sketch.top(CAPACITY).map((one) => [one.key, one]));
      for (const key of new Set(added.map((one) => one.key)))
        if (weightOf(key) > (total / CAPACITY) * CLOSE) expect(kept.has(key), key).toBe(true);
      for (const [key, { weight, error }] of kept) {
        expect(weight * CLOSE).toBeGreaterThanOrEqual(weightOf(key));
        expect(weight - error).toBeLessThanOrEqual(weightOf(key) * CLOSE + 1e-9);
        expect(error).toBeLessThanOrEqual((total / CAPACITY) * CLOSE);
      }
    }),
  );
});

test('keeps no more keys than its capacity, sorts them by weight, and never counts too much beside the weight', () => {
  fc.assert(
    fc.property(additions, (added) => {
      const { sketch, weightOf } = compare(added);
      const all = sketch.top(1_000);
      expect(all.length).toBeLessThanOrEqual(CAPACITY);
      expect(all.map(({ weight }) => weight)).toEqual(all.map(({ weight }) => weight).toSorted((a, b) => b - a));
      for (const { key, counts } of all) expect(counts.weight).toBeLessThanOrEqual(weightOf(key) * CLOSE + 1e-9);
      expect(sketch.top(2)).toEqual(all.slice(0, 2));
    }),
  );
});

test('is exact for fewer keys than its capacity', () => {
  const { sketch, weightOf } = compare([
    { key: 'a', weight: 3, afterMs: 0 },
    { key: 'b', weight: 10, afterMs: 500 },
    { key: 'a', weight: 1, afterMs: 500 },
  ]);
  expect(sketch.top(9).map(({ key, error }) => [key, error])).toEqual([
    ['b', 0],
    ['a', 0],
  ]);
  for (const { key, weight } of sketch.top(9)) expect(weight).toBeCloseTo(weightOf(key), 6);
});

test('states the rate a minute of steady traffic, at first and later, and forgets it', () => {
  let now = 0;
  const sketch = createHeavyHitters({ capacity: 10, halfLifeMs: 120_000, now: () => now });
  const rateOf = () => sketch.top(1)[0]?.weight ?? 0;
  const rates: number[] = [];
  for (let second = 1; second <= 3_600; second += 1) {
    now = second * 1_000;
    sketch.add('a', 5, {});
    if ([20, 60, 600, 3_600].includes(second)) rates.push(rateOf());
  }
  for (const rate of rates) expect(Math.abs(rate - 300)).toBeLessThan(3);
  now += 120_000;
  expect(rateOf()).toBeCloseTo((rates.at(-1) ?? 0) / 2, 3);
  // Past the point where weights are scaled down.
  now += 3 * 3_600_000;
  expect(rateOf()).toBeLessThan(1e-9);
});
