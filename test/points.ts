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
export function samplePoints(calls: number, size = 3): number[] {
  const all = Array.from({ length: calls }, (_, index) => index + 1);
  if (IS_EVERY_POINT) return all;
  const test = expect.getState().currentTestName ?? '';
  const nth = (sampled.get(test) ?? 0) + 1;
  sampled.set(test, nth);
  const rank = (at: number) =>
    createHash('sha256')
      .update(JSON.stringify([inject('seed'), test, nth, at]))
      .digest('hex');
  const ranks = new Map(all.map((at) => [at, rank(at)]));
  return all
    .toSorted((one, other) => ((ranks.get(one) ?? '') < (ranks.get(other) ?? '') ? -1 : 1))
    .slice(0, size)
    .toSorted((one, other) => one - other);
}

/**
 * The options of a property test that sends requests: a third of the runs, or all of them with POINTS=all. The seed of the run
 * determines the cases.
 */
export function sampleRuns(runs: number): { readonly numRuns: number; readonly seed: number } {
  return { numRuns: IS_EVERY_POINT ? runs : Math.ceil(runs / 3), seed: Number(inject('seed')) };
}
