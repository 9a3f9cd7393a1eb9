import { SYSTEM_PARTITIONS } from '../base/engine-names.ts';
import { keptFor } from '../base/once.ts';
import { DAY_MS } from '../base/time.ts';
import type { Entity } from '../define/declaration/entity.ts';
import { isUnique, projectionsOf } from '../define/places/index-entries.ts';
import { lookupBy, referringFields } from '../define/places/relation.ts';
import type { Engine } from '../engine/engine.ts';
import { indexKey, indexReads } from '../engine/read/index-reads.ts';
import { readRange, submit } from '../storage/rows.ts';
import { SYSTEM_TABLE } from '../storage/slot-row.ts';
import type { Storage } from '../storage/storage.ts';
import { readUsage } from '../telemetry/metrics.ts';

/**
 * Which indexes and totals are read, and which only cost writes. Each process counts its reads in memory. Now and then it writes the day of
 * the last read, which all processes share: one row for each entity, at most one write of it for each process and day and index.
 */

const PARTITION = SYSTEM_PARTITIONS.indexReads;
/** A monthly report must not look as if nobody read its index. */
const UNREAD_AFTER_DAYS = 35;

/** Days in UTC. */
interface Remembered {
  /** When reads of the index were first counted. */
  readonly first?: string | undefined;
  readonly last?: string | undefined;
}

interface IndexUse {
  readonly entity: Entity;
  readonly index: string;
  readonly kind: 'index' | 'list' | 'totals';
  /** By this process, since it started. */
  readonly reads: number;
  readonly countedSince: string | undefined;
  /** Within some minutes. */
  readonly lastReadOn: string | undefined;
  /** What the index is for besides reads. */
  readonly neededFor: readonly string[];
  /**
   * Storage transactions of this process to the table of the index today, the reads among them; undefined if its rows are written in the
   * transactions of the entity.
   */
  readonly transactions: number | undefined;
  /** True if nobody has read it for a month, and nothing else needs it. */
  readonly isUnread: boolean;
}

/** One range query. */
export async function readIndexUse(engine: Engine, entities: readonly Entity[]): Promise<IndexUse[]> {
  const remembered = await readRemembered(engine);
  const reads = indexReads(engine.storage);
  const { tables } = readUsage();
  const today = dayOf(engine.now());
  const longAgo = dayOf(engine.now() - UNREAD_AFTER_DAYS * DAY_MS);
  return entities.flatMap((entity) =>
    namesOf(entity).map((index): IndexUse => {
      const key = indexKey(entity, index);
      const { first, last } = remembered.get(key) ?? {};
      const count = reads.get(key) ?? 0;
      const lastReadOn = count > 0 && (last === undefined || last < today) ? today : last;
      const neededFor = needsOf(entity, index);
      const at = projectionsOf(entity).find(({ name }) => name === index)?.at;
      const table = at && at.table !== entity.table ? engine.storage.table(at.table).tableName : undefined;
      return {
        entity,
        index,
        kind: kindOf(entity, index),
        reads: count,
        countedSince: first,
        lastReadOn,
        neededFor,
        transactions: table === undefined ? undefined : (tables.get(table) ?? 0),
        isUnread: neededFor.length === 0 && first !== undefined && first <= longAgo && (lastReadOn ?? '') <= longAgo,
      };
    }),
  );
}

function namesOf({ indexes, totals }: Entity): string[] {
  return [...Object.keys(indexes), ...Object.keys(totals)];
}

function kindOf({ indexes }: Entity, name: string): IndexUse['kind'] {
  const index = Object.hasOwn(indexes, name) ? indexes[name] : undefined;
  if (!index) return 'totals';
  return index.kind === 'index-entity' ? 'list' : 'index';
}

function needsOf(entity: Entity, name: string): string[] {
  const { indexes, access, lookup, references, denormalized } = entity;
  const index = Object.hasOwn(indexes, name) ? indexes[name] : undefined;
  const findsReferrers = Object.values(references).some(
    (reference) => reference.onDelete === 'refuse' && lookupBy(entity, referringFields(reference))?.index === name,
  );
  const findsReceivers = Object.values(denormalized).some(
    ({ fanOut, source: to, field, by }) =>
      fanOut && lookupBy(entity, referringFields({ from: () => entity, field, to, by }))?.index === name,
  );
  return [
    ...(index && isUnique(index) ? ['unique values'] : []),
    ...(access.own && 'index' in access.own && access.own.index === name ? ['own rows'] : []),
    ...(lookup?.index === name ? ['lookup'] : []),
    ...(findsReferrers ? ['references'] : []),
    ...(findsReceivers ? ['copied fields'] : []),
  ];
}

/** What this process knows to be stored, and which reads it has stored. */
const knownOf = keptFor((_: Storage): { remembered?: Map<string, Remembered>; stored: Map<string, number> } => ({
  stored: new Map(),
}));

/** Writes the day of reads that this process has not written yet. One range query at the first call. */
export async function rememberIndexReads(engine: Engine, entities: readonly Entity[]): Promise<void> {
  const known = knownOf(engine.storage);
  known.remembered ??= await readRemembered(engine);
  const today = dayOf(engine.now());
  for (const entity of entities) {
    const properties: Record<string, string> = {};
    const changed = new Map<string, Remembered>();
    for (const index of namesOf(entity)) {
      const key = indexKey(entity, index);
      const { first, last } = known.remembered.get(key) ?? {};
      const count = indexReads(engine.storage).get(key) ?? 0;
      const isRead = count > (known.stored.get(key) ?? 0) && last !== today;
      if (first === undefined) properties[`${FIRST}${index}`] = today;
      if (isRead) properties[`${LAST}${index}`] = today;
      if (first === undefined || isRead) changed.set(key, { first: first ?? today, last: isRead ? today : last });
      known.stored.set(key, count);
    }
    if (changed.size === 0) continue;
    // Other processes merge other indexes into the row.
    const actions = [{ kind: 'upsert-merge', row: entity.name, properties }] as const;
    await submit(engine.storage, { table: SYSTEM_TABLE, partition: PARTITION, actions, isRepeatable: true });
    for (const [key, one] of changed) known.remembered.set(key, one);
  }
}

const FIRST = 'first_';
const LAST = 'last_';

async function readRemembered({ storage }: Engine): Promise<Map<string, Remembered>> {
  const { rows } = await readRange(storage, { table: SYSTEM_TABLE, partition: PARTITION, from: '' });
  const found = new Map<string, Remembered>();
  for (const { row, properties } of rows)
    for (const [name, value] of Object.entries(properties))
      for (const [head, part] of [[FIRST, 'first'] as const, [LAST, 'last'] as const])
        if (name.startsWith(head)) {
          const key = indexKey({ name: row }, name.slice(head.length));
          found.set(key, { ...found.get(key), [part]: String(value) });
        }
  return found;
}

function dayOf(instant: number): string {
  return new Date(instant).toISOString().slice(0, 10);
}
