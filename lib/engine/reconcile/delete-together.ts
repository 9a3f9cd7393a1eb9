import pMap from 'p-map';
import { isOutcomeUnknown } from '../../base/errors.ts';
import type { Hold } from '../../define/declaration/engine.ts';
import type { IndexEntry } from '../../define/declaration/projection.ts';
import { type Address, deleteUnchanged, type Row, readRow } from '../../storage/rows.ts';
import type { Storage } from '../../storage/storage.ts';

/** What the reconciler deletes after several entities, in transactions of the partitions in which it is. */

/** The most entities at a time, and the most entries of each. */
const CONCURRENCY = 8;

/** Works on all items, or on none after a failure. All work has ended before an error is thrown, because the caller then gives up the hold. */
export async function allEnded<Item, Result>(
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
): Promise<(Result | undefined)[]> {
  const failures: unknown[] = [];
  const each = async (item: Item) =>
    failures.length > 0 ? undefined : work(item).catch((error: unknown) => void failures.push(error));
  const results = await pMap(items, each, { concurrency: CONCURRENCY });
  if (failures.length > 0) throw failures.find(isOutcomeUnknown) ?? failures[0];
  return results as (Result | undefined)[];
}

/**
 * Deletes the entries that are in one partition with others. Returns those that are gone, also before; the others must be settled one by
 * one, because a row has changed, or because they are alone.
 */
export async function deleteEntries(
  storage: Storage,
  hold: Hold,
  {
    left,
    isOwn,
  }: {
    readonly left: readonly { readonly address: Address; readonly indexEntry: IndexEntry }[];
    /** True if the row is an entry of the entity at the address: nothing else is deleted. */
    readonly isOwn: (row: Row, address: Address) => boolean;
  },
): Promise<ReadonlySet<IndexEntry>> {
  const partitions = Map.groupBy(left, ({ indexEntry }) => JSON.stringify([indexEntry.table, indexEntry.partition]));
  const gone = await allEnded(
    [...partitions.values()].filter((group) => group.length > 1),
    async (group) => {
      const rows = await pMap(group, ({ indexEntry }) => readRow(storage, indexEntry), { concurrency: CONCURRENCY });
      const own = rows.filter((row, index) => row && group[index] && isOwn(row, group[index].address));
      const refused = await deleteTogether(
        storage,
        hold,
        own.flatMap((row) => row ?? []),
      );
      return group.filter(({ indexEntry }) => !refused.some(({ row }) => row === indexEntry.row));
    },
  );
  return new Set(gone.flatMap((some) => some ?? []).map(({ indexEntry }) => indexEntry));
}

/** Deletes unchanged rows, in as few transactions as possible. Returns the rows of transactions that were refused. */
export async function deleteTogether(storage: Storage, hold: Hold, rows: readonly Row[]): Promise<readonly Row[]> {
  const refused = await allEnded(
    [...Map.groupBy(rows, ({ table, partition }) => JSON.stringify([table, partition])).values()],
    async ([first, ...others]) => {
      if (!first) return [];
      const { table, partition } = first;
      return deleteUnchanged(storage, { table, partition, signal: await hold.keep() }, [first, ...others]);
    },
  );
  return refused.flatMap((some) => some ?? []);
}
