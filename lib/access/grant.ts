import { z } from 'zod';
import { canWriteThroughGrant, type Entity } from '../define/entity.ts';
import { RowkeyError } from '../errors.ts';
import type { Address } from '../storage/rows.ts';
import type { TableSasRequest } from '../storage/table-sas-signer.ts';
import { validityAt } from './validity.ts';

/**
 * Shared access signatures pattern: what a client may do straight with storage, for a while. A grant is for one row, the
 * caller's own, or for one partition in which all is the caller's own. Its holder sees rows as they are stored, fields of
 * `access.restricted` included: the record is about them. What is encrypted stays so.
 */
export type Grant = TableSasRequest;

/** What a client asks for. */
export const GrantRequest = z.strictObject({
  entity: z.string().min(1),
  scope: z.literal('own').describe("The caller's own entity"),
  permissions: z
    .string()
    .regex(/^[raud]{1,4}$/, 'some of r (read), a (add), u (update) and d (delete) are needed')
    .default('r'),
});

/** What is granted for: a row, or all rows of a partition. */
export type Granted = Omit<Address, 'row'> & { readonly row?: string };

/** A grant for exactly this. */
export function grantFor(
  entity: Entity,
  { table, partition, row }: Granted,
  { permissions = 'r', now }: { readonly permissions?: string; readonly now: number },
): Grant {
  // An empty bound is left out of a signature, and a bound left out is no bound.
  if (partition === '' || row === '')
    throw new RowkeyError(
      'forbidden',
      `No grant can be issued for this entity of ${entity.name}: a part of its key is empty.`,
    );
  return {
    table,
    partition,
    ...(row === undefined ? {} : { firstRow: row, lastRow: row }),
    permissions: [...'raud'].filter((permission) => permissions.includes(permission)).join(''),
    ...validityAt(now),
  };
}

/** Throws `forbidden`, with the reason, where more is asked for than is given. */
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
