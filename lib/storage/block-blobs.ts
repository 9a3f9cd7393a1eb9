import type { BlobAddress, BlobHeaders, Metadata } from './blobs.ts';
import { storageCall, storageCalls, unlessMissing, unlessRefused } from './errors.ts';
import type { Storage } from './storage.ts';

/**
 * Block blobs that grow by blocks: a block is staged first and belongs to the blob once a list with its id is committed.
 * https://learn.microsoft.com/rest/api/storageservices/put-block-list
 */

/** The stream of a blob breaks off if a connection does; the SDK then continues where it was. */
const STREAM_RETRIES = 5;

export async function stageBlock(
  storage: Storage,
  { container, name }: BlobAddress,
  { id, bytes }: { readonly id: string; readonly bytes: Uint8Array },
): Promise<void> {
  const client = storage.container(container).getBlockBlobClient(name);
  await storageCall(client.stageBlock(id, bytes, bytes.byteLength), container);
}

interface BlockList {
  readonly blocks: readonly string[];
  readonly metadata: Metadata;
  readonly headers: BlobHeaders;
  /** The ETag of the blob that the list replaces; undefined if there must be none. */
  readonly etag: string | undefined;
}

/** Sets the blocks of a blob, in the cool tier. Returns its new ETag; undefined if another writer changed it. */
export async function commitBlocks(
  storage: Storage,
  { container, name }: BlobAddress,
  { blocks, metadata, headers, etag }: BlockList,
): Promise<string | undefined> {
  const client = storage.container(container).getBlockBlobClient(name);
  const committed = client.commitBlockList([...blocks], {
    metadata: { ...metadata },
    tier: 'Cool',
    blobHTTPHeaders: { blobContentType: headers.type, blobContentDisposition: headers.disposition ?? '' },
    conditions: etag === undefined ? { ifNoneMatch: '*' } : { ifMatch: etag },
  });
  return (await unlessRefused(['changed', 'exists'], committed, container))?.etag;
}

/** The ids of the blocks of a blob, in order. */
export async function listBlocks(storage: Storage, { container, name }: BlobAddress): Promise<string[]> {
  const client = storage.container(container).getBlockBlobClient(name);
  const { committedBlocks = [] } = await storageCall(client.getBlockList('committed'), container);
  return committedBlocks.map((block) => block.name);
}

/** Replaces all metadata of a blob. Returns its new ETag; undefined if another writer changed it. */
export async function replaceMetadata(
  storage: Storage,
  { container, name }: BlobAddress,
  { metadata, etag }: { readonly metadata: Metadata; readonly etag: string },
): Promise<string | undefined> {
  const client = storage.container(container).getBlockBlobClient(name);
  const replaced = client.setMetadata({ ...metadata }, { conditions: { ifMatch: etag } });
  return (await unlessRefused(['changed', 'missing'], replaced, container))?.etag;
}

/** Streams the bytes of a blob; undefined if it does not exist. */
export async function streamBlob(
  storage: Storage,
  { container, name }: BlobAddress,
): Promise<AsyncIterable<Uint8Array> | undefined> {
  const client = storage.container(container).getBlobClient(name);
  const found = await unlessMissing(client.download(0, undefined, { maxRetryRequests: STREAM_RETRIES }), container);
  const stream = found?.readableStreamBody as AsyncIterable<Uint8Array> | undefined;
  return stream && storageCalls(stream, container);
}
