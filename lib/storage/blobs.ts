import { buffer } from 'node:stream/consumers';
import {
  type AppendBlobClient,
  type BlobHTTPHeaders,
  BlobSASPermissions,
  generateBlobSASQueryParameters,
  SASProtocol,
  StorageSharedKeyCredential,
  type UserDelegationKey,
} from '@azure/storage-blob';
import { RowkeyError } from '../base/errors.ts';
import { HOUR_MS, MINUTE_MS } from '../base/time.ts';
import { StorageConflict, storageCall, storageCalls, unlessRefused } from './errors.ts';
import { recordIfExplaining, runUnexplained } from './explain.ts';
import type { Storage } from './storage.ts';

export interface BlobAddress {
  readonly container: string;
  readonly name: string;
}

export type Metadata = Readonly<Record<string, string>>;

/** The headers with which storage returns a blob. */
export interface BlobHeaders {
  readonly type: string;
  readonly disposition?: string;
  readonly cacheControl?: string;
}

/** Storage in a cooler tier costs less, and each access to it more. */
export type Tier = 'cool' | 'cold';

interface BlobContent extends BlobHeaders {
  /** Content-Encoding. The SDK inflates gzip and deflate by itself, without a bound. */
  readonly encoding?: 'br' | undefined;
  readonly tier?: Tier | undefined;
  /** Values are ASCII; names are lower-case letters. */
  readonly metadata?: Metadata;
}

/** One blob of a listing. */
export interface ListedBlob extends BlobAddress {
  readonly etag: string;
  /** In bytes. */
  readonly length: number;
  /** In milliseconds. */
  readonly modifiedAt: number;
  readonly metadata: Metadata;
}

/** Writes a whole blob, in one transaction up to 256 MiB. */
export async function writeBlob(
  storage: Storage,
  { container, name }: BlobAddress,
  bytes: Uint8Array,
  { metadata = {}, encoding, tier, ...headers }: BlobContent,
): Promise<void> {
  if (recordIfExplaining(() => ({ write: 'blob', container, does: 'put' }))) return;
  const client = storage.container(container).getBlockBlobClient(name);
  const coding = encoding === undefined ? {} : { blobContentEncoding: encoding };
  const options = {
    blobHTTPHeaders: { ...toHttpHeaders(headers), ...coding },
    metadata: { ...metadata },
    ...toTier(tier),
  };
  await storageCall(client.upload(bytes, bytes.byteLength, options), container);
}

function toTier(tier: Tier | undefined): { readonly tier?: 'Cool' | 'Cold' } {
  return tier === undefined ? {} : { tier: tier === 'cool' ? 'Cool' : 'Cold' };
}

function toHttpHeaders({ type, disposition, cacheControl }: BlobHeaders): BlobHTTPHeaders {
  return {
    blobContentType: type,
    ...(disposition === undefined ? {} : { blobContentDisposition: disposition }),
    ...(cacheControl === undefined ? {} : { blobCacheControl: cacheControl }),
  };
}

/** A range of a blob. */
interface BlobRange {
  readonly bytes: Buffer;
  /** The bytes of the whole blob. */
  readonly length: number;
  readonly etag: string;
  /** The hash of the whole blob. Undefined if it was uploaded in blocks. */
  readonly md5: Uint8Array | undefined;
}

/** Reads up to `count` bytes of a blob in one transaction; undefined if it does not exist, or has no bytes there. */
export async function readBlobRange(
  storage: Storage,
  { container, name }: BlobAddress,
  { start = 0, count }: { readonly start?: number; readonly count: number },
): Promise<BlobRange | undefined> {
  recordIfExplaining(() => ({ read: 'blob', container, name }));
  const client = storage.container(container).getBlobClient(name);
  // An empty blob has no range.
  const found = await unlessRefused(['missing', 'empty'], client.download(start, count), container);
  if (!found?.readableStreamBody) return undefined;
  const bytes = await storageCall(buffer(found.readableStreamBody));
  const length = Number(found.contentRange?.split('/')[1] ?? bytes.byteLength);
  return { bytes, length, etag: found.etag ?? '', md5: found.blobContentMD5 ?? found.contentMD5 };
}

/** Replaces the headers of a blob. */
export async function setBlobHeaders(
  storage: Storage,
  { container, name }: BlobAddress,
  { md5, ...headers }: BlobHeaders & { readonly md5: Uint8Array },
): Promise<void> {
  if (recordIfExplaining(() => ({ write: 'blob', container, does: 'describe' }))) return;
  const client = storage.container(container).getBlobClient(name);
  // A hash that is not sent again is deleted.
  await storageCall(client.setHTTPHeaders({ ...toHttpHeaders(headers), blobContentMD5: md5 }), container);
}

/** Reads a blob in one transaction; undefined if it does not exist. */
export async function readBlob(storage: Storage, { container, name }: BlobAddress): Promise<Buffer | undefined> {
  recordIfExplaining(() => ({ read: 'blob', container, name }));
  const client = storage.container(container).getBlobClient(name);
  const found = await unlessRefused(['missing'], client.download(), container);
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
  const found = await unlessRefused(['missing'], client.getProperties(abortOptions(signal)), container);
  return found?.contentLength;
}

