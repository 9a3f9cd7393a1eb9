import type { TableClient, TableEntity, TransactionAction } from '@azure/data-tables';
import pMap from 'p-map';
import { unavailable } from '../base/errors.ts';
import { recentFor } from '../base/once.ts';
import { withDeleteIf } from './conditional-delete.ts';
import { StorageConflict, storageCall, unlessRefused } from './errors.ts';
import { recordIfExplaining } from './explain.ts';
import { writeAtOwner } from './fence.ts';
import { type FoundRow, journalFound, journalRows, withAttempt } from './row-journal.ts';
import {
  type Address,
  literal,
  MAX_COMPARISONS,
  type Pausing,
  parseProperties,
  projection,
  type Query,
  queryRows,
  type ReadBound,
  type Row,
  type RowFilter,
  type RowPage,
  rowConditions,
  toRowProperties,
} from './row-query.ts';
import type { Action } from './row-types.ts';
import { scanAccounts } from './scan-accounts.ts';
import { readAtOwner } from './slot-map.ts';
import { isOfApp } from './slot-row.ts';
import type { Account, Storage } from './storage.ts';

export type { Address, Properties, ReadBound, Row, RowPage } from './row-query.ts';
export { textLength } from './row-query.ts';
export type { Action } from './row-types.ts';

/** The ETag of a condition that only requires the row to exist. */
export const ANY_ETAG = '*';

/** https://learn.microsoft.com/rest/api/storageservices/performing-entity-group-transactions */
export const MAX_TRANSACTION_ACTIONS = 100;

/** The most actions of a transaction of the app. With several accounts, a transaction may need a fence as well. */
export function mostActions({ accounts }: Pick<Storage, 'accounts'>): number {
  return accounts ? MAX_TRANSACTION_ACTIONS - 1 : MAX_TRANSACTION_ACTIONS;
}

export const MAX_TRANSACTION_BYTES = 4 * 1_048_576;

/** The most actions and bytes of a transaction of the app on a partition. */
export function transactionLimits(
  storage: Pick<Storage, 'accounts'>,
  partition: string,
): { readonly mostActions: number; readonly mostBytes: number } {
  if (!storage.accounts) return { mostActions: MAX_TRANSACTION_ACTIONS, mostBytes: MAX_TRANSACTION_BYTES };
  const fence = transactionBytes(partition, [fenceAction(LONGEST_FENCE)]);
  return { mostActions: mostActions(storage), mostBytes: MAX_TRANSACTION_BYTES - fence };
}

/** At least as long as the key of a fence. */
const LONGEST_FENCE = '~'.repeat(64);

/** Requires that the row exists. */
function fenceAction(row: string): Action {
  return { kind: 'merge', row, properties: {}, etag: ANY_ETAG };
}

/** The headers of an action and the types of its properties, with a margin. */
const ACTION_BYTES = 1_000;
const PROPERTY_BYTES = 40;
/** A point query: one transaction. With `select`, reads only these properties. */
export async function readRow(
  storage: Storage,
  { table, partition, row, select }: Address & { readonly select?: readonly string[] | undefined },
): Promise<Row | undefined> {
  const shape = storage.shapes?.get(table);
  const sent = select && projection(shape ? shape.toSelected(select) : select);
  recordIfExplaining(() => ({ read: 'row', table, partition, row, ...(sent ? { select: sent } : {}) }));
  const read = async (account: Storage) => {
    let etag = '';
    let body = '';
    const onResponse = ({ headers, bodyAsText }: Response) => {
      etag = headers.get('etag') ?? '';
      body = bodyAsText ?? '';
    };
    const options = { onResponse, ...(sent ? { queryOptions: { select: sent } } : {}) };
    const client = account.table(table);
    const found = await unlessRefused(['missing'], client.getEntity(partition, row, options), client.tableName);
    if (!found) return undefined;
    const typed = shape && parseProperties(body);
    if (sent && typed && shape.isAmbiguous(typed)) return readRow(storage, { table, partition, row });
    const properties = typed ? shape.toProperties({ partition, row, properties: typed }) : toRowProperties(found);
    return { table, partition, row, etag, properties };
  };
  return storage.accounts ? readAtOwner(storage.accounts, { table, partition }, read) : read(storage);
}

