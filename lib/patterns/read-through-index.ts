import pMap from 'p-map';
import { type Row, readRange, readRow } from '../storage/rows.ts';
import { inPattern } from '../telemetry/span.ts';
import type { Engine } from './engine.ts';
import type { Entity, Values } from './entity.ts';
import { toValues } from './entity-codec.ts';
import { notFound, readLive } from './entity-store.ts';
import type { CopyIndex, Index, IndexEntity } from './indexes.ts';
import { buildKey, buildKeys, parseKey, prefixRange } from './key-template.ts';
import { membersOf, readList } from './member-list.ts';
import { addressIfAny, isCopy, isIndexed, isUnique, type Place, placesOf } from './places.ts';
import type { Page, PageOptions } from './retrieve.ts';
import { isConfirmed } from './unique-claim.ts';

/**
 * Reading through an index: by a copy of the entity, which answers for itself or says where the rest is, or by a list of
 * its kind. What an index says of an entity that has moved on meanwhile is never answered in its place.
 */

const POINT_READS_AT_ONCE = 16;
const PARTITIONS_AT_ONCE = 16;

/** The fields that a read through an index gives, partition first, in the order of its path. */
export function indexFields(entity: Entity, index: Index): string[] {
  const { partition } = index.elsewhere ?? entity;
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
  return !isUnique(index) && entity.keyFields.includes(index.row.fields.at(-1) ?? '');
}

/**
 * Through an index of which several rows have what is given: a range query, or one for each bucket, at once and merged.
 * The rows answer themselves where they are full or part copies; where they only refer, each entity is a second lookup.
 */
export const readByCopies = inPattern(
  'secondary index',
  async (
    engine: Engine,
    entity: Entity,
    index: CopyIndex,
    given: Values,
    { top, after }: PageOptions,
  ): Promise<Page> => {
    const { table, partition: template } = index.elsewhere ?? entity;
    const partitions = buildKeys(template, given);
    const range = { table, ...prefixRange(index.row, given), after: after?.row, type: entity.name, limit: top };
    const answers = await pMap(partitions, (partition) => readRange(engine.storage, { ...range, partition }), {
      concurrency: PARTITIONS_AT_ONCE,
    });
    const all = answers.flatMap(({ rows }) => rows).sort((one, other) => (one.row < other.row ? -1 : 1));
    const rows = all.slice(0, top);
    // An entity may be under a key that would be that of a copy.
    const copies = rows.filter(isCopy);
    const found =
      index.copies === 'keys'
        ? await pMap(copies, (copy) => follow(engine, entity, index, copy), { concurrency: POINT_READS_AT_ONCE })
        : copies.map(({ properties }) => toValues(entity, properties));
    const last = rows.at(-1);
    const more = all.length > top || answers.some((answer) => answer.more);
    return {
      items: found.filter((values) => values !== undefined),
      next: more && last ? { row: last.row } : undefined,
    };
  },
);

/** The entity that a row of an index refers to; undefined where it has moved on. */
async function follow(engine: Engine, entity: Entity, index: CopyIndex, row: Row): Promise<Values | undefined> {
  const { SourcePartition, SourceRow } = row.properties;
  const source = { table: entity.table, partition: String(SourcePartition), row: String(SourceRow) };
  const found = await readLive(engine, entity, source);
  const isRow = (place: Place) =>
    place.table === row.table && place.partition === row.partition && place.row === row.row;
  // A copy in the partition changes with its entity.
  const isHere = !index.elsewhere || placesOf(entity, found?.values).some(isRow);
  return isHere ? found?.values : undefined;
}

/** Through an index whose every row is one entity. One lookup where the row holds a full copy, else two. Throws `not-found`. */
export const readByCopy = inPattern(
  'secondary index',
  async (engine: Engine, entity: Entity, index: CopyIndex, given: Values): Promise<Values> => {
    const copy = await readCopy(engine, entity, index, given);
    const isData = !isUnique(index) || isConfirmed(copy);
    if (isData && index.copies === 'everything') return toValues(entity, copy.properties);
    // A claim is no data: whether its writer has committed is in the entity itself.
    const found = await follow(engine, entity, index, copy);
    if (!found) throw notFound(entity);
    return found;
  },
);

/**
 * The same, and never from a copy: the row of the index only says which entity to read, and the entity decides whether it has
 * what is given. For decisions about access, for which a copy that lags is too old. Two lookups. Throws `not-found`.
 */
export const readByReference = inPattern(
  'secondary index',
  async (engine: Engine, entity: Entity, index: CopyIndex, given: Values): Promise<Values> => {
    const found = await follow(engine, entity, index, await readCopy(engine, entity, index, given));
    if (!found || Object.entries(given).some(([field, value]) => found[field] !== value)) throw notFound(entity);
    return found;
  },
);

/** The row of an index whose every row is one entity. Throws `not-found`. */
async function readCopy({ storage }: Engine, entity: Entity, index: CopyIndex, given: Values): Promise<Row> {
  const { table, partition } = index.elsewhere ?? entity;
  const address = { table, partition: buildKey(partition, given), row: buildKey(index.row, given) };
  const copy = await readRow(storage, address);
  if (!copy || !isCopy(copy)) throw notFound(entity);
  return copy;
}

/** Index entities pattern: the list, and a point query for each of its members; one that has moved on is left out. */
export const readByList = inPattern(
  'index entities',
  async (engine: Engine, entity: Entity, index: IndexEntity, given: Values, options: PageOptions): Promise<Page> => {
    const { table, partition } = index.elsewhere ?? entity;
    const address = { table, partition: buildKey(partition, given), row: buildKey(index.row, given) };
    const members = membersOf(await readList(engine.storage, address));
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
  },
);

async function readMember(
  engine: Engine,
  entity: Entity,
  index: IndexEntity,
  { given, member }: { given: Values; member: string },
) {
  const address = addressIfAny(entity, { ...given, ...parseKey(index.holds, member) });
  const found = address && (await readLive(engine, entity, address));
  const asked = Object.entries(given).every(([field, value]) => found?.values[field] === value);
  return found && asked && isIndexed(index, found.values) ? found.values : undefined;
}
