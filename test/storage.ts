import { fileURLToPath } from 'node:url';
import { inject } from 'vitest';
import type { MemoryServer } from './memory-server.ts';

/** In place of a file: the second account of the files that need two. */
export const SECOND_ACCOUNT = new URL('second-account', import.meta.url).href;

/** In place of files: two more accounts of the walk, and of the racing writers. */
export const WALK_ACCOUNTS = ['walk-second', 'walk-third'].map((name) => new URL(name, import.meta.url).href);
/** In place of files: the accounts of the backups of apps. */
export const BACKUP_ACCOUNTS = {
  lookingBack: new URL('backup-looking-back', import.meta.url).href,
  console: new URL('backup-console', import.meta.url).href,
};
/** In place of files: one account of the doors' app, and three. */
export const DOOR_ACCOUNTS = ['doors', 'doors-first', 'doors-second', 'doors-third'].map(
  (name) => new URL(name, import.meta.url).href,
) as [string, string, string, string];
const restoreAccounts = (app: string) =>
  ['first', 'second', 'third'].map((name) => new URL(`restore-${app}-${name}`, import.meta.url).href) as [
    string,
    string,
    string,
  ];
/** In place of files: three accounts into which everything of an app is imported. An account serves the model of one app alone. */
export const RESTORE_ACCOUNTS = {
  directory: restoreAccounts('directory'),
  everything: restoreAccounts('everything'),
  groups: restoreAccounts('groups'),
};
export const RACE_ACCOUNTS = ['race', 'race-second', 'race-third'].map((name) => new URL(name, import.meta.url).href);

/** Returns the connection string of the storage account of a test file, which may be in memory; pass `import.meta.url`. */
export function testStorage(url: string): string {
  const accounts = inject('storage');
  const path = fileURLToPath(url);
  const connection = accounts === 'memory' ? accounts : accounts[path];
  if (!connection) throw new Error(`No storage account was made for ${url}: is it a test file?`);
  return connection === 'memory' ? memoryServer().open(path.replaceAll(/\W/g, '')) : connection;
}

/** Started once by each process of the run (memory-setup.ts). */
const kept = globalThis as { memoryServer?: MemoryServer };

function memoryServer(): MemoryServer {
  if (!kept.memoryServer) throw new Error('This project has no storage in memory.');
  return kept.memoryServer;
}
