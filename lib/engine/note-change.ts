import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { RowkeyError } from '../errors.ts';
import type { Address } from '../storage/rows.ts';
import { isoInstant } from '../time.ts';
import type { Engine } from './engine.ts';

/**
 * Who changed what: the patterns note each change as they make it, and whoever runs a request collects what was noted
 * inside it. Outside a request, as in a queue function, there is no caller and nothing is noted.
 */

export const ChangeRecord = z.object({
  /** One change has one id, however often its record is written. */
  id: z.string(),
  at: z.iso.datetime(),
  /** The subject of the caller's token. */
  by: z.string(),
  operation: z.enum([
    'create',
    'replace',
    'delete',
    'archive',
    'move',
    'count',
    'replay',
    'drop',
    'grant',
    'revoke',
    'restore',
  ]),
  entity: z.string(),
  table: z.string(),
  partition: z.string(),
  /** Absent where all rows of a partition are granted. */
  row: z.string().optional(),
  /** Names of the fields that changed, and not what is in them. */
  fields: z.array(z.string()),
  etag: z.string().optional(),
  /** Of a grant, and until when it is good; its signature is nowhere. */
  permissions: z.string().optional(),
  until: z.iso.datetime().optional(),
  /** The identity whose grants are revoked or restored. */
  subject: z.string().optional(),
  /** Storage did not say whether it was done. */
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

const collections = new AsyncLocalStorage<{ readonly by: string; readonly changes: ChangeRecord[] }>();

/**
 * Runs `work`, and has `keep` keep what was noted inside it before anyone learns how it ended, also where it failed half
 * way. Where it cannot be kept, that is the failure.
 */
export async function collectChanges<Result>(
  by: string,
  work: () => Promise<Result>,
  keep: (changes: readonly ChangeRecord[]) => Promise<void>,
): Promise<Result> {
  const changes: ChangeRecord[] = [];
  try {
    return await collections.run({ by, changes }, work);
  } finally {
    if (changes.length > 0) await keep(changes);
  }
}

/** Notes a change that was made, or of which that is not known, where somebody collects them. */
export function noteChange({ now }: Engine, { operation, entity, address, fields = [], ...more }: NotedChange): void {
  const collection = collections.getStore();
  if (!collection) return;
  const { table, partition, row } = address;
  const { by, changes } = collection;
  const at = isoInstant(now());
  // What is not known is left out.
  const known = Object.fromEntries(Object.entries({ row, ...more }).filter(([, value]) => value !== undefined));
  const change = { id: randomUUID(), at, by, operation, entity, table, partition, fields: [...fields], ...known };
  changes.push(ChangeRecord.parse(change));
}

/** Makes a change and notes it. */
export async function noted<Result>(engine: Engine, change: NotedChange, make: () => Promise<Result>): Promise<Result> {
  try {
    const result = await make();
    noteChange(engine, change);
    return result;
  } catch (error) {
    if (isUnknown(error)) noteChange(engine, { ...change, outcome: 'unknown' });
    throw error;
  }
}

/** Whether what failed so may have been done all the same. */
export function isUnknown(error: unknown): boolean {
  return error instanceof RowkeyError && error.code === 'storage-unavailable';
}
