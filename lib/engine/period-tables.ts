import { hasCode, RowkeyError } from '../base/errors.ts';
import type { Entity } from '../define/declaration/entity.ts';
import { isTableGone, unlessRefused } from '../storage/errors.ts';
import { createTable } from '../storage/provision.ts';
import type { Engine } from './engine.ts';

/**
 * Handles the table of a period that does not exist yet or was dropped. Which table a row is in is part of its address, as its
 * partition is, so the engine itself knows periods; creating tables ahead and dropping old ones is a pattern.
 */

/**
 * Writes to the table of an entity. If the table is of a period and does not exist, because the timer is late, creates it and
 * writes again. Throws `storage-unavailable` with the conflict as its cause if it is not ready then: nothing is written.
 */
export async function withPeriodTable<Result>(
  engine: Engine,
  { period }: Pick<Entity, 'period'>,
  { table, write }: { readonly table: string; readonly write: () => Promise<Result> },
): Promise<Result> {
  try {
    return await write();
  } catch (error) {
    if (!period || !isTableGone(error)) throw error;
    if (hasCode(error, 'not-provisioned')) await unlessBeingDeleted(createTable(engine.storage, table));
    return write().catch((again: unknown) => {
      if (!isTableGone(again)) throw again;
      throw new RowkeyError('storage-unavailable', `The table ${table} is not ready yet. Retry in 30 seconds.`, {
        retryAfter: 30,
        cause: again,
      });
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
    if (!isTableGone(error)) throw error;
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
