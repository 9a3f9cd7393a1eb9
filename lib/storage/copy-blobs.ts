import type { Readable } from 'node:stream';
import type { BlobItem } from '@azure/storage-blob';
import pMap from 'p-map';
import { isMovable, isOwnBlob } from './blob-owner.ts';
import { storageCalls, unlessRefused } from './errors.ts';
import type { Account } from './storage.ts';

interface Moved {
  readonly container: string;
  readonly isMoved: (name: string) => boolean;
  /** Called before each write. Throws if the caller may write no more. */
  readonly mayWrite: () => void;
}

const CONCURRENCY = 8;
/** Of each blob that is copied, two are in memory. Storage is faster with blocks of more than 4 MiB. */
const BLOCK_BYTES = 8 * 1_048_576;
const BLOCKS = 2;

/**
 * Copies the blobs of slots that the target lacks. The bytes of a blob never change, so it is copied once. Returns the number of copies.
 */
export async function copyBlobs(from: Account, to: Account, { container, ...moved }: Moved): Promise<number> {
  if (!isMovable(container)) return 0;
  const there = new Set<string>();
  for await (const { name } of listMoved(to, container, moved)) there.add(name);
  let copied = 0;
  await pMap(
    listMoved(from, container, moved),
    async (blob) => {
      if (there.has(blob.name)) return;
      moved.mayWrite();
      if (await copyBlob(from, to, { container, blob })) copied += 1;
    },
    { concurrency: CONCURRENCY },
  );
  return copied;
}

async function* listMoved(account: Account, container: string, { isMoved }: Pick<Moved, 'isMoved'>) {
  const blobs = account.container(container).listBlobsFlat();
  for await (const blob of storageCalls(blobs, container)) if (isOwnBlob(blob.name) && isMoved(blob.name)) yield blob;
}

/** False if the blob was deleted meanwhile, or is there. */
async function copyBlob(
  from: Account,
  to: Account,
  {
    container,
    blob: { name, properties },
  }: { readonly container: string; readonly blob: Pick<BlobItem, 'name' | 'properties'> },
): Promise<boolean> {
  const source = from.container(container).getBlobClient(name);
  const target = to.container(container).getBlockBlobClient(name);
  const found = await unlessRefused(['missing'], source.download(), container);
  if (!found?.readableStreamBody) return false;
  const {
    contentType,
    contentEncoding,
    contentDisposition,
    cacheControl,
    contentLanguage,
    contentMD5,
    metadata = {},
  } = found;
  const { accessTier } = properties;
  const options = {
    // A client of the new owner may have written it.
    conditions: { ifNoneMatch: '*' },
    metadata,
    blobHTTPHeaders: {
      ...(contentType && { blobContentType: contentType }),
      ...(contentEncoding && { blobContentEncoding: contentEncoding }),
      ...(contentDisposition && { blobContentDisposition: contentDisposition }),
      ...(cacheControl && { blobCacheControl: cacheControl }),
      ...(contentLanguage && { blobContentLanguage: contentLanguage }),
      ...(contentMD5 && { blobContentMD5: contentMD5 }),
    },
    ...((accessTier === 'Cool' || accessTier === 'Cold') && { tier: accessTier }),
  };
  const stream = found.readableStreamBody as Readable;
  const written = await unlessRefused(
    ['exists', 'changed'],
    target.uploadStream(stream, BLOCK_BYTES, BLOCKS, options),
    container,
  );
  if (!written) return false;
  // Who deletes a blob or replaces its headers does so at both accounts, perhaps before the copy was there.
  const now = await unlessRefused(['missing'], source.getProperties(), container);
  if (now?.etag === found.etag) return true;
  const ifMatch = written.etag ?? '';
  await unlessRefused(['missing', 'changed'], target.delete({ conditions: { ifMatch } }), container);
  return now !== undefined && copyBlob(from, to, { container, blob: { name, properties } });
}

/** Deletes the blobs of slots. Returns their number. */
export async function deleteBlobs(account: Account, { container, mayWrite, ...moved }: Moved): Promise<number> {
  if (!isMovable(container)) return 0;
  let deleted = 0;
  await pMap(
    listMoved(account, container, moved),
    async ({ name }) => {
      mayWrite();
      const blob = account.container(container).getBlobClient(name);
      await unlessRefused(['missing'], blob.delete({ deleteSnapshots: 'include' }), container);
      deleted += 1;
    },
    { concurrency: CONCURRENCY },
  );
  return deleted;
}
