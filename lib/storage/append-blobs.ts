import type { AppendBlobClient } from '@azure/storage-blob';
import type { BlobAddress, Metadata } from './blobs.ts';
import { storageCall, storageCalls, unlessMissing } from './errors.ts';
import { recordIfExplaining } from './explain.ts';
import type { Storage } from './storage.ts';

/** Append blobs: https://learn.microsoft.com/rest/api/storageservices/append-block */

interface Waiting {
  /** Stops waiting. The outcome is then unknown. */
  readonly signal?: AbortSignal;
}

/** Creates an empty blob. Throws the conflict `exists` if the blob exists, even if this call created it and its reply was lost. */
export async function createAppendBlob(
  storage: Storage,
  address: BlobAddress,
  { metadata, signal }: Waiting & { readonly metadata: Metadata },
): Promise<void> {
  const { container } = address;
  if (recordIfExplaining(() => ({ write: 'blob', container, does: 'create' }))) return;
  const conditions = { ifNoneMatch: '*' };
  await storageCall(
    clientOf(storage, address).create({ conditions, metadata: { ...metadata }, ...abortOptions(signal) }),
    container,
  );
}

/** Appends a block atomically. Throws the conflict `changed` if the length of the blob is not `position`. */
export async function appendBlock(
  storage: Storage,
  address: BlobAddress,
  { bytes, position, signal }: Waiting & { readonly bytes: Uint8Array; readonly position: number },
): Promise<void> {
  const { container } = address;
  if (recordIfExplaining(() => ({ write: 'blob', container, does: 'append' }))) return;
  const options = { conditions: { appendPosition: position }, ...abortOptions(signal) };
  await storageCall(clientOf(storage, address).appendBlock(bytes, bytes.length, options), container);
}

/** Replaces all metadata of a blob. */
export async function setBlobMetadata(storage: Storage, address: BlobAddress, metadata: Metadata): Promise<void> {
  const { container } = address;
  if (recordIfExplaining(() => ({ write: 'blob', container, does: 'describe' }))) return;
  await storageCall(clientOf(storage, address).setMetadata({ ...metadata }), container);
}

/** Lists the names of the blobs that begin with `prefix`, in order. */
export async function listBlobs(
  storage: Storage,
  { container, prefix, signal }: Waiting & { readonly container: string; readonly prefix: string },
): Promise<string[]> {
  recordIfExplaining(() => ({ read: 'blobs', container, prefix }));
  const blobs = storage.container(container).listBlobsFlat({ prefix, ...abortOptions(signal) });
  return Array.fromAsync(storageCalls(blobs, container), ({ name }) => name);
}

/** Streams the lines of a blob, each of which ends in a line feed; no lines if the blob does not exist. */
export async function* readLines(storage: Storage, address: BlobAddress): AsyncGenerator<string> {
  recordIfExplaining(() => ({ read: 'blob', ...address }));
  const found = await unlessMissing(clientOf(storage, address).download(), address.container);
  const text = found?.readableStreamBody?.setEncoding('utf8');
  let rest = '';
  for await (const chunk of text ? storageCalls(text) : []) {
    const lines = `${rest}${chunk}`.split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
}

function clientOf(storage: Storage, { container, name }: BlobAddress): AppendBlobClient {
  return storage.container(container).getAppendBlobClient(name);
}

function abortOptions(signal: AbortSignal | undefined): { abortSignal?: AbortSignal } {
  return signal ? { abortSignal: signal } : {};
}
