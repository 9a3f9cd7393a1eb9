import { z } from 'zod';
import { RowkeyError } from '../errors.ts';
import type { Entity } from '../patterns/entity.ts';
import type { Address } from '../storage/rows.ts';
import type { TableSasRequest } from '../storage/table-sas-signer.ts';

/**
 * Shared access signatures pattern: what a client may do straight with storage, for a while. A grant is for one row,
 * the caller's own. Its holder sees the row as it is stored, fields of `access.restricted` included: the record is
 * about them.
 */
export interface Grant extends TableSasRequest {
  readonly permissions: 'r';
}

/** Read, add, update, delete: https://learn.microsoft.com/rest/api/storageservices/create-service-sas */
export type Permission = 'r' | 'a' | 'u' | 'd';

/** What a client asks for. */
export const GrantRequest = z.strictObject({
  entity: z.string().min(1),
  scope: z.literal('own').describe("The caller's own entity"),
  permissions: z
    .string()
    .regex(/^[raud]{1,4}$/, 'some of r (read), a (add), u (update) and d (delete) are needed')
    .default('r'),
});

const VALID_FOR_MS = 15 * 60_000;
/** The clocks of storage may be behind ours; the documentation of shared access signatures advises 15 minutes. */
const CLOCK_SKEW_MS = 15 * 60_000;

/** A grant to read exactly this row. The times are whole seconds, as signatures carry them. */
export function grantFor(entity: Entity, { table, partition, row }: Address, now: number): Grant {
  // An empty bound is left out of a signature, and a bound left out is no bound.
  if (partition === '' || row === '')
    throw new RowkeyError('forbidden', `No grant can be given for one of ${entity.name}: its key has an empty part.`);
  return {
    table,
    partition,
    firstRow: row,
    lastRow: row,
    permissions: 'r',
    startsAt: wholeSeconds(now - CLOCK_SKEW_MS),
    expiresAt: wholeSeconds(now + VALID_FOR_MS),
  };
}

/** Throws `forbidden`, with the reason, where more is asked for than is given. */
export function requireGrantable(entity: Entity, permissions: string): void {
  if (permissions === 'r') return;
  const why = canWriteThroughGrant(entity)
    ? 'what is written has to be checked by the API'
    : 'its indexes and copies would not follow what is written past the API';
  throw new RowkeyError('forbidden', `A grant for ${entity.name} is for reading only: ${why}.`, {
    field: 'permissions',
    accepted: 'r',
  });
}

/**
 * Whether the service would allow an operation on a row at a moment: the first and the last key are inclusive and
 * compared character by character, partition first; the table's name is compared without regard to case.
 * Azurite checks no key, so it is by this function that the isolation of callers is tested.
 */
export function covers(grant: Grant, { table, partition, row }: Address, permission: Permission, at: number): boolean {
  return (
    grant.permissions === permission &&
    grant.startsAt.getTime() <= at &&
    at < grant.expiresAt.getTime() &&
    grant.table.toLowerCase() === table.toLowerCase() &&
    !comesBefore([partition, row], [grant.partition, grant.firstRow]) &&
    !comesBefore([grant.partition, grant.lastRow], [partition, row])
  );
}

/** Whether the row is all there is of the entity, so that writing it past the API leaves nothing behind that disagrees. */
export function canWriteThroughGrant({ indexes, denormalized, dependents, archive }: Entity): boolean {
  return Object.keys(indexes).length === 0 && denormalized.length === 0 && dependents.length === 0 && !archive;
}

type Key = readonly [partition: string, row: string];

/** The order of keys in Table storage: by UTF-16 code units, as JavaScript compares. */
function comesBefore(one: Key, other: Key): boolean {
  return one[0] === other[0] ? one[1] < other[1] : one[0] < other[0];
}

function wholeSeconds(milliseconds: number): Date {
  return new Date(Math.floor(milliseconds / 1000) * 1000);
}
