import type { Entity } from '../define/declaration/entity.ts';
import { boundsOf, keptPeriods, periodOfTable } from '../define/keys/calendar.ts';
import type { Engine } from '../engine/engine.ts';
import { listTables } from '../storage/provision.ts';

interface PeriodTable {
  readonly entity: string;
  /** The name in the account. */
  readonly table: string;
  /** A day, a month or a year, in UTC. */
  readonly period: string;
  /** When the period began, in milliseconds. */
  readonly from: number;
  /** Past retention: the timer archives or deletes it at its next run. */
  readonly isDue: boolean;
}

/** Lists the tables of all periods, the oldest first for each entity. One storage transaction per entity with a period. */
export async function listPeriodTables(engine: Engine, entities: readonly Entity[]): Promise<PeriodTable[]> {
  const listed = await Promise.all(
    entities.map(async ({ name, table: declared, period: kept }) => {
      if (!kept) return [];
      const { first } = keptPeriods(kept, engine.now());
      return (await listTables(engine.storage, declared)).flatMap((table) => {
        const period = periodOfTable(kept.per, declared, table);
        if (period === undefined) return [];
        const from = Date.parse(boundsOf(kept.per, period).first);
        return [{ entity: name, table: engine.storage.table(table).tableName, period, from, isDue: period < first }];
      });
    }),
  );
  return listed.flat();
}
