import { z } from 'zod';

/** The queue of intents: what a write may have left to do outside its partition. */
export const INDEX_CHANGES_QUEUE = 'index-changes';
/** The queue of archives and moves. */
export const TRANSFERS_QUEUE = 'transfers';
/** Messages of an older version are still on the queue while a new one is deployed. */
export const MESSAGE_VERSION = 1;

const IndexEntry = z.strictObject({
  index: z.string(),
  table: z.string(),
  partition: z.string(),
  row: z.string(),
  member: z.string().optional(),
});

/** What every message has: its version, and the trace in which it was sent, so that what it brings on is a part of it. */
export const MESSAGE = { version: z.literal(MESSAGE_VERSION), traceparent: z.string().optional() };

/**
 * Not strict: what a later release adds, and an earlier one may leave unread, takes no other version. No name at the top may be
 * one of `trigger-metadata.ts`.
 */
export const Intent = z.object({
  ...MESSAGE,
  /** The id of the write, which its claims carry. */
  intent: z.string().min(1),
  entity: z.string().min(1),
  table: z.string().min(1),
  items: z.array(z.strictObject({ partition: z.string(), row: z.string(), indexEntries: z.array(IndexEntry) })),
});

export type Intent = z.infer<typeof Intent>;
