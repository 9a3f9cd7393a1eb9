import { pMapIterable } from 'p-map';
import { RowkeyError } from '../../base/errors.ts';
import type { Values } from '../../base/values.ts';
import { type Filter, rowFilterOf } from '../../define/codec/filter.ts';
import { type Entity, isWrittenByClients } from '../../define/declaration/entity.ts';
import { keptPeriods, periodOf, periodsBetween, tableOfPeriod } from '../../define/keys/calendar.ts';
import type { KeyRange, keyRange } from '../../define/keys/key-template.ts';
import { type ReadBound, type Row, type RowPage, readRange, textLength } from '../../storage/rows.ts';
import type { Engine } from '../engine.ts';
import { unlessTableMissing } from '../period-tables.ts';

const PERIODS_CONCURRENCY = 8;

interface PeriodsQuery {
  readonly partition: string;
  /** In the order in which their rows are returned. */
  readonly periods: readonly string[];
  /** The key of the last row already read. */
  readonly after?:
    | { readonly period: string; readonly row: string | undefined; readonly resume?: string | undefined }
    | undefined;
  readonly bounds: KeyRange;
  readonly where?: Filter | undefined;
  readonly select?: readonly string[] | undefined;
  readonly limit: number;
  readonly bound: ReadBound;
}

/**
 * Returns the periods that a range query reads, in the order of the rows. If the partition key contains the period, there is
 * one. Bounds limit the periods if the field that chooses the period is first in the row key.
 */
export function periodsToRead(
  entity: Entity,
  { key, from, to, now }: Parameters<typeof keyRange>[1] & { readonly key: Values; readonly now: number },
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
): Promise<RowPage & { readonly period?: string }> {
  const { partition, after, bounds, where, select, limit, bound } = query;
  // The period of the last row may have been dropped since.
  const isDescending = (query.periods[0] ?? '') > (query.periods.at(-1) ?? '');
  const periods = query.periods.filter(
    (period) => !after || (isDescending ? period <= after.period : period >= after.period),
  );
  const readPeriod = async (period: string) => {
    const table = tableOfPeriod(entity.table, period);
    const { row: read, resume } = after?.period === period ? after : {};
    const filter = { type: isWrittenByClients(entity) ? undefined : entity.name, ...rowFilterOf(entity, where) };
    const range = { table, partition, ...bounds, after: read, resume, mayPause: true, ...filter, select, limit, bound };
    const none: RowPage = { rows: [], more: false };
    return { period, ...(await unlessTableMissing(readRange(storage, range), none)) };
  };
  const rows: Row[] = [];
  let length = 0;
  for await (const result of pMapIterable(periods, readPeriod, { concurrency: PERIODS_CONCURRENCY })) {
    rows.push(...result.rows);
    const isLast = result.period === periods.at(-1);
    length += result.rows.reduce((sum, { properties }) => sum + textLength(properties), 0);
    const { period, resume } = result;
    if (resume !== undefined && rows.length <= limit) return { rows, more: true, resume, period };
    // A period with more rows ends the page, even if the page has room for rows of later periods.
    if (result.more || rows.length >= limit || length >= bound.length)
      return { rows: rows.slice(0, limit), more: rows.length > limit || result.more || !isLast };
  }
  return { rows, more: false };
}