/** Deletes a blob if it exists and, with `etag`, if it is unchanged. */
export async function deleteBlob(storage: Storage, { container, name }: BlobAddress, etag?: string): Promise<void> {
  if (recordIfExplaining(() => ({ write: 'blob', container, does: 'delete' }))) return;
  const client = storage.container(container).getBlobClient(name);
  const options = etag === undefined ? {} : { conditions: { ifMatch: etag } };
  await unlessRefused(['missing', 'changed'], client.delete(options), container);
}

/** Deletes a blob that the holder of `BLOCK_UPLOAD_PERMISSIONS` wrote, and may have leased or made snapshots of. */
export async function deleteUpload(storage: Storage, { container, name }: BlobAddress): Promise<void> {
  if (recordIfExplaining(() => ({ write: 'blob', container, does: 'delete' }))) return;
  const client = storage.container(container).getBlobClient(name);
  const remove = async () => {
    await unlessRefused(['missing'], client.delete({ deleteSnapshots: 'include' }), container);
  };
  await remove().catch(async (error: unknown) => {
    if (!(error instanceof StorageConflict && error.reason === 'leased')) throw error;
    await storageCall(client.getBlobLeaseClient().breakLease(0), container);
    await remove();
  });
}

/** Deletes a blob without references. If storage is unavailable, the blob is left as an orphan. */
export async function dropBlob(storage: Storage, blob: BlobAddress): Promise<void> {
  try {
    await deleteBlob(storage, blob);
  } catch (error) {
    if (!(error instanceof RowkeyError)) throw error;
  }
}

/** Lists the blobs of a container whose names begin with `prefix`, in order: one transaction for each 5,000. */
export async function* listContainer(storage: Storage, container: string, prefix = ''): AsyncGenerator<ListedBlob> {
  recordIfExplaining(() => ({ read: 'blobs', container, prefix }));
  const pages = storage.container(container).listBlobsFlat({ includeMetadata: true, prefix }).byPage();
  for await (const { segment } of storageCalls(pages, container))
    for (const { name, properties, metadata = {} } of segment.blobItems) {
      const { etag, lastModified, contentLength: length = 0 } = properties;
      // A listing omits the quotes that a condition needs.
      const quoted = etag.startsWith('"') ? etag : `"${etag}"`;
      yield { container, name, etag: quoted, length, modifiedAt: lastModified.getTime(), metadata };
    }
}

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

/** Streams the bytes of a blob; undefined if it does not exist or, with `etag`, has changed. */
export async function streamBlob(
  storage: Storage,
  { container, name }: BlobAddress,
  etag?: string,
): Promise<AsyncIterable<Uint8Array> | undefined> {
  const client = storage.container(container).getBlobClient(name);
  const found = await unlessRefused(
    ['missing', 'changed'],
    client.download(0, undefined, { maxRetryRequests: STREAM_RETRIES, conditions: etag ? { ifMatch: etag } : {} }),
    container,
  );
  const stream = found?.readableStreamBody as AsyncIterable<Uint8Array> | undefined;
  return stream && storageCalls(stream, container);
}

/** Append blobs: https://learn.microsoft.com/rest/api/storageservices/append-block */

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

function abortOptions(signal: AbortSignal | undefined): { abortSignal?: AbortSignal } {
  return signal ? { abortSignal: signal } : {};
}

/** Permission to create a blob that does not exist yet: its holder can neither read nor overwrite it. */
export const UPLOAD_PERMISSIONS = 'c';
/**
 * Permission to write one blob in blocks, which needs more than to create it: the holder can also overwrite it, and lease it or make
 * snapshots of it. https://learn.microsoft.com/rest/api/storageservices/create-service-sas
 */
export const BLOCK_UPLOAD_PERMISSIONS = 'w';
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

/** Longer than a copy takes, because clocks differ. */
const SOURCE_VALID_MS = 15 * MINUTE_MS;

/** What the copy must equal, its metadata and its tier. */
interface CopyOptions {
  readonly metadata: Metadata;
  readonly etag?: string;
  readonly md5?: Uint8Array;
  readonly tier?: Tier | undefined;
}

/**
 * Lets storage copy a blob of up to 256 MiB with its headers, in one transaction: the bytes do not pass through the app. Returns
 * false if the source does not exist, or does not have this `etag` and `md5`.
 */
export async function copyBlob(
  storage: Storage,
  { from, to }: { readonly from: BlobAddress; readonly to: BlobAddress },
  { metadata, etag, md5, tier }: CopyOptions,
): Promise<boolean> {
  if (recordIfExplaining(() => ({ write: 'blob', container: to.container, does: 'copy' }))) return true;
  const now = Date.now();
  // The service authorizes the source separately, also in the same account.
  const source = await signBlobUrl(storage, from, {
    permissions: READ_PERMISSIONS,
    startsAt: new Date(now - SOURCE_VALID_MS),
    expiresAt: new Date(now + SOURCE_VALID_MS),
  });
  const options = {
    metadata: { ...metadata },
    ...toTier(tier),
    ...(etag === undefined ? {} : { sourceConditions: { ifMatch: etag } }),
    ...(md5 === undefined ? {} : { sourceContentMD5: md5 }),
  };
  const copied = storage.container(to.container).getBlobClient(to.name).syncCopyFromURL(source, options);
  return (await unlessRefused(['missing', 'changed'], copied, to.container)) !== undefined;
}
