import { storageAccounts } from './kit/storage.ts';

/** Counts the storage transactions of a piece of work. */
export function costOf(work: () => Promise<unknown>): Promise<number> {
  return storageAccounts.measureCost(async (cost) => {
    await work();
    return cost.transactions;
  });
}
