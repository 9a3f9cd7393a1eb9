/** A stream of random numbers. Streams of different names are independent of each other. */
export interface Chance {
  /** From 0 up to, but without, 1. */
  next(): number;
  /** A whole number from 0 up to, but without, `count`. */
  below(count: number): number;
  between(least: number, most: number): number;
  /** True with this probability. */
  isTrue(probability: number): boolean;
  /** Throws if there is none. */
  pick<Item>(items: readonly Item[]): Item;
  shuffle<Item>(items: readonly Item[]): Item[];
  bytes(count: number): Buffer;
}

/** The stream that the names determine: with a stream for each operation, one that is left out changes no number of the others. */
export function createChance(...names: readonly (string | number)[]): Chance {
  let state = hashText(names.join('\n'));
  // mulberry32
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (count: number) => Math.floor(next() * count);
  return {
    next,
    below,
    between: (least, most) => least + next() * (most - least),
    isTrue: (probability) => next() < probability,
    pick<Item>(items: readonly Item[]) {
      if (items.length === 0) throw new Error('There is nothing to choose from.');
      return items[below(items.length)] as Item;
    },
    shuffle<Item>(items: readonly Item[]) {
      const ranked = items.map((item) => ({ item, rank: next() }));
      return ranked.sort((one, other) => one.rank - other.rank).map(({ item }) => item);
    },
    bytes(count) {
      const all = Buffer.allocUnsafe(count);
      for (let at = 0; at < count; at += 1) all[at] = below(256);
      return all;
    },
  };
}

/** FNV-1a with a final mix, because names often differ in their last digit only. */
function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return hash ^ (hash >>> 16);
}
