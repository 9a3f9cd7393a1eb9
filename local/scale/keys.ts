import { keptFor } from '../../lib/base/once.ts';
import { SLOTS, slotOf } from '../../lib/storage/slots.ts';
import { zipfShares } from './random.ts';

/** How requests spread over the partitions of an entity. */
export interface Keys {
  readonly name: string;
  /** The part of all requests that each partition has. */
  readonly shares: Float64Array;
}

export const PARTITIONS = 100_000;
const TENANT = { partitions: 100, share: 0.2 };

export const even: Keys = { name: 'even', shares: zipfShares(PARTITIONS, 0) };
export const mild: Keys = { name: 'Zipf 0.8', shares: zipfShares(PARTITIONS, 0.8) };
export const skewed: Keys = { name: 'Zipf 0.99', shares: zipfShares(PARTITIONS, 0.99) };
/** One tenant has a fifth of the requests, in a hundred partitions. */
export const tenant: Keys = {
  name: 'one busy tenant',
  shares: even.shares.map((_, index) =>
    index < TENANT.partitions
      ? TENANT.share / TENANT.partitions
      : (1 - TENANT.share) / (PARTITIONS - TENANT.partitions),
  ),
};

/** The slot of each partition, as the product places it. */
const slotsOfPartitions = keptFor(({ shares }: Keys) =>
  Uint16Array.from(shares, (_, partition) => Number.parseInt(slotOf(`${partition}`), 16)),
);

export const slotOfPartition = (keys: Keys, partition: number): number => slotsOfPartitions(keys)[partition] ?? 0;

/** The part of all requests that each slot has. */
export const slotShares = keptFor((keys: Keys): Float64Array => {
  const slots = new Float64Array(SLOTS);
  keys.shares.forEach((share, partition) => {
    const slot = slotOfPartition(keys, partition);
    slots[slot] = (slots[slot] ?? 0) + share;
  });
  return slots;
});

/** The part of all requests that each account has, if it owns these slots. */
export function accountShares(slots: Float64Array, owners: readonly number[], accounts: number): number[] {
  const shares = new Array<number>(accounts).fill(0);
  slots.forEach((share, slot) => {
    const owner = owners[slot] ?? 0;
    shares[owner] = (shares[owner] ?? 0) + share;
  });
  return shares;
}

/** Slots spread evenly, as at provisioning. */
export function spreadSlots(accounts: number): number[] {
  return Array.from({ length: SLOTS }, (_, slot) => slot % accounts);
}

interface Rebalanced {
  readonly owners: readonly number[];
  /** The share of the busiest account to the mean, before the first move and after each. */
  readonly peaks: readonly number[];
}

/** Moves one slot after another from the busiest account to the least busy one, as long as that makes the busiest one less busy. */
export function rebalance(slots: Float64Array, owners: readonly number[], accounts: number): Rebalanced {
  const owned = Array.from({ length: accounts }, () => new Set<number>());
  for (const [slot, owner] of owners.entries()) owned[owner]?.add(slot);
  const loads = accountShares(slots, owners, accounts);
  const mean = loads.reduce((sum, load) => sum + load, 0) / accounts;
  const [now, peaks] = [[...owners], [Math.max(...loads) / mean]];
  for (;;) {
    const from = loads.indexOf(Math.max(...loads));
    const to = loads.indexOf(Math.min(...loads));
    const gap = (loads[from] ?? 0) - (loads[to] ?? 0);
    let best: number | undefined;
    for (const slot of owned[from] ?? []) {
      const share = slots[slot] ?? 0;
      if (share < gap / 2 && share > (best === undefined ? 0 : (slots[best] ?? 0))) best = slot;
    }
    if (best === undefined || gap < 0.01 * mean) return { owners: now, peaks };
    const share = slots[best] ?? 0;
    owned[from]?.delete(best);
    owned[to]?.add(best);
    now[best] = to;
    loads[from] = (loads[from] ?? 0) - share;
    loads[to] = (loads[to] ?? 0) + share;
    peaks.push(Math.max(...loads) / mean);
  }
}
