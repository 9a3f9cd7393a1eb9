import pMap from 'p-map';
import { pick, type Values } from '../../base/values.ts';
import { storedNames, storedVersion, toValues } from '../../define/codec/entity-codec.ts';
import { withDefaultFields } from '../../define/codec/further-rows.ts';
import { comparedFields, type Filter, matches, rowFilterOf, withKeyOfReferences } from '../../define/codec/query.ts';
import type { Live } from '../../define/declaration/change.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { expiryFields, hasExpired } from '../../define/declaration/expiry.ts';
import type { CopyIndex, Index, IndexEntity } from '../../define/declaration/indexes.ts';
import { buildKey, buildKeys, isKeyOf, parseKey } from '../../define/keys/key-template.ts';
import {
  addressIfAny,
  arePartial,
  CLAIM,
  CONFIRMED,
  indexKeyFields,
  isConfirmed,
  isCopy,
  isIndexed,
  isUnique,
  selectIndexed,
} from '../../define/places/index-entries.ts';
import { copiedFields, type IndexBounds, indexRange } from '../../define/places/index-range.ts';
import { type Address, type Row, readRange, readRow } from '../../storage/rows.ts';
import { inPattern } from '../../telemetry/span.ts';
import type { Engine } from '../engine.ts';
import { startOf } from './continuation.ts';
import { beingRekeyed, declarationOf, notFound, readLive, requireRekeyed } from './entity-rows.ts';
import { beginIndexRead } from './index-reads.ts';
import { isLongList, LIST, membersOf, readList } from './member-list.ts';
import { ANY_ROWS, readBound, valuesLength, withinPage } from './page-length.ts';
import type { Page, PageOptions } from './retrieve.ts';

/**
 * Reads through an index: by a copy, which contains the entity or refers to it, or by a list of members. The entities of
 * references and members are read; stale entries are omitted.
 */

const POINT_READS_CONCURRENCY = 16;
/** The most entities of a page if each entity needs a point read. */
const MAX_LOOKUPS = 256;
const PARTITIONS_CONCURRENCY = 16;

/** With bounds, `given` has the fields of a range (`requireRangeStart`); without, all fields or those. */
export interface IndexPageOptions extends PageOptions, IndexBounds {
  /** The fields to read; without it all. */
  readonly select?: readonly string[] | undefined;
  /** Only entities that match. Storage compares copies; the entities of references and lists are read and compared. */
  readonly where?: Filter | undefined;
}

/** The declaration in whose partition the index is. Throws `busy` while its entities are in other partitions than those of the index. */
async function declarationIn(engine: Engine, entity: Entity, { remote }: Index): Promise<Entity> {
  if (remote) return entity;
  const there = await declarationOf(engine, entity);
  if (there.partition.fields.toSorted().join() !== entity.partition.fields.toSorted().join())
    throw beingRekeyed(entity);
  await requireRekeyed(engine, there);
  return there;
}

/**
 * Reads several rows of an index, in the order of their keys: a range query, or one for each bucket, run concurrently and
 * merged. Full and partial copies are returned as they are; for references and claims, each entity is a second lookup.
 */
