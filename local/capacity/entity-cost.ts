import type { Entity } from '../../lib/define/declaration/entity.ts';
import type { Projection } from '../../lib/define/declaration/projection.ts';
import type { KeyTemplate } from '../../lib/define/keys/key-template.ts';
import { remoteIndexesOf } from '../../lib/define/places/index-entries.ts';

/** What follows from a declaration for one entity: its rows, and the storage calls of a read and of a create. */
export interface EntityCost {
  /** Calls of a point query. */
  readonly read: number;
  /** Calls of a create: to tables, and to queues. */
  readonly tables: number;
  readonly queues: number;
  /** True if the queue function settles entries of each create. */
  readonly isQueued: boolean;
  /** The rows of one entity, each with the number of partitions that a load on the table has. */
  readonly rows: readonly RowPlace[];
}

interface RowPlace {
  readonly what: string;
  readonly table: string;
  /** The most partitions that the key template allows; undefined for one for each value of its fields. */
  readonly partitions: number | undefined;
  readonly fields: readonly string[];
  /** How many rows an entity has there, and how many calls a create makes there. */
  readonly rows: number;
  readonly calls: number;
  /** True for a copy of the whole entity; else it has the key or a number. */
  readonly isWhole: boolean;
}

/** Two hexadecimal digits of a hash. */
const HASHES = 256;
/** Calls of a create to an entry: insert it; a list is read and written, and a unique row is claimed and confirmed; a total is read with its contribution. */
const ENTRY_CALLS = 1;
const SHARED_ENTRY_CALLS = 2;
const TOTAL_CALLS = 3;
/** The entity is read again after its entries are written, and the intent is sent and deleted. */
const SETTLE_CALLS = 1;
const INTENT_CALLS = 2;
/** The queue function reads the entity before and after it writes the entries that are left to it. */
const QUEUED_SETTLE_CALLS = 2;
/** The message of queued work is sent, received and deleted; the intent stays as the reminder until then. */
const QUEUED_WORK_CALLS = 3;

/** Counts the calls as the write of lib/engine/write makes them, for an entity with a value in every field. */
export function costOfEntity(entity: Entity): EntityCost {
  const remote = remoteIndexesOf(entity).map((index): RowPlace => {
    const declared = entity.indexes[index.name];
    const isWhole = declared !== undefined && declared.kind !== 'index-entity' && declared.copies === 'everything';
    return {
      what: `${isTotal(index) ? 'totals' : 'index'} ${index.name}`,
      table: index.at.table,
      ...partitionsOf(index.at.partition),
      rows: 1,
      calls: callsOf(index),
      isWhole,
    };
  });
  const beside = Object.values(entity.indexes).filter(
    (index) => index.kind === 'intra-partition' && index.copies === 'everything',
  ).length;
  // A source that counts the entity is in its transaction already.
  const copied = Object.values(entity.denormalized).filter(
    ({ fanOut, source, field, by }) =>
      fanOut && (field !== by || !entity.countedBy.some(({ target }) => target() === source)),
  );
  const checked = Object.keys(entity.references).length + copied.length;
  const parent = entity.childOf ? 1 : 0;
  const placeholder = entity.features.some(({ write }) => write?.remains?.isLikely(entity)) ? 1 : 0;
  const own = 1 + checked + parent + placeholder;
  const entries = remote.reduce((sum, { calls }) => sum + calls, 0);
  const left = remoteIndexesOf(entity).filter(({ settle }) => settle === 'queue').length;
  const settling = (left < remote.length ? SETTLE_CALLS : 0) + (left > 0 ? QUEUED_SETTLE_CALLS : 0);
  return {
    read: 1,
    tables: own + entries + settling,
    queues: (remote.length > 0 ? INTENT_CALLS : 0) + (left > 0 ? QUEUED_WORK_CALLS : 0),
    isQueued: left > 0,
    rows: [
      {
        what: 'entities',
        table: entity.table,
        ...partitionsOf(entity.partition),
        rows: 1 + beside,
        calls: own,
        isWhole: true,
      },
      ...remote,
    ],
  };
}

/** True if the rows change together with one that several entities share. */
const isTotal = ({ merge }: Projection) => merge !== undefined && !merge.list;

function callsOf(projection: Projection): number {
  if (isTotal(projection)) return TOTAL_CALLS;
  return projection.merge || projection.settle === 'claim' ? SHARED_ENTRY_CALLS : ENTRY_CALLS;
}

function partitionsOf({ parts }: KeyTemplate): Pick<RowPlace, 'partitions' | 'fields'> {
  const fields = parts.filter(({ hash, buckets }) => !hash && buckets === undefined).map(({ field }) => field);
  const known = parts.reduce((product, { hash, buckets }) => product * (buckets ?? (hash ? HASHES : 1)), 1);
  return { partitions: fields.length > 0 ? undefined : known, fields };
}
