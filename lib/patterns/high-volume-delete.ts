import { pMapIterable } from 'p-map';
import { type Entity, isWrittenByClients, type Values } from '../define/entity.ts';
import { dayTable } from '../define/index-entries.ts';
import type { KeyRange } from '../define/key-template.ts';
import type { Engine } from '../engine/engine.ts';
import { RowkeyError } from '../errors.ts';
import { StorageConflict, unlessRefused } from '../storage/errors.ts';
import { createTable, dropTable, listTables } from '../storage/provision.ts';
import { type Properties, type ReadBound, type Row, readRange, textLength } from '../storage/rows.ts';
import { inPattern } from '../telemetry/span.ts';

/**
 * High volume delete pattern: a table a day, so that a day's rows go in one storage operation. Days are those of UTC.
 */

const DAY_MS = 24 * 60 * 60 * 1_000;
const DAYS_CONCURRENCY = 8;

/** The first and last day, as ISO dates, that a row may have: those kept, and tomorrow, as clocks differ. */
export function keptDays(entity: Entity, now: number): { first: string; last: string } {
  return { first: isoDay(now - (entity.perDay?.keepDays ?? 0) * DAY_MS), last: isoDay(now + DAY_MS) };
}

/** The tables that must be there before the first write of today and of tomorrow. */
export function tablesToCome(entity: Entity, now: number): string[] {
  return [now, now + DAY_MS].map((instant) => dayTable(entity.table, isoDay(instant)));
}

/** Throws `invalid-input` where the row's day has been dropped already or has not come. */
export function checkDay(entity: Entity, values: Values, now: number): void {
  if (!entity.perDay) return;
  const { field } = entity.perDay;
  const { first, last } = keptDays(entity, now);
  const day = String(values[field]).slice(0, 10);
  if (day >= first && day <= last) return;
  throw new RowkeyError('invalid-input', `The field ${field} names a day that is not kept.`, {
    field,
    accepted: `a day from ${first} to ${last}`,
  });
}

/** Runs a write; where the day's table is not there, as the timer was late, makes it and runs the write again. */
export async function withDayTable<Result>(
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
        'The table of this day is not there yet.',
        { retryAfter: 30 },
        again,
      );
    });
  }
}

/** The answer of a read, or `otherwise` where the table of its day is gone or has not come. */
export async function unlessTableMissing<Answer, Otherwise>(
  read: Promise<Answer>,
  otherwise: Otherwise,
): Promise<Answer | Otherwise> {
  return (await unlessRefused(['table-missing', 'table-being-deleted'], read)) ?? otherwise;
}

/**
 * Makes the tables to come and drops every table of a day that is no longer kept, whatever was missed before.
 * Safe to run twice, late, or beside itself. A table that is not a day of this entity is never touched.
 */
export const rollDays = inPattern(
  'high volume delete',
  async (engine: Engine, entity: Entity): Promise<{ created: string[]; dropped: string[] }> => {
    const created = tablesToCome(entity, engine.now());
    for (const table of created) await unlessBeingDeleted(createTable(engine.storage, table));
    const { first } = keptDays(entity, engine.now());
    const dropped: string[] = [];
    for (const table of await listTables(engine.storage, entity.table)) {
      const day = dayOf(entity, table);
      if (day === undefined || day >= first) continue;
      await unlessBeingDeleted(dropTable(engine.storage, table));
      dropped.push(table);
    }
    return { created, dropped };
  },
);

/** The ISO date of a table of this entity, or undefined for any other table. */
export function dayOf(entity: Entity, table: string): string | undefined {
  const digits = table.startsWith(entity.table) ? table.slice(entity.table.length) : '';
  const [, year, month, day] = /^(\d{4})(\d{2})(\d{2})$/.exec(digits) ?? [];
  const date = `${year}-${month}-${day}`;
  return Number.isNaN(Date.parse(date)) || isoDay(Date.parse(date)) !== date ? undefined : date;
}

export interface DaysQuery {
  readonly partition: string;
  /** ISO dates, both inclusive. */
  readonly firstDay: string;
  readonly lastDay: string;
  /** The key of the last row already read. */
  readonly after?: { readonly day: string; readonly row: string } | undefined;
  readonly bounds: KeyRange;
  readonly where?: Properties | undefined;
  readonly orVersionBefore?: number | undefined;
  readonly select?: readonly string[] | undefined;
  readonly limit: number;
  readonly bound: ReadBound;
}

/** Reads a partition through the tables of many days, oldest first: one query a day, several days at once. */
export async function readDays(
  { storage }: Engine,
  entity: Entity,
  query: DaysQuery,
): Promise<{ rows: Row[]; more: boolean }> {
  const { partition, after, bounds, where, orVersionBefore, select, limit, bound } = query;
  const days = daysBetween(after && after.day > query.firstDay ? after.day : query.firstDay, query.lastDay);
  const readDay = async (day: string) => {
    const table = dayTable(entity.table, day);
    const read = after?.day === day ? after.row : undefined;
    const filter = { type: isWrittenByClients(entity) ? undefined : entity.name, where, orVersionBefore };
    const range = { table, partition, ...bounds, after: read, ...filter, select, limit, bound };
    return { day, ...(await unlessTableMissing(readRange(storage, range), { rows: [], more: false })) };
  };
  const rows: Row[] = [];
  let length = 0;
  for await (const answer of pMapIterable(days, readDay, { concurrency: DAYS_CONCURRENCY })) {
    rows.push(...answer.rows);
    const isLast = answer.day === days.at(-1);
    length += answer.rows.reduce((sum, { properties }) => sum + textLength(properties), 0);
    // A day of which there is more ends the page, though the page may have room for later days.
    if (answer.more || rows.length >= limit || length >= bound.length)
      return { rows: rows.slice(0, limit), more: rows.length > limit || answer.more || !isLast };
  }
  return { rows, more: false };
}

/** The service drops a table in the background and refuses calls on it meanwhile: the next run finds it gone. */
function unlessBeingDeleted(call: Promise<void>): Promise<void> {
  return unlessRefused(['table-being-deleted'], call);
}

function daysBetween(first: string, last: string): string[] {
  const days: string[] = [];
  for (let at = Date.parse(first); at <= Date.parse(last); at += DAY_MS) days.push(isoDay(at));
  return days;
}

function isoDay(instant: number): string {
  return new Date(instant).toISOString().slice(0, 10);
}
