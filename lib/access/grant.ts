import { z } from 'zod';
import { RowkeyError } from '../base/errors.ts';
import { MINUTE_MS } from '../base/time.ts';
import { canWriteThroughGrant, type Entity } from '../define/declaration/entity.ts';
import { rangeOfPrefix } from '../define/keys/key-template.ts';
import type { Address } from '../storage/rows.ts';
import type { TableSasRequest } from '../storage/table-sas.ts';

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

/** A row, or the rows of the entity in a partition. */
export type Granted = Omit<Address, 'row'> & { readonly row?: string };

/**
 * Shared access signatures pattern: a client accesses storage directly for a while. A grant covers one row, the caller's
 * own, or the entity's rows of one partition, which are all the caller's own. Its holder sees rows as stored, including the fields
 * of `access.restricted`, because the rows are about the holder. Encrypted fields stay encrypted.
 */
export function grantFor(
  entity: Entity,
  { table, partition, row }: Granted,
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
    ...(row === undefined ? rowsOf(entity) : { firstRow: row, lastRow: row }),
    permissions: sortPermissions(permissions),
    ...validityAt(now),
  };
}

/**
 * The rows that begin with the first text of the row key, so that other entities of the partition stay closed. The end is inclusive: the
 * validation of the model ensures that no row of another entity is within these bounds.
 */
function rowsOf({ row: { head } }: Entity): Pick<TableSasRequest, 'firstRow' | 'lastRow'> {
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
