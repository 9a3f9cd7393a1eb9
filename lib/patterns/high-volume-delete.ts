import { pMapIterable } from 'p-map';
import {
  addPeriods,
  boundsOf,
  keptPeriods,
  periodOf,
  periodOfTable,
  periodsBetween,
  tableOfPeriod,
} from '../define/calendar.ts';
import { type Entity, isWrittenByClients, type Values } from '../define/entity.ts';
import type { KeyRange } from '../define/key-template.ts';
import type { Engine } from '../engine/engine.ts';
import { RowkeyError } from '../errors.ts';
import { StorageConflict, unlessRefused } from '../storage/errors.ts';
import { createTable, dropTable, listTables } from '../storage/provision.ts';
import { type Properties, type ReadBound, type Row, readRange, textLength } from '../storage/rows.ts';
import { inPattern } from '../telemetry/span.ts';

/**
 * High volume delete pattern: each calendar period has a table, so that all rows of a period are deleted in one storage
 * operation.
 */

const PERIODS_CONCURRENCY = 8;

/** The tables of the current and the next period: a table exists before its period begins. */
export function tablesToCome({ table, period }: Entity, now: number): string[] {
  if (!period) return [];
  const current = periodOf(period.per, now);
  return [current, addPeriods(period.per, current, 1)].map((each) => tableOfPeriod(table, each));
}

/** Throws `invalid-input` if the table of the row's period has been dropped, or the period is after the next one. */
export function checkPeriod(entity: Entity, values: Values, now: number): void {
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

/** Runs a write. If the table of its period does not exist, because the timer is late, creates the table and writes again. */
export async function withPeriodTable<Result>(
  engine: Engine,
  table: string,
  write: () => Promise<Result>,
): Promise<Result> {
  try {
    return await write();
  } catch (error) {
    if (!(error instanceof StorageConflict) || !error.reason.startsWith('table')) throw error;
    if (error.reason === 'table-missing') await unlessBeingDeleted(createTable(engine.storage, table));
    return write().catch((again: unknown) => {
      if (!(again instanceof StorageConflict) || !again.reason.startsWith('table')) throw again;
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
  return (await unlessRefused(['table-missing', 'table-being-deleted'], read)) ?? otherwise;
}

/**
 * Creates the tables of the current and the next period and drops every table of a period past retention, however many runs
 * were missed. Runs may be late, repeated or concurrent. Only tables whose name is a period of this entity are dropped.
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

export interface PeriodsQuery {
  readonly partition: string;
  /** In the order of their rows. */
  readonly periods: readonly string[];
  /** The key of the last row already read. */
  readonly after?: { readonly period: string; readonly row: string } | undefined;
  readonly bounds: KeyRange;
  readonly where?: Properties | undefined;
  readonly orVersionBefore?: number | undefined;
  readonly select?: readonly string[] | undefined;
  readonly limit: number;
  readonly bound: ReadBound;
}

/**
 * The periods that a range query reads, in the order of the rows. The key of the partition may contain the period; bounds
 * limit the periods if they are bounds of the field that chooses the period.
 */
export function periodsToRead(
  entity: Entity,
  {
    key,
    from,
    to,
    now,
  }: {
    readonly key: Values;
    readonly from?: string | undefined;
    readonly to?: string | undefined;
    readonly now: number;
  },
): string[] {
  if (!entity.period) return [];
  const { field, per } = entity.period;
  const kept = keptPeriods(entity.period, now);
  const ofBound = (name: 'from' | 'to', bound: string) => {
    const period = periodOf(per, bound);
    if (period !== undefined) return period;
    throw new RowkeyError('invalid-input', `"${name}" is not a date.`, {
      field: name,
      accepted: 'an ISO date, such as 2026-11-20',
    });
  };
  const isInPartition = entity.partition.fields.includes(field);
  const isBounded = entity.row.parts[0]?.field === field;
  const own = isInPartition ? periodOf(per, String(key[field])) : undefined;
  const firstRead = own ?? (isBounded && from !== undefined ? ofBound('from', from) : kept.first);
  const lastRead = own ?? (isBounded && to !== undefined ? ofBound('to', to) : kept.last);
  const periods = periodsBetween(
    per,
    firstRead > kept.first ? firstRead : kept.first,
    lastRead < kept.last ? lastRead : kept.last,
  );
  return isBounded && entity.row.parts[0]?.newestFirst ? periods.toReversed() : periods;
}

/** Reads a partition through the tables of several periods: one query a period, several concurrently. */
export async function readPeriods(
  { storage }: Engine,
  entity: Entity,
  query: PeriodsQuery,
): Promise<{ rows: Row[]; more: boolean }> {
  const { partition, after, bounds, where, orVersionBefore, select, limit, bound } = query;
  // The period of the last row may have been dropped since.
  const isDescending = (query.periods[0] ?? '') > (query.periods.at(-1) ?? '');
  const periods = query.periods.filter(
    (period) => !after || (isDescending ? period <= after.period : period >= after.period),
  );
  const readPeriod = async (period: string) => {
    const table = tableOfPeriod(entity.table, period);
    const read = after?.period === period ? after.row : undefined;
    const filter = { type: isWrittenByClients(entity) ? undefined : entity.name, where, orVersionBefore };
    const range = { table, partition, ...bounds, after: read, ...filter, select, limit, bound };
    return { period, ...(await unlessTableMissing(readRange(storage, range), { rows: [], more: false })) };
  };
  const rows: Row[] = [];
  let length = 0;
  for await (const result of pMapIterable(periods, readPeriod, { concurrency: PERIODS_CONCURRENCY })) {
    rows.push(...result.rows);
    const isLast = result.period === periods.at(-1);
    length += result.rows.reduce((sum, { properties }) => sum + textLength(properties), 0);
    // A period with more rows ends the page, even if the page has room for rows of later periods.
    if (result.more || rows.length >= limit || length >= bound.length)
      return { rows: rows.slice(0, limit), more: rows.length > limit || result.more || !isLast };
  }
  return { rows, more: false };
}

/** The service drops a table in the background and rejects requests for it meanwhile; the next run finds it gone. */
function unlessBeingDeleted(call: Promise<void>): Promise<void> {
  return unlessRefused(['table-being-deleted'], call);
}
