import { buffer } from 'node:stream/consumers';
import { storageCall, storageCalls, unlessMissing, unlessRefused } from './errors.ts';
import { recordIfExplaining } from './explain.ts';
import type { Storage } from './storage.ts';

export interface BlobAddress {
  readonly container: string;
  readonly name: string;
}

export interface BlobContent {
  readonly type: string;
  /** Values are ASCII; names are lower-case letters. */
  readonly metadata?: Readonly<Record<string, string>>;
}

/** One blob of a listing. */
export interface ListedBlob extends BlobAddress {
  readonly etag: string;
  /** In milliseconds. */
  readonly modifiedAt: number;
  readonly metadata: Readonly<Record<string, string>>;
}

/** Writes a whole blob, in one transaction up to 256 MiB. */
export async function writeBlob(
  storage: Storage,
  { container, name }: BlobAddress,
  bytes: Uint8Array,
  { type, metadata = {} }: BlobContent,
): Promise<void> {
  if (recordIfExplaining(() => ({ write: 'blob', container, does: 'put' }))) return;
  const client = storage.container(container).getBlockBlobClient(name);
  const blobHTTPHeaders = { blobContentType: type };
  await storageCall(client.upload(bytes, bytes.byteLength, { blobHTTPHeaders, metadata: { ...metadata } }), container);
}

/** Reads a blob in one transaction; undefined if it does not exist. */
export async function readBlob(storage: Storage, { container, name }: BlobAddress): Promise<Buffer | undefined> {
  recordIfExplaining(() => ({ read: 'blob', container, name }));
  const client = storage.container(container).getBlobClient(name);
  const found = await unlessMissing(client.download(), container);
  // Reads the stream here, so that failures of the stream are translated too.
  return found?.readableStreamBody && storageCall(buffer(found.readableStreamBody));
}

/** Returns the length of a blob in bytes, or undefined if it does not exist. */
export async function blobLength(
  storage: Storage,
  { container, name }: BlobAddress,
  signal?: AbortSignal,
): Promise<number | undefined> {
  recordIfExplaining(() => ({ read: 'blob', container, name }));
  const client = storage.container(container).getBlobClient(name);
  const found = await unlessMissing(client.getProperties(signal ? { abortSignal: signal } : {}), container);
  return found?.contentLength;
}

/** Deletes a blob if it exists and, with `etag`, if it is unchanged. */
export async function deleteBlob(storage: Storage, { container, name }: BlobAddress, etag?: string): Promise<void> {
  if (recordIfExplaining(() => ({ write: 'blob', container, does: 'delete' }))) return;
  const client = storage.container(container).getBlobClient(name);
  const options = etag === undefined ? {} : { conditions: { ifMatch: etag } };
  await unlessRefused(['missing', 'changed'], client.delete(options), container);
}

/** Lists every blob of a container: one transaction for each 5,000. */
export async function* listContainer(storage: Storage, container: string): AsyncGenerator<ListedBlob> {
  recordIfExplaining(() => ({ read: 'blobs', container, prefix: '' }));
  const pages = storage.container(container).listBlobsFlat({ includeMetadata: true }).byPage();
  for await (const { segment } of storageCalls(pages, container))
    for (const { name, properties, metadata = {} } of segment.blobItems) {
      const { etag, lastModified } = properties;
      // A listing omits the quotes that a condition needs.
      const quoted = etag.startsWith('"') ? etag : `"${etag}"`;
      yield { container, name, etag: quoted, modifiedAt: lastModified.getTime(), metadata };
    }
}
