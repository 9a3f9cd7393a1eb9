import { commandLine } from '../command-line.ts';
import { type Entity, withArchives } from '../define/declaration/entity.ts';
import type { Projection } from '../define/declaration/projection.ts';
import { type KeyTemplate, parseKey } from '../define/keys/key-template.ts';
import { isUnique, projectionsOf } from '../define/places/index-entries.ts';
import { type HotPartition, PARTITION_TARGET } from '../storage/heat.ts';
import { PERIOD_SUFFIX, prefixTable } from '../storage/resource-names.ts';
import { slotOf } from '../storage/slots.ts';
import { accountsOf, type Storage } from '../storage/storage.ts';

/** The busiest partitions of this process, what is in them, and what to do if one of them is at its limit. */

const TARGET_A_MINUTE = PARTITION_TARGET * 60;
/** In one process. Other processes may add as much. */
const HOT = TARGET_A_MINUTE / 10;
const BUCKETS = 8;
const MAX_BUCKETS = 256;

/** What a partition has. `engine` stands for the engine's own rows. */
type PartitionKind = 'entity' | 'index' | 'list' | 'totals' | 'expiry' | 'queue' | 'engine';

export interface HotSpot extends HotPartition {
  readonly account: string | undefined;
  readonly slot: string;
  readonly kind: PartitionKind;
  /** The entities whose rows, or the entity whose index entries, the partition has. */
  readonly entities: readonly Entity[];
  /** The name of the index, the list or the totals. */
  readonly index: string | undefined;
  /** The part of the whole load of this process. */
  readonly share: number;
  /** True at a tenth of what a partition handles, and if storage rejects requests. */
  readonly isHot: boolean;
  /** What helps if the partition is at its limit, the best first. */
  readonly advice: readonly string[];
}

/** The busiest partitions of all accounts, the busiest first. No storage transaction. */
export function readHeat(storage: Storage, entities: readonly Entity[], limit: number) {
  const accounts = accountsOf(storage);
  const load = accounts.reduce((sum, { heat }) => sum + heat.total(), 0);
  const items = accounts
    .flatMap((account) =>
      account.heat.top(limit).map((one): HotSpot => {
        const place = placeOf(storage, entities, one);
        return {
          ...one,
          ...place,
          account: account.name,
          slot: slotOf(one.partition),
          share: load > 0 ? one.load / load : 0,
          isHot: one.load - one.error >= HOT || one.throttled >= 1,
          advice: adviceOn(place, one),
        };
      }),
    )
    .toSorted((one, other) => other.load - one.load)
    .slice(0, limit);
  return { load, items };
}

interface Place extends Pick<HotSpot, 'kind' | 'entities' | 'index'> {
  readonly projection?: Projection;
}

function placeOf(
  { prefix }: Storage,
  entities: readonly Entity[],
  { service, resource, partition }: HotPartition,
): Place {
  if (service === 'queue') return { kind: 'queue', entities: [], index: undefined };
  const start = prefixTable(prefix, '');
  const table = resource.startsWith(start) ? resource.slice(start.length) : '';
  const ofPeriod = table.replace(PERIOD_SUFFIX, '');
  const owners = withArchives(entities).filter((one) => one.table === (one.period ? ofPeriod : table));
  if (owners.length > 0) {
    const fitting = owners.filter((one) => parseKey(one.partition, partition) !== undefined);
    return { kind: 'entity', entities: fitting.length > 0 ? fitting : owners, index: undefined };
  }
  for (const entity of entities)
    for (const projection of projectionsOf(entity))
      if (projection.at.table === table)
        return { kind: kindOf(entity, projection), entities: [entity], index: projection.name, projection };
  return { kind: 'engine', entities: [], index: undefined };
}

function kindOf({ indexes, totals }: Entity, { name }: Projection): PartitionKind {
  if (Object.hasOwn(totals, name)) return 'totals';
  if (!Object.hasOwn(indexes, name)) return 'expiry';
  return indexes[name]?.kind === 'index-entity' ? 'list' : 'index';
}

