import pMap from 'p-map';
import { isOutcomeUnknown } from '../base/errors.ts';
import { askAccount, awayIn, ofAccount, storageCall, storageCalls, unlessRefused } from './errors.ts';
import { recordIfExplaining } from './explain.ts';
import { prefixTable, prefixWithHyphen } from './resource-names.ts';
import { BACKUP_CONTAINER, journalDrop, withAttempt } from './row-journal.ts';
import { accountsOf, queueIn, type Storage } from './storage.ts';

export interface Resources {
  readonly tables: readonly string[];
  readonly queues: readonly string[];
  readonly containers: readonly string[];
}

const CONCURRENCY = 8;

/** Creates missing resources on one machine and in tests, in each account; in Azure the template does. */
export async function provision(storage: Storage, { tables, queues, containers }: Resources): Promise<void> {
  const creates = accountsOf(storage).flatMap((account) => [
    ...tables.map((table) => () => account.table(table).createTable()),
    ...queues.map((queue) => () => account.queue(queue).createIfNotExists()),
    ...containers.map((container) => () => account.container(container).createIfNotExists()),
  ]);
  const { backup } = storage;
  if (backup) creates.push(() => backup.container(BACKUP_CONTAINER).createIfNotExists());
  await pMap(creates, (create) => storageCall<unknown>(create()), { concurrency: CONCURRENCY });
}

/** What the accounts have in comparison with what is needed. */
interface Compared {
  /** The resources that do not exist, as the account names them: `table employees`. */
  readonly missing: readonly string[];
  /** Other queues of the app, by their declared names. */
  readonly furtherQueues: readonly string[];
  /** Of several accounts, those that are away. */
  readonly away: readonly string[];
}

/** Compares the resources of each account that responds with those that are needed. At least three storage transactions for each account. */
export async function compareResources(storage: Storage, resources: Resources): Promise<Compared> {
  const compared = await pMap(accountsOf(storage), async (account) => {
    const { result, away } = await askAccount(account, compareAccount(account, resources));
    const { missing, furtherQueues } = result ?? { missing: [], furtherQueues: [] };
    return {
      away,
      missing: storage.accounts ? missing.map((name) => `${name} (account ${account.name})`) : missing,
      furtherQueues: furtherQueues.map((name) => queueIn(account, name)),
    };
  });
  const backup = storage.backup && (await compareBackup(storage.backup));
  return {
    missing: [...compared.flatMap(({ missing }) => missing), ...(backup?.missing ?? [])],
    furtherQueues: compared.flatMap(({ furtherQueues }) => furtherQueues),
    away: awayIn([...compared, ...(backup ? [backup] : [])]),
  };
}

async function compareBackup(
  backup: Storage,
): Promise<Pick<Compared, 'missing'> & { readonly away?: string | undefined }> {
  const container = backup.container(BACKUP_CONTAINER);
  const { result: exists, away } = await askAccount(backup, storageCall(container.exists()));
  const isMissing = away === undefined && !exists;
  return { away, missing: isMissing ? [`container ${container.containerName} (account ${backup.name})`] : [] };
}

async function compareAccount(
  account: Storage,
  { tables, queues, containers }: Resources,
): Promise<Omit<Compared, 'away'>> {
  const listed = await Promise.all([
    listTablesOf(account, ''),
    Array.fromAsync(storageCalls(account.queues.listQueues()), ({ name }) => name),
    Array.fromAsync(storageCalls(account.blobs.listContainers()), ({ name }) => name),
  ]);
  const [knownTables, knownQueues, knownContainers] = listed.map((names) => new Set(names));
  const missing = [
    ...tables.filter((name) => !knownTables?.has(name)).map((name) => `table ${account.table(name).tableName}`),
    ...queues
      .filter((name) => !knownQueues?.has(account.queue(name).name))
      .map((name) => `queue ${account.queue(name).name}`),
    ...containers
      .filter((name) => !knownContainers?.has(account.container(name).containerName))
      .map((name) => `container ${account.container(name).containerName}`),
  ];
  const start = prefixWithHyphen(account.prefix, '');
  const own = [...(knownQueues ?? [])].filter((name) => name.startsWith(start)).map((name) => name.slice(start.length));
  return { missing, furtherQueues: own.filter((name) => !queues.includes(name)) };
}

/** Creates a table unless it exists, in each account that is there: the first write to it in another account creates it again. */
export async function createTable(storage: Storage, table: string): Promise<void> {
  if (recordIfExplaining(() => ({ write: 'table', table, does: 'create' }))) return;
  const created = accountsOf(storage).map((account) =>
    ofAccount(account, storageCall(account.table(table).createTable())),
  );
  const failures = (await Promise.allSettled(created)).flatMap((result) =>
    result.status === 'rejected' ? [result.reason] : [],
  );
  const isThere = failures.length < created.length && failures.every(isOutcomeUnknown);
  if (failures.length > 0 && !isThere) throw failures[0];
}

/** Deletes a table with all its rows, in one storage operation for each account. */
export async function dropTable(storage: Storage, table: string): Promise<void> {
  if (recordIfExplaining(() => ({ write: 'table', table, does: 'drop' }))) return;
  const drop = () =>
    pMap(accountsOf(storage), (account) =>
      ofAccount(account, unlessRefused(['missing'], account.table(table).deleteTable())),
    );
  const { attempt } = await withAttempt(drop);
  await journalDrop(storage.journal, table, attempt);
}

/** Lists the names of the app's tables that begin with `start`, in order. A table may be in some accounts only. */
export async function listTables(storage: Storage, start: string): Promise<string[]> {
  const lists = await pMap(accountsOf(storage), (account) => ofAccount(account, listTablesOf(account, start)));
  return storage.accounts ? [...new Set(lists.flat())].sort() : lists.flat();
}

async function listTablesOf(account: Storage, start: string): Promise<string[]> {
  const first = prefixTable(account.prefix, start);
  const filter = `TableName ge '${first}' and TableName lt '${first}~'`;
  const tables = storageCalls(account.tables.listTables({ queryOptions: { filter } }));
  return Array.fromAsync(tables, ({ name = '' }) => start + name.slice(first.length));
}
