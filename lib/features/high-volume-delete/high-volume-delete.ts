import { z } from 'zod';
import { RowkeyError } from '../../base/errors.ts';
import { MINUTE_MS } from '../../base/time.ts';
import type { Values } from '../../base/values.ts';
import type { Engine } from '../../define/declaration/engine.ts';
import { type Entity, type Feature, hasRowsBeside, type Remembered } from '../../define/declaration/entity.ts';
import {
  addPeriods,
  boundsOf,
  CALENDAR_UNITS,
  keptPeriods,
  PERIOD_DIGITS,
  periodOf,
  periodOfTable,
  tableOfPeriod,
} from '../../define/keys/calendar.ts';
import { tablesOf } from '../../define/places/index-entries.ts';
import { fieldSchemas, isInstant } from '../../define/schema/field-schema.ts';
import { unlessBeingDeleted } from '../../engine/period-tables.ts';
import { searchForeign } from '../../engine/search-foreign.ts';
import { createTable, dropTable, listTables } from '../../storage/provision.ts';
import { inPattern } from '../../telemetry/span.ts';
import { archivePeriod, deleteUnfinished, listPeriodArchives } from './period-archive.ts';

/**
 * High volume delete pattern: each calendar period has a table, so that all rows of a period are deleted in one storage
 * operation. The rows may be archived before: see period-archive.ts.
 */
export const highVolumeDelete: Feature = {
  name: 'high volume delete',
  isUsed: ({ period }) => period !== undefined,
  validate: validationErrors,
  memory: {
    remember(entity, before) {
      const { units } = parseMemory(before);
      const per = entity.period?.per;
      return { period: entity.period, formerUnits: [...units].filter((unit) => unit !== per) };
    },
    refuse: ({ period }, before) => periodChanges(parseMemory(before).period, period),
    leftTables(remembered, entity) {
      const { units, table } = parseMemory(remembered);
      if (entity?.period) units.delete(entity.period.per);
      return units.size === 0
        ? undefined
        : (name) => [...units].some((unit) => periodOfTable(unit, table, name) !== undefined);
    },
  },
  layout: {
    periods: {
      check: checkPeriod,
      tables: (entity, now) => (now === undefined ? [] : tablesToCome(entity, now)),
    },
  },
  timer: {
    name: 'roll-periods',
    // Hourly, because a large table is archived in several runs.
    schedule: '0 5 * * * *',
    async run(engine, entity, { until, log }) {
      const { dropped, archiving, searching, shared } = await rollPeriods(engine, entity, { until });
      const counts = [`dropped: ${dropped.length}`, `still being archived: ${archiving.length}`];
      if (searching.length > 0) counts.push(`still being searched for rows of other programs: ${searching.length}`);
      log(`${entity.name}: number of tables ${counts.join(', ')}.`);
      if (shared.length > 0)
        log(
          `${entity.name}: past retention and not dropped, because another program has rows there: ${shared.join(', ')}. Move these rows to a table of their own.`,
        );
    },
  },
};

/**
 * A writer whose clock was before the end of retention has finished by then, also if its clock is late. No row is written to a
 * table that is being archived.
 */
const ARCHIVE_AFTER_MS = 2 * MINUTE_MS;

const Unit = z.enum(CALENDAR_UNITS);
const Memory = z.object({
  table: z.string().default(''),
  period: z
    .object({ per: Unit, field: z.string(), keep: z.number(), archiveTo: z.literal('blob').optional() })
    .optional(),
  formerUnits: z.array(Unit).default([]),
  /** The period in the form of releases without months and years. */
  perDay: z.object({ field: z.string(), keepDays: z.number() }).optional(),
});

/** Parses what earlier deployments stored, with the units of all periods that they had. */
function parseMemory(remembered: Remembered) {
  const { perDay, formerUnits, ...memory } = Memory.parse(remembered);
  const period = perDay ? { per: 'day' as const, field: perDay.field, keep: perDay.keepDays } : memory.period;
  return { table: memory.table, period, units: new Set([...formerUnits, ...(period ? [period.per] : [])]) };
}

function* periodChanges(before: Entity['period'], now: Entity['period']): Generator<string> {
  const isChosenAsBefore = before?.per === now?.per && before?.field === now?.field;
  if (!isChosenAsBefore)
    yield `the tables changed from ${describeTables(before)} to ${describeTables(now)}; stored rows would not be found or dropped`;
  else if (before && now && now.keep < before.keep)
    yield `retention would shrink from ${before.keep} to ${now.keep} ${now.per}s and drop ${before.keep - now.keep} tables`;
  if (isChosenAsBefore && before?.archiveTo && !now?.archiveTo)
    yield 'archiveTo was removed; tables past retention would be dropped without an archive';
}

function describeTables(period: Entity['period']): string {
  return period ? `one for each ${period.per} of "${period.field}"` : 'one table';
}

/** A hundred years. */
const MAX_KEEP = { day: 36_500, month: 1_200, year: 100 };

