import pMap from 'p-map';
import { hasCode } from '../base/errors.ts';
import type { Values } from '../base/values.ts';
import type { Entity } from '../define/declaration/entity.ts';
import type { IndexEntry, Projection } from '../define/declaration/projection.ts';
import { indexEntriesOf, remoteIndexesOf, remoteIndexOf } from '../define/places/index-entries.ts';
import type { Engine } from '../engine/engine.ts';
import { confirmedRow } from '../engine/reconcile/reconcile.ts';
import { isOwnedBy } from '../engine/reconcile/unique-claim.ts';
import { toBatches } from '../storage/copy-rows.ts';
import { readUnmarked } from '../storage/row-marks.ts';
import { type Action, type Address, type Properties, type Row, submit, transactionLimits } from '../storage/rows.ts';
import { compareKeys } from '../storage/scan-accounts.ts';
import { accountsOf, type Storage } from '../storage/storage.ts';

/**
 * Writes the rows in other partitions and tables that follow from many entities, grouped by their own partitions. Nobody else may write the
 * entities meanwhile: their values are not read again.
 */

/** The most transactions at a time. */
export const WRITE_CONCURRENCY = 32;

/** An entity as it is stored. */
export interface StoredEntity {
  readonly address: Address;
  readonly values: Values;
}

/** A row of an index that is a copy of one entity. */
interface CopyRow {
  readonly entry: IndexEntry;
  readonly properties: Properties;
}

interface DerivedOptions {
  /** True for an entry that is not written. */
  readonly isLeft?: (entry: IndexEntry) => boolean;
  readonly signal?: AbortSignal | undefined;
}

/** Writes the entries of the entities. A list that cannot be read is left to the consistency check. */
export async function writeDerived(
  { storage }: Pick<Engine, 'storage'>,
  entity: Entity,
  entities: readonly StoredEntity[],
  { isLeft = () => false, signal }: DerivedOptions = {},
): Promise<void> {
  const all = entities.flatMap((stored) =>
    indexEntriesOf(entity, stored.values).flatMap((entry) => {
      const projection = isLeft(entry) ? undefined : remoteIndexOf(entity, entry);
      return projection ? [{ ...stored, entry, projection }] : [];
    }),
  );
  const copies = all.flatMap(({ values, entry, projection }) => {
    const properties = projection.properties?.(values);
    if (projection.merge || !properties) return [];
    return [{ entry, properties: projection.settle === 'claim' ? confirmedRow(entity, values, entry) : properties }];
  });
  await writeBatches(storage, copies, 'upsert', async (batch) => {
    signal?.throwIfAborted();
    await submit(storage, { ...batch, isRepeatable: true });
  });
  const shares = all.filter(({ projection }) => projection.merge);
  const rows = Map.groupBy(shares, ({ entry, projection }) => keyOf(projection.merge?.sumOf?.(entry) ?? entry));
  await pMap(
    rows.values(),
    async (some) => {
      signal?.throwIfAborted();
      // The changes of one row are written together.
      await Promise.all(some.map((share) => settleShare(storage, share)));
    },
    { concurrency: WRITE_CONCURRENCY },
  );
}

const NEVER = new AbortController().signal;

async function settleShare(
  storage: Storage,
  {
    address,
    values,
    entry,
    projection: { merge, properties },
  }: StoredEntity & { readonly entry: IndexEntry; readonly projection: Projection },
): Promise<void> {
  const part = {
    isWanted: true,
    properties: properties?.(values),
    isOwn: (row: Row) => isOwnedBy(row, address),
    hold: { keep: async () => NEVER },
    isRepair: false,
  };
  try {
    for (let isNew = true; merge; isNew = false) if (await merge.settle(storage, entry, { ...part, isNew })) return;
  } catch (error) {
    if (!hasCode(error, 'needs-repair')) throw error;
  }
}

interface RowsBatch {
  readonly table: string;
  readonly partition: string;
  readonly actions: readonly Action[];
}

/** Groups rows into transactions, and writes many at a time. Of two rows with one key, the last one remains. */
export async function writeBatches(
  storage: Storage,
  rows: readonly CopyRow[],
  kind: 'insert' | 'upsert',
  write: (batch: RowsBatch) => Promise<void>,
): Promise<void> {
  for (const [table, some] of Map.groupBy(rows, ({ entry }) => entry.table)) {
    const byKey = new Map(some.map((one) => [keyOf(one.entry), one]));
    const sorted = [...byKey.values()].sort((one, other) => compareKeys(one.entry, other.entry));
    async function* actions() {
      for (const { entry, properties } of sorted)
        yield { partition: entry.partition, action: { kind, row: entry.row, properties } as const };
    }
    await pMap(
      toBatches(actions(), (partition) => transactionLimits(storage, partition)),
      (batch) => write({ table, ...batch }),
      { concurrency: WRITE_CONCURRENCY },
    );
  }
}

export function keyOf({ table, partition, row }: Address): string {
  return JSON.stringify([table, partition, row]);
}

/** The tables outside of that of the entity with its entries, in which another program has rows, too. */
export async function findSharedTables(storage: Storage, entity: Entity): Promise<ReadonlySet<string>> {
  const tables = [...new Set(remoteIndexesOf(entity).map(({ at }) => at.table))];
  const shared = await pMap(tables, async (table) => ((await isShared(storage, table)) ? [table] : []));
  return new Set(shared.flat());
}

async function isShared(storage: Storage, table: string): Promise<boolean> {
  for (const account of accountsOf(storage)) {
    let from: string | undefined;
    do {
      const page = await readUnmarked(account, table, { limit: 1, from });
      if (page.rows.length > 0) return true;
      from = page.next;
    } while (from !== undefined);
  }
  return false;
}