interface Response {
  readonly headers: { get(name: string): string | undefined };
  readonly bodyAsText?: string | null;
}

/** Reads at most `limit` rows of one partition in key order. */
export async function readRange(storage: Storage, given: RowRange): Promise<RowPage> {
  const { keeps, ...range } = toStoredFilter(storage, given);
  const { table, partition, from, after, before, select, isTyped, limit = Number.POSITIVE_INFINITY } = range;
  const conditions = [`PartitionKey eq ${literal(partition)}`];
  conditions.push(after === undefined ? `RowKey ge ${literal(from)}` : `RowKey gt ${literal(after)}`);
  if (before !== undefined) conditions.push(`RowKey lt ${literal(before)}`);
  const filter = [...conditions, ...rowConditions(range, MAX_COMPARISONS - conditions.length)].join(' and ');
  const { counted, bound, mayPause, resume } = range;
  const selected = select && projection(select);
  const query = { table, filter, select: selected, limit, counted, bound, isTyped, mayPause, resume, keeps };
  return storage.accounts
    ? readAtOwner(storage.accounts, range, (account) => queryPartition(account, query))
    : queryRows(storage, query);
}

/** A read that has paused in another account, from which a move has taken the partition since, continues after the last row that it returned. */
async function queryPartition(account: Account, { resume, ...query }: Query): Promise<RowPage> {
  const head = `${account.name}/`;
  const token = resume?.startsWith(head) ? resume.slice(head.length) : undefined;
  const page = await queryRows(account, { ...query, resume: token, keeps: isOfApp });
  return page.resume === undefined ? page : { ...page, resume: head + page.resume };
}

export interface RowRange extends RowFilter, Pausing {
  readonly table: string;
  readonly partition: string;
  /** Inclusive. */
  readonly from: string;
  /** The last row already read; replaces `from`, exclusive. */
  readonly after?: string | undefined;
  /** Exclusive. */
  readonly before?: string | undefined;
  readonly select?: readonly string[] | undefined;
  readonly limit?: number | undefined;
  readonly bound?: ReadBound | undefined;
  /** As that of a query. */
  readonly isTyped?: boolean | undefined;
}

/**
 * Reads rows of a whole table in key order, of all accounts. Storage reads every row, so only functions whose name says scan call this.
 */
export async function scanTable(storage: Storage, given: TableScan): Promise<RowPage> {
  const { keeps, ...scan } = toStoredFilter(storage, given);
  return storage.accounts
    ? scanAccounts(storage.accounts, scan, toQuery)
    : queryRows(storage, { ...toQuery(scan), keeps });
}

/** The read as a table with a shape needs it, and which of its rows are of the types that the caller asks for. */
function toStoredFilter<Read extends RowFilter & Pick<TableScan, 'table' | 'select'>>(
  storage: Storage,
  read: Read,
): Read & Pick<Query, 'keeps'> {
  const shape = storage.shapes?.get(read.table);
  if (!shape) return read;
  const { filter, isOfType } = shape.toFilter(read);
  const select = read.select && shape.toSelected(read.select);
  const keeps = ({ properties }: Row) => isOfType(properties);
  return { ...read, type: undefined, orVersionBefore: undefined, ...filter, ...(select && { select }), keeps };
}

function toQuery(scan: TableScan): Query {
  const { table, after, beforePartition, rowKeys, select, limit, counted, bound, isTyped, mayPause, resume } = scan;
  const conditions = rowConditions(scan, MAX_COMPARISONS - SCAN_COMPARISONS);
  // A row type takes a comparison as well, and cannot be left out.
  const hasRoom = [scan.type ?? []].flat().length <= MAX_COMPARISONS - SCAN_COMPARISONS;
  if (rowKeys?.before !== undefined && hasRoom)
    conditions.push(`RowKey ge ${literal(rowKeys.from)} and RowKey lt ${literal(rowKeys.before)}`);
  if (beforePartition !== undefined) conditions.push(`PartitionKey lt ${literal(beforePartition)}`);
  if (after) {
    const [partition, row] = [literal(after.partition), literal(after.row)];
    // The service starts reading at a bound only if the bound is a condition of its own. With an `or` as the whole
    // condition, it starts at the first row of the table.
    conditions.push(`PartitionKey ge ${partition} and (PartitionKey gt ${partition} or RowKey gt ${row})`);
  }
  const filter = conditions.join(' and ');
  return { table, filter, select: select && projection(select), limit, counted, bound, isTyped, mayPause, resume };
}

