import type { Address, TableSasRequest } from '../../kit/storage.ts';

/**
 * Returns whether the service would allow an operation on a row at an instant. The bounds are inclusive and compared
 * character by character, partition first; table names are compared without regard to case. Azurite checks no key
 * bounds, so the tests of isolation between callers use this function.
 */
export function covers(
  grant: TableSasRequest,
  { table, partition, row }: Address,
  permission: 'r' | 'a' | 'u' | 'd',
  at: number,
): boolean {
  return (
    grant.permissions.includes(permission) &&
    grant.startsAt.getTime() <= at &&
    at < grant.expiresAt.getTime() &&
    grant.table.toLowerCase() === table.toLowerCase() &&
    !comesBefore([partition, row], [grant.partition, grant.firstRow ?? '']) &&
    !comesBefore([grant.partition, grant.lastRow ?? row], [partition, row])
  );
}

type Key = readonly [partition: string, row: string];

/** The key order of Table storage: by UTF-16 code units, as JavaScript compares. */
function comesBefore(one: Key, other: Key): boolean {
  return one[0] === other[0] ? one[1] < other[1] : one[0] < other[0];
}
