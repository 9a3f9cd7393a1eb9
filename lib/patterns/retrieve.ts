import pMap from 'p-map';
import { RowkeyError } from '../errors.ts';
import { type Row, readRange, readRow, scanTable } from '../storage/rows.ts';
import type { Position } from './continuation.ts';
import type { Engine } from './engine.ts';
import type { Entity, Values } from './entity.ts';
import { fieldsToProperties, toValues } from './entity-codec.ts';
import { notFound, readLive, type Stored } from './entity-store.ts';
import { dayOf, keptDays, readDays } from './high-volume-delete.ts';
import type { Index, IndexEntity, InterPartitionIndex, IntraPartitionIndex } from './indexes.ts';
import { buildKey, buildKeys, keyRange, parseKey, prefixRange } from './key-template.ts';
import { membersOf } from './member-list.ts';
import { addressOf, isIndexed, pick, placesOf } from './places.ts';
import { isConfirmed } from './unique-claim.ts';

/** Reading: by key, a range of a partition, and through an index. Only what is called a scan reads a whole table. */

export interface Page {
  readonly items: readonly Values[];
  /** Where the next page begins, when there is more. */
  readonly next: Position | undefined;
}

export interface PageOptions {
  readonly after?: Position | undefined;
  readonly top: number;
}

export interface RangeOptions extends PageOptions {
  /** Bounds of the first field of the row key, inclusive, read as prefixes. */
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  readonly select?: readonly string[] | undefined;
  /** Only those with these values: storage looks at every row of the range for them. */
  readonly where?: Values | undefined;
}

const POINT_READS_AT_ONCE = 16;
const PARTITIONS_AT_ONCE = 16;

/** A point query: one transaction. Throws `not-found`. */
export async function readEntity(engine: Engine, entity: Entity, key: Values): Promise<Stored> {
  const found = await readLive(engine, entity, addressOf(entity, key));
  if (!found) throw notFound(entity);
  return found;
}

/** A range query within one partition, or, of an entity with a table a day, within that partition of each day. */
export async function readEntities(engine: Engine, entity: Entity, key: Values, options: RangeOptions): Promise<Page> {
  const { from, to, top, after } = options;
  const partition = buildKey(entity.partition, key);
  const bounds = keyRange(entity.row, { from, to });
  const type = entity.name;
  const where = fieldsToProperties(entity, options.where ?? {});
  const common = { partition, where, select: options.select, limit: top };
  if (!entity.perDay) {
    const range = { table: entity.table, ...common, ...bounds, after: after?.row, type };
    const { rows, more } = await readRange(engine.storage, range);
    return toPage(entity, rows, more, options.select);
  }
  const { first, last } = keptDays(entity, engine.now());
  const query = {
    ...common,
    bounds,
    firstDay: later(first, dayIn(from) ?? first),
    lastDay: earlier(last, dayIn(to) ?? last),
    after: after?.day === undefined ? undefined : { day: after.day, row: after.row },
  };
  const { rows, more } = await readDays(engine, entity, query);
  return toPage(entity, rows, more, options.select);
}

/** A table scan: reads every row of the table, and is asked for by its name or not at all. */
export async function scanEntities(engine: Engine, entity: Entity, { top, after }: PageOptions): Promise<Page> {
  if (entity.perDay)
    throw new RowkeyError('invalid-input', `${entity.name} has a table a day; they are read by partition.`);
  const from = after?.partition === undefined ? undefined : { partition: after.partition, row: after.row };
  const scan = { table: entity.table, type: entity.name, after: from, limit: top };
  const { rows, more } = await scanTable(engine.storage, scan);
  const last = rows.at(-1);
  // Copies in a partition are of the same type as what they are copies of.
  const own = rows.filter(({ properties }) => properties.SourceRow === undefined);
  const items = own.map(({ properties }) => toValues(entity, properties));
  return { items, next: more && last ? { partition: last.partition, row: last.row } : undefined };
}

function toPage(entity: Entity, rows: readonly Row[], more: boolean, select: readonly string[] | undefined): Page {
  const items = rows.map(({ properties }) => {
    const values = toValues(entity, properties);
    return select ? pick(values, select) : values;
  });
  const last = rows.at(-1);
  if (!more || !last) return { items, next: undefined };
  return { items, next: { row: last.row, ...(entity.perDay ? { day: dayOf(entity, last.table) } : {}) } };
}

/** The fields that a read through an index gives, partition first, in the order of its path. */
export function indexFields(entity: Entity, index: Index): string[] {
  const partition = index.kind === 'intra-partition' ? entity.partition : partitionOf(index, entity);
  // A bucket is found by reading all of them.
  const inPartition = partition.parts.filter(({ buckets }) => buckets === undefined).map(({ field }) => field);
  const inRow = [...index.row.fields];
  // The end of a row key that tells entities of one value apart is what is asked for, and not given.
  if (isOfMany(entity, index)) while (entity.keyFields.includes(inRow.at(-1) ?? '')) inRow.pop();
  return [...new Set([...inPartition, ...inRow])];
}

/** Whether several entities may have what the index is read by: then its rows end in their keys. */
export function isOfMany(entity: Entity, index: Index): boolean {
  if (index.kind === 'index-entity') return true;
  const isUnique = index.kind === 'inter-partition' && index.unique;
  return !isUnique && entity.keyFields.includes(index.row.fields.at(-1) ?? '');
}

