import { randomInt } from 'node:crypto';

/** The seed that determines the samples of a run (points.ts): `TEST_SEED`, or else random. All projects of a run have the same. */
export function seedOfRun(): string {
  process.env.TEST_SEED ??= String(randomInt(1_000_000));
  return process.env.TEST_SEED;
}
