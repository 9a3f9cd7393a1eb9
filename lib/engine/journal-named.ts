import { FURTHER_ROW } from '../base/engine-names.ts';
import { rangeOfPrefix } from '../define/keys/key-template.ts';
import { journalFound, withAttempt } from '../storage/row-journal.ts';
import { type Address, type Row, readRange } from '../storage/rows.ts';
import type { Engine } from './engine.ts';
import { unlessTableMissing } from './period-tables.ts';

/**
 * Adds entities to the journal of a backup, as they are stored: their writer may have died before it did. The rows of a
 * transaction, which have the id of their write, get one line. One transaction for each entity, and none without a backup.
 */
export async function journalNamed({ storage }: Engine, named: readonly Address[]): Promise<void> {
  const { journal } = storage;
  if (!journal) return;
  const seen: Row[] = [];
  for (const { table, partition, row: from } of named) {
    const further = rangeOfPrefix(from + FURTHER_ROW);
    const { result: found, attempt } = await withAttempt(() =>
      unlessTableMissing(readRange(storage, { table, partition, from, before: further.before, isTyped: true }), {
        rows: [],
        more: false,
      }),
    );
    seen.push(...found.rows.filter(({ row }) => row === from || row.startsWith(from + FURTHER_ROW)));
    if (!found.rows.some(({ row }) => row === from))
      await journalFound(journal, { table, partition }, [{ row: from, attempt }]);
  }
  const writeOf = ({ table, partition, row, properties: { WriteId = row } }: Row) =>
    JSON.stringify([table, partition, WriteId]);
  for (const rows of Map.groupBy(seen, writeOf).values()) if (rows[0]) await journalFound(journal, rows[0], rows);
}
