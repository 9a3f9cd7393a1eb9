import { setTimeout as sleep } from 'node:timers/promises';
import pMap from 'p-map';
import { isOutcomeUnknown } from '../base/errors.ts';
import { StorageConflict, storageCalls } from './errors.ts';
import { FENCE_KEYS, isFenceRow, isLeftByFormerRelease } from './fence-rows.ts';
import { timeOf } from './row-journal.ts';
import { type Address, literal, type Properties, parseRows } from './row-query.ts';
import {
  type Action,
  MAX_TRANSACTION_ACTIONS,
  MAX_TRANSACTION_BYTES,
  submit,
  transactionBytes,
  type transactionLimits,
} from './rows.ts';
import { compareKeys } from './scan-accounts.ts';
import { isOfAccount, isOfApp } from './slot-row.ts';
import type { Account } from './storage.ts';

/** A row as storage sent it, with the types of its properties. */
interface StoredRow {
  readonly partition: string;
  readonly row: string;
  readonly properties: Readonly<Record<string, unknown>>;
  /** Equal for equal rows. */
  readonly text: string;
  /** That of the version, by the clock of the account. */
  readonly time: string;
}

/** True for a row of the app, and false for one that another program wrote. */
export type IsOwnRow = (row: Address & { readonly properties: Properties }) => boolean;

interface CopyOptions {
  readonly from: Account;
  readonly to: Account;
  readonly table: string;
  /** Only this partition; else all partitions for which `isMoved` holds. */
  readonly partition?: string;
  readonly isMoved?: (partition: string) => boolean;
  readonly isOwnRow: IsOwnRow;
  /** True if each row gets a later time at the target than it has at the source: a backup orders the versions of a row by their times. */
  readonly isOrdered?: boolean;
  /** Called before each write. Throws if the caller may write no more. */
  readonly mayWrite: () => void;
  readonly onRows?: (rows: number) => void;
}

/** What a comparison found, and what it changed. */
export interface Copied {
  /** Rows at the source. */
  readonly rows: number;
  readonly written: number;
  readonly deleted: number;
  /** Transactions that may still be executed, or that met another one. */
  readonly unknown: number;
  /** Rows that were not copied, because another program has a row at their keys at the target. */
  readonly blocked: readonly Address[];
  /** The partitions with differences. */
  readonly changed: ReadonlySet<string>;
  /** By how much the clock of the target is ahead of `performance.now()`, at least. Unknown if nothing was written. */
  readonly aheadMs?: number | undefined;
}

interface Batch {
  readonly partition: string;
  readonly actions: Action[];
  /** The greatest time that one of the rows has at the source. */
  time: string;
}

const CONCURRENCY = 8;
const PAGE_SIZE = 1_000;

/**
 * Makes the rows of the target those of the source, by a comparison in the order of keys: it can be repeated, and costs no write where
 * both agree. The writes have no condition, so nobody else may write at the target, and none may be under way when it begins to own the rows.
 * Rows of other programs stay as they are, in both accounts.
 */
export async function copyRows(options: CopyOptions): Promise<Copied> {
  const { from, to } = options;
  const total = {
    ...{ rows: 0, written: 0, deleted: 0, unknown: 0, blocked: [] as Address[], changed: new Set<string>() },
    aheadMs: undefined as number | undefined,
  };
  await pMap(
    toBatches(differences(readOwn(from, options), readStored(to, options), total, options)),
    async (batch) => {
      const { partition, actions } = batch;
      total.changed.add(partition);
      try {
        const aheadMs = await writeBatch(batch, options);
        total.aheadMs = Math.max(aheadMs, total.aheadMs ?? Number.NEGATIVE_INFINITY);
      } catch (error) {
        // A transaction of an earlier comparison was executed late.
        if (!isOutcomeUnknown(error) && !(error instanceof StorageConflict)) throw error;
        total.unknown += 1;
        return;
      }
      for (const { kind } of actions) total[kind === 'delete' ? 'deleted' : 'written'] += 1;
    },
    { concurrency: CONCURRENCY },
  );
  return total;
}

/** Writes the rows again if the clock of the target had not passed their times, once it has. Returns how far that clock is ahead. */
async function writeBatch(
  { partition, actions, time }: Batch,
  { to, table, mayWrite, isOrdered = false }: CopyOptions,
): Promise<number> {
  for (;;) {
    mayWrite();
    const etags = await submit(to, { table, partition, actions });
    const times = [...etags.values()].map((etag) => timeOf(etag) ?? '').sort();
    const aheadMs = Date.parse(times.at(-1) ?? '') - performance.now();
    if (!isOrdered || times.every((each) => each >= time)) return aheadMs || Number.NEGATIVE_INFINITY;
    await sleep(Date.parse(time) - Date.parse(times[0] ?? '') + 1);
  }
}

export interface Difference {
  readonly partition: string;
  readonly action: Action;
  /** Of a row that is copied. */
  readonly time?: string;
}

