import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

const FILE = 'lock';
const SQLITE_BUSY = 5;

/**
 * Locks a folder for this process. Returns a function that releases the lock, or undefined if another process holds it.
 * SQLite's lock on an empty file is an operating system lock, which ends with the process, even after SIGKILL. So a lock is
 * never stale. A file with a process id would not do, because ids are reused.
 */
export function lockFolder(folder: string): (() => void) | undefined {
  const database = new DatabaseSync(join(folder, FILE));
  try {
    database.exec('PRAGMA journal_mode = OFF; BEGIN EXCLUSIVE');
    return () => database.close();
  } catch (error) {
    database.close();
    if (error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY) return undefined;
    throw error;
  }
}
