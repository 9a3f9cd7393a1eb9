import type { Engine } from '../define/engine.ts';
import type { Entity } from '../define/entity.ts';
import { addPeriods, boundsOf, keptPeriods, periodOf, periodOfTable, tableOfPeriod } from '../define/keys/calendar.ts';
import type { Pattern } from '../define/pattern.ts';
import type { Values } from '../define/values.ts';
import { unlessBeingDeleted } from '../engine/period-tables.ts';
import { RowkeyError } from '../errors.ts';
import { createTable, dropTable, listTables } from '../storage/provision.ts';
import { inPattern } from '../telemetry/span.ts';

/**
 * High volume delete pattern: each calendar period has a table, so that all rows of a period are deleted in one storage
 * operation.
 */
export const highVolumeDelete: Pattern<Entity> = {
  name: 'high volume delete',
  isUsed: ({ period }) => period !== undefined,
  check: checkPeriod,

  timer: {
    name: 'roll-periods',
    schedule: '0 5 0 * * *',
    async run(engine, entities, { log }) {
      for (const entity of entities) {
        const { dropped } = await rollPeriods(engine, entity);
        log(`${entity.name}: ${dropped.length} tables dropped.`);
      }
    },
  },
};

/** The tables of the current and the next period. A table is created before its period begins. */
export function tablesToCome({ table, period }: Entity, now: number): string[] {
  if (!period) return [];
  const current = periodOf(period.per, now);
  return [current, addPeriods(period.per, current, 1)].map((each) => tableOfPeriod(table, each));
}

/**
 * Creates the tables of the current and the next period, and drops the tables of all periods past retention, also those that
 * missed runs left. Runs may be late, repeated or concurrent. Tables that are not a period of this entity are never dropped.
 */
export const rollPeriods = inPattern(
  'high volume delete',
  async (engine: Engine, entity: Entity): Promise<{ created: string[]; dropped: string[] }> => {
    if (!entity.period) return { created: [], dropped: [] };
    const now = engine.now();
    const created = tablesToCome(entity, now);
    for (const table of created) await unlessBeingDeleted(createTable(engine.storage, table));
    const { first } = keptPeriods(entity.period, now);
    const dropped: string[] = [];
    for (const table of await listTables(engine.storage, entity.table)) {
      const period = periodOfTable(entity.period.per, entity.table, table);
      if (period === undefined || period >= first) continue;
      await unlessBeingDeleted(dropTable(engine.storage, table));
      dropped.push(table);
    }
    return { created, dropped };
  },
);

/** Throws `invalid-input` if the table of the row's period has been dropped, or the period is after the next one. */
function checkPeriod(entity: Entity, values: Values, now: number): void {
  if (!entity.period) return;
  const { field, per } = entity.period;
  const { first, last } = keptPeriods(entity.period, now);
  const period = periodOf(per, String(values[field]));
  if (period !== undefined && period >= first && period <= last) return;
  throw new RowkeyError('invalid-input', `"${field}" is outside the ${per}s that ${entity.name} keeps.`, {
    field,
    accepted: `an instant from ${boundsOf(per, first).first} to ${boundsOf(per, last).last}`,
  });
}