async function* differences(
  source: AsyncGenerator<StoredRow>,
  target: AsyncGenerator<StoredRow>,
  total: { rows: number; blocked: Address[] },
  { table, isOwnRow, isOrdered = false, onRows }: Pick<CopyOptions, 'table' | 'isOwnRow' | 'isOrdered' | 'onRows'>,
): AsyncGenerator<Difference> {
  let [here, there] = await Promise.all([source.next(), target.next()]);
  while (!here.done || !there.done) {
    const order = here.done ? 1 : there.done ? -1 : compareKeys(here.value, there.value);
    if (!here.done && order <= 0) {
      total.rows += 1;
      if (total.rows % PAGE_SIZE === 0) onRows?.(PAGE_SIZE);
    }
    const isForeign = !there.done && order >= 0 && !isOwnRow({ ...there.value, table });
    if (!here.done && order === 0 && isForeign)
      total.blocked.push({ table, partition: here.value.partition, row: here.value.row });
    else if (!here.done && (order < 0 || (!there.done && order === 0 && isOther(here.value, there.value, isOrdered)))) {
      const { partition, row, properties, time } = here.value;
      yield { partition, action: { kind: 'upsert', row, properties }, time };
    } else if (!there.done && order > 0 && !isForeign)
      yield { partition: there.value.partition, action: { kind: 'delete', row: there.value.row } };
    if (order <= 0 && order >= 0) [here, there] = await Promise.all([source.next(), target.next()]);
    else if (order < 0) here = await source.next();
    else there = await target.next();
  }
  onRows?.(total.rows % PAGE_SIZE);
}

type LimitsOf = (partition: string) => ReturnType<typeof transactionLimits>;

const LIMITS = { mostActions: MAX_TRANSACTION_ACTIONS, mostBytes: MAX_TRANSACTION_BYTES };

/** A mover that died may have copied a row too early. Rows that move back are those of before. */
const isOther = (here: StoredRow, there: StoredRow, isOrdered: boolean) =>
  here.text !== there.text || (isOrdered && there.time < here.time);

/** Groups the changes of a partition into transactions. */
export async function* toBatches(
  found: AsyncGenerator<Difference>,
  limitsOf: LimitsOf = () => LIMITS,
): AsyncGenerator<Batch> {
  let batch: Batch | undefined;
  let bytes = 0;
  for await (const { partition, action, time = '' } of found) {
    const added = transactionBytes(partition, [action]);
    const { mostActions, mostBytes } = limitsOf(partition);
    const isFull = batch && (batch.actions.length === mostActions || bytes + added > mostBytes);
    if (batch && (isFull || batch.partition !== partition)) {
      yield batch;
      batch = undefined;
    }
    if (!batch) [batch, bytes] = [{ partition, actions: [], time }, 0];
    batch.actions.push(action);
    if (time > batch.time) batch.time = time;
    bytes += added;
  }
  if (batch) yield batch;
}

/** Deletes the rows of the app in a table for which `isMoved` holds, fence rows included. Returns their number. */
export async function deleteRows(
  account: Account,
  {
    table,
    isMoved,
    isOwnRow,
    mayWrite,
  }: Pick<CopyOptions, 'table' | 'mayWrite' | 'isOwnRow'> & { readonly isMoved: (partition: string) => boolean },
): Promise<number> {
  let deleted = 0;
  async function* deletes(): AsyncGenerator<Difference> {
    for await (const { partition, row, properties } of readPages(account, table, '')) {
      const found = { table, partition, row, properties };
      if (isMoved(partition) && !isOfAccount(found) && (isFenceRow(found) || isOwnRow(found)))
        yield { partition, action: { kind: 'delete', row } };
    }
  }
  await pMap(
    toBatches(deletes()),
    async ({ partition, actions }) => {
      mayWrite();
      await submit(account, { table, partition, actions });
      deleted += actions.length;
    },
    { concurrency: CONCURRENCY },
  );
  return deleted;
}

/** The rows of a table that moves of an earlier release did not copy. */
export async function* readLeft(account: Account, table: string): AsyncGenerator<StoredRow> {
  const { from, before } = FENCE_KEYS;
  for await (const stored of readPages(account, table, `RowKey ge ${literal(from)} and RowKey lt ${literal(before)}`))
    if (isLeftByFormerRelease(stored)) yield stored;
}

async function* readOwn(account: Account, options: CopyOptions): AsyncGenerator<StoredRow> {
  const { table, isOwnRow } = options;
  for await (const stored of readStored(account, options)) if (isOwnRow({ ...stored, table })) yield stored;
}

async function* readStored(account: Account, { table, partition, isMoved }: CopyOptions): AsyncGenerator<StoredRow> {
  const filter = partition === undefined ? '' : `PartitionKey eq ${literal(partition)}`;
  for await (const stored of readPages(account, table, filter))
    if ((isMoved?.(stored.partition) ?? true) && isOfApp({ ...stored, table })) yield stored;
}

async function* readPages(account: Account, table: string, filter: string): AsyncGenerator<StoredRow> {
  const client = account.table(table);
  let body: string | null | undefined;
  const onResponse = ({ bodyAsText }: { bodyAsText?: string | null }) => {
    body = bodyAsText;
  };
  const pages = client
    .listEntities({ queryOptions: filter ? { filter } : {}, onResponse })
    .byPage({ maxPageSize: PAGE_SIZE });
  for await (const _ of storageCalls(pages, client.tableName))
    for (const { partition, row, etag, properties } of parseRows(body ?? ''))
      yield {
        partition,
        row,
        properties,
        time: timeOf(etag) ?? '',
        text: JSON.stringify([partition, row, properties]),
      };
}
