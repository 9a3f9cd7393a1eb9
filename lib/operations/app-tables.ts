import type { IsOwnRow } from '../storage/copy-rows.ts';
import { listTables } from '../storage/provision.ts';
import type { Storage } from '../storage/storage.ts';
import { rememberedTables } from './model-record.ts';
import type { AppResources } from './resources.ts';

/** Which tables of an account, and which of their rows, are of the app: another program may have some in the same account. */

export interface AppTables {
  readonly storage: Storage;
  readonly resources: Pick<AppResources, 'tables' | 'clientTables' | 'isOwnRow'>;
}

/** The tables of the app in accounts, also those of another model that was deployed, before or since. */
export async function tablesIn(
  { storage, resources }: AppTables,
  ...accounts: readonly Storage[]
): Promise<Set<string>> {
  const tables = [...resources.tables, ...(await rememberedTables(storage)).tables];
  const names = new Set([...tables, ...tables.map(withoutPeriod)]);
  const lists = await Promise.all(accounts.map((account) => listTables(account, '')));
  return new Set(lists.flat().filter((name) => names.has(name) || names.has(withoutPeriod(name))));
}

const withoutPeriod = (table: string) => table.replace(/\d+$/, '');

/**
 * Which rows of a table are of the app. What clients write has no mark, and the process may be of a release whose declaration does not tell its
 * keys: then each row is, so that none is left out.
 */
export async function ownRowsIn({ storage, resources }: AppTables, table: string): Promise<IsOwnRow> {
  const { clientTables, isOwnRow } = resources;
  const isIn = (tables: readonly string[]) => tables.includes(table) || tables.includes(withoutPeriod(table));
  return isIn(clientTables) || !isIn((await rememberedTables(storage)).clientTables) ? isOwnRow : () => true;
}