export const readByCopies = inPattern(
  'secondary index',
  async (
    engine: Engine,
    entity: Entity,
    index: CopyIndex,
    given: Values,
    { top, after, select, where = [], ...bounds }: IndexPageOptions,
  ): Promise<Page> => {
    await beginIndexRead(engine, entity, index);
    const there = await declarationIn(engine, entity, index);
    const { table, partition: template } = index.remote ?? there;
    const partitions = buildKeys(template, given);
    // No copy has the fields that are apart.
    const isToFollow = index.copies === 'keys' || entity.apartFields.some((field) => select?.includes(field));
    const isReference = (row: Row) =>
      isToFollow || (isUnique(index) && !isConfirmed(row)) || isOlderPart(entity, index, row);
    const copied = isToFollow ? undefined : copiedFields(entity, index);
    const hasLookups = isToFollow || isUnique(index);
    const limit = hasLookups ? Math.min(top, MAX_LOOKUPS) : top;
    const read = hasLookups ? undefined : fieldsToRead(entity, index, { select, where, given });
    const { length, rowsPerCall } = readBound([entity], read);
    const bound = { length: length / partitions.length, rowsPerCall: rowsPerCall / partitions.length };
    const type = isUnique(index) ? [entity.name, CLAIM] : entity.name;
    // A reference and a claim do not have the fields of their entity.
    const filter = hasLookups ? {} : rowFilterOf(entity, where);
    const keys = indexRange(entity, index, given, bounds);
    const projection = read && storedNames(entity, read);
    // Only a single partition can be resumed: the rows of several are merged.
    const pausing = { mayPause: partitions.length === 1, resume: after?.resume };
    const range = {
      table,
      ...keys,
      after: startOf(after),
      type,
      ...filter,
      select: projection,
      limit,
      bound,
      ...pausing,
    };
    const results = await pMap(partitions, (partition) => readRange(engine.storage, { ...range, partition }), {
      concurrency: PARTITIONS_CONCURRENCY,
    });
    if (!index.remote) await requireRekeyed(engine, there);
    // A bucket with unread rows limits the page: its next row may sort before rows of other buckets.
    const ends = results.flatMap(({ rows, more }) => (more ? (rows.at(-1)?.row ?? '') : []));
    const all = results.flatMap(({ rows }) => rows).filter(({ row }) => ends.every((end) => row <= end));
    const sorted = all.sort((one, other) => (one.row < other.row ? -1 : 1)).slice(0, limit);
    const excess = sorted.filter(isReference)[MAX_LOOKUPS];
    const rows = excess ? sorted.slice(0, sorted.indexOf(excess)) : sorted;
    const entityOf = async (row: Row) => {
      // The key of an entity may have the same form as that of a copy.
      if (!isCopy(row)) return undefined;
      if (!isReference(row)) return valuesOfCopy(engine, entity, index, row, { given, select, where });
      const values = await follow(engine, entity, index, { row, select, where });
      return values && hasGiven(values, given) && matches(where, values)
        ? withSelected(entity, copied ? pick(values, copied) : values, select)
        : undefined;
    };
    const { items, last } = await fillPage(entity, rows, entityOf);
    const isCut = last !== rows.at(-1) || all.length > rows.length;
    const resume = results.find((page) => page.resume !== undefined)?.resume;
    if (resume !== undefined && !isCut) return { items, next: { row: startOf(after) ?? '', resume } };
    const more = isCut || ends.length > 0;
    return { items, next: more && last ? { row: last.row } : undefined };
  },
);

/**
 * True if the row must be upgraded and does not have all fields of its entity, which an upgrade may use. The entity is read
 * instead.
 */
function isOlderPart(entity: Entity, { copies }: CopyIndex, { properties }: Row): boolean {
  return arePartial(entity, copies) && storedVersion(entity, properties) < entity.version;
}

/**
 * The fields of a copy, or undefined if it is of another index or value: other indexes of the entity lie within the range of a
 * row key that begins with a field. An upgrade may change fields, but not the key, of a copy of an earlier version.
 */
function valuesOfCopy(
  { now }: Engine,
  entity: Entity,
  index: CopyIndex,
  { row, properties }: Row,
  { given, select, where }: { given: Values; select: readonly string[] | undefined; where: Filter },
): Values | undefined {
  const values = toValues(entity, properties);
  const compared = storedVersion(entity, properties) === entity.version ? values : {};
  const isWanted = hasGiven(compared, given) && matches(where, values) && !hasExpired(entity, values, now());
  return isWanted && isKeyOf(index.row, row, compared) ? withSelected(entity, values, select) : undefined;
}

/** False for another value with the same hash in the partition key. A partial copy may lack a field. */
function hasGiven(values: Values, given: Values): boolean {
  return Object.entries(given).every(([field, value]) => {
    const stored = values[field];
    return Array.isArray(stored) ? stored.includes(value) : stored === undefined || stored === value;
  });
}

