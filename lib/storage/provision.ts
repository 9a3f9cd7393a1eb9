import pMap from 'p-map';
import { storageCall, storageCalls, unlessMissing } from './errors.ts';
import { isExplained } from './explain.ts';
import type { Storage } from './storage.ts';

export interface Resources {
  readonly tables: readonly string[];
  readonly queues: readonly string[];
  readonly containers: readonly string[];
}

const CONCURRENCY = 8;

/** Creates what is not there yet. In Azure the template does this; on one machine and in tests this does. */
export async function provision(storage: Storage, { tables, queues, containers }: Resources): Promise<void> {
  await pMap(tables, (table) => createTable(storage, table), { concurrency: CONCURRENCY });
  await pMap(queues, (queue) => storageCall(storage.queue(queue).createIfNotExists()), { concurrency: CONCURRENCY });
  await pMap(containers, (container) => storageCall(storage.blobs.getContainerClient(container).createIfNotExists()), {
    concurrency: CONCURRENCY,
  });
}

/** Creates a table; one that is there is left as it is. */
export async function createTable(storage: Storage, table: string): Promise<void> {
  if (isExplained(() => ({ write: 'table', table, does: 'create' }))) return;
  await storageCall(storage.table(table).createTable());
}

/** Drops a table with everything in it: one storage operation. */
export async function dropTable(storage: Storage, table: string): Promise<void> {
  if (isExplained(() => ({ write: 'table', table, does: 'drop' }))) return;
  await unlessMissing(storage.table(table).deleteTable());
}

/** The names of the tables that begin with `prefix`, in order. */
export async function listTables(storage: Storage, prefix: string): Promise<string[]> {
  const filter = `TableName ge '${prefix}' and TableName lt '${prefix}~'`;
  const tables = storageCalls(storage.tables.listTables({ queryOptions: { filter } }));
  return Array.fromAsync(tables, ({ name = '' }) => name);
}
