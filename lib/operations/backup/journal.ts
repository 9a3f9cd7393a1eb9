import { randomUUID } from 'node:crypto';
import { SYSTEM_PARTITIONS } from '../../base/engine-names.ts';
import { jsonText } from '../../base/json-text.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { tablesOf } from '../../define/places/index-entries.ts';
import { POISON_TABLE } from '../../engine/consume/poison.ts';
import { BACKUP_CONTAINER, type RowJournal } from '../../storage/row-journal.ts';
import { SYSTEM_TABLE } from '../../storage/slot-row.ts';
import { accountsOf, type Storage } from '../../storage/storage.ts';
import { createAppendLog, hourOf } from '../append-log.ts';
import { JOURNAL, type JournalLine } from './format.ts';

/**
 * The journal of a backup has each transaction on rows of the app, appended after storage has executed it and before the request returns: what a
 * scan cannot see, such as values that were replaced and rows that were deleted between two snapshots.
 *
 * A process that dies between the two leaves a transaction out. Nobody has got a response to it, and the next snapshot has what it left.
 */

/** Creates the appender of a process. While the account of the backup is away, lines go to the accounts of the app. */
export function createJournal(
  { backup, storage }: { readonly backup: Storage; readonly storage: Storage },
  entities: readonly Entity[],
): RowJournal {
  const { append, catchUp } = createAppendLog<JournalLine>({
    accounts: [backup, ...accountsOf(storage)],
    container: BACKUP_CONTAINER,
    toFolder: (hour) => `${JOURNAL}/${hour}`,
    toEnd: (account) => (account === backup ? '.ndjson' : `-${account.name ?? 'app'}.ndjson`),
    toLine: (line) => ({ hour: hourOf(line.time), at: line.time, bytes: Buffer.from(`${jsonText(line)}\n`) }),
    failure: 'The backup cannot be written. No change is acknowledged until the backup has it.',
  });
  return {
    hasTable: tablesInBackup(entities),
    append: (entry) => append([{ id: randomUUID(), ...entry }]),
    catchUp,
  };
}

/**
 * Tells which tables, and of the table of the engine's own state which partitions, are in a backup. The tables of indexes and totals are not:
 * their rows follow from entities, so a restore builds them. A poison message is of work that a restore does in another way.
 */
export function tablesInBackup(entities: readonly Entity[]): RowJournal['hasTable'] {
  const own = new Set(entities.flatMap(({ table, archive }) => [table, ...(archive ? [archive.table] : [])]));
  const derived = new Set(entities.flatMap(tablesOf).filter((table) => !own.has(table)));
  return (table, partition) => {
    if (table === SYSTEM_TABLE) return partition === SYSTEM_PARTITIONS.blocked;
    return table !== POISON_TABLE && !derived.has(table);
  };
}
