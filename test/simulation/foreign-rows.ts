import { storageAccounts } from '../kit/storage.ts';
import type { Network } from './world/network.ts';

/** Rows of another program in tables and partitions of the app. Nobody copies, changes or deletes them. */

type Accounts = Network['direct'];

const TABLES = ['notes', 'folders'];
/** Scenes write rows of this partition, whose keys are between these. */
const PARTITION = 'a';
const KEYS = ['0 of each', 'z of each'];

/** In each account at the same keys, and at one of its own. */
const rowsOf = (nth: number) =>
  [...KEYS, `zz of ${nth}`].map((rowKey) => ({
    partitionKey: PARTITION,
    rowKey,
    Name: `of another program, in account ${nth}`,
  }));

const tablesOf = (accounts: Accounts) =>
  accounts.flatMap((account, nth) => {
    const storage = storageAccounts.openStorage(account);
    return TABLES.map((name) => ({ nth, name, table: storage.table(name) }));
  });

export async function placeForeignRows(accounts: Accounts): Promise<void> {
  for (const { nth, table } of tablesOf(accounts)) for (const row of rowsOf(nth)) await table.createEntity(row);
}

/** Returns a sentence for each table of an account whose rows of another program are no longer the same, and deletes them. */
export async function takeForeignRows(accounts: Accounts): Promise<string[]> {
  const problems: string[] = [];
  for (const { nth, name, table } of tablesOf(accounts)) {
    const all = await Array.fromAsync(table.listEntities());
    const found = all
      .filter(({ Name }) => Name !== undefined)
      .map(({ partitionKey = '', rowKey = '', Name }) => ({ partitionKey, rowKey, Name }));
    if (JSON.stringify(found) !== JSON.stringify(rowsOf(nth)))
      problems.push(`the rows of another program in ${name} of account ${nth} are ${JSON.stringify(found)}`);
    for (const { partitionKey, rowKey } of found) await table.deleteEntity(partitionKey, rowKey);
  }
  return problems;
}
