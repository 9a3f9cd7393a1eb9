import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import { ROW_TYPES, SYSTEM_PARTITIONS } from '../base/engine-names.ts';
import { RowkeyError } from '../base/errors.ts';
import { keptFor } from '../base/once.ts';
import { isoInstant, MINUTE_MS } from '../base/time.ts';
import { canWriteThroughGrant, type Entity } from '../define/declaration/entity.ts';
import { rangeOfPrefix } from '../define/keys/key-template.ts';
import type { Engine } from '../engine/engine.ts';
import { makeAndNote } from '../engine/note-change.ts';
import { isExplaining } from '../storage/explain.ts';
import { type Address, readRange, readRow, submit, tryAction } from '../storage/rows.ts';
import { SYSTEM_TABLE } from '../storage/slot-row.ts';
import type { Storage } from '../storage/storage.ts';
import type { TableSasRequest } from '../storage/table-sas.ts';
import type { RowRange } from './granted-rows.ts';
import { createRateLimit } from './rate-limit.ts';

/** The body of a request for a grant. */
export const GrantRequest = z.strictObject({
  entity: z.string().min(1),
  scope: z.literal('own').describe("The caller's own entity"),
  permissions: z
    .string()
    .regex(/^[raud]{1,4}$/, 'some of r (read), a (add), u (update) and d (delete) are needed')
    .default('r')
    .describe('Some of r (read), a (add), u (update) and d (delete); r by default'),
  renew: z
    .boolean()
    .optional()
    .describe('True for a new grant instead of a repeated one, if storage rejected that one'),
});

/** A row, or the rows of the entity in a partition, of which rules may leave a range. */
export type Granted = Omit<Address, 'row'> & { readonly row?: string; readonly rows?: RowRange | undefined };

/**
 * Shared access signatures pattern: a client accesses storage directly for a while. A grant covers one row, the caller's
 * own, or the entity's rows of one partition, which are all the caller's own and within the caller's rules. Its holder sees rows as
 * stored, so the caller must be able to read all fields of those rows. Encrypted fields stay encrypted.
 */
export function grantFor(
  entity: Entity,
  { table, partition, row, rows = rowsOf(entity) }: Granted,
  { permissions = 'r', now }: { readonly permissions?: string; readonly now: number },
): TableSasRequest {
  // The signature omits an empty bound, and would then cover more than the row or partition.
  if (partition === '' || row === '')
    throw new RowkeyError(
      'forbidden',
      `No grant can be issued for this entity of ${entity.name}: a part of its key is empty.`,
    );
  return {
    table,
    partition,
    ...(row === undefined ? rows : { firstRow: row, lastRow: row }),
    permissions: sortPermissions(permissions),
    ...validityAt(now),
  };
}

/**
 * The rows that begin with the first text of the row key, so that other entities of the partition stay closed. The end is inclusive: the
 * validation of the model ensures that no row of another entity is within these bounds.
 */
function rowsOf({ row: { head } }: Entity): RowRange {
  if (head === '') return {};
  const { from, before } = rangeOfPrefix(head);
  return { firstRow: from, ...(before === undefined ? {} : { lastRow: before }) };
}

/** Each permission once, in the order of a signature. */
export function sortPermissions(permissions: string): string {
  return [...'raud'].filter((permission) => permissions.includes(permission)).join('');
}

/** Throws `forbidden` if the permissions exceed those that the entity grants. */
export function requireGrantable(entity: Entity, permissions: string): void {
  const { own } = entity.access;
  const accepted = own && 'through' in own ? own.permissions : 'r';
  if ([...permissions].every((permission) => accepted.includes(permission))) return;
  const why = canWriteThroughGrant(entity)
    ? 'only the API checks other changes'
    : 'its indexes and copies would not follow a direct write to storage';
  throw new RowkeyError(
    'forbidden',
    `A grant for ${entity.name} cannot have the permissions "${permissions}": ${why}.`,
    {
      field: 'permissions',
      accepted,
    },
  );
}

/** How long a signature is valid. */
export const VALID_FOR_MS = 15 * MINUTE_MS;
/** The clocks of storage may be behind; the documentation of shared access signatures advises 15 minutes. */
const CLOCK_SKEW_MS = 15 * MINUTE_MS;

/** When a signature issued at `now` (milliseconds) is valid, in whole seconds as in signatures. */
export function validityAt(now: number): { readonly startsAt: Date; readonly expiresAt: Date } {
  return { startsAt: toWholeSeconds(now - CLOCK_SKEW_MS), expiresAt: toWholeSeconds(now + VALID_FOR_MS) };
}

function toWholeSeconds(milliseconds: number): Date {
  return new Date(Math.floor(milliseconds / 1000) * 1000);
}

/**
 * Limits and revokes grants. Storage verifies a signature on its own, so an issued grant cannot be revoked: a revocation
 * stops new grants, and existing ones expire within `VALID_FOR_MS`. Revoking immediately would need a stored access policy
 * for each grant; a table has five at most, and user delegation keys do not support them.
 */

/** For each identity in each process, so several instances of the app allow a multiple of this. */
export const GRANTS_PER_MINUTE = 60;
/** The entity that the audit log names for a revocation. */
export const GRANTS = 'grants';
const REVOKED = SYSTEM_PARTITIONS.revoked;

const limitOf = createRateLimit({ points: GRANTS_PER_MINUTE, duration: 60 });

/**
 * Admits one more grant for the identity and returns the instant (milliseconds) at which the grant begins. One storage
 * transaction. Throws `too-many-requests`, `forbidden`.
 */
