import {
  BlobSASPermissions,
  generateBlobSASQueryParameters,
  SASProtocol,
  StorageSharedKeyCredential,
  type UserDelegationKey,
} from '@azure/storage-blob';
import { HOUR_MS } from '../time.ts';
import type { BlobAddress } from './blobs.ts';
import { storageCall } from './errors.ts';
import { unexplained } from './explain.ts';
import type { Storage } from './storage.ts';

/** To create a blob that is not there yet. */
export const UPLOAD_PERMISSIONS = 'c';
/** The service allows 7 days; a key that ends sooner does less harm. */
const KEY_VALID_FOR_MS = 6 * HOUR_MS;

/**
 * The URL at which a client may create this one blob, which is not there yet, and do nothing else: neither read it nor
 * write it again. Signed with the account key where one is in use (the emulator), and else with a key delegated to
 * the app's identity, which has to have the role Storage Blob Delegator.
 */
export async function blobUploadUrl(
  storage: Storage,
  { container, name }: BlobAddress,
  { startsAt, expiresAt }: { readonly startsAt: Date; readonly expiresAt: Date },
): Promise<string> {
  const { url } = storage.blobs.getContainerClient(container).getBlobClient(name);
  const values = {
    containerName: container,
    blobName: name,
    permissions: BlobSASPermissions.parse(UPLOAD_PERMISSIONS),
    startsOn: startsAt,
    expiresOn: expiresAt,
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

/** Kept until a signature would outlive it. */
async function keyFor(storage: Storage, startsAt: Date, expiresAt: Date): Promise<UserDelegationKey> {
  const kept = keys.get(storage);
  if (kept && kept.signedStartsOn <= startsAt && expiresAt <= kept.signedExpiresOn) return kept;
  const until = new Date(startsAt.getTime() + KEY_VALID_FOR_MS);
  const key = await unexplained(() => storageCall(storage.blobs.getUserDelegationKey(startsAt, until)));
  keys.set(storage, key);
  return key;
}
