import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { FIRST_ACCOUNT, type NamedOptions, type StorageOptions } from '../../lib/storage/storage.ts';
import { readJsonFile } from './json-file.ts';

const FILE = 'accounts.json';
/** The names of the accounts of a local instance, in their order. */
export const accountNames: readonly string[] = [
  FIRST_ACCOUNT,
  ...['second', 'third', 'fourth', 'fifth', 'sixth', 'seventh', 'eighth', 'ninth', 'tenth'],
];
/** The number of the emulator's account of the backup, from 0: it follows all others. */
export const BACKUP_NUMBER = 10;
export const MAX_ACCOUNTS = accountNames.length;

/** The number of storage accounts of a data folder, 1 at first. An account with data cannot be left out. */
export async function keepAccountCount(folder: string, wanted?: number): Promise<number> {
  const file = join(folder, FILE);
  const problem = 'is not valid: it must have the number of storage accounts, such as 3.';
  const kept = (await readJsonFile(file, z.int().min(1).max(MAX_ACCOUNTS), problem)) ?? 1;
  const count = wanted ?? kept;
  if (count < kept)
    throw new Error(
      `The data in ${folder} is in ${kept} storage accounts: start with --accounts ${kept}, or with another folder by --data.`,
    );
  if (count > kept) await writeFile(file, String(count));
  return count;
}

/** The options of storage with these connections; a single one has no name. */
export function storageOptions([first, ...further]: readonly [string, ...string[]]): StorageOptions {
  return further.length === 0 ? { connectionString: first } : { accounts: nameAccounts([first, ...further]) };
}

/** The settings of an app with these connections. */
export function storageSettings([first, ...further]: readonly [string, ...string[]]): Record<string, string> {
  const named = nameAccounts([first, ...further]).slice(1);
  if (named.length === 0) return { AzureWebJobsStorage: first };
  return {
    AzureWebJobsStorage: first,
    STORAGE_ACCOUNTS: named.map(({ name }) => name).join(' '),
    ...Object.fromEntries(named.map(({ name, connectionString }) => [name, connectionString])),
  };
}

/** The number of the account of a name, from 0. Undefined for another name. */
export function accountNumber(name: string): number | undefined {
  const found = accountNames.indexOf(name);
  return found < 0 ? undefined : found;
}

function nameAccounts(connections: readonly string[]): (NamedOptions & { readonly connectionString: string })[] {
  return connections.map((connectionString, index) => ({
    name: accountNames[index] ?? `account${index + 1}`,
    connectionString,
  }));
}
