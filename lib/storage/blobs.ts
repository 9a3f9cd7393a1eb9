import { buffer } from 'node:stream/consumers';
import { storageCall, storageCalls, unlessMissing, unlessRefused } from './errors.ts';
import { isExplained } from './explain.ts';
import type { Storage } from './storage.ts';

/** Where a blob is. */
export interface BlobAddress {
  readonly container: string;
  readonly name: string;
}

export interface BlobContent {
  readonly type: string;
  /** Values in ASCII; names are letters in lower case. */
  readonly metadata?: Readonly<Record<string, string>>;
}

/** One blob of a listing. */
export interface ListedBlob extends BlobAddress {
  readonly etag: string;
  /** Milliseconds. */
  readonly modifiedAt: number;
  readonly metadata: Readonly<Record<string, string>>;
}

/** Writes a blob as a whole, in one transaction up to 256 MiB. */
export async function writeBlob(
  storage: Storage,
  { container, name }: BlobAddress,
  bytes: Uint8Array,
  { type, metadata = {} }: BlobContent,
): Promise<void> {
  if (isExplained(() => ({ write: 'blob', container, does: 'put' }))) return;
  const client = storage.blobs.getContainerClient(container).getBlockBlobClient(name);
  const blobHTTPHeaders = { blobContentType: type };
  await storageCall(client.upload(bytes, bytes.byteLength, { blobHTTPHeaders, metadata: { ...metadata } }));
}

/** The bytes of a blob, in one transaction; undefined where there is none. */
export async function readBlob(storage: Storage, { container, name }: BlobAddress): Promise<Buffer | undefined> {
  isExplained(() => ({ read: 'blob', container, name }));
  const client = storage.blobs.getContainerClient(container).getBlobClient(name);
  const found = await unlessMissing(client.download());
  // The stream is read here so that its failures are those of a storage call as well.
  return found?.readableStreamBody && storageCall(buffer(found.readableStreamBody));
}

/** The length of a blob in bytes, or undefined where there is none. */
export async function blobLength(
  storage: Storage,
  { container, name }: BlobAddress,
  signal?: AbortSignal,
): Promise<number | undefined> {
  isExplained(() => ({ read: 'blob', container, name }));
  const client = storage.blobs.getContainerClient(container).getBlobClient(name);
  const found = await unlessMissing(client.getProperties(signal ? { abortSignal: signal } : {}));
  return found?.contentLength;
}

/** Deletes a blob, where there is one, and, with `etag`, where it is still that one. */
export async function deleteBlob(storage: Storage, { container, name }: BlobAddress, etag?: string): Promise<void> {
  if (isExplained(() => ({ write: 'blob', container, does: 'delete' }))) return;
  const client = storage.blobs.getContainerClient(container).getBlobClient(name);
  const options = etag === undefined ? {} : { conditions: { ifMatch: etag } };
  await unlessRefused(['missing', 'changed'], client.delete(options));
}

/** Every blob of a container, a transaction for each 5,000. */
export async function* listContainer(storage: Storage, container: string): AsyncGenerator<ListedBlob> {
  isExplained(() => ({ read: 'blobs', container, prefix: '' }));
  const pages = storage.blobs.getContainerClient(container).listBlobsFlat({ includeMetadata: true }).byPage();
  for await (const { segment } of storageCalls(pages))
    for (const { name, properties, metadata = {} } of segment.blobItems) {
      const { etag, lastModified } = properties;
      // Listings have it without the quotes that a condition needs.
      const quoted = etag.startsWith('"') ? etag : `"${etag}"`;
      yield { container, name, etag: quoted, modifiedAt: lastModified.getTime(), metadata };
    }
}
