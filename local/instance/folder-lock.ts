import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

const FILE = 'lock';
const SQLITE_BUSY = 5;

/**
 * Takes a folder for this process alone, and answers how to release it, or undefined where another has it.
 * The lock is that of SQLite on an empty file, which is the operating system's: it ends with the process, however that
 * ended. Nothing stale is left to be told from what is held, and no process id that another process may have by now.
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