/**
 * Through an index of which several rows have what is given: a range query, or one for each bucket, at once and merged.
 * The rows answer themselves where they are full or part copies; where they only refer, each entity is a second lookup.
 */
export async function readByCopies(
  engine: Engine,
  entity: Entity,
  index: IntraPartitionIndex | InterPartitionIndex,
  given: Values,
  { top, after }: PageOptions,
): Promise<Page> {
  const inside = index.kind === 'intra-partition';
  const table = inside ? entity.table : index.table;
  const partitions = inside ? [buildKey(entity.partition, given)] : buildKeys(index.partition, given);
  const range = { table, ...prefixRange(index.row, given), after: after?.row, type: entity.name, limit: top };
  const answers = await pMap(partitions, (partition) => readRange(engine.storage, { ...range, partition }), {
    concurrency: PARTITIONS_AT_ONCE,
  });
  const all = answers.flatMap(({ rows }) => rows).sort((one, other) => (one.row < other.row ? -1 : 1));
  const rows = all.slice(0, top);
  const found =
    index.copies === 'keys'
      ? await followAll(engine, entity, index, rows)
      : rows.map(({ properties }) => toValues(entity, properties));
  const last = rows.at(-1);
  const more = all.length > top || answers.some((answer) => answer.more);
  return { items: found, next: more && last ? { row: last.row } : undefined };
}

/** The entities that rows refer to; one that has moved on is left out. */
async function followAll(engine: Engine, entity: Entity, index: Index, rows: readonly Row[]): Promise<Values[]> {
  const found = await pMap(
    rows,
    ({ properties: { SourcePartition, SourceRow } }) =>
      readLive(engine, entity, { table: entity.table, partition: String(SourcePartition), row: String(SourceRow) }),
    { concurrency: POINT_READS_AT_ONCE },
  );
  return found.flatMap((one, position) => {
    const row = rows[position];
    const isHere =
      one &&
      placesOf(entity, one.values).some((place) => entity.indexes[place.index] === index && place.row === row?.row);
    return isHere ? [one.values] : [];
  });
}

function partitionOf(index: InterPartitionIndex | IndexEntity, entity: Entity) {
  return index.kind === 'inter-partition' ? index.partition : (index.elsewhere?.partition ?? entity.partition);
}

/** Through an index whose every row is one entity. One lookup where the row holds a full copy, else two. Throws `not-found`. */
export async function readByCopy(
  engine: Engine,
  entity: Entity,
  index: IntraPartitionIndex | InterPartitionIndex,
  given: Values,
): Promise<Values> {
  const inside = index.kind === 'intra-partition';
  const table = inside ? entity.table : index.table;
  const partition = buildKey(inside ? entity.partition : index.partition, given);
  const row = buildKey(index.row, given);
  const copy = await readRow(engine.storage, { table, partition, row });
  if (!copy || copy.properties.SourceRow === undefined) throw notFound(entity);
  const isData = inside || !index.unique || isConfirmed(copy);
  if (isData && index.copies === 'everything') return toValues(entity, copy.properties);
  // A claim is no data: whether its writer has committed is in the entity itself.
  const { SourcePartition, SourceRow } = copy.properties;
  const source = { table: entity.table, partition: String(SourcePartition), row: String(SourceRow) };
  const found = await readLive(engine, entity, source);
  const isThere = (values: Values) =>
    inside ||
    placesOf(entity, values).some(
      (place) => place.table === table && place.partition === partition && place.row === row,
    );
  if (!found || !isThere(found.values)) throw notFound(entity);
  return found.values;
}

/** Index entities pattern: the list, and a point query for each of its members; one that has moved on is left out. */
export async function readByList(
  engine: Engine,
  entity: Entity,
  index: IndexEntity,
  given: Values,
  options: PageOptions,
): Promise<Page> {
  const table = index.elsewhere?.table ?? entity.table;
  const partition = buildKey(partitionOf(index, entity), given);
  const row = buildKey(index.row, given);
  const members = membersOf(await readRow(engine.storage, { table, partition, row }));
  const rest = options.after ? members.filter((member) => member > (options.after?.row ?? '')) : members;
  const page = rest.slice(0, options.top);
  const found = await pMap(page, (member) => readMember(engine, entity, index, { given, member }), {
    concurrency: POINT_READS_AT_ONCE,
  });
  const last = page.at(-1);
  return {
    items: found.filter((values) => values !== undefined),
    next: last && rest.length > page.length ? { row: last } : undefined,
  };
}

async function readMember(
  engine: Engine,
  entity: Entity,
  index: IndexEntity,
  { given, member }: { given: Values; member: string },
) {
  const key = { ...given, ...parseKey(index.holds, member) };
  const found = await readLive(engine, entity, addressOf(entity, key));
  const asked = Object.entries(given).every(([field, value]) => found?.values[field] === value);
  return found && asked && isIndexed(index, found.values) ? found.values : undefined;
}

function dayIn(bound: string | undefined): string | undefined {
  if (bound === undefined) return undefined;
  const day = bound.slice(0, 10);
  if (/^\d{4}-\d{2}-\d{2}$/.test(day) && !Number.isNaN(Date.parse(day))) return day;
  throw new RowkeyError('invalid-input', 'The range is not one of days.', {
    field: 'from',
    accepted: 'an ISO date, such as 2026-11-20',
  });
}

function later(one: string, other: string): string {
  return one > other ? one : other;
}

function earlier(one: string, other: string): string {
  return one < other ? one : other;
}