/** Reads the entities of index keys, in order, until the page is full. `last` is the last key of the page. */
async function fillPage<Key>(
  entity: Entity,
  keys: readonly Key[],
  entityOf: (key: Key) => Promise<Values | undefined> | Values | undefined,
): Promise<{ items: Values[]; last: Key | undefined }> {
  const found: { key: Key; values: Values | undefined }[] = [];
  while (found.length < keys.length) {
    const some = keys.slice(found.length, found.length + POINT_READS_CONCURRENCY);
    found.push(...(await Promise.all(some.map(async (key) => ({ key, values: await entityOf(key) })))));
    const page = withinPage(found, ({ values }) => (values ? valuesLength(entity, values) : 0));
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
  { row, ...options }: { row: Row; select?: readonly string[] | undefined; where?: Filter | undefined },
): Promise<Values | undefined> {
  const { SourcePartition, SourceRow } = row.properties;
  const source = { table: entity.table, partition: String(SourcePartition), row: String(SourceRow) };
  const found = await readWanted(engine, entity, index, source, options);
  const { partition } = index.remote ?? entity;
  const isHere = selectIndexed(index, found?.values ?? {}).some(
    (one) => buildKey(partition, one) === row.partition && buildKey(index.row, one) === row.row,
  );
  return isHere ? found?.values : undefined;
}

interface Wanted {
  readonly select?: readonly string[] | undefined;
  readonly where?: Filter | undefined;
  readonly given?: Values | undefined;
}

/** The fields that a read needs, of a copy or of an entity; undefined for all. */
function fieldsToRead(entity: Entity, index: Index, { select, where = [], given = {} }: Wanted): string[] | undefined {
  // An upgrade needs the whole row.
  if (!select || entity.version > 1) return undefined;
  const inIndex = index.kind === 'index-entity' ? index.uses : indexKeyFields(index);
  const compared = [...comparedFields(where), ...Object.keys(given), ...inIndex, ...expiryFields(entity)];
  const inKey = index.remote ? [] : entity.partition.fields;
  return [...new Set([...withKeyOfReferences(entity, select), ...compared, ...inKey])];
}

/** Reads the entity of a reference or of a member, as far as it is wanted. Undefined for one that has expired. */
async function readWanted(
  engine: Engine,
  entity: Entity,
  index: Index,
  address: Address,
  wanted: Wanted,
): Promise<Live | undefined> {
  // A condition may use any field.
  const exact = index.when ? undefined : fieldsToRead(entity, index, wanted);
  const fields = exact ?? (wanted.select && withDefaultFields(entity, wanted.select));
  const select = exact && storedNames(entity, exact);
  const found = await readLive(engine, entity, { ...address, select }, { fields, isWhole: true });
  return found && !hasExpired(entity, found.values, engine.now()) ? found : undefined;
}

/** Other fields may be needed to present the selected ones. */
function withSelected(entity: Entity, values: Values, select: readonly string[] | undefined): Values {
  return select ? pick(values, withKeyOfReferences(entity, select)) : values;
}

/**
 * Reads an index with one entity per row: one lookup for a copy with all of the selected fields, else two. A partial copy is not
 * returned for a whole entity. Throws `not-found`.
 */
export const readByCopy = inPattern(
  'secondary index',
  async (
    engine: Engine,
    entity: Entity,
    index: CopyIndex,
    given: Values,
    select?: readonly string[] | undefined,
  ): Promise<Values> => {
    const copied = copiedFields(entity, index);
    const isFull = copied
      ? select !== undefined && withKeyOfReferences(entity, select).every((field) => copied.includes(field))
      : index.copies === 'everything';
    const read = isFull ? fieldsToRead(entity, index, { select }) : undefined;
    const copy = await readCopy(engine, entity, index, given, read);
    const isData = !isUnique(index) || isConfirmed(copy);
    if (isData && isFull && !isOlderPart(entity, index, copy)) {
      const values = toValues(entity, copy.properties);
      if (hasExpired(entity, values, engine.now())) throw notFound(entity, given);
      return withSelected(entity, values, select);
    }
    // A claim is not data: only the entity shows whether its writer has committed.
    const found = await follow(engine, entity, index, { row: copy, select });
    if (!found) throw notFound(entity, given);
    return withSelected(entity, found, select);
  },
);

/**
 * Reads the entity of a copy and compares it with the given values, unlike `readByCopy`. For access decisions, which must not
 * depend on a stale copy. Two lookups. `onFound` learns the partition of the entity before the entity is read. Throws `not-found`.
 */
export const readByReference = inPattern(
  'secondary index',
  async (
    engine: Engine,
    entity: Entity,
    index: CopyIndex,
    given: Values,
    onFound: (source: Omit<Address, 'row'>) => void = () => undefined,
  ): Promise<Values> => {
    const row = await readCopy(engine, entity, index, given);
    onFound({ table: entity.table, partition: String(row.properties.SourcePartition) });
    const found = await follow(engine, entity, index, { row });
    if (!found || Object.entries(given).some(([field, value]) => found[field] !== value)) throw notFound(entity, given);
    return found;
  },
);

/** Reads a row of an index with one entity per row. Throws `not-found`. */
async function readCopy(
  engine: Engine,
  entity: Entity,
  index: CopyIndex,
  given: Values,
  fields?: readonly string[] | undefined,
): Promise<Row> {
  await beginIndexRead(engine, entity, index);
  const there = await declarationIn(engine, entity, index);
  const { table, partition } = index.remote ?? there;
  const address = { table, partition: buildKey(partition, given), row: buildKey(index.row, given) };
  const select = fields && [...storedNames(entity, fields), 'SourcePartition', CONFIRMED];
  const copy = await readRow(engine.storage, { ...address, select });
  if (!index.remote) await requireRekeyed(engine, there);
  if (!copy || !isCopy(copy)) throw notFound(entity, given);
  return copy;
}

/**
 * Index entities pattern: reads the list of one value, then each member with a point query, and omits members that no longer
 * match. Each page reads the whole list.
 */
export const readByList = inPattern(
  'index entities',
  async (
    engine: Engine,
    entity: Entity,
    index: IndexEntity,
    given: Values,
    { top, after, select, where }: IndexPageOptions,
  ): Promise<Page> => {
    await beginIndexRead(engine, entity, index);
    const there = await declarationIn(engine, entity, index);
    const { table, partition } = index.remote ?? there;
    const list = { table, partition: buildKey(partition, given), row: buildKey(index.row, given) };
    const members = membersOf(await readList(engine.storage, list));
    if (!index.remote) await requireRekeyed(engine, there);
    const rest = after ? members.filter((member) => member > after.row) : members;
    const { items, last } = await fillPage(entity, rest.slice(0, Math.min(top, MAX_LOOKUPS)), (member) =>
      readMember(engine, entity, index, { given, list, member, select, where }),
    );
    return { items, next: last !== undefined && last !== rest.at(-1) ? { row: last } : undefined };
  },
);

/**
 * Reads the entities of the lists of all values within bounds, in the order of the values: one range query, and two lookups for
 * each long list. Lists that have become empty count against the page, so a page may have fewer entities.
 */
export const readByLists = inPattern(
  'index entities',
  async (
    engine: Engine,
    entity: Entity,
    index: IndexEntity,
    given: Values,
    { top, after, select, where, ...bounds }: IndexPageOptions,
  ): Promise<Page> => {
    await beginIndexRead(engine, entity, index);
    const there = await declarationIn(engine, entity, index);
    const { table, partition: template } = index.remote ?? there;
    const range = { table, partition: buildKey(template, given), ...indexRange(entity, index, given, bounds) };
    const limit = Math.min(top, MAX_LOOKUPS);
    // A page may end within a list, which is then read again.
    const start = after?.member === undefined ? { after: after?.row } : { from: after.row };
    const { rows, more } = await readRange(engine.storage, { ...range, ...start, type: LIST, limit, bound: ANY_ROWS });
    if (!index.remote) await requireRekeyed(engine, there);
    const keys: { list: Row; member: string }[] = [];
    let done: Row | undefined;
    for (const list of rows) {
      if (keys.length >= limit) break;
      const members = membersOf(isLongList(list) ? await readList(engine.storage, list) : list);
      const rest = members.filter((member) => list.row !== after?.row || member > (after.member ?? ''));
      keys.push(...rest.map((member) => ({ list, member })));
      done = list;
    }
    const page = keys.slice(0, limit);
    const { items, last } = await fillPage(entity, page, (key) =>
      readMember(engine, entity, index, { given, select, where, ...key }),
    );
    if (last && last !== keys.at(-1)) return { items, next: { row: last.list.row, member: last.member } };
    return { items, next: done && (more || done !== rows.at(-1)) ? { row: done.row } : undefined };
  },
);

interface Member {
  readonly given: Values;
  readonly list: Address;
  readonly member: string;
  readonly select: readonly string[] | undefined;
  readonly where: Filter | undefined;
}

async function readMember(
  engine: Engine,
  entity: Entity,
  index: IndexEntity,
  { given, list, member, select, where = [] }: Member,
): Promise<Values | undefined> {
  const inList = { ...parseKey(index.row, list.row), ...parseKey(index.holds, member) };
  const address = addressIfAny(entity, { ...given, ...inList });
  const found = address && (await readWanted(engine, entity, index, address, { select, where, given }));
  if (!found || !isIndexed(index, found.values) || buildKey(index.row, found.values) !== list.row) return undefined;
  const isAsked = Object.entries(given).every(([field, value]) => found.values[field] === value);
  return isAsked && matches(where, found.values) ? withSelected(entity, found.values, select) : undefined;
}
