import { createHash } from 'node:crypto';
import type { Values } from '../../../lib/base/values.ts';
import { canonicalText } from './manifest.ts';

const BUCKETS = 4_096;

/** The sum of the hashes of rows, for each bucket of keys. */
export class Sums {
  readonly #sums = new BigUint64Array(2 * BUCKETS);

  add(key: string, row: Values): void {
    const bucket = bucketOf(key);
    const digest = createHash('sha256').update(canonicalText(row)).digest();
    for (const half of [0, 1]) {
      const at = 2 * bucket + half;
      this.#sums[at] = BigInt.asUintN(64, (this.#sums[at] ?? 0n) + digest.readBigUInt64LE(8 * half));
    }
  }

  differences(other: Sums): ReadonlySet<number> {
    const found = new Set<number>();
    for (const [at, sum] of this.#sums.entries()) if (sum !== other.#sums[at]) found.add(Math.floor(at / 2));
    return found;
  }
}

export function bucketOf(key: string): number {
  return createHash('sha256').update(key).digest().readUInt16LE(0) % BUCKETS;
}
