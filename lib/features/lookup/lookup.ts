import { LRUCache } from 'lru-cache';
import { toContentEtag } from '../../base/content-etag.ts';
import { keptFor } from '../../base/once.ts';
import { SECOND_MS } from '../../base/time.ts';
import { omit, type Values } from '../../base/values.ts';
import { LOOKUP_MAX_AGE_S } from '../../define/declaration/declaration.ts';
import type { Entity, Feature } from '../../define/declaration/entity.ts';
import type { InterPartitionIndex } from '../../define/declaration/indexes.ts';
import { buildKey } from '../../define/keys/key-template.ts';
import { copiedFields, listOfAll } from '../../define/places/index-range.ts';
import { isOptional } from '../../define/schema/field-schema.ts';
import type { Engine } from '../../engine/engine.ts';
import { valuesLength } from '../../engine/read/page-length.ts';
import { readByCopies } from '../../engine/read/read-through-index.ts';
import { listedFields, type Page } from '../../engine/read/retrieve.ts';
import { countPartitionWrites } from '../../storage/rows.ts';
import type { Storage } from '../../storage/storage.ts';

/** The longest time for which a process may serve a list that another process has changed. */
const MAX_AGE_S = 3_600;

/**
 * Lookup table: a small entity whose list each process keeps in memory. The list is that of an index with one partition, so one
 * range query reads it.
 *
 * What bounds its staleness: the list is read again after `maxAge` seconds, and after each write of this process to the index. What
 * bounds its memory: a list over the limits below is not kept. The entities are kept as stored, encrypted and with restricted fields,
 * and presented for each caller anew.
 */
export const lookup: Feature = {
  name: 'lookup table',
  isUsed: (entity) => entity.lookup !== undefined,
  *validate(entity) {
    const { schema, counts, denormalized } = entity;
    const { index: name = '', maxAge } = entity.lookup ?? {};
    if (maxAge !== undefined && !(Number.isInteger(maxAge) && maxAge >= 1 && maxAge <= MAX_AGE_S))
      yield `lookup has the maxAge ${maxAge}. Use a whole number of seconds from 1 to ${MAX_AGE_S}.`;
    const index = listOfAll(entity, name);
    if (!index) {
      yield `lookup reads the index "${name}", which is not a list of all entities. Name an interPartitionIndex of copies with a partition key without fields, neither unique nor with a condition (when).`;
      return;
    }
    if (index.settle !== 'inline')
      yield `lookup reads the index "${name}", which has settle "${index.settle}", and a process keeps what it has read. Use "inline".`;
    const optional = index.row.fields.find((field) => isOptional(schema, field));
    if (optional !== undefined)
      yield `lookup reads the index "${name}", which lacks entities without "${optional}". Make every field of its row key required.`;
    const copied = Object.values(denormalized)
      .filter(({ fanOut }) => !fanOut)
      .flatMap(({ copies }) => Object.keys(copies));
    const [stale] = [...Object.keys(counts), ...copied];
    if (index.copies === 'everything' && stale !== undefined)
      yield `lookup reads the index "${name}", whose copies have "${stale}", which changes with another entity and would be stale. List the other fields in copies.`;
  },
};

/** One storage transaction returns at most 1,000 rows. */
const MAX_ENTITIES = 1_000;
/** In characters. */
const MAX_LENGTH = 1_048_576;
/** Sets of hidden fields whose ETag a list keeps: a model has few roles that differ in them. */
const KEPT_ETAGS = 16;

/** How `GET` of the entity's own path lists all entities. */
export const lookupList = {
  isUsed: lookup.isUsed,
  /** The index in whose order the entities are listed. */
  indexName: (entity: Entity): string => entity.lookup?.index ?? '',
  /** The fields that the listed entities have: small ones, as in every list. */
  fields(entity: Entity): readonly string[] {
    const listed = listedFields(entity) ?? Object.keys(entity.columns);
    return copiedFields(entity, lookupIndex(entity))?.filter((field) => listed.includes(field)) ?? listed;
  },
  read: readKept,
  /** The entities in a page of a list that is not whole. */
  pageEntities: MAX_ENTITIES,
};

export interface LookupPage extends Page {
  /** False if the list exceeds the limits; then it is its first page, read for this call, and not kept. */
  readonly isWhole: boolean;
  /**
   * The ETag of the list without the `hidden` fields, from its content: storage has none for several rows. An ETag that depended
   * on a hidden field would let a caller test guesses of the field.
   */
  etagWithout(hidden: readonly string[]): string;
}

/** The index of a lookup, as the feature has validated it. */
function lookupIndex(entity: Entity): InterPartitionIndex {
  const index = listOfAll(entity, entity.lookup?.index);
  if (!index) throw new Error(`${entity.name} has no lookup.`);
  return index;
}

interface KeptList {
  readonly readAt: number;
  readonly writes: number;
  readonly list: Promise<LookupPage>;
}

const listsOf = keptFor((_: Storage) => new Map<Entity, KeptList>());

/**
 * Reads the list of all entities: from the memory of the process, or by one read, which concurrent callers share. The list is read
 * again after `maxAge`, and after each write of this process to the partition of the index, which settles inline: a process would keep a
 * list that it has read before the queue settles an entry.
 */
async function readKept(engine: Engine, entity: Entity): Promise<LookupPage> {
  const { storage, now } = engine;
  const { table, partition } = lookupIndex(entity).remote;
  const writes = countPartitionWrites(storage, { table, partition: buildKey(partition, {}) });
  const lists = listsOf(storage);
  const known = lists.get(entity);
  const age = known ? now() - known.readAt : Number.POSITIVE_INFINITY;
  const maxAge = (entity.lookup?.maxAge ?? LOOKUP_MAX_AGE_S) * SECOND_MS;
  // A clock that was set back must not prolong the life of a list.
  if (known?.writes === writes && age >= 0 && age < maxAge) return known.list;
  const list = readWhole(engine, entity);
  const kept = { readAt: now(), writes, list };
  lists.set(entity, kept);
  const forget = () => {
    if (lists.get(entity) === kept) lists.delete(entity);
  };
  // Neither a failure nor a list over the limits is kept, so that the next call reads again.
  list.then(({ isWhole }) => isWhole || forget(), forget);
  return list;
}

async function readWhole(engine: Engine, entity: Entity): Promise<LookupPage> {
  const options = { top: MAX_ENTITIES, select: listedFields(entity) };
  const page = await readByCopies(engine, entity, lookupIndex(entity), {}, options);
  const length = page.items.reduce((sum, values) => sum + valuesLength(entity, values), 0);
  const isWhole = page.next === undefined && length <= MAX_LENGTH;
  const etags = new LRUCache<string, string>({ max: KEPT_ETAGS });
  return {
    ...page,
    isWhole,
    etagWithout(hidden) {
      const id = JSON.stringify(hidden.toSorted());
      const etag = etags.get(id) ?? toListEtag(page.items, hidden);
      etags.set(id, etag);
      return etag;
    },
  };
}

/** The ETag of a list without the `hidden` fields. */
export function toListEtag(items: readonly Values[], hidden: readonly string[]): string {
  const content = JSON.stringify(items.map((values) => omit(values, hidden)));
  return toContentEtag(content);
}
