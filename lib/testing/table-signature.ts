import { createHmac } from 'node:crypto';
import { type Clock, StorageRejection, type StorageRequest } from './storage-request.ts';

/** What the holder of a shared access signature may do in a table; everything for the holder of the account key. */
export interface TableRights {
  require(permission: 'r' | 'a' | 'u' | 'd'): void;
  covers(partition: string, row: string): boolean;
}

interface Account {
  readonly account: string;
  /** In base64. */
  readonly key: string;
  readonly now: Clock;
}

const ALL: TableRights = { require: () => undefined, covers: () => true };
/** The fields of a table's signature in their order; `resource` is the table. https://learn.microsoft.com/rest/api/storageservices/create-service-sas */
const SIGNED = ['sp', 'st', 'se', 'resource', 'si', 'sip', 'spr', 'sv', 'spk', 'srk', 'epk', 'erk'];

/**
 * Returns what a request may do. Throws a 403 unless its signature is valid, or it carries an account key: the key itself is not
 * checked, because only the app has it.
 */
export function tableRights(
  { headers, query }: StorageRequest,
  table: string,
  { account, key, now }: Account,
): TableRights {
  if (headers.get('authorization')) return ALL;
  const field = (name: string) => query.get(name) ?? '';
  if (!query.has('sig')) throw new StorageRejection(403, 'AuthenticationFailed', 'The request has no signature.');
  const resource = `/table/${account}/${table.toLowerCase()}`;
  const signed = SIGNED.map((name) => (name === 'resource' ? resource : field(name))).join('\n');
  const signature = createHmac('sha256', Buffer.from(key, 'base64')).update(signed).digest('base64');
  const isValid = signature === field('sig') && field('tn').toLowerCase() === table.toLowerCase();
  const isNow = (!field('st') || Date.parse(field('st')) <= now()) && now() <= Date.parse(field('se'));
  if (!isValid || !isNow) throw new StorageRejection(403, 'AuthenticationFailed', 'The signature is not valid.');
  return {
    require(permission) {
      if (!field('sp').includes(permission))
        throw new StorageRejection(
          403,
          'AuthorizationPermissionMismatch',
          'The signature does not permit this operation.',
        );
    },
    covers: (partition, row) =>
      isFrom([field('spk'), field('srk')], partition, row) &&
      (!query.has('epk') || isFrom([partition, query.has('erk') ? row : ''], field('epk'), field('erk'))),
  };
}

/** True if a key is not before the bound: rows are in the order of their partition keys first. */
function isFrom([partition, row]: readonly [string, string], ofKey: string, rowOfKey: string): boolean {
  return ofKey > partition || (ofKey === partition && rowOfKey >= row);
}
