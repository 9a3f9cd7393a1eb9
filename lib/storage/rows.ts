import { odata, type TableEntity, type TableEntityResult, type TransactionAction } from '@azure/data-tables';
import { storageCall, StorageRefusal, unlessMissing } from './errors.ts';
import type { Storage } from './storage.ts';

/** A row of a table as it is stored. Its properties are in the form that the tables SDK takes and gives. */
export interface Row {
  readonly table: string;
  readonly partition: string;
  readonly row: string;
  readonly etag: string;
  readonly properties: Properties;
}

export type Properties = Readonly<Record<string, unknown>>;

export interface Address {
  readonly table: string;
  readonly partition: string;
  readonly row: string;
}

/** One change of one row. `replace` and `merge` need the row to exist, under `etag` where one is given. */
export type Action =
  | { readonly kind: 'insert'; readonly row: string; readonly properties: Properties }
  | { readonly kind: 'upsert'; readonly row: string; readonly properties: Properties }
  | { readonly kind: 'replace' | 'merge'; readonly row: string; readonly properties: Properties; readonly etag: string }
  /** The ETag counts only where this is the one action: a delete inside a transaction is unconditional. */
  | { readonly kind: 'delete'; readonly row: string; readonly etag?: string };

/** https://learn.microsoft.com/rest/api/storageservices/performing-entity-group-transactions */
export const MAX_TRANSACTION_ACTIONS = 100;
const PAGE_SIZE = 1_000;
const SYSTEM = new Set(['partitionKey', 'rowKey', 'etag', 'timestamp', 'odata.metadata']);

/** A point query: one transaction. */
export async function readRow(storage: Storage, { table, partition, row }: Address): Promise<Row | undefined> {
  const found = await unlessMissing(storage.table(table).getEntity(partition, row));
  return found && toRow(table, found);
}

/** Reads the rows of one partition from `from` (inclusive) to `before` (exclusive), in order, `limit` at most. */
export async function readRange(storage: Storage, range: RowRange): Promise<Row[]> {
  const { table, partition, from, before, select, limit = Number.POSITIVE_INFINITY } = range;
  const filter = odata`PartitionKey eq ${partition} and RowKey ge ${from} and RowKey lt ${before}`;
  const queryOptions = select ? { filter, select: ['PartitionKey', 'RowKey', ...select] } : { filter };
  const rows: Row[] = [];
  // The service may answer a short or empty page with a continuation token: only its absence is the end.
  const pages = storage
    .table(table)
    .listEntities({ queryOptions })
    .byPage({ maxPageSize: Math.min(limit, PAGE_SIZE) });
  const iterator = pages[Symbol.asyncIterator]();
  while (rows.length < limit) {
    const page = await unlessMissing(iterator.next());
    if (!page || page.done) break;
    for (const entity of page.value) rows.push(toRow(table, entity));
  }
  return rows.slice(0, limit);
}

export interface RowRange {
  readonly table: string;
  readonly partition: string;
  readonly from: string;
  readonly before: string;
  readonly select?: readonly string[] | undefined;
  readonly limit?: number | undefined;
}

/**
 * Does all the actions on one partition or none, and answers the new ETag of each row (none for a delete).
 * One action goes as a plain operation. Throws `StorageRefusal` with the index of the action refused, and
 * `storage-unavailable` when the outcome is unknown.
 */
export async function submit(storage: Storage, transaction: Transaction): Promise<Map<string, string>> {
  const { table, partition, actions, signal } = transaction;
  const client = storage.table(table);
  const options = signal ? { abortSignal: signal } : {};
  const etags = new Map<string, string>();
  const [only] = actions;
  if (actions.length === 1 && only) {
    const entity = toEntity(partition, only);
    const answer = await storageCall(
      only.kind === 'insert'
        ? client.createEntity(entity, options)
        : only.kind === 'upsert'
          ? client.upsertEntity(entity, 'Replace', options)
          : only.kind === 'delete'
            ? client.deleteEntity(partition, only.row, only.etag ? { ...options, etag: only.etag } : options)
            : client.updateEntity(entity, only.kind === 'merge' ? 'Merge' : 'Replace', { ...options, etag: only.etag }),
    );
    if ('etag' in answer && answer.etag) etags.set(only.row, answer.etag);
    return etags;
  }
  const answer = await storageCall(
    client.submitTransaction(
      actions.map((action) => toTransactionAction(partition, action)),
      options,
    ),
  );
  actions.forEach((action, index) => {
    const etag = answer.subResponses[index]?.etag;
    if (etag) etags.set(action.row, etag);
  });
  return etags;
}

export interface Transaction {
  readonly table: string;
  readonly partition: string;
  readonly actions: readonly Action[];
  /** Gives up on waiting; the outcome is then unknown. */
  readonly signal?: AbortSignal;
}

/** Does one conditional action and answers whether its condition held; another failure is thrown. */
export async function tryAction(storage: Storage, { table, partition }: Omit<Address, 'row'>, action: Action): Promise<boolean> {
  try {
    await submit(storage, { table, partition, actions: [action] });
    return true;
  } catch (error) {
    if (error instanceof StorageRefusal && ['exists', 'changed', 'missing'].includes(error.reason)) return false;
    throw error;
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
  if (action.kind === 'delete') return ['delete', { partitionKey: partition, rowKey: action.row }];
  return ['update', entity, action.kind === 'merge' ? 'Merge' : 'Replace', { etag: action.etag }];
}

function toRow(table: string, entity: TableEntityResult<Record<string, unknown>>): Row {
  const properties = Object.fromEntries(Object.entries(entity).filter(([name]) => !SYSTEM.has(name)));
  return { table, partition: entity.partitionKey ?? '', row: entity.rowKey ?? '', etag: entity.etag, properties };
}
