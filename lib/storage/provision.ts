import pMap from 'p-map';
import { storageCall, storageCalls, unlessRefused } from './errors.ts';
import { recordIfExplaining } from './explain.ts';
import { prefixTable } from './resource-names.ts';
import type { Storage } from './storage.ts';

export interface Resources {
  readonly tables: readonly string[];
  readonly queues: readonly string[];
  readonly containers: readonly string[];
}

const CONCURRENCY = 8;

/** Creates missing resources on one machine and in tests; in Azure the template does. */
export async function provision(storage: Storage, { tables, queues, containers }: Resources): Promise<void> {
  await pMap(tables, (table) => createTable(storage, table), { concurrency: CONCURRENCY });
  await pMap(queues, (queue) => storageCall(storage.queue(queue).createIfNotExists()), { concurrency: CONCURRENCY });
  await pMap(containers, (container) => storageCall(storage.container(container).createIfNotExists()), {
    concurrency: CONCURRENCY,
  });
}

/** Returns the resources that do not exist, as the account names them: `table employees`. At least three storage transactions. */
export async function findMissing(storage: Storage, { tables, queues, containers }: Resources): Promise<string[]> {
  const listed = await Promise.all([
    listTables(storage, ''),
    Array.fromAsync(storageCalls(storage.queues.listQueues()), ({ name }) => name),
    Array.fromAsync(storageCalls(storage.blobs.listContainers()), ({ name }) => name),
  ]);
  const [knownTables, knownQueues, knownContainers] = listed.map((names) => new Set(names));
  return [
    ...tables.filter((name) => !knownTables?.has(name)).map((name) => `table ${storage.table(name).tableName}`),
    ...queues
      .filter((name) => !knownQueues?.has(storage.queue(name).name))
      .map((name) => `queue ${storage.queue(name).name}`),
    ...containers
      .filter((name) => !knownContainers?.has(storage.container(name).containerName))
      .map((name) => `container ${storage.container(name).containerName}`),
  ];
}

/** Creates a table unless it exists. */
export async function createTable(storage: Storage, table: string): Promise<void> {
  if (recordIfExplaining(() => ({ write: 'table', table, does: 'create' }))) return;
  await storageCall(storage.table(table).createTable());
}

/** Deletes a table with all its rows in one storage operation. */
export async function dropTable(storage: Storage, table: string): Promise<void> {
  if (recordIfExplaining(() => ({ write: 'table', table, does: 'drop' }))) return;
  await unlessRefused(['missing'], storage.table(table).deleteTable());
}

/** Lists the names of the app's tables that begin with `start`, in order. */
export async function listTables(storage: Storage, start: string): Promise<string[]> {
  const first = prefixTable(storage.prefix, start);
  const filter = `TableName ge '${first}' and TableName lt '${first}~'`;
  const tables = storageCalls(storage.tables.listTables({ queryOptions: { filter } }));
  return Array.fromAsync(tables, ({ name = '' }) => start + name.slice(first.length));
}
