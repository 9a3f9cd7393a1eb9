import {
  BlobSASPermissions,
  generateBlobSASQueryParameters,
  SASProtocol,
  StorageSharedKeyCredential,
  type UserDelegationKey,
} from '@azure/storage-blob';
import { HOUR_MS } from '../base/time.ts';
import type { BlobAddress, BlobHeaders } from './blobs.ts';
import { storageCall } from './errors.ts';
import { runUnexplained } from './explain.ts';
import type { Storage } from './storage.ts';

/** Permission to create a blob that does not exist yet: its holder can neither read nor overwrite it. */
export const UPLOAD_PERMISSIONS = 'c';
export const READ_PERMISSIONS = 'r';
/** The service allows 7 days; a key with a shorter life does less harm if it leaks. */
const KEY_VALID_FOR_MS = 6 * HOUR_MS;

interface BlobSasRequest {
  readonly permissions: string;
  readonly startsAt: Date;
  readonly expiresAt: Date;
  /** Storage returns these headers instead of the blob's own. */
  readonly headers?: BlobHeaders;
}

/**
 * Returns a URL with which a client may use this blob for a while. The signature uses the account key if there is one (the
 * emulator), else a key delegated to the app's identity, which needs the role Storage Blob Delegator.
 */
export async function signBlobUrl(
  storage: Storage,
  { container, name }: BlobAddress,
  { permissions, startsAt, expiresAt, headers }: BlobSasRequest,
): Promise<string> {
  const { url, containerName } = storage.container(container).getBlobClient(name);
  const values = {
    containerName,
    blobName: name,
    permissions: BlobSASPermissions.parse(permissions),
    startsOn: startsAt,
    expiresOn: expiresAt,
    ...(headers
      ? {
          contentType: headers.type,
          contentDisposition: headers.disposition ?? '',
          cacheControl: headers.cacheControl ?? '',
        }
      : {}),
    protocol: url.startsWith('http:') ? SASProtocol.HttpsAndHttp : SASProtocol.Https,
  };
  const { credential, accountName } = storage.blobs;
  const query =
    credential instanceof StorageSharedKeyCredential
      ? generateBlobSASQueryParameters(values, credential)
      : generateBlobSASQueryParameters(values, await keyFor(storage, startsAt, expiresAt), accountName);
  return `${url}?${query}`;
}

const keys = new WeakMap<Storage, UserDelegationKey>();

/** The key is kept until it would expire before the signature. */
async function keyFor(storage: Storage, startsAt: Date, expiresAt: Date): Promise<UserDelegationKey> {
  const kept = keys.get(storage);
  if (kept && kept.signedStartsOn <= startsAt && expiresAt <= kept.signedExpiresOn) return kept;
  const until = new Date(startsAt.getTime() + KEY_VALID_FOR_MS);
  const key = await runUnexplained(() => storageCall(storage.blobs.getUserDelegationKey(startsAt, until)));
  keys.set(storage, key);
  return key;
}
