import {
  odata,
  type TableClient,
  type TableEntity,
  type TableEntityResult,
  type TransactionAction,
} from '@azure/data-tables';
import { StorageRefusal, storageCall, unlessMissing } from './errors.ts';
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

/** Reads rows of one partition in the order of their keys, `limit` at most, and says whether there may be more. */
export async function readRange(storage: Storage, range: RowRange): Promise<{ rows: Row[]; more: boolean }> {
  const { table, partition, from, after, before, type, select, limit = Number.POSITIVE_INFINITY } = range;
  let filter = odata`PartitionKey eq ${partition}`;
  filter += after === undefined ? odata` and RowKey ge ${from}` : odata` and RowKey gt ${after}`;
  if (before !== undefined) filter += odata` and RowKey lt ${before}`;
  if (type !== undefined) filter += odata` and EntityType eq ${type}`;
  const queryOptions = select ? { filter, select: ['PartitionKey', 'RowKey', ...select] } : { filter };
  const rows: Row[] = [];
  // The service may answer a short or empty page with a continuation token: only its absence is the end.
  const pages = storage
    .table(table)
    .listEntities({ queryOptions })
    .byPage({ maxPageSize: Math.min(limit, PAGE_SIZE) });
  for (;;) {
    const page = await storageCall(pages.next());
    if (page.done) return { rows, more: false };
    for (const entity of page.value) rows.push(toRow(table, entity));
    if (rows.length < limit) continue;
    return { rows: rows.slice(0, limit), more: rows.length > limit || page.value.continuationToken !== undefined };
  }
}

export interface RowRange {
  readonly table: string;
  readonly partition: string;
  /** Inclusive. */
  readonly from: string;
  /** Takes the place of `from`, exclusive: the last row already read. */
  readonly after?: string | undefined;
  /** Exclusive. */
  readonly before?: string | undefined;
  /** Rows of this `EntityType` only. */
  readonly type?: string | undefined;
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
  const [only] = actions;
  if (actions.length === 1 && only) {
    const { etag } = await storageCall(submitOne(client, { partition, action: only, options }));
    return new Map(etag ? [[only.row, etag]] : []);
  }
  const sent = actions.map((action) => toTransactionAction(partition, action));
  const { subResponses } = await storageCall(client.submitTransaction(sent, options));
  return new Map(
    actions.flatMap(({ row }, index) => {
      const etag = subResponses[index]?.etag;
      return etag ? [[row, etag] as const] : [];
    }),
  );
}

async function submitOne(client: TableClient, { partition, action, options }: OneAction): Promise<{ etag?: string }> {
  const entity = toEntity(partition, action);
  if (action.kind === 'insert') return client.createEntity(entity, options);
  if (action.kind === 'upsert') return client.upsertEntity(entity, 'Replace', options);
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

export interface Transaction {
  readonly table: string;
  readonly partition: string;
  readonly actions: readonly Action[];
  /** Gives up on waiting; the outcome is then unknown. */
  readonly signal?: AbortSignal;
}

/** Does one conditional action and answers whether its condition held; another failure is thrown. */
export async function tryAction(
  storage: Storage,
  { table, partition }: Omit<Address, 'row'>,
  action: Action,
): Promise<boolean> {
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
