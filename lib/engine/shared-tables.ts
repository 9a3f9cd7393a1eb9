import { RowkeyError } from '../base/errors.ts';
import { keptFor } from '../base/once.ts';
import type { Entity } from '../define/declaration/entity.ts';
import { isMarked } from '../storage/row-marks.ts';
import type { Row } from '../storage/rows.ts';
import type { Storage } from '../storage/storage.ts';
import type { Engine } from './engine.ts';

/**
 * Tables to which other programs write, too. There, a write reads its row first, because a row of another program may have the key. In a table
 * of the app alone it does not: an entity of one row is written in one transaction.
 *
 * A declaration says `sharedTable`. A table is also known as shared since a row of another program was found in it: at the start, by the
 * consistency check, or by a read of its key.
 */

const foundIn = keptFor((_: Storage) => new Set<string>());
/** The entities whose record says so. What a read has found is in the memory of its process alone. */
const recordedIn = keptFor((_: Storage) => new Set<string>());

/** True if a write of the entity must read the row first, and each row that it would replace or delete. */
export function isShared({ storage }: Pick<Engine, 'storage'>, { table, sharedTable }: Entity): boolean {
  return sharedTable === true || foundIn(storage).has(table);
}

/** Remembers that other programs write to the table. */
export function noteShared({ storage }: Pick<Engine, 'storage'>, table: string): void {
  foundIn(storage).add(table);
}

/** Remembers that the record of an entity says so, for each process that starts later. */
export function noteRecorded({ storage }: Pick<Engine, 'storage'>, { name, table }: Entity): void {
  foundIn(storage).add(table);
  recordedIn(storage).add(name);
}

export function isRecorded({ storage }: Pick<Engine, 'storage'>, { name }: Entity): boolean {
  return recordedIn(storage).has(name);
}

/** Forgets what was found: the whole table has no row of another program. */
export function noteUnshared({ storage }: Pick<Engine, 'storage'>, { name, table }: Entity): void {
  foundIn(storage).delete(table);
  recordedIn(storage).delete(name);
}

/** Throws `needs-repair` if another program wrote the row, which has the key of a row that the engine would change. */
export function requireOwn(row: Row | undefined, of: string): void {
  if (!row || isMarked(row.properties)) return;
  throw new RowkeyError(
    'needs-repair',
    `The table ${row.table} has a row of another program at the key of ${of}. Give that row another key.`,
  );
}
