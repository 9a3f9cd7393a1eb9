import { pMapIterable } from 'p-map';
import { hasCode, RowkeyError } from '../../base/errors.ts';
import { mapValues, pick, type Stored, type Values, WrongValue } from '../../base/values.ts';
import { currentValues, storedNames } from '../../define/codec/entity-codec.ts';
import { groupsToRead, joinRows, typesToRead, withoutApart } from '../../define/codec/further-rows.ts';
import {
  comparedFields,
  type Filter,
  matches,
  rowFilterOf,
  type Selection,
  withKeyOfReferences,
} from '../../define/codec/query.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { expiryFields, hasExpired } from '../../define/declaration/expiry.ts';
import { keptPeriods, periodOf, periodOfTable, periodsBetween, tableOfPeriod } from '../../define/keys/calendar.ts';
import { buildKey, type KeyRange, keyRange, prefixOfChildren, rangeOfPrefix } from '../../define/keys/key-template.ts';
import { addressOf } from '../../define/places/index-entries.ts';
import { listTables } from '../../storage/provision.ts';
import {
  MAX_TRANSACTION_ACTIONS,
  type ReadBound,
  type Row,
  type RowPage,
  readRange,
  textLength,
} from '../../storage/rows.ts';
import { inPattern } from '../../telemetry/span.ts';
import type { Engine } from '../engine.ts';
import { unlessTableMissing } from '../period-tables.ts';
import { bindToKey, type Position, requireSameKey, startOf } from './continuation.ts';
import {
  beingRekeyed,
  declarationOf,
  entityIn,
  notFound,
  readEntityRange,
  readLive,
  scanEntityRows,
} from './entity-rows.ts';
import { PAGE_LENGTH, readBound, rowLength, valuesLength, withinPage } from './page-length.ts';

/** Reads by key and by range. Only `scanEntities` reads a whole table. */

export interface Page<Item = Values, At = Position> {
  readonly items: readonly Item[];
  /** Pass it as `after` to read the next page; undefined after the last one. */
  readonly next: At | undefined;
}

/** The most items of a page of a range. */
const MAX_CHILDREN = 1_000;

export interface PageOptions<At = Position> {
  readonly after?: At | undefined;
  /** The most items of the page. A page may have fewer, because its bytes are limited too. */
  readonly top: number;
}

interface ScanOptions extends PageOptions {
  readonly select?: readonly string[] | undefined;
  /** Only entities that match. Storage reads every row of the range. */
  readonly where?: Filter | undefined;
  /** True to read an entity that lost a further row without its fields, for a write. Otherwise the read throws `needs-repair`. */
  readonly mayLackRows?: boolean | undefined;
  /** True to read an entity that lost a further row with wrong values in place of its fields. */
  readonly marksLost?: boolean | undefined;
}

