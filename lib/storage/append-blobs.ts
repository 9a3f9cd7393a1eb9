import type { AppendBlobClient } from '@azure/storage-blob';
import type { BlobAddress } from './blobs.ts';
import { storageCall, storageCalls, unlessMissing } from './errors.ts';
import { isExplained } from './explain.ts';
import type { Storage } from './storage.ts';

/** Blobs that only grow: https://learn.microsoft.com/rest/api/storageservices/append-block */

export type Metadata = Readonly<Record<string, string>>;

interface Waiting {
  /** Gives up on waiting; the outcome is then unknown. */
  readonly signal?: AbortSignal;
}

/** Creates an empty blob. Throws the refusal `exists` where one of this name is there, be it this very caller's. */
export async function createAppendBlob(
  storage: Storage,
  address: BlobAddress,
  { metadata, signal }: Waiting & { readonly metadata: Metadata },
): Promise<void> {
  const { container } = address;
  if (isExplained(() => ({ write: 'blob', container, does: 'create' }))) return;
  const conditions = { ifNoneMatch: '*' };
  await storageCall(clientOf(storage, address).create({ conditions, metadata: { ...metadata }, ...aborted(signal) }));
}

/** Appends a block, as a whole or not at all. Throws the refusal `changed` where the blob is not as long as `position`. */
export async function appendBlock(
  storage: Storage,
  address: BlobAddress,
  { bytes, position, signal }: Waiting & { readonly bytes: Uint8Array; readonly position: number },
): Promise<void> {
  const { container } = address;
  if (isExplained(() => ({ write: 'blob', container, does: 'append' }))) return;
  const options = { conditions: { appendPosition: position }, ...aborted(signal) };
  await storageCall(clientOf(storage, address).appendBlock(bytes, bytes.length, options));
}

/** In the place of all metadata that the blob had. */
export async function setBlobMetadata(storage: Storage, address: BlobAddress, metadata: Metadata): Promise<void> {
  const { container } = address;
  if (isExplained(() => ({ write: 'blob', container, does: 'describe' }))) return;
  await storageCall(clientOf(storage, address).setMetadata({ ...metadata }));
}

/** The names of the blobs that begin with `prefix`, in order. */
export async function listBlobs(
  storage: Storage,
  { container, prefix, signal }: Waiting & { readonly container: string; readonly prefix: string },
): Promise<string[]> {
  isExplained(() => ({ read: 'blobs', container, prefix }));
  const blobs = storage.blobs.getContainerClient(container).listBlobsFlat({ prefix, ...aborted(signal) });
  return Array.fromAsync(storageCalls(blobs), ({ name }) => name);
}

/** The lines of a blob, as they come; none where there is no such blob. Each ends in a line feed. */
export async function* readLines(storage: Storage, address: BlobAddress): AsyncGenerator<string> {
  isExplained(() => ({ read: 'blob', ...address }));
  const found = await unlessMissing(clientOf(storage, address).download());
  const text = found?.readableStreamBody?.setEncoding('utf8');
  let rest = '';
  for await (const chunk of text ? storageCalls(text) : []) {
    const lines = `${rest}${chunk}`.split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
}

function clientOf({ blobs }: Storage, { container, name }: BlobAddress): AppendBlobClient {
  return blobs.getContainerClient(container).getAppendBlobClient(name);
}

function aborted(signal: AbortSignal | undefined): { abortSignal?: AbortSignal } {
  return signal ? { abortSignal: signal } : {};
}
