import { uniformFloat64 } from 'pure-rand/distribution/uniformFloat64';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';

/** Numbers from 0 to below 1. The seed determines them. */
export type Random = () => number;

export function createRandom(seed: number): Random {
  const generator = xoroshiro128plus(seed);
  return () => uniformFloat64(generator);
}

/** A time with the exponential distribution: the gap between arrivals at random. */
export const exponential = (random: Random, mean: number): number => -Math.log(1 - random()) * mean;

/** The probability of each of `count` keys, in descending order: key k has a share that is proportional to 1 / k ** exponent. */
export function zipfShares(count: number, exponent: number): Float64Array {
  const shares = Float64Array.from({ length: count }, (_, index) => (index + 1) ** -exponent);
  const sum = shares.reduce((total, share) => total + share, 0);
  return shares.map((share) => share / sum);
}

/** Returns a function that draws an index with the probability of its share. */
export function createSampler(shares: Float64Array): (random: Random) => number {
  let sum = 0;
  const bounds = shares.map((share) => {
    sum += share;
    return sum;
  });
  return (random) => {
    const wanted = random() * sum;
    let [from, until] = [0, bounds.length - 1];
    while (from < until) {
      const middle = (from + until) >>> 1;
      if ((bounds[middle] ?? 0) > wanted) until = middle;
      else from = middle + 1;
    }
    return from;
  };
}