/** The most comparisons of a scan's bounds. */
const SCAN_COMPARISONS = 6;

export interface TableScan extends RowFilter, Pausing {
  readonly table: string;
  readonly select?: readonly string[] | undefined;
  readonly after?: { readonly partition: string; readonly row: string } | undefined;
  /** Partitions before this one only: storage reads no others. */
  readonly beforePartition?: string | undefined;
  /** In each partition, only rows from `from` and before `before`, unless the filter has no room for these comparisons. */
  readonly rowKeys?: { readonly from: string; readonly before: string | undefined };
  readonly limit: number;
  /** The most rows of each account, by default `limit`: a page of several accounts then has as many rows as a transaction of each returns. */
  readonly limitOfAccount?: number | undefined;
  readonly bound?: ReadBound | undefined;
  /** True for properties as storage has them: text, Booleans and Int32 as they are, and others as `{ type, value }`. */
  readonly isTyped?: boolean | undefined;
}

/** At least the length of a transaction as the SDK sends it. */
export function transactionBytes(partition: string, actions: readonly Action[]): number {
  let bytes = 0;
  for (const action of actions) {
    const keys = encodeURIComponent(partition + action.row).length + partition.length + action.row.length;
    bytes += ACTION_BYTES + 2 * keys;
    const values: unknown[] = [];
    for (const [name, value] of Object.entries(action.kind === 'delete' ? {} : action.properties)) {
      bytes += 2 * name.length + PROPERTY_BYTES;
      // Sent in base64.
      if (value instanceof Uint8Array) bytes += 4 * Math.ceil(value.length / 3);
      else values.push(typeof value === 'bigint' ? String(value) : value);
    }
    bytes += Buffer.byteLength(JSON.stringify(values));
  }
  return bytes;
}

/**
 * True if storage rejects a second execution of the actions, because the first one changes an ETag that they require. An insert
 * is not conditional in this sense: the row may have been deleted since. Neither is a delete in a transaction.
 */
export function isConditional(actions: readonly Action[]): boolean {
  return actions.some(
    (action) =>
      'etag' in action &&
      action.etag !== undefined &&
      action.etag !== ANY_ETAG &&
      (action.kind !== 'delete' || actions.length === 1),
  );
}

/**
 * Executes the actions on one partition atomically and returns the new ETag of each row (none for a delete). A single
 * action is sent as a plain operation. Throws `StorageConflict` with the index of the rejected action, and
 * `storage-unavailable` if the outcome is unknown.
 */
export async function submit(storage: Storage, transaction: Transaction): Promise<Map<string, string>> {
  const { table, partition, actions } = transaction;
  const shape = storage.shapes?.get(table);
  const stored = shape ? actions.map((action) => shape.toStored(partition, action)) : actions;
  if (recordIfExplaining(() => ({ write: 'rows', table, partition, actions: actions.map(describeAction) })))
    return new Map();
  const { journal, accounts } = storage;
  const send = () =>
    accounts
      ? writeAtOwner(accounts, transaction, (account, sending) => submitTo(account, { ...transaction, ...sending }))
      : submitTo(storage, { ...transaction, actions: stored });
  try {
    if (!journal) return await send();
    const { result: etags, attempt } = await withAttempt(send);
    await journalRows(journal, transaction, { etags, attempt });
    return etags;
  } catch (error) {
    // An attempt before the one that was refused may have been executed, and has no line.
    if (error instanceof StorageConflict && error.isRepeated) await journalStored(storage, transaction);
    throw error;
  } finally {
    // A failed write may have been executed.
    notePartitionWrite(storage, transaction);
  }
}

