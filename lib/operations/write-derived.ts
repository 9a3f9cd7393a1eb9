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
import {
  type Action,
  type Address,
  type Properties,
  type Row,
  submit,
  transactionLimits,
  trySubmit,
} from '../storage/rows.ts';
import { compareKeys } from '../storage/scan-accounts.ts';
import { accountsOf, type Storage } from '../storage/storage.ts';

/**
 * Writes the rows in other partitions and tables that follow from many entities, grouped by their own partitions. The values of the entities are not read
 * again: nobody else may write them meanwhile, or the caller reads them again.
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
  /** True to replace no copy that is stored. */
  readonly isInsert?: boolean;
  readonly signal?: AbortSignal | undefined;
}

/** Writes the entries of the entities. Returns the entities with an entry that is not written: its list cannot be read, or another row has its place. */
export async function writeDerived<Stored extends StoredEntity>(
  { storage }: Pick<Engine, 'storage'>,
  entity: Entity,
  entities: readonly Stored[],
  { isLeft = () => false, isInsert = false, signal }: DerivedOptions = {},
): Promise<ReadonlySet<Stored>> {
  const refused = new Set<Stored>();
  const all = entities.flatMap((stored) =>
    indexEntriesOf(entity, stored.values).flatMap((entry) => {
      const projection = isLeft(entry) ? undefined : remoteIndexOf(entity, entry);
      return projection ? [{ stored, entry, projection }] : [];
    }),
  );
  const owners = new Map<string, Stored>();
  const copies = all.flatMap(({ stored, entry, projection }) => {
    const properties = projection.properties?.(stored.values);
    if (projection.merge || !properties) return [];
    if (isInsert && owners.has(keyOf(entry))) {
      refused.add(stored);
      return [];
    }
    owners.set(keyOf(entry), stored);
    const isClaimed = projection.settle === 'claim';
    return [{ entry, properties: isClaimed ? confirmedRow(entity, stored.values, entry) : properties }];
  });
  await writeBatches(storage, copies, isInsert ? 'insert' : 'upsert', async ({ actions, ...at }) => {
    signal?.throwIfAborted();
    if (!isInsert) await submit(storage, { ...at, actions, isRepeatable: true });
    else
      for (const { row } of await insertEach(storage, { ...at, actions })) {
        const owner = owners.get(keyOf({ ...at, row }));
        if (owner) refused.add(owner);
      }
  });
  const shares = all.filter(({ projection }) => projection.merge);
  const rows = Map.groupBy(shares, ({ entry, projection }) => keyOf(projection.merge?.sumOf?.(entry) ?? entry));
  await pMap(
    rows.values(),
    async (some) => {
      signal?.throwIfAborted();
      // The changes of one row are written together.
      await Promise.all(
        some.map(async ({ stored, ...share }) => {
          if (!(await settleShare(storage, { ...stored, ...share }))) refused.add(stored);
        }),
      );
    },
    { concurrency: WRITE_CONCURRENCY },
  );
  return refused;
}

/** Inserts rows. Returns those in whose place there is another row. */
async function insertEach(storage: Storage, batch: RowsBatch): Promise<readonly Action[]> {
  if (await trySubmit(storage, batch)) return [];
  if (batch.actions.length === 1) return batch.actions;
  const left = await pMap(batch.actions, (action) => insertEach(storage, { ...batch, actions: [action] }), {
    concurrency: WRITE_CONCURRENCY,
  });
  return left.flat();
}

const NEVER = new AbortController().signal;

/** Writes the part that an entity has of a row which it shares with others. False if the row cannot be read. */
async function settleShare(
  storage: Storage,
  {
    address,
    values,
    entry,
    projection: { merge, properties },
  }: StoredEntity & { readonly entry: IndexEntry; readonly projection: Projection },
): Promise<boolean> {
  const part = {
    isWanted: true,
    properties: properties?.(values),
    isOwn: (row: Row) => isOwnedBy(row, address),
    hold: { keep: async () => NEVER },
    isRepair: false,
  };
  try {
    for (let isNew = true; merge; isNew = false)
      if (await merge.settle(storage, entry, { ...part, isNew })) return true;
  } catch (error) {
    if (!hasCode(error, 'needs-repair')) throw error;
  }
  return false;
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
