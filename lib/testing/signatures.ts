import { createHmac } from 'node:crypto';
import { type Clock, StorageRejection, type StorageRequest } from './storage-request.ts';

/**
 * Shared access signatures: https://learn.microsoft.com/rest/api/storageservices/create-service-sas, those of blobs for versions from 2020-12-06
 * on. A request with the account key may do everything: the key itself is not checked, because only the app has it.
 */

/** What the holder of a signature may do in a table. */
export interface TableRights {
  require(permission: 'r' | 'a' | 'u' | 'd'): void;
  covers(partition: string, row: string): boolean;
}

/** What the signature of a request allows for a blob or the container. */
export interface BlobRights {
  /** One of the permissions is enough. */
  require(...permissions: readonly string[]): void;
  /** True if the holder may create a blob and must not replace one. */
  readonly onlyCreates: boolean;
  /** The response headers that the signature sets. */
  readonly headers: Readonly<Record<string, string | undefined>>;
}

interface Account {
  readonly account: string;
  /** In base64. */
  readonly key: string;
  readonly now: Clock;
}

const ALL = { require: () => undefined, covers: () => true, onlyCreates: false, headers: {} };
/** The fields of a signature in their order; `resource` is the table, the blob or the container. */
const OF_TABLES = ['sp', 'st', 'se', 'resource', 'si', 'sip', 'spr', 'sv', 'spk', 'srk', 'epk', 'erk'];
const OF_BLOBS = [
  ...['sp', 'st', 'se', 'resource', 'si', 'sip', 'spr', 'sv', 'sr', 'time', 'ses'],
  ...['rscc', 'rscd', 'rsce', 'rscl', 'rsct'],
];

/** Returns what a request may do. Throws a 403 unless it carries a valid signature or an account key. */
export function tableRights({ headers, query }: StorageRequest, table: string, account: Account): TableRights {
  if (headers.get('authorization')) return ALL;
  const field = (name: string) => query.get(name) ?? '';
  const require = checkSignature(field, OF_TABLES, `/table/${account.account}/${table.toLowerCase()}`, account);
  if (field('tn').toLowerCase() !== table.toLowerCase()) throw invalidSignature();
  return {
    require,
    covers: (partition, row) =>
      isFrom([field('spk'), field('srk')], partition, row) &&
      (!query.has('epk') || isFrom([partition, query.has('erk') ? row : ''], field('epk'), field('erk'))),
  };
}

/** Returns what a request may do, like `tableRights`. */
export function blobRights(
  { authorization, query }: { readonly authorization: string | undefined; readonly query: URLSearchParams },
  { container, name }: { readonly container: string; readonly name: string },
  account: Account,
): BlobRights {
  if (authorization) return ALL;
  const field = (name: string) => query.get(name) ?? '';
  const resource = `/blob/${account.account}/${container}${field('sr') === 'b' ? `/${name}` : ''}`;
  return {
    require: checkSignature(field, OF_BLOBS, resource, account),
    onlyCreates: field('sp').includes('c') && !field('sp').includes('w'),
    headers: {
      'cache-control': query.get('rscc') ?? undefined,
      'content-disposition': query.get('rscd') ?? undefined,
      'content-encoding': query.get('rsce') ?? undefined,
      'content-language': query.get('rscl') ?? undefined,
      'content-type': query.get('rsct') ?? undefined,
    },
  };
}

/** Returns a check of a permission. Throws a 403 unless the signature is valid now. */
function checkSignature(
  field: (name: string) => string,
  fields: readonly string[],
  resource: string,
  { key, now }: Account,
) {
  const signed = fields.map((name) => (name === 'resource' ? resource : field(name))).join('\n');
  const signature = createHmac('sha256', Buffer.from(key, 'base64')).update(signed).digest('base64');
  const isNow = (!field('st') || Date.parse(field('st')) <= now()) && now() <= Date.parse(field('se'));
  if (signature !== field('sig') || !isNow) throw invalidSignature();
  return (...permissions: readonly string[]): void => {
    if (permissions.some((permission) => field('sp').includes(permission))) return;
    throw new StorageRejection(403, 'AuthorizationPermissionMismatch', 'The signature does not permit this operation.');
  };
}

function invalidSignature(): StorageRejection {
  return new StorageRejection(403, 'AuthenticationFailed', 'The request has no valid signature.');
}

/** True if a key is not before the bound: rows are in the order of their partition keys first. */
function isFrom([partition, row]: readonly [string, string], ofKey: string, rowOfKey: string): boolean {
  return ofKey > partition || (ofKey === partition && rowOfKey >= row);
}