/** The most rows that are read at a time for the journal. */
const READS_CONCURRENCY = 16;

/** Adds the rows of a transaction to the journal of a backup as they are stored now. One transaction for each row, and none without a backup. */
async function journalStored(storage: Storage, { table, partition, actions }: Transaction): Promise<void> {
  const { journal } = storage;
  if (!journal?.hasTable(table, partition)) return;
  const read = async (action: Action): Promise<FoundRow> => {
    const range = { table, partition, from: action.row, limit: 1, isTyped: true };
    const { result, attempt } = await withAttempt(() => readRange(storage, range));
    const [found] = result.rows;
    return found?.row === action.row
      ? found
      : { row: action.row, attempt, gone: 'etag' in action ? action.etag : undefined };
  };
  await journalFound(journal, { table, partition }, await pMap(actions, read, { concurrency: READS_CONCURRENCY }));
}

async function submitTo(
  account: Storage,
  { table, partition, actions, signal, isRepeatable, deletesIf, fence }: Transaction & { readonly fence?: string },
): Promise<Map<string, string>> {
  const client =
    isRepeatable || deletesIf || isConditional(actions) ? account.table(table) : account.tableSentOnce(table);
  const options = signal ? { abortSignal: signal } : {};
  const [only] = actions;
  if (actions.length === 1 && only && fence === undefined) {
    const { etag } = await storageCall(submitOne(client, { partition, action: only, options }), client.tableName);
    return new Map(etag ? [[only.row, etag]] : []);
  }
  if (fence !== undefined && actions.length >= MAX_TRANSACTION_ACTIONS)
    throw unavailable(`${actions.length} rows cannot be written together while their partition is moved.`, undefined);
  const fenced = fence === undefined ? [] : [fenceAction(fence)];
  const sent = [...fenced, ...actions].map((action) => toTransactionAction(partition, action));
  const submitAll = () => storageCall(client.submitTransaction(sent, options), client.tableName);
  const etags = actions.flatMap((action) => (action.kind === 'delete' ? [action.etag ?? ANY_ETAG] : []));
  const isDeleteIf = deletesIf || (actions.length === 1 && etags.length > 0);
  const { subResponses } = await (isDeleteIf ? withDeleteIf(etags, submitAll) : submitAll());
  return new Map(
    actions.flatMap(({ row }, index) => {
      const etag = subResponses[index + fenced.length]?.etag;
      return etag ? [[row, etag] as const] : [];
    }),
  );
}

type Partition = Pick<Address, 'table' | 'partition'>;

/** A count that is dropped and begins again is another one than before: what was read under it is discarded. */
const MAX_COUNTED_PARTITIONS = 50_000;
/** Counts the writes of this process to some partitions, so that what it read from them can be discarded. */
const countsOf = recentFor<Storage, number>(MAX_COUNTED_PARTITIONS);
let lastCount = 0;

/** A number that changes when a write to the partition has ended. Rows that were read before have another number than rows that are read after it. */
export function countPartitionWrites(storage: Storage, at: Partition): number {
  const counts = countsOf(storage);
  const count = counts.get(partitionId(at)) ?? nextCount();
  counts.set(partitionId(at), count);
  return count;
}

function nextCount(): number {
  lastCount += 1;
  return lastCount;
}

/** Called when a write has ended, in whatever way. Partitions that nobody counts take no memory. */
function notePartitionWrite(storage: Storage, at: Partition): void {
  const counts = countsOf(storage);
  if (counts.has(partitionId(at))) counts.set(partitionId(at), nextCount());
}

function partitionId({ table, partition }: Partition): string {
  return `${table}/${partition}`;
}

async function submitOne(client: TableClient, { partition, action, options }: OneAction): Promise<{ etag?: string }> {
  const entity = toEntity(partition, action);
  if (action.kind === 'insert') return client.createEntity(entity, options);
  if (action.kind === 'upsert') return client.upsertEntity(entity, 'Replace', options);
  if (action.kind === 'upsert-merge') return client.upsertEntity(entity, 'Merge', options);
  if (action.kind !== 'delete')
    return client.updateEntity(entity, action.kind === 'merge' ? 'Merge' : 'Replace', {
      ...options,
      etag: action.etag,
    });
  await client.deleteEntity(partition, action.row, action.etag ? { ...options, etag: action.etag } : options);
  return {};
}

