import { RowkeyError } from '../errors.ts';
import { isNotProvisioned, StorageConflict, unlessRefused } from '../storage/errors.ts';
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
    if (!isGone(error)) throw error;
    if (isNotProvisioned(error)) await unlessBeingDeleted(createTable(engine.storage, table));
    return write().catch((again: unknown) => {
      if (!isGone(again)) throw again;
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
  try {
    return (await read) ?? otherwise;
  } catch (error) {
    if (!isGone(error)) throw error;
    return otherwise;
  }
}

/**
 * Ignores that a table is being deleted. The service deletes a table in the background and rejects requests for it
 * meanwhile; the next run of the timer continues.
 */
export function unlessBeingDeleted(call: Promise<void>): Promise<void> {
  return unlessRefused(['table-being-deleted'], call);
}

function isGone(error: unknown): boolean {
  return isNotProvisioned(error) || (error instanceof StorageConflict && error.reason === 'table-being-deleted');
}
