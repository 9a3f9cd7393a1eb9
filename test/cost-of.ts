import { measureCost } from '../lib/storage/cost.ts';

/** Counts the storage transactions of a piece of work. */
export function costOf(work: () => Promise<unknown>): Promise<number> {
  return measureCost(async (cost) => {
    await work();
    return cost.transactions;
  });
}