interface OneAction {
  readonly partition: string;
  readonly action: Action;
  readonly options: { readonly abortSignal?: AbortSignal };
}

interface Transaction {
  readonly table: string;
  readonly partition: string;
  readonly actions: readonly Action[];
  /** Stops waiting. The outcome is then unknown. */
  readonly signal?: AbortSignal | undefined;
  /**
   * True if a second execution does no harm. By default, a request without a reply is repeated only if it is conditional: a
   * repeated insert or delete could undo a change that another caller made since.
   */
  readonly isRepeatable?: boolean;
  /** True if the deletes of a transaction require their ETags. */
  readonly deletesIf?: boolean;
}

/** Submits a transaction. Returns undefined if a condition did not hold. */
export async function trySubmit(storage: Storage, transaction: Transaction): Promise<Map<string, string> | undefined> {
  return unlessRefused(['exists', 'changed', 'missing'], submit(storage, transaction));
}

/**
 * Deletes rows of one partition that have not changed, in as few transactions as possible. Returns those of transactions that were refused,
 * because a row has changed or is gone, or because an earlier attempt was executed.
 */
export async function deleteUnchanged(
  storage: Storage,
  { table, partition, signal }: Pick<Transaction, 'table' | 'partition' | 'signal'>,
  rows: readonly Row[],
): Promise<readonly Row[]> {
  const refused: Row[] = [];
  const most = mostActions(storage);
  for (let at = 0; at < rows.length; at += most) {
    const some = rows.slice(at, at + most);
    const actions = some.map(({ row, etag }) => ({ kind: 'delete', row, etag }) as const);
    if (!(await trySubmit(storage, { table, partition, actions, signal, deletesIf: true }))) refused.push(...some);
  }
  return refused;
}

/** Executes one conditional action and returns whether its condition held. */
export async function tryAction(
  storage: Storage,
  { table, partition, signal, isRepeatable = false }: Omit<Transaction, 'actions'>,
  action: Action,
): Promise<boolean> {
  const transaction = { table, partition, actions: [action], isRepeatable, signal };
  return (await trySubmit(storage, transaction)) !== undefined;
}

/**
 * Deletes a row under the ETag that was read, if nobody else will do so after another change of it. A move to another account gives each row
 * another ETag, and changes nothing else: then the row is deleted under the new one, as long as `isSame`.
 */
export async function deleteSame(
  storage: Storage,
  { etag, signal, ...address }: Address & Pick<Row, 'etag'> & Pick<Transaction, 'signal'>,
  isSame: (row: Row) => boolean,
): Promise<void> {
  for (let seen = etag; ; ) {
    const isDeleted = await tryAction(
      storage,
      { ...address, signal },
      { kind: 'delete', row: address.row, etag: seen },
    );
    const left = isDeleted || !storage.accounts ? undefined : await readRow(storage, address);
    if (!left || left.etag === seen || !isSame(left)) return;
    seen = left.etag;
  }
}

function toEntity(partition: string, action: Action): TableEntity {
  const properties = action.kind === 'delete' ? {} : action.properties;
  return { ...properties, partitionKey: partition, rowKey: action.row };
}

function toTransactionAction(partition: string, action: Action): TransactionAction {
  const entity = toEntity(partition, action);
  if (action.kind === 'insert') return ['create', entity];
  if (action.kind === 'upsert') return ['upsert', entity, 'Replace'];
  if (action.kind === 'upsert-merge') return ['upsert', entity, 'Merge'];
  if (action.kind === 'delete') return ['delete', { partitionKey: partition, rowKey: action.row }];
  return ['update', entity, action.kind === 'merge' ? 'Merge' : 'Replace', { etag: action.etag }];
}

/** Describes an action without the values of its properties. */
function describeAction(action: Action) {
  const properties = action.kind === 'delete' ? [] : Object.keys(action.properties);
  return { kind: action.kind, row: action.row, conditional: 'etag' in action && action.etag !== undefined, properties };
}
