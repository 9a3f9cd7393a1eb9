import { z } from 'zod';
import { ROW_TYPES, SYSTEM_PARTITIONS } from '../base/engine-names.ts';
import { readUnmarked } from '../storage/row-marks.ts';
import { readRow, submit, tryAction } from '../storage/rows.ts';
import { SYSTEM_TABLE } from '../storage/slot-row.ts';
import { accountsOf } from '../storage/storage.ts';
import type { Engine } from './engine.ts';
import { unlessTableMissing } from './period-tables.ts';

/** How far an unfinished search has come: the number of the account, and where it continues there. */
const Position = z.object({ Account: z.int(), From: z.string() });
const PARTITION = SYSTEM_PARTITIONS.searches;
/** Fences of moves may be among them. */
const ROWS = 100;

/**
 * Searches a table that is to be dropped for rows of other programs. Storage reads the whole table, and returns what it has found within five
 * seconds, mostly nothing: one transaction for each account of a table that takes no longer. `unfinished` after `until`, in milliseconds: the
 * next run continues, in any process.
 */
export async function searchForeign(
  { storage, now }: Pick<Engine, 'storage' | 'now'>,
  table: string,
  until = Number.POSITIVE_INFINITY,
): Promise<'none' | 'found' | 'unfinished'> {
  const at = { table: SYSTEM_TABLE, partition: PARTITION, row: table };
  const accounts = accountsOf(storage);
  let position: z.infer<typeof Position> | undefined;
  for (let index = 0, from: string | undefined; index < accounts.length; ) {
    const account = accounts[index];
    const page = account && (await unlessTableMissing(readUnmarked(account, table, { limit: ROWS, from }), undefined));
    if (page && page.rows.length > 0) return 'found';
    from = page?.next;
    if (from !== undefined && !position) {
      position = Position.safeParse((await readRow(storage, at))?.properties).data ?? { Account: index, From: from };
      [index, from] = [position.Account, position.From];
    }
    if (from === undefined) index += 1;
    else if (now() >= until) {
      const properties = { EntityType: ROW_TYPES.search, Account: index, From: from };
      await submit(storage, { ...at, actions: [{ kind: 'upsert', row: table, properties }], isRepeatable: true });
      return 'unfinished';
    }
  }
  if (position) await tryAction(storage, at, { kind: 'delete', row: table });
  return 'none';
}