export async function admitGrant(engine: Engine, subject: string): Promise<number> {
  const at = engine.now();
  await limitGrants(engine, subject);
  return requireUnrevoked(engine, subject, at);
}

/** Counts one more request of the identity for a grant. Throws `too-many-requests`. */
export async function limitGrants({ storage }: Pick<Engine, 'storage'>, subject: string): Promise<void> {
  const retryAfter = await limitOf(storage, subject);
  if (retryAfter === undefined) return;
  const accepted = `${GRANTS_PER_MINUTE} grants a minute`;
  throw new RowkeyError('too-many-requests', 'The identity requested too many grants.', { retryAfter, accepted });
}

/**
 * Returns the instant (milliseconds) at which a new grant begins. It precedes the check for a revocation, so a grant issued
 * during a revocation expires with the earlier ones. One storage transaction. Throws `forbidden`.
 */
export async function requireUnrevoked({ storage, now }: Engine, subject: string, at: number = now()): Promise<number> {
  if (await readRow(storage, addressOf(subject)))
    throw new RowkeyError('forbidden', 'Grants are revoked for this identity; an operator can restore them.');
  return at;
}

/** Stops grants for an identity. Returns the instant (milliseconds) at which its last grant expires. */
export async function revokeGrants(engine: Engine, subject: string): Promise<number> {
  const address = addressOf(subject);
  const properties = { EntityType: ROW_TYPES.revoked, Subject: subject, RevokedAt: isoInstant(engine.now()) };
  await makeAndNote(engine, { operation: 'revoke', entity: GRANTS, address, subject }, () =>
    submit(engine.storage, { ...address, actions: [{ kind: 'upsert', row: address.row, properties }] }),
  ).finally(() => forgetGrants(engine));
  return engine.now() + VALID_FOR_MS;
}

/** Ends a revocation. Throws `not-found`. */
export async function restoreGrants(engine: Engine, subject: string): Promise<void> {
  const address = addressOf(subject);
  await makeAndNote(engine, { operation: 'restore', entity: GRANTS, address, subject }, async () => {
    if (!(await tryAction(engine.storage, address, { kind: 'delete', row: address.row })))
      throw new RowkeyError('not-found', 'Grants are not revoked for this identity.');
  });
}

interface Revocation {
  readonly subject: string;
  readonly revokedAt: string;
}

/** Lists the identities whose grants are revoked, in no particular order. `next` is where the next page starts. */
export async function listRevocations(
  { storage }: Engine,
  { limit, after }: { readonly limit: number; readonly after: string | undefined },
): Promise<{ items: Revocation[]; next: string | undefined }> {
  const from = { table: SYSTEM_TABLE, partition: REVOKED, from: '' };
  const { rows, more } = await readRange(storage, { ...from, after, limit });
  const items = rows.map(({ properties }) => ({
    subject: String(properties.Subject),
    revokedAt: String(properties.RevokedAt),
  }));
  return { items, next: more ? rows.at(-1)?.row : undefined };
}

/** Hashed, because a subject may contain characters and lengths that keys cannot have. */
function addressOf(subject: string): Address {
  const row = createHash('sha256').update(subject).digest('hex');
  return { table: SYSTEM_TABLE, partition: REVOKED, row };
}

/**
 * Remembers issued grants, so that a repeated request takes no storage transaction. The caller gets the same signature with
 * the same expiry again, and so no right that the caller does not hold already: a revocation, another owner and the audit log
 * concern new grants only. After a move of the owner's row, the repeated grant is of the former row, so a caller whom storage
 * refuses asks for a new grant. Each process has its own memory, and a revocation in the process empties it.
 */

/** A grant is valid for 15 minutes, so a repeated one is valid for at least 10 more. */
export const GRANTS_KEPT_MS = 5 * MINUTE_MS;
/** Total length of the remembered keys and grants (characters): some thousand grants. */
const KEPT_LENGTH = 8_000_000;

interface Kept {
  readonly grant: unknown;
  /** When the grant began (milliseconds). */
  readonly since: number;
}

interface Memory {
  readonly grants: LRUCache<string, Kept>;
  revocations: number;
}

const memoryOf = keptFor((_: Storage): Memory => ({ grants: new LRUCache({ maxSize: KEPT_LENGTH }), revocations: 0 }));

/** Everything on which a grant depends: a request with another subject, claim or role gets another grant. */
type GrantKey = readonly unknown[];

/** The grant that was issued for the same key in the last minutes, if there is one. */
export function recallGrant<Grant>({ storage, now }: Engine, key: GrantKey): Grant | undefined {
  // An explanation shows the steps of a first request.
  if (isExplaining()) return undefined;
  const kept = memoryOf(storage).grants.get(JSON.stringify(key));
  const age = kept && now() - kept.since;
  return kept && age !== undefined && age >= 0 && age < GRANTS_KEPT_MS ? (kept.grant as Grant) : undefined;
}

/**
 * Begins to issue a grant. Returns the function that remembers the grant, to be called when the grant is in the audit log. It
 * does nothing if the process has revoked grants since, or in an explanation, whose grant nobody gets.
 */
export function beginGrant({ storage }: Engine, key: GrantKey): (grant: unknown, since: number) => void {
  const memory = memoryOf(storage);
  const { revocations } = memory;
  return (grant, since) => {
    if (memory.revocations !== revocations || isExplaining()) return;
    const id = JSON.stringify(key);
    memory.grants.set(id, { grant, since }, { size: id.length + JSON.stringify(grant).length });
  };
}

/** Forgets all grants of the process, so that it refuses the next request of a revoked identity. */
function forgetGrants({ storage }: Engine): void {
  const memory = memoryOf(storage);
  memory.revocations += 1;
  memory.grants.clear();
}