interface RangeOptions extends ScanOptions {
  /** Inclusive bounds of the first field of the row key; each is a prefix. */
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

/** A point query: one transaction. With `select`, reads only what these fields need. Throws `not-found`. */
export const readEntity = inPattern(
  'point query',
  async (
    engine: Engine,
    entity: Entity,
    key: Values,
    { select: asked }: { readonly select?: readonly string[] | undefined } = {},
  ): Promise<Stored> => {
    const { wanted, select } = projectionOf(entity, { select: asked });
    const found = await readLive(
      engine,
      entity,
      { ...addressOf(entity, key), select },
      { fields: wanted, isWhole: true },
    );
    if (!found || hasExpired(entity, found.values, engine.now())) throw notFound(entity, key);
    return { etag: found.etag, values: selectValues(entity, found.values, wanted) };
  },
);

/** Without `wanted`, leaves out the fields that are apart: a row of an earlier declaration has all. */
function selectValues(entity: Entity, values: Values, wanted: readonly string[] | undefined): Values {
  return wanted ? pick(values, wanted) : withoutApart(entity, values);
}

interface ChildrenOptions {
  /** The fields of the entity, without it all; and of each kind, without it all except large fields. */
  readonly select?: Selection;
  /** The filter of each kind by its name. */
  readonly where?: Readonly<Record<string, Filter | undefined>>;
  /** Called with the entity before anything is said of its children. */
  readonly check?: (values: Values) => void | Promise<void>;
}

/**
 * Reads an entity with its children of these kinds in one range query. Throws `not-found`, and `too-large` if the children
 * exceed a page, because a caller could mistake a part of them for all.
 */
export const readWithChildren = inPattern(
  'compound key',
  async (
    engine: Engine,
    entity: Entity,
    key: Values,
    kinds: readonly Entity[],
    { select = {}, where = {}, check }: ChildrenOptions = {},
  ): Promise<Stored> => {
    const { table, partition, row } = addressOf(entity, key);
    const prefix = prefixOfChildren(entity.row, row);
    const { before } = rangeOfPrefix(prefix);
    const all = [entity, ...kinds];
    const fields = new Map(
      all.map((kind) => {
        const asked = select[kind.name] ?? (kind === entity ? undefined : listedFields(kind));
        return [kind, asked && withKeyOfReferences(kind, asked)];
      }),
    );
    // An upgrade, and the check of a row that a client wrote, need the whole row.
    const isWhole =
      all.some((kind) => kind.version > 1 || kind.isWrittenByClients) ||
      [...fields.values()].every((names) => names === undefined);
    const columns = ({ columns }: Entity) => Object.keys(columns);
    const compared = (kind: Entity) => comparedFields(where[kind.name]);
    const stored = all.flatMap((kind) =>
      storedNames(kind, [...(fields.get(kind) ?? columns(kind)), ...compared(kind), ...expiryFields(kind)]),
    );
    const read = isWhole ? undefined : [...new Set(stored)];
    // If the children's keys escape a `_` of the parent's key, they do not sort after the parent, which then takes its own read.
    const isBeside = prefix.startsWith(row);
    const names = fields.get(entity);
    const groups = groupsToRead(entity, names);
    const [, ...further] = typesToRead(entity, names);
    const filters = all.map((kind) => {
      const filter = [...(where[kind.name] ?? []), ...ownKeyFilter(entity, key, kind)];
      return { type: kind.name, ...rowFilterOf(kind, filter) };
    });
    const range = {
      table,
      partition,
      before,
      type: [...filters, ...further],
      select: read,
      limit: MAX_CHILDREN + 1 + (groups.length > 0 ? MAX_TRANSACTION_ACTIONS : 0),
      bound: readBound(all),
    };
    const beginning = isBeside ? await readRange(engine.storage, { ...range, from: row }) : undefined;
    // Rows of other entities that storage did not leave out may fill the page before the children end.
    const isFilled = beginning?.more && beginning.rows.some((found) => found.row > row && found.row < prefix);
    const { rows, more } =
      beginning && !isFilled ? beginning : await readRange(engine.storage, { ...range, from: prefix });
    const own = beginning?.rows.find((found) => found.row === row);
    const joined = own && joinRows(entity, own, beginning?.rows ?? [], groups);
    // The parent is read by itself if it is not beside its children, or if the query met a write of it.
    const found = joined?.lost.length === 0 ? entityIn(entity, joined.row) : undefined;
    const address = { table, partition, row, select: read };
    const snapshot = found ?? (await readLive(engine, entity, address, { fields: names, isWhole: true }));
    if (!snapshot || hasExpired(entity, snapshot.values, engine.now())) throw notFound(entity, key);
    await check?.(snapshot.values);
    const beside = rows.filter((each) => each.row.startsWith(prefix));
    const children = kinds.map((kind) => ({
      kind,
      list: entitiesIn(engine, kind, beside, { where: where[kind.name], select: fields.get(kind) }),
    }));
    const items = children.flatMap(({ kind, list }) => list.map((values) => ({ kind, values })));
    const page = withinPage(items, ({ kind, values }) => valuesLength(kind, values));
    const isOver = items.length > MAX_CHILDREN || page.length < items.length;
    if (more || isOver)
      throw new RowkeyError(
        'too-large',
        `The children to include exceed ${MAX_CHILDREN} entities or ${PAGE_LENGTH} characters.`,
        { field: 'include', accepted: `GET on ${kinds.map(({ name }) => `/api/${name}`).join(' or ')}, page by page` },
      );
    const lists = Object.fromEntries(children.map(({ kind, list }) => [kind.name, list]));
    return { etag: snapshot.etag, values: { ...selectValues(entity, snapshot.values, names), ...lists } };
  },
);

/**
 * Leaves out the rows between a parent and its children: with the key `empid_1`, those of `empid_10`. The service reads an `or` of row
 * keys as a scan of the partition, so this compares the field. Empty if there are no such keys, or if not every row has the field as
 * this text.
 */
function ownKeyFilter({ row, columns }: Entity, key: Values, kind: Entity): Filter {
  const last = row.parts.at(-1);
  if (last?.after !== '' || last.hash || last.newestFirst || last.unit || last.width !== undefined) return [];
  const { field } = last;
  const isText = columns[field] === 'String' && kind.columns[field] === 'String';
  return isText ? [{ field, operator: 'eq', values: [String(key[field])] }] : [];
}

/** The default fields of a list: all except those that patterns leave out. Undefined if it is all. */
export function listedFields(entity: Entity): string[] | undefined {
  const large = entity.features.flatMap(({ stored }) => stored?.unlistedFields?.(entity) ?? []);
  const unlisted = [...large, ...entity.apartFields];
  return unlisted.length === 0 ? undefined : Object.keys(entity.columns).filter((field) => !unlisted.includes(field));
}

/** A range query within one partition; if each period has a table, within that partition of each table. */
export const readEntities = inPattern(
  'range query',
  async (engine: Engine, entity: Entity, key: Values, options: RangeOptions): Promise<Page> => {
    const { wanted } = projectionOf(entity, options);
    const { rows, next } = await readEntityRows(engine, entity, key, options);
    return { items: entitiesIn(engine, entity, rows, { where: options.where, select: wanted }), next };
  },
);

/** The rows of the same page; with `isWhole`, with all further rows. Some of them may not be entities. */
export async function readEntityRows(
  engine: Engine,
  entity: Entity,
  key: Values,
  options: RangeOptions & { readonly isWhole?: boolean },
): Promise<{ readonly rows: readonly Row[]; readonly next: Position | undefined }> {
  const there = await declarationOf(engine, entity);
  if (there !== entity) return readEntityRows(engine, there, key, optionsAtFormer(entity, there, key, options));
  const { from, to, top, after, where } = options;
  requireSameKey(entity, after);
  const partition = buildKey(entity.partition, key);
  const bounds = keyRange(entity.row, { from, to });
  const { wanted, read, select } = projectionOf(entity, options);
  const common = { partition, select, limit: top, bound: readBound([entity], read) };
  const start = { row: startOf(after), resume: after?.resume };
  const { rows, more, ...paused } = entity.period
    ? await readPeriods(engine, entity, {
        ...common,
        where,
        bounds,
        periods: periodsToRead(entity, { key, from, to, now: engine.now() }),
        after: after?.period === undefined ? undefined : { period: after.period, ...start },
      })
    : await readEntityRange(
        engine,
        entity,
        {
          table: entity.table,
          type: typeOf(entity),
          ...rowFilterOf(entity, where),
          ...common,
          ...bounds,
          after: start.row,
          mayPause: true,
          resume: start.resume,
        },
        { fields: options.isWhole ? Object.keys(entity.columns) : wanted, isWhole: !options.mayLackRows },
      );
  const page = withinPage(rows, rowLength);
  if (paused.resume !== undefined && page.length === rows.length)
    return { rows: page, next: bindToKey(entity, toPausedPosition(after, paused)) };
  const last = more || page.length < rows.length ? page.at(-1) : undefined;
  return { rows: page, next: last && toPosition(entity, last) };
}

/**
 * The options that read the entities of a partition while they are at their former key. Throws `busy` if they are in several partitions
 * there, or if the bounds are of a field by which they are not sorted there.
 */
function optionsAtFormer<Options extends RangeOptions>(
  entity: Entity,
  former: Entity,
  key: Values,
  options: Options,
): Options {
  const given = entity.partition.fields;
  const { from, to, where = [] } = options;
  const isBounded = from !== undefined || to !== undefined;
  const isSorted = entity.row.parts[0]?.field === former.row.parts[0]?.field;
  const left = given.filter((field) => !former.partition.fields.includes(field));
  // A row of an earlier version is returned whatever it has in a field.
  const isKnown =
    former.partition.fields.every((field) => given.includes(field)) && !(left.length && entity.version > 1);
  if (!isKnown || (isBounded && !isSorted)) throw beingRekeyed(entity);
  const own = left.map((field) => ({ field, operator: 'eq', values: [key[field]] }) as Filter[number]);
  return { ...options, where: [...where, ...own] };
}

/** The position after a row of a range. */
export function toPosition(entity: Entity, last: Row): Position {
  const { period, table } = entity;
  return bindToKey(entity, { row: last.row, period: period && periodOfTable(period.per, table, last.table) });
}

/** The position of a read that paused: the same read continues there, from where it began. */
function toPausedPosition(
  after: Position | undefined,
  { resume, period }: { readonly resume?: string | undefined; readonly period?: string | undefined },
): Position {
  // In another period, the read began at the beginning.
  const isSame = period === undefined || period === after?.period;
  const { row = '', partition } = (isSame && after) || {};
  return { row, partition, period, resume };
}

/** What to read for the selected and the compared fields. */
function projectionOf(entity: Entity, { select, where = [] }: Pick<ScanOptions, 'select' | 'where'>) {
  const wanted = select && withKeyOfReferences(entity, select);
  // An upgrade, and the check of a row that a client wrote, need the whole row.
  const isWhole = entity.version > 1 || entity.isWrittenByClients;
  const read =
    wanted && !isWhole ? [...new Set([...wanted, ...comparedFields(where), ...expiryFields(entity)])] : undefined;
  return { wanted, read, select: read && storedNames(entity, read) };
}

/** A table scan: reads every row of the table. Nothing else calls this implicitly. */
export const scanEntities = inPattern(
  'table scan',
  async (engine: Engine, declared: Entity, { top, after, ...options }: ScanOptions): Promise<Page> => {
    const entity = await declarationOf(engine, declared);
    if (entity.period)
      return scanPeriods(engine, entity, { top, after }, (one, page) =>
        scanEntities(engine, one, { ...options, ...page }),
      );
    requireSameKey(entity, after);
    const from = after?.partition === undefined ? undefined : { partition: after.partition, row: after.row };
    const pausing = { mayPause: true, resume: after?.resume };
    const { wanted, read, select } = projectionOf(entity, options);
    const bound = readBound([entity], read);
    const filter = { type: typeOf(entity), ...rowFilterOf(entity, options.where) };
    // Otherwise copies in the same partitions, which have the type of their entities, would fill pages.
    const rowKeys = keyRange(entity.row);
    const scan = { table: entity.table, ...filter, after: from, rowKeys, limit: top, select, bound, ...pausing };
    const { mayLackRows = false, marksLost = false } = options;
    const isWhole = !mayLackRows && !marksLost;
    const fields = wanted ?? (marksLost ? Object.keys(entity.columns) : undefined);
    const { rows, more, resume } = await scanEntityRows(engine, entity, scan, { fields, isWhole, marksLost });
    const page = withinPage(rows, rowLength);
    const items = entitiesIn(engine, entity, page, { where: options.where, select: wanted });
    const isCut = page.length < rows.length;
    const end = { last: page.at(-1), more: more || isCut, resume: isCut ? undefined : resume };
    return { items, next: positionOfScan(entity, after, end) };
  },
);

/**
 * A page of one of the tables of the kept periods, in the order of the periods. `scan` reads a page of the entity in that table, from its
 * beginning without `after`. A table that is dropped meanwhile has no rows.
 */
export async function scanPeriods(
  engine: Engine,
  entity: Entity,
  { top, after }: PageOptions,
  scan: (one: Entity, page: PageOptions) => Promise<Page>,
): Promise<Page> {
  const none: Page = { items: [], next: undefined };
  if (!entity.period) return none;
  const { per } = entity.period;
  const { first } = keptPeriods(entity.period, engine.now());
  const periods = (await listTables(engine.storage, entity.table))
    .flatMap((table) => periodOfTable(per, entity.table, table) ?? [])
    .filter((period) => period >= (after?.period ?? first))
    .toSorted();
  const [period, following] = periods;
  if (period === undefined) return none;
  const one = { ...entity, period: undefined, table: tableOfPeriod(entity.table, period) };
  const isBegun = period === after?.period && (after.partition !== undefined || after.resume !== undefined);
  const page = { top, after: isBegun ? { ...after, period: undefined } : undefined };
  const { items, next } = await unlessTableMissing(scan(one, page), none);
  if (next) return { items, next: { ...next, period } };
  return { items, next: following === undefined ? undefined : { row: '', period: following } };
}

/** The position after the last row that a scan returned, or where it paused; undefined at the end of the table. */
export function positionOfScan(
  entity: Entity,
  after: Position | undefined,
  {
    last,
    more,
    resume,
  }: { readonly last: Row | undefined; readonly more: boolean; readonly resume?: string | undefined },
): Position | undefined {
  if (resume !== undefined) return bindToKey(entity, toPausedPosition(after, { resume }));
  return more && last ? bindToKey(entity, { partition: last.partition, row: last.row }) : undefined;
}

/** The `EntityType` to filter by; undefined if clients write the rows, which may then have any type. */
export function typeOf(entity: Entity): string | undefined {
  return entity.isWrittenByClients ? undefined : entity.name;
}

function entitiesIn(
  { now }: Engine,
  entity: Entity,
  rows: readonly Row[],
  { where = [], select }: Pick<ScanOptions, 'where' | 'select'>,
): Values[] {
  return rows
    .map((row) => listedValues(entity, row))
    .filter((values) => values !== undefined)
    .filter((values) => matches(where, values) && !hasExpired(entity, values, now()))
    .map((values) => (select ? pick(values, select) : values));
}

/** A row that cannot be upgraded does not keep the others from a list: it has its key, and null in place of each other value. */
function listedValues(entity: Entity, row: Row): Values | undefined {
  try {
    return entityIn(entity, row)?.values;
  } catch (error) {
    if (!hasCode(error, 'needs-repair')) throw error;
    const key = pick(currentValues(entity, row.properties), entity.keyFields);
    return { ...mapValues(entity.columns, () => new WrongValue()), ...key };
  }
}

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
async function readPeriods(
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
    const filter = { type: entity.isWrittenByClients ? undefined : entity.name, ...rowFilterOf(entity, where) };
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
