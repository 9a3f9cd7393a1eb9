import pMap from 'p-map';
import type { Entity } from '../define/declaration/entity.ts';
import type { Engine } from '../engine/engine.ts';
import { unlessTableMissing } from '../engine/period-tables.ts';
import { isRecorded, isShared, noteRecorded, noteShared, noteUnshared } from '../engine/shared-tables.ts';
import { askAccount } from '../storage/errors.ts';
import { readUnmarked } from '../storage/row-marks.ts';
import { accountsOf } from '../storage/storage.ts';
import { markForeign } from './model-record.ts';
import { ownRowsOf } from './resources.ts';

/**
 * Rows of other programs in tables that no declaration calls shared. Where they are found, this process reads before it writes from then on,
 * and each process that starts later, because the record says so.
 */

const CONCURRENCY = 8;
/** Clients may have written some of them. */
const ROWS = 100;

/** Records that another program has rows in the table of an entity. */
export async function recordForeign(engine: Engine, entity: Entity): Promise<void> {
  if (!isToRecord(entity)) return;
  noteShared(engine, entity.table);
  // Another process may have recorded since that there is none.
  await markForeign(engine, entity, true);
  noteRecorded(engine, entity);
}

/** A client may write any key with a grant, and the consistency check reports its rows. */
function isToRecord({ sharedTable, isWrittenByClients }: Entity): boolean {
  return !sharedTable && !isWrittenByClients;
}

/** Records that the whole table of an entity has no row of another program. */
export async function recordAlone(engine: Engine, entity: Entity): Promise<void> {
  if (entity.sharedTable || !isShared(engine, entity)) return;
  noteUnshared(engine, entity);
  await markForeign(engine, entity, false);
}

/**
 * Looks for rows of other programs, with one query for each table and account, which may find none in a large table. The consistency check
 * reads all rows. Returns notes for operators.
 */
export async function findForeign(engine: Engine, entities: readonly Entity[]): Promise<string[]> {
  const isOwnRow = ownRowsOf(entities);
  const unknown = entities.filter((entity) => !entity.period && isToRecord(entity) && !isRecorded(engine, entity));
  const byTable = Map.groupBy(unknown, ({ table }) => table);
  const found = await pMap(
    byTable,
    async ([table, some]) => {
      const looks = accountsOf(engine.storage).map(async (account) => {
        const look = unlessTableMissing(readUnmarked(account, table, { limit: ROWS }), undefined);
        const { result } = await askAccount(account, look);
        return result?.rows.some((row) => !isOwnRow(row)) ?? false;
      });
      if (!(await Promise.all(looks)).includes(true)) return [];
      for (const entity of some) await recordForeign(engine, entity);
      return some.map((entity) => describeForeign(engine, entity));
    },
    { concurrency: CONCURRENCY },
  );
  return found.flat();
}

/** What an operator should know and do. */
export function describeForeign(
  { storage }: Pick<Engine, 'storage'>,
  { name, table, isWrittenByClients }: Entity,
): string {
  const what = `The table ${storage.table(table).tableName} of ${name} has rows of another program.`;
  if (isWrittenByClients)
    return `${what} An entity that clients write with a grant cannot share its table: move these rows to a table of their own.`;
  return `${what} Each write of ${name} now reads first, so that it changes none of them. Declare sharedTable: true of ${name} if the other program keeps writing there; otherwise move its rows to a table of their own, and run the consistency check.`;
}