function adviceOn(place: Place, { requests, written, partition }: HotPartition): string[] {
  const { kind, entities, projection } = place;
  // The first entity that may have many rows in the partition.
  const entity = entities.find(({ partition, keyFields }) => keyFields.length > partition.fields.length) ?? entities[0];
  const isRead = written * 2 < requests;
  if (kind === 'queue') return ['Declare more parts of each queue: queueParts of the model.', 'Slow the writers down.'];
  if (!entity) return ["These rows are the engine's own. Look for failed messages and for grants that are revoked."];
  const move = sayMove(partition);
  if (!projection) return [...(isRead ? adviceOnReads(entity) : adviceOnWrites(entity)), move];
  const { name, at } = projection;
  if (kind === 'totals')
    return [
      `Spread the totals "${name}" over buckets: partition '${spread(at.partition, entity)}'. A read adds up the buckets. Then build them: ${commandLine('reindex', `${entity.name} ${name}`)}.`,
    ];
  if (kind === 'list')
    return [
      `A list is one row, whose changes follow each other. Declare "${name}" as an interPartitionIndex, which has a row for each entity, with another name and table, and build it.`,
    ];
  if (kind === 'expiry') return ['The entries of one day are in 16 partitions. Slow the writers down.'];
  return [...adviceOnIndex(entity, projection, isRead), move];
}

function adviceOnReads(entity: Entity): string[] {
  const { name, lookup } = entity;
  return [
    ...adviceToReuse(entity),
    ...(lookup ? [] : [`Keep the list in memory if "${name}" is small and changes seldom: lookup.`]),
  ];
}

/** Rows that only some callers see are not reused. */
function adviceToReuse({ name, maxAge, access }: Entity): string[] {
  return maxAge === undefined && !access.rules ? [`Let clients reuse responses: maxAge of "${name}".`] : [];
}

function adviceOnWrites(entity: Entity): string[] {
  const { keyFields, partition } = entity;
  if (keyFields.length === partition.fields.length)
    return [
      'The partition has one entity, which cannot be spread. Change it less often, or divide it into several entities that a read adds up.',
    ];
  return [
    `Spread the key over more partitions: partition '${spread(entity.partition, entity)}' in place of '${entity.partition.template}'. The entities are stored anew under the new key.`,
    'Slow the writers down: imports send several entities of one partition in one transaction.',
  ];
}

function adviceOnIndex(entity: Entity, { name, at }: Projection, isRead: boolean): string[] {
  const index = entity.indexes[name];
  const isWhole = at.partition.fields.length === 0;
  const build = `as an index with another name and table, and build it: ${commandLine('reindex', `${entity.name} <index>`)}`;
  if (isRead)
    return [
      ...(isWhole && !entity.lookup
        ? [`Keep the list in the memory of each process: lookup: { index: '${name}' }.`]
        : []),
      ...adviceToReuse(entity),
    ];
  // Buckets of another field would let two entities have one value.
  if (index && isUnique(index))
    return [
      `Give each value a partition of its own: partition '{${index.row.readable[0]}}' in place of '${at.partition.template}', ${build}.`,
      'If it is one value, its writers claim it one after another: slow them down.',
    ];
  const isInline = index && 'settle' in index && index.settle === 'inline';
  return [
    `Spread the index: partition '${spread(at.partition, entity)}' in place of '${at.partition.template}', ${build}. A read of it then takes a query for each bucket, concurrently.`,
    ...(isInline
      ? [`Take its writes out of the requests: settle: 'queue' in "${name}". The queue evens out peaks.`]
      : []),
  ];
}

/** What a partition handles is the same in every account. */
function sayMove(partition: string): string {
  return `If its account is at its limit, move the slot to another account: ${commandLine('accounts', `move --slots ${slotOf(partition)} --to <account>`)}. That moves no partition that the model places, and does not raise the limit of the partition.`;
}

/** The template with buckets, or with more of them. */
function spread({ template, parts }: KeyTemplate, { keyFields }: Entity): string {
  const bucket = parts.find(({ buckets }) => buckets !== undefined);
  if (bucket?.buckets !== undefined)
    return template.replace(
      `{${bucket.field}%${bucket.buckets}}`,
      `{${bucket.field}%${Math.min(bucket.buckets * 2, MAX_BUCKETS)}}`,
    );
  const field =
    keyFields.findLast((one) => !parts.some((part) => part.field === one && !part.hash)) ?? keyFields.at(-1);
  return `${template}_{${field}%${BUCKETS}}`;
}
