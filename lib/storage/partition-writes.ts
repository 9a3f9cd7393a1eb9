import type { Storage } from './storage.ts';

/** Counts the writes of this process to some partitions, so that what it read from them can be discarded. */

interface Partition {
  readonly table: string;
  readonly partition: string;
}

const counts = new WeakMap<Storage, Map<string, number>>();

/**
 * The number of writes to a partition that have ended since the first call for it. Rows that were read before a write ended have
 * another number than rows that are read after it.
 */
export function countPartitionWrites(storage: Storage, at: Partition): number {
  const known = counts.get(storage) ?? new Map<string, number>();
  counts.set(storage, known);
  const count = known.get(keyOf(at)) ?? 0;
  known.set(keyOf(at), count);
  return count;
}

/** Called when a write has ended, in whatever way. Partitions that nobody counts take no memory. */
export function notePartitionWrite(storage: Storage, at: Partition): void {
  const known = counts.get(storage);
  const count = known?.get(keyOf(at));
  if (count !== undefined) known?.set(keyOf(at), count + 1);
}

function keyOf({ table, partition }: Partition): string {
  return `${table}/${partition}`;
}
