import pMap from 'p-map';
import { storedNames, toValues } from '../define/codec/entity-codec.ts';
import type { Entity } from '../define/entity.ts';
import type { CopyIndex, Index, IndexEntity } from '../define/indexes.ts';
import { addressIfAny, indexEntriesOf, isCopy, isIndexed, isUnique } from '../define/keys/index-entries.ts';
import { buildKey, buildKeys, parseKey, prefixRange } from '../define/keys/key-template.ts';
import type { IndexEntry } from '../define/remote-index.ts';
import { omit, type Values } from '../define/values.ts';
import type { Engine } from '../engine/engine.ts';
import { readBound, valuesLength, withinPage } from '../engine/read/page-length.ts';
import type { Page, PageOptions } from '../engine/read/retrieve.ts';
import { notFound, readLive } from '../engine/write/entity-store.ts';
import { isConfirmed } from '../engine/write/unique-claim.ts';
import { type Row, readRange, readRow } from '../storage/rows.ts';
import { inPattern } from '../telemetry/span.ts';
import { membersOf, readList } from './member-list.ts';

/**
 * Reads through an index: by a copy, which contains the entity or refers to it, or by a list of members. The entities of
 * references and members are read; stale entries are omitted.
 */

const POINT_READS_CONCURRENCY = 16;
/** The most entities of a page if each entity needs a point read. */
const MAX_LOOKUPS = 256;
const PARTITIONS_CONCURRENCY = 16;

export interface IndexPageOptions extends PageOptions {
  /** Large fields that are not selected are omitted; without `select` all are read. */
  readonly select?: readonly string[] | undefined;
}

/** The fields that a read through an index requires, partition first, in the order of its path. */
export function indexFields(entity: Entity, index: Index): string[] {
  const { partition } = index.remote ?? entity;
  // A read queries all buckets.
  const inPartition = partition.parts.filter(({ buckets }) => buckets === undefined).map(({ field }) => field);
  const inRow = [...index.row.fields];
  // Key fields at the end of the row key only distinguish entities with the same value, so a read does not need them.
  if (isOfMany(entity, index)) while (entity.keyFields.includes(inRow.at(-1) ?? '')) inRow.pop();
  return [...new Set([...inPartition, ...inRow])];
}

/** True if several entities may share a value of the index. The row keys then end in the keys of the entities. */
export function isOfMany(entity: Entity, index: Index): boolean {
  if (index.kind === 'index-entity') return true;
  return !isUnique(index) && entity.keyFields.includes(index.row.fields.at(-1) ?? '');
}

/**
 * Reads an index with several rows for one value: a range query, or one for each bucket, run concurrently and merged. Full
 * and partial copies are returned as they are; for references, each entity is a second lookup.
 */
export const readByCopies = inPattern(
  'secondary index',
  async (
    engine: Engine,
    entity: Entity,
    index: CopyIndex,
    given: Values,
    { top, after, select }: IndexPageOptions,
  ): Promise<Page> => {
    const { table, partition: template } = index.remote ?? entity;
    const partitions = buildKeys(template, given);
    const isReference = index.copies === 'keys';
    const limit = isReference ? Math.min(top, MAX_LOOKUPS) : top;
    const { length, rowsPerCall } = readBound([entity]);
    const bound = { length: length / partitions.length, rowsPerCall: rowsPerCall / partitions.length };
    const range = { table, ...prefixRange(index.row, given), after: after?.row, type: entity.name, limit, bound };
    const results = await pMap(partitions, (partition) => readRange(engine.storage, { ...range, partition }), {
      concurrency: PARTITIONS_CONCURRENCY,
    });
    // A bucket with unread rows limits the page: its next row may sort before rows of other buckets.
    const ends = results.flatMap(({ rows, more }) => (more ? (rows.at(-1)?.row ?? '') : []));
    const all = results.flatMap(({ rows }) => rows).filter(({ row }) => ends.every((end) => row <= end));
    const rows = all.sort((one, other) => (one.row < other.row ? -1 : 1)).slice(0, limit);
    // The key of an entity may have the same form as that of a copy.
    const entityOf = (row: Row) => {
      if (!isCopy(row)) return undefined;
      return isReference
        ? follow(engine, entity, index, { row, select })
        : withSelected(entity, toValues(entity, row.properties), select);
    };
    const { items, last } = await fillPage(rows, entityOf);
    const more = last !== rows.at(-1) || all.length > rows.length || ends.length > 0;
    return { items, next: more && last ? { row: last.row } : undefined };
  },
);

/** Reads the entities of index keys, in order, until the page is full. `last` is the last key of the page. */
async function fillPage<Key>(
  keys: readonly Key[],
  entityOf: (key: Key) => Promise<Values | undefined> | Values | undefined,
): Promise<{ items: Values[]; last: Key | undefined }> {
  const found: { key: Key; values: Values | undefined }[] = [];
  while (found.length < keys.length) {
    const some = keys.slice(found.length, found.length + POINT_READS_CONCURRENCY);
    found.push(...(await Promise.all(some.map(async (key) => ({ key, values: await entityOf(key) })))));
    const page = withinPage(found, ({ values }) => (values ? valuesLength(values) : 0));
    if (page.length === found.length && found.length < keys.length) continue;
    const items = page.map(({ values }) => values).filter((values) => values !== undefined);
    return { items, last: page.at(-1)?.key };
  }
  return { items: [], last: undefined };
}

