import { z } from 'zod';
import { RowkeyError } from '../../base/errors.ts';
import type { Values } from '../../base/values.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import type { IndexEntry } from '../../define/declaration/projection.ts';
import { buildKey, type KeyTemplate, parseKey } from '../../define/keys/key-template.ts';
import { remoteIndexOf, tableOf } from '../../define/places/index-entries.ts';
import type { Address } from '../../storage/rows.ts';

/** The queue of intents: work outside the partition that a write may have left. */
export const INDEX_CHANGES_QUEUE = 'index-changes';
/** The queue of archives, moves, and deletes of entities with many children. */
export const TRANSFERS_QUEUE = 'transfers';
/** The queue may still have messages of an older version during a deployment. */
export const MESSAGE_VERSION = 1;

const EntrySchema = z.strictObject({
  index: z.string(),
  table: z.string(),
  partition: z.string(),
  row: z.string(),
  member: z.string().optional(),
});

const Items = z.array(z.strictObject({ partition: z.string(), row: z.string(), indexEntries: z.array(EntrySchema) }));

/**
 * A fan-out has two passes, because a writer that read the source before it changed may commit during the first one. The last
 * pass begins when no such writer can commit any more.
 */
const FanOut = z.object({
  sources: z.array(z.strictObject({ partition: z.string(), row: z.string() })).min(1),
  position: z.object({ source: z.int().min(0), relation: z.string(), after: z.string().optional() }).optional(),
  isLastPass: z.boolean().default(false),
});

/** Fields of every message: its version, and the trace that its handling continues. */
const MESSAGE = { version: z.literal(MESSAGE_VERSION), traceparent: z.string().optional() };

/**
 * Not strict: a later release may add fields that an earlier one ignores, without a new version. Top-level names must differ from
 * those in `consume.ts`.
 */
export const Intent = z.object({
  ...MESSAGE,
  /** The id of the write, which is in its claims too. */
  intent: z.string().min(1),
  entity: z.string().min(1),
  table: z.string().min(1),
  items: Items,
  /**
   * The items of entities of other declarations that the write changed. An earlier release ignores them, and the consistency check
   * finds what it left.
   */
  dependents: z.array(z.object({ entity: z.string(), items: Items, fanOut: FanOut.optional() })).optional(),
  /** True if nothing was stored under the keys of the items, so that their index entries are probably new too. A hint. */
  isNew: z.boolean().optional().catch(undefined),
  /** Entities on which others depend, and how far those are updated. */
  fanOut: FanOut.optional(),
});

export type Intent = z.infer<typeof Intent>;

/** An archive, a move, or the delete of an entity with many children. Not strict: see `Intent`. */
export const Transfer = z.object({
  ...MESSAGE,
  operation: z.enum(['archive', 'move', 'delete']),
  operationId: z.string().min(1),
  entity: z.string().min(1),
  key: z.record(z.string(), z.unknown()),
  /** The key fields that a move changes. */
  to: z.record(z.string(), z.unknown()).optional(),
  incarnation: z.string().min(1),
  /** Only if this is still the last write of the entity: a delete under a condition. */
  writeId: z.string().min(1).optional(),
});
export type Transfer = z.infer<typeof Transfer>;

/** An entity whose index entries in other partitions, or whose tombstone, must be settled. */
export interface IntentItem {
  readonly partition: string;
  readonly row: string;
  readonly indexEntries: readonly IndexEntry[];
}

/**
 * A queue message is not trusted: anyone who can write to the queue can name any row. The reconciler works only on entity
 * keys and index entries that the declaration can produce. The check looks for a witness: field values from which the
 * declaration's key templates build both the entity's address and the index entry.
 */

/** The items of an intent that the declaration can produce, and why other items are rejected. */
export function possibleItems(entity: Entity, intent: Intent): { items: IntentItem[]; refused: string | undefined } {
  let refused: string | undefined;
  const items = intent.items.flatMap(({ partition, row, indexEntries }) => {
    const address = { table: intent.table, partition, row };
    if (!isPossible(entity, address)) {
      refused ??= `it names a key that no entity of ${entity.name} can have`;
      return [];
    }
    // An index that only a later release declares is left to that release.
    const known = indexEntries.filter((indexEntry) => remoteIndexOf(entity, indexEntry));
    const possible = known.filter((indexEntry) => isPossible(entity, address, indexEntry));
    const other = known.find((indexEntry) => !possible.includes(indexEntry));
    if (other) refused ??= `it names an entry that the index ${other.index} of ${entity.name} cannot have for this key`;
    return [{ partition, row, indexEntries: possible }];
  });
  return { items, refused };
}

/** True if some field values produce this address, and this index entry if there is one. */
export function isPossible(entity: Entity, address: Address, indexEntry?: IndexEntry): boolean {
  const ofEntity: Pair[] = [
    [entity.partition, address.partition],
    [entity.row, address.row],
  ];
  const ofEntry = indexEntry ? pairsOf(entity, indexEntry) : [];
  const key = fieldsOf(entity, ofEntity);
  const others = ofEntry && fieldsOf(entity, ofEntry);
  if (!ofEntry || !key || !others) return false;
  // A field may have two forms in keys, such as an instant as text and as ticks: keys may be built from either.
  return [
    { ...others, ...key },
    { ...key, ...others },
  ].some((values) => builds(values, [...ofEntity, ...ofEntry]) && isTableOf(entity, values, address.table));
}

type Pair = readonly [template: KeyTemplate, key: string];

/** The templates of an index with the keys of an entry; undefined if the entry has another shape or table. */
function pairsOf(entity: Entity, indexEntry: IndexEntry): Pair[] | undefined {
  const { table, partition, row, member } = indexEntry;
  const remote = remoteIndexOf(entity, indexEntry);
  const at = remote?.at;
  if (at?.table !== table || (member !== undefined) !== (at.member !== undefined)) return undefined;
  const ofList: Pair[] = at.member && member !== undefined ? [[at.member, member]] : [];
  return [[at.partition, partition], [at.row, row], ...ofList];
}

/** The typed values of the fields in these keys; undefined for a key of another template. */
export function fieldsOf({ columns }: Entity, pairs: readonly Pair[]): Values | undefined {
  let fields: Values = {};
  for (const [template, key] of pairs) {
    const parsed = parseKey(template, key);
    if (!parsed) return undefined;
    fields = { ...fields, ...parsed };
  }
  const typed = Object.entries(fields).map(([field, value]) => {
    const isNumber = ['Int32', 'Int64', 'Double'].includes(columns[field] ?? '');
    return [field, isNumber ? Number(value) : value];
  });
  return Object.fromEntries(typed);
}

/** A key with the hash of a field that is in no key cannot be rebuilt; only its shape is checked. */
function builds(values: Values, pairs: readonly Pair[]): boolean {
  return unlessRefused(() =>
    pairs.every(
      ([template, key]) =>
        template.fields.some((field) => values[field] === undefined) || buildKey(template, values) === key,
    ),
  );
}

function isTableOf(entity: Entity, values: Values, table: string): boolean {
  return unlessRefused(() => tableOf(entity, values) === table);
}

function unlessRefused(check: () => boolean): boolean {
  try {
    return check();
  } catch (error) {
    if (error instanceof RowkeyError) return false;
    throw error;
  }
}
