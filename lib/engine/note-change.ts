import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { isOutcomeUnknown } from '../base/errors.ts';
import { isoInstant } from '../base/time.ts';
import type { Address } from '../storage/rows.ts';
import type { Engine } from './engine.ts';

/**
 * Collects the changes of a request for the audit log: the engine notes each change, and the code that runs the request collects
 * the notes. Outside a request, as in a queue function, there is no caller and nothing is noted.
 */

export const ChangeRecord = z.object({
  /** The id of the change, the same in every copy of its record. */
  id: z.string(),
  at: z.iso.datetime(),
  /** The subject of the caller's token. */
  by: z.string(),
  operation: z.enum([
    /** By a steward. */
    'read',
    'create',
    'replace',
    /** Created or replaced without a read. */
    'put',
    'delete',
    'archive',
    'move',
    'count',
    'replay',
    'drop',
    'grant',
    'revoke',
    'restore',
    'block',
    'unblock',
    'erase',
  ]),
  entity: z.string(),
  table: z.string(),
  partition: z.string(),
  /** Absent if a grant covers, or a list reads, rows of a partition, which is empty if the list is not of one. */
  row: z.string().optional(),
  /** Names of the changed fields, or of those by which an index is read, without their values. */
  fields: z.array(z.string()),
  etag: z.string().optional(),
  /** The permissions of a grant and its expiry. Its signature is never recorded. */
  permissions: z.string().optional(),
  until: z.iso.datetime().optional(),
  /** The identity whose grants are revoked or restored, who is blocked or unblocked, or whose data is erased. */
  subject: z.string().optional(),
  /** Set if the outcome is unknown. */
  outcome: z.literal('unknown').optional(),
});
export type ChangeRecord = z.infer<typeof ChangeRecord>;

export type NotedChange = Pick<
  ChangeRecord,
  'operation' | 'entity' | 'outcome' | 'permissions' | 'until' | 'subject'
> & {
  readonly address: Omit<Address, 'row'> & { readonly row?: string };
  readonly fields?: readonly string[];
  readonly etag?: string | undefined;
};

type Keep = (changes: readonly ChangeRecord[]) => Promise<void>;

interface Collection {
  readonly by: string;
  readonly keep: Keep;
  /** Noted, and not yet passed to `keep`. */
  changes: ChangeRecord[];
  /** All that was noted. */
  readonly rows: Set<string>;
  early?: Promise<void> | undefined;
}

const collections = new AsyncLocalStorage<Collection>();

/**
 * Runs `work` and passes the noted changes to `keep`, which ends before this returns or throws, also if `work` failed half way. An
 * error of `keep` replaces the result.
 */
export async function collectChanges<Result>(by: string, work: () => Promise<Result>, keep: Keep): Promise<Result> {
  const collection: Collection = { by, keep, changes: [], rows: new Set() };
  try {
    return await collections.run(collection, work);
  } finally {
    await Promise.all([collection.early, keepNoted(collection)]);
  }
}

/** Who makes the changes of this request; undefined outside a request. */
export function authorOfChanges(): string | undefined {
  return collections.getStore()?.by;
}

/**
 * Starts to keep what has been noted, so that the rest of the work does not wait for it. Only the first call has an effect: a
 * request that commits many times has its other changes kept together at its end.
 */
export function keepEarly(): void {
  const collection = collections.getStore();
  if (!collection || collection.early) return;
  collection.early = keepNoted(collection);
  // Awaited at the end of the work.
  collection.early?.catch(() => undefined);
}

function keepNoted(collection: Collection): Promise<void> | undefined {
  const { changes, keep } = collection;
  if (changes.length === 0) return undefined;
  collection.changes = [];
  return keep(changes);
}

/** Notes a change that was made or whose outcome is unknown. Does nothing outside `collectChanges`. */
export function noteChange(
  { now: atEngine, present }: Engine,
  { operation, entity, address, fields = [], ...more }: NotedChange,
): void {
  const collection = collections.getStore();
  if (!collection) return;
  const { table, partition, row } = address;
  const { by, changes, rows } = collection;
  const { now } = present ?? { now: atEngine };
  const at = isoInstant(now());
  // Undefined fields are left out.
  const known = Object.fromEntries(Object.entries({ row, ...more }).filter(([, value]) => value !== undefined));
  const change = { id: randomUUID(), at, by, operation, entity, table, partition, fields: [...fields], ...known };
  changes.push(ChangeRecord.parse(change));
  rows.add(nameRow(address));
}

/** True if the request has noted a change, or a read, of this row. */
export function isNoted(address: Address): boolean {
  return collections.getStore()?.rows.has(nameRow(address)) ?? false;
}

function nameRow({ table, partition, row }: NotedChange['address']): string {
  return JSON.stringify([table, partition, row]);
}

/** Makes a change and notes it. */
export async function makeAndNote<Result>(
  engine: Engine,
  change: NotedChange,
  make: () => Promise<Result>,
): Promise<Result> {
  try {
    const result = await make();
    noteChange(engine, change);
    return result;
  } catch (error) {
    if (isOutcomeUnknown(error)) noteChange(engine, { ...change, outcome: 'unknown' });
    throw error;
  }
}
