import { z } from 'zod';
import type { IndexEntry as Entry } from '../../define/declaration/projection.ts';

/** The queue of intents: work outside the partition that a write may have left. */
export const INDEX_CHANGES_QUEUE = 'index-changes';
/** The queue of archives and moves. */
export const TRANSFERS_QUEUE = 'transfers';
/** The queue may still have messages of an older version during a deployment. */
export const MESSAGE_VERSION = 1;

const IndexEntry = z.strictObject({
  index: z.string(),
  table: z.string(),
  partition: z.string(),
  row: z.string(),
  member: z.string().optional(),
});

const Items = z.array(z.strictObject({ partition: z.string(), row: z.string(), indexEntries: z.array(IndexEntry) }));

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
export const MESSAGE = { version: z.literal(MESSAGE_VERSION), traceparent: z.string().optional() };

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
/** An entity whose index entries in other partitions, or whose tombstone, must be settled. */
export interface IntentItem {
  readonly partition: string;
  readonly row: string;
  readonly indexEntries: readonly Entry[];
}