function* validationErrors(entity: Entity, { entities }: { readonly entities: readonly Entity[] }): Generator<string> {
  const { period, archive, movable, keyFields, schema, features, access, attachments } = entity;
  if (!period) return;
  const { field, keep, per, archiveTo } = period;
  if (!CALENDAR_UNITS.includes(per)) {
    yield `period.per is "${per}". Use one of ${CALENDAR_UNITS.map((unit) => `"${unit}"`).join(', ')}.`;
    return;
  }
  const others = features.filter(hasRowsBeside).map(({ name }) => name);
  if (archive) others.push('archive');
  if (movable.length > 0) others.push('movable');
  if (others.length > 0)
    yield `an entity with a period cannot use ${others.join(', ')}, because its tables are dropped as a whole. Remove period, or ${others.join(', ')}.`;
  if (access.own)
    yield 'an entity with a period cannot be granted (access.own), because a grant names one table. Remove period or access.own.';
  if (archiveTo !== undefined && archiveTo !== 'blob') yield `period.archiveTo is "${archiveTo}". Use "blob".`;
  if (archiveTo !== undefined && Object.keys(attachments).length > 0)
    yield `period.archiveTo cannot be combined with the attachments ${Object.keys(attachments).join(', ')}: an archive has rows, and the files would be deleted with the table. Remove archiveTo or the attachments.`;
  if (!Number.isInteger(keep) || keep < 1 || keep > MAX_KEEP[per])
    yield `period.keep is ${keep}. Use a whole number of ${per}s from 1 to ${MAX_KEEP[per]}.`;
  if (!keyFields.includes(field))
    yield `period.field "${field}" is not in the key, so the key would not tell the table. Name a key field.`;
  const type = fieldSchemas(schema)[field];
  const { span } = entity.series ?? {};
  // A day of a series tells its month, and a month its year.
  const isPeriod = span?.field === field && CALENDAR_UNITS.indexOf(span.per) <= CALENDAR_UNITS.indexOf(per);
  if (!isPeriod && (!type || !isInstant(type)))
    yield `period.field "${field}" is not an instant. Declare it as z.iso.datetime(), z.iso.date() or a pattern that begins with a day.`;
  for (const other of entities.filter((one) => one !== entity))
    for (const table of tablesOf(other))
      if (isLikePeriod(entity, table) || (table === other.table && isLikePeriod(entity, withDigits(other))))
        yield `a table for a ${per} could have the name of the table "${table}" of "${other.name}", and would be dropped with it. Give "${other.name}" a table name other than "${entity.table}", with or without digits after it.`;
}

/** True if a table could be one of the entity by its name, also for a period that no calendar has. */
function isLikePeriod({ table, period }: Entity, name: string): boolean {
  return (
    name === table || (period !== undefined && new RegExp(`^${table}\\d{${PERIOD_DIGITS[period.per]}}$`).test(name))
  );
}

/** The name of the table, with zeros for the digits of its period. */
function withDigits({ table, period }: Entity): string {
  return period ? table + '0'.repeat(PERIOD_DIGITS[period.per]) : table;
}

/** The tables of the current and the next period. A table is created before its period begins. */
function tablesToCome({ table, period }: Entity, now: number): string[] {
  if (!period) return [];
  const current = periodOf(period.per, now);
  return [current, addPeriods(period.per, current, 1)].map((each) => tableOfPeriod(table, each));
}

interface RolledPeriods {
  readonly created: string[];
  readonly dropped: string[];
  /** Tables whose archive is not finished. */
  readonly archiving: string[];
  /** Tables in which the search for rows of other programs is not finished. */
  readonly searching: string[];
  /** Tables past retention that stay, because they have rows of another program. */
  readonly shared: string[];
}

/**
 * Creates the tables of the current and the next period, and drops the tables of all periods past retention, also those that
 * missed runs left. With `archiveTo`, a table is archived before it is dropped; nothing is begun after `until` (milliseconds).
 * Runs may be late, repeated or concurrent. Tables that are not a period of this entity, or have rows of another program, are never dropped.
 */
export const rollPeriods = inPattern(
  'high volume delete',
  async (
    engine: Engine,
    entity: Entity,
    { until = Number.POSITIVE_INFINITY }: { readonly until?: number } = {},
  ): Promise<RolledPeriods> => {
    if (!entity.period) return { created: [], dropped: [], archiving: [], searching: [], shared: [] };
    const { per, archiveTo } = entity.period;
    const now = engine.now();
    const created = tablesToCome(entity, now);
    for (const table of created) await unlessBeingDeleted(createTable(engine.storage, table));
    const { first } = keptPeriods(entity.period, archiveTo ? now - ARCHIVE_AFTER_MS : now);
    const archives = archiveTo ? await listPeriodArchives(engine.storage, entity.name) : [];
    await deleteUnfinished(
      engine.storage,
      archives.filter(({ period }) => period >= first),
    );
    const dropped: string[] = [];
    const archiving: string[] = [];
    const searching: string[] = [];
    const shared: string[] = [];
    for (const table of await listTables(engine.storage, entity.table)) {
      const period = periodOfTable(per, entity.table, table);
      if (period === undefined || period >= first) continue;
      const found = await searchForeign(engine, table, until);
      if (found !== 'none') {
        (found === 'found' ? shared : searching).push(table);
        continue;
      }
      if (archiveTo && !(await archivePeriod(engine, entity, { table, period, archives, until }))) {
        archiving.push(table);
        continue;
      }
      await unlessBeingDeleted(dropTable(engine.storage, table));
      dropped.push(table);
    }
    return { created, dropped, archiving, searching, shared };
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
