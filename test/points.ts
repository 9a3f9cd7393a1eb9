import { createHash } from 'node:crypto';
import { expect, inject } from 'vitest';

/**
 * A test of faults or of interleavings repeats its work once for each storage call of the work: its points. A usual run
 * visits a sample of them, POINTS=all visits every one.
 */
export const IS_EVERY_POINT = process.env.POINTS === 'all';

const sampled = new Map<string, number>();

/**
 * Returns the points 1 to `calls`, or a sample of `size` in ascending order. The seed of the run, the test and the number
 * of earlier samples in the test determine the sample.
 */
export function samplePoints(calls: number, size = 1): number[] {
  const all = Array.from({ length: calls }, (_, index) => index + 1);
  const test = expect.getState().currentTestName ?? '';
  const nth = (sampled.get(test) ?? 0) + 1;
  sampled.set(test, nth);
  return sampleItems(all, [test, nth], size);
}

/**
 * Returns all items, or a sample of `size` in their order. The seed of the run, `name` and the JSON of each item determine
 * the sample. `isEvery` is for cases that have a command of their own, because they take longer than all others together.
 */
export function sampleItems<T>(items: readonly T[], name: unknown, size = 1, isEvery = IS_EVERY_POINT): T[] {
  if (isEvery) return [...items];
  const digest = (item: T) =>
    createHash('sha256')
      .update(JSON.stringify([inject('seed'), name, item].flat()))
      .digest('hex');
  const ranks = new Map(items.map((item) => [item, digest(item)]));
  const first = new Set(
    items.toSorted((one, other) => ((ranks.get(one) ?? '') < (ranks.get(other) ?? '') ? -1 : 1)).slice(0, size),
  );
  return items.filter((item) => first.has(item));
}

/**
 * The options of a property test that sends requests: a tenth of the runs, or all of them with POINTS=all. The seed of the run
 * determines the cases.
 */
export function sampleRuns(runs: number): { readonly numRuns: number; readonly seed: number } {
  return { numRuns: IS_EVERY_POINT ? runs : Math.ceil(runs / 10), seed: Number(inject('seed')) };
}
