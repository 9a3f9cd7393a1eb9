import { createHmac } from 'node:crypto';
import { type Clock, StorageRejection } from './storage-request.ts';

export interface BlobRights {
  /** One of the permissions is enough. */
  require(...permissions: readonly string[]): void;
  /** True if the holder may create a blob and must not replace one. */
  readonly onlyCreates: boolean;
  /** The response headers that the signature sets. */
  readonly headers: Readonly<Record<string, string | undefined>>;
}

interface SignedRequest {
  /** Undefined or empty without an account key. */
  readonly authorization: string | undefined;
  readonly query: URLSearchParams;
  readonly container: string;
  readonly blob: string;
}

const ALL: BlobRights = { require: () => undefined, onlyCreates: false, headers: {} };
/** https://learn.microsoft.com/rest/api/storageservices/create-service-sas, for versions from 2020-12-06 on. */
const SIGNED = [
  'sp',
  'st',
  'se',
  'resource',
  'si',
  'sip',
  'spr',
  'sv',
  'sr',
  'time',
  'ses',
  'rscc',
  'rscd',
  'rsce',
  'rscl',
  'rsct',
];

/** What the signature of a request allows for a blob or the container. */
export function blobRights(
  { authorization, query, container, blob }: SignedRequest,
  { account, key, now }: { readonly account: string; readonly key: string; readonly now: Clock },
): BlobRights {
  if (authorization) return ALL;
  const field = (name: string) => query.get(name) ?? '';
  const resource = `/blob/${account}/${container}${field('sr') === 'b' ? `/${blob}` : ''}`;
  const signed = SIGNED.map((name) => (name === 'resource' ? resource : field(name))).join('\n');
  const signature = createHmac('sha256', Buffer.from(key, 'base64')).update(signed).digest('base64');
  const isNow = (!field('st') || Date.parse(field('st')) <= now()) && now() <= Date.parse(field('se'));
  if (signature !== field('sig') || !isNow)
    throw new StorageRejection(403, 'AuthenticationFailed', 'The request has no valid signature.');
  const has = (permission: string) => field('sp').includes(permission);
  return {
    require(...permissions) {
      if (!permissions.some(has))
        throw new StorageRejection(
          403,
          'AuthorizationPermissionMismatch',
          'The signature does not permit this operation.',
        );
    },
    onlyCreates: has('c') && !has('w'),
    headers: {
      'cache-control': query.get('rscc') ?? undefined,
      'content-disposition': query.get('rscd') ?? undefined,
      'content-encoding': query.get('rsce') ?? undefined,
      'content-language': query.get('rscl') ?? undefined,
      'content-type': query.get('rsct') ?? undefined,
    },
  };
}
