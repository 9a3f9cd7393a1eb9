import { RowkeyError } from '../errors.ts';
import { StorageConflict, unlessRefused } from '../storage/errors.ts';
import { createTable } from '../storage/provision.ts';
import type { Engine } from './engine.ts';

/** Runs a write. If the table of its period does not exist, because the timer is late, creates the table and writes again. */
export async function withPeriodTable<Result>(
  engine: Engine,
  table: string,
  write: () => Promise<Result>,
): Promise<Result> {
  try {
    return await write();
  } catch (error) {
    if (!(error instanceof StorageConflict) || !error.reason.startsWith('table')) throw error;
    if (error.reason === 'table-missing') await unlessBeingDeleted(createTable(engine.storage, table));
    return write().catch((again: unknown) => {
      if (!(again instanceof StorageConflict) || !again.reason.startsWith('table')) throw again;
      throw new RowkeyError(
        'storage-unavailable',
        `The table ${table} is not ready yet. Retry in 30 seconds.`,
        { retryAfter: 30 },
        again,
      );
    });
  }
}

/** The result of a read, or `otherwise` if the table of its period has been dropped or does not exist yet. */
export async function unlessTableMissing<Result, Otherwise>(
  read: Promise<Result>,
  otherwise: Otherwise,
): Promise<Result | Otherwise> {
  return (await unlessRefused(['table-missing', 'table-being-deleted'], read)) ?? otherwise;
}

/**
 * Ignores that a table is being deleted. The service deletes a table in the background and rejects requests for it
 * meanwhile; the next run of the timer continues.
 */
export function unlessBeingDeleted(call: Promise<void>): Promise<void> {
  return unlessRefused(['table-being-deleted'], call);
}
