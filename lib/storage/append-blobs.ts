import type { AppendBlobClient } from '@azure/storage-blob';
import { abortOptions, type BlobAddress, type Metadata, readBlobRange } from './blobs.ts';
import { storageCall, storageCalls } from './errors.ts';
import { recordIfExplaining } from './explain.ts';
import type { Storage } from './storage.ts';

/** Append blobs, in the first account: https://learn.microsoft.com/rest/api/storageservices/append-block */

/**
 * A blob is read in parts, because the emulator opens a file for each block of a request and fails at the limit of open files.
 * A record of the audit log has about 300 bytes, so a part has at most about 1,700 blocks.
 */
const PART_BYTES = 512 * 1_024;

interface Waiting {
  /** Stops waiting. The outcome is then unknown. */
  readonly signal?: AbortSignal;
}

/** Creates an empty blob. Throws the conflict `exists` if the blob exists, even if this call created it and its reply was lost. */
export async function createAppendBlob(
  storage: Storage,
  address: BlobAddress,
  { metadata, signal }: Waiting & { readonly metadata?: Metadata } = {},
): Promise<void> {
  const { container } = address;
  if (recordIfExplaining(() => ({ write: 'blob', container, does: 'create' }))) return;
  const conditions = { ifNoneMatch: '*' };
  await storageCall(
    clientOf(storage, address).create({
      conditions,
      ...(metadata && { metadata: { ...metadata } }),
      ...abortOptions(signal),
    }),
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

/** Lists the names of the blobs that begin with `prefix`, in order. */
export async function listBlobs(
  storage: Storage,
  { container, prefix, signal }: Waiting & { readonly container: string; readonly prefix: string },
): Promise<string[]> {
  recordIfExplaining(() => ({ read: 'blobs', container, prefix }));
  const blobs = storage.container(container).listBlobsFlat({ prefix, ...abortOptions(signal) });
  return Array.fromAsync(storageCalls(blobs, container), ({ name }) => name);
}

/** Returns the lines of a blob, each of which ends in a line feed; no lines if the blob does not exist. */
export async function* readLines(storage: Storage, address: BlobAddress): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for (let start = 0, length = Number.POSITIVE_INFINITY; start < length; start += PART_BYTES) {
    const part = await readBlobRange(storage, address, { start, count: PART_BYTES });
    if (!part) return;
    length = part.length;
    const lines = `${rest}${decoder.decode(part.bytes, { stream: true })}`.split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
}

function clientOf(storage: Storage, { container, name }: BlobAddress): AppendBlobClient {
  return storage.container(container).getAppendBlobClient(name);
}
