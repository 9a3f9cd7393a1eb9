import { MINUTE_MS } from '../base/time.ts';
import { signBlobUrl } from './blob-sas.ts';
import type { BlobAddress, Metadata } from './blobs.ts';
import { unlessRefused } from './errors.ts';
import { recordIfExplaining } from './explain.ts';
import type { Storage } from './storage.ts';

/** Longer than a copy takes, because clocks differ. */
const SOURCE_VALID_MS = 15 * MINUTE_MS;

/** What the copy must equal, and its metadata. */
interface CopyOptions {
  readonly metadata: Metadata;
  readonly etag?: string;
  readonly md5?: Uint8Array;
}

/**
 * Lets storage copy a blob of up to 256 MiB with its headers, in one transaction: the bytes do not pass through the app. Returns
 * false if the source does not exist, or does not have this `etag` and `md5`.
 */
export async function copyBlob(
  storage: Storage,
  { from, to }: { readonly from: BlobAddress; readonly to: BlobAddress },
  { metadata, etag, md5 }: CopyOptions,
): Promise<boolean> {
  if (recordIfExplaining(() => ({ write: 'blob', container: to.container, does: 'copy' }))) return true;
  const now = Date.now();
  // The service authorizes the source separately, also in the same account.
  const source = await signBlobUrl(storage, from, {
    permissions: 'r',
    startsAt: new Date(now - SOURCE_VALID_MS),
    expiresAt: new Date(now + SOURCE_VALID_MS),
  });
  const options = {
    metadata: { ...metadata },
    ...(etag === undefined ? {} : { sourceConditions: { ifMatch: etag } }),
    ...(md5 === undefined ? {} : { sourceContentMD5: md5 }),
  };
  const copied = storage.container(to.container).getBlobClient(to.name).syncCopyFromURL(source, options);
  return (await unlessRefused(['missing', 'changed'], copied, to.container)) !== undefined;
}