/** Returns the entity that an index row refers to, or undefined if the entity no longer matches. */
async function follow(
  engine: Engine,
  entity: Entity,
  index: CopyIndex,
  { row, select }: { row: Row; select?: readonly string[] | undefined },
): Promise<Values | undefined> {
  const { SourcePartition, SourceRow } = row.properties;
  const source = { table: entity.table, partition: String(SourcePartition), row: String(SourceRow) };
  const found = await readLive(engine, entity, { ...source, select: projection(entity, index, select) });
  const isRow = (indexEntry: IndexEntry) =>
    indexEntry.table === row.table && indexEntry.partition === row.partition && indexEntry.row === row.row;
  // A copy in the partition changes in the same transaction as its entity.
  const isHere = !index.remote || indexEntriesOf(entity, found?.values).some(isRow);
  return isHere && found ? withSelected(entity, found.values, select) : undefined;
}

/** The properties to read for a list, without large fields that are not selected; undefined for all. */
function projection(entity: Entity, index: Index, select: readonly string[] | undefined): string[] | undefined {
  const large = entity.large.filter((field) => !select?.includes(field) && !index.uses.includes(field));
  // An upgrade needs the whole row, and a condition may use any field.
  if (!select || large.length === 0 || entity.version > 1) return undefined;
  if (Object.values(entity.indexes).some(({ when }) => when)) return undefined;
  return storedNames(
    entity,
    Object.keys(entity.columns).filter((field) => !large.includes(field)),
  );
}

/** Omits large fields that are not selected. Other fields may be needed to present the selected ones. */
function withSelected(entity: Entity, values: Values, select: readonly string[] | undefined): Values {
  return select
    ? omit(
        values,
        entity.large.filter((field) => !select.includes(field)),
      )
    : values;
}

/** Reads an index with one entity per row: one lookup for a full copy, else two. Throws `not-found`. */
export const readByCopy = inPattern(
  'secondary index',
  async (engine: Engine, entity: Entity, index: CopyIndex, given: Values): Promise<Values> => {
    const copy = await readCopy(engine, entity, index, given);
    const isData = !isUnique(index) || isConfirmed(copy);
    if (isData && index.copies === 'everything') return toValues(entity, copy.properties);
    // A claim is not data: only the entity shows whether its writer has committed.
    const found = await follow(engine, entity, index, { row: copy });
    if (!found) throw notFound(entity, given);
    return found;
  },
);

/**
 * As `readByCopy`, but always reads the entity and compares it with the given values. For access decisions, which must not
 * depend on a stale copy. Two lookups. Throws `not-found`.
 */
export const readByReference = inPattern(
  'secondary index',
  async (engine: Engine, entity: Entity, index: CopyIndex, given: Values): Promise<Values> => {
    const found = await follow(engine, entity, index, { row: await readCopy(engine, entity, index, given) });
    if (!found || Object.entries(given).some(([field, value]) => found[field] !== value)) throw notFound(entity, given);
    return found;
  },
);

/** Reads a row of an index with one entity per row. Throws `not-found`. */
async function readCopy({ storage }: Engine, entity: Entity, index: CopyIndex, given: Values): Promise<Row> {
  const { table, partition } = index.remote ?? entity;
  const address = { table, partition: buildKey(partition, given), row: buildKey(index.row, given) };
  const copy = await readRow(storage, address);
  if (!copy || !isCopy(copy)) throw notFound(entity, given);
  return copy;
}

/**
 * Index entities pattern: reads the list, then each member with a point query, and omits members that no longer match. Each
 * page reads the whole list.
 */
export const readByList = inPattern(
  'index entities',
  async (
    engine: Engine,
    entity: Entity,
    index: IndexEntity,
    given: Values,
    { top, after, select }: IndexPageOptions,
  ): Promise<Page> => {
    const { table, partition } = index.remote ?? entity;
    const address = { table, partition: buildKey(partition, given), row: buildKey(index.row, given) };
    const members = membersOf(await readList(engine.storage, address));
    const rest = after ? members.filter((member) => member > after.row) : members;
    const { items, last } = await fillPage(rest.slice(0, Math.min(top, MAX_LOOKUPS)), (member) =>
      readMember(engine, entity, index, { given, member, select }),
    );
    return { items, next: last !== undefined && last !== rest.at(-1) ? { row: last } : undefined };
  },
);

async function readMember(
  engine: Engine,
  entity: Entity,
  index: IndexEntity,
  { given, member, select }: { given: Values; member: string; select: readonly string[] | undefined },
) {
  const address = addressIfAny(entity, { ...given, ...parseKey(index.holds, member) });
  const properties = projection(entity, index, select);
  const found = address && (await readLive(engine, entity, { ...address, select: properties }));
  const asked = Object.entries(given).every(([field, value]) => found?.values[field] === value);
  return found && asked && isIndexed(index, found.values) ? withSelected(entity, found.values, select) : undefined;
}
