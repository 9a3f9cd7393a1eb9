/**
 * Space-saving (Metwally, Agrawal, El Abbadi: Efficient Computation of Frequent and Top-k Elements in Data Streams, 2005) with
 * weights that halve every `halfLifeMs`. It keeps a fixed number of keys; a new key replaces the one with the least weight and inherits
 * that weight as its error. So, with `total` for the weight of everything and `capacity` for the number of keys:
 *
 * - a key whose weight is above `total / capacity` is kept,
 * - the weight of a kept key is too large by at most its `error`, which is at most `total / capacity`, and never too small.
 */
interface HeavyHitters {
  /** `counts` are added up beside the weight, from when the key was kept: they are never too large. */
  add(key: string, weight: number, counts: Readonly<Record<string, number>>): void;
  /** The keys with the largest weights, the largest first. */
  top(limit: number): Hitter[];
  /** The weight of everything that was added. */
  total(): number;
}

/** All numbers are rates per minute, which follow the traffic of the last minutes. */
interface Hitter {
  readonly key: string;
  readonly weight: number;
  readonly error: number;
  readonly counts: Readonly<Record<string, number>>;
}

interface Options {
  readonly capacity: number;
  readonly halfLifeMs: number;
  /** Milliseconds that never go back. */
  readonly now?: () => number;
}

/** The stored weights grow by this power of two before they are scaled down, so that they stay exact enough. */
const SCALE_DOWN_AT = 40;
/** Right after the start, a few requests would be a high rate. */
const SHORTEST_MS = 10_000;
const MINUTE_MS = 60_000;

interface Kept {
  weight: number;
  error: number;
  readonly counts: Map<string, number>;
}

export function createHeavyHitters({
  capacity,
  halfLifeMs,
  now = performance.now.bind(performance),
}: Options): HeavyHitters {
  const kept = new Map<string, Kept>();
  const since = now();
  // What is added later is scaled up instead of scaling down all that was added earlier.
  let landmark = since;
  let sum = 0;

  function scale(): number {
    const halvings = (now() - landmark) / halfLifeMs;
    if (halvings < SCALE_DOWN_AT) return 2 ** halvings;
    const factor = 2 ** -halvings;
    for (const one of kept.values()) {
      one.weight *= factor;
      one.error *= factor;
      for (const [name, count] of one.counts) one.counts.set(name, count * factor);
    }
    sum *= factor;
    landmark = now();
    return 1;
  }

  /** Steady traffic of one a minute has the decayed weight of this many. */
  function minutes(): number {
    const age = Math.max(now() - since, SHORTEST_MS);
    return ((halfLifeMs / Math.LN2) * (1 - 2 ** -(age / halfLifeMs))) / MINUTE_MS;
  }

  function keep(key: string): Kept {
    let least: [string, Kept] | undefined;
    if (kept.size >= capacity)
      for (const entry of kept) if (least === undefined || entry[1].weight < least[1].weight) least = entry;
    if (least) kept.delete(least[0]);
    const inherited = least?.[1].weight ?? 0;
    const one = { weight: inherited, error: inherited, counts: new Map<string, number>() };
    kept.set(key, one);
    return one;
  }

  return {
    add(key, weight, counts) {
      const by = scale();
      const one = kept.get(key) ?? keep(key);
      one.weight += weight * by;
      sum += weight * by;
      for (const name in counts) one.counts.set(name, (one.counts.get(name) ?? 0) + (counts[name] ?? 0) * by);
    },
    top(limit) {
      const by = scale() * minutes();
      return [...kept]
        .toSorted(([, one], [, other]) => other.weight - one.weight)
        .slice(0, limit)
        .map(([key, { weight, error, counts }]) => ({
          key,
          weight: weight / by,
          error: error / by,
          counts: Object.fromEntries([...counts].map(([name, count]) => [name, count / by])),
        }));
    },
    total: () => sum / (scale() * minutes()),
  };
}
