import type { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import {
  type BlobHTTPHeaders,
  BlobSASPermissions,
  generateBlobSASQueryParameters,
  SASProtocol,
  StorageSharedKeyCredential,
  type UserDelegationKey,
} from '@azure/storage-blob';
import { RowkeyError } from '../base/errors.ts';
import { HOUR_MS, MINUTE_MS } from '../base/time.ts';
import { accountOfBlob, accountToRead, changeInAccounts, listInAccounts, readInAccount } from './blob-owner.ts';
import { ofAccount, StorageConflict, storageCall, storageCalls, unlessRefused } from './errors.ts';
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
  const coding = encoding === undefined ? {} : { blobContentEncoding: encoding };
  const options = {
    blobHTTPHeaders: { ...toHttpHeaders(headers), ...coding },
    metadata: { ...metadata },
    ...toTier(tier),
  };
  const upload = (to: Storage) => {
    const client = to.container(container).getBlockBlobClient(name);
    return storageCall(client.upload(bytes, bytes.byteLength, options), container);
  };
  // An empty blob takes the place of an upload, which a move may have copied.
  if (bytes.byteLength === 0) return changeInAccounts(storage, { container, name }, upload);
  const account = await accountOfBlob(storage, { container, name });
  await ofAccount(account, upload(account));
}

/** Writes a blob of one account in one transaction, unless a blob of this name exists: then it returns false. */
export async function createBlob(
  account: Storage,
  { container, name }: BlobAddress,
  bytes: Uint8Array,
  headers: BlobHeaders,
): Promise<boolean> {
  if (recordIfExplaining(() => ({ write: 'blob', container, does: 'create' }))) return true;
  const client = account.container(container).getBlockBlobClient(name);
  const options = { conditions: { ifNoneMatch: '*' }, blobHTTPHeaders: toHttpHeaders(headers) };
  const created = client.upload(bytes, bytes.byteLength, options);
  return (await unlessRefused(['exists', 'changed'], created, container)) !== undefined;
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
  const range = await readInAccount(storage, { container, name }, async (account) => {
    const downloaded = account.container(container).getBlobClient(name).download(start, count);
    // An empty blob has no range.
    const found = await storageCall(downloaded, container).catch(toAbsence);
    if (found === 'missing') return undefined;
    if (found === 'empty' || !found.readableStreamBody) return 'empty';
    const bytes = await storageCall(buffer(found.readableStreamBody));
    const length = Number(found.contentRange?.split('/')[1] ?? bytes.byteLength);
    return { bytes, length, etag: found.etag ?? '', md5: found.blobContentMD5 ?? found.contentMD5 };
  });
  return range === 'empty' ? undefined : range;
}

/** The two conflicts differ: a move may have left a blob that is missing, and an empty blob may have replaced one that a move has left. */
function toAbsence(error: unknown): 'missing' | 'empty' {
  if (error instanceof StorageConflict && (error.reason === 'missing' || error.reason === 'empty')) return error.reason;
  throw error;
}

/** Replaces the headers of a blob. */
export async function setBlobHeaders(
  storage: Storage,
  { container, name }: BlobAddress,
  { md5, ...headers }: BlobHeaders & { readonly md5: Uint8Array },
): Promise<void> {
  if (recordIfExplaining(() => ({ write: 'blob', container, does: 'describe' }))) return;
  await changeInAccounts(storage, { container, name }, (account, isOwner) => {
    const client = account.container(container).getBlobClient(name);
    // A hash that is not sent again is deleted.
    const change = client.setHTTPHeaders({ ...toHttpHeaders(headers), blobContentMD5: md5 });
    return isOwner ? storageCall(change, container) : unlessRefused(['missing'], change, container);
  });
}

/** Reads a blob in one transaction; undefined if it does not exist. */
export async function readBlob(storage: Storage, { container, name }: BlobAddress): Promise<Buffer | undefined> {
  recordIfExplaining(() => ({ read: 'blob', container, name }));
  return readInAccount(storage, { container, name }, async (account) => {
    const client = account.container(container).getBlobClient(name);
    const found = await unlessRefused(['missing'], client.download(), container);
    // Reads the stream here, so that failures of the stream are translated too.
    return found?.readableStreamBody && storageCall(buffer(found.readableStreamBody));
  });
}

/** Returns the length of a blob in bytes, or undefined if it does not exist. */
export async function blobLength(
  storage: Storage,
  { container, name }: BlobAddress,
  signal?: AbortSignal,
): Promise<number | undefined> {
  recordIfExplaining(() => ({ read: 'blob', container, name }));
  return readInAccount(storage, { container, name }, async (account) => {
    const client = account.container(container).getBlobClient(name);
    const found = await unlessRefused(['missing'], client.getProperties(abortOptions(signal)), container);
    return found?.contentLength;
  });
}

/** Writes the metadata of a blob again, by default those that it has, if it exists: a listing then has it as changed now. */
export async function touchBlob(
  storage: Storage,
  { container, name }: BlobAddress,
  metadata?: Metadata,
): Promise<void> {
  if (recordIfExplaining(() => ({ write: 'blob', container, does: 'describe' }))) return;
  await changeInAccounts(storage, { container, name }, (account) => {
    const client = account.container(container).getBlobClient(name);
    const touch = async () => client.setMetadata({ ...(metadata ?? (await client.getProperties()).metadata) });
    return unlessRefused(['missing'], touch(), container);
  });
}

/** Deletes a blob if it exists and, with `etag`, if it is unchanged. */
export async function deleteBlob(storage: Storage, { container, name }: BlobAddress, etag?: string): Promise<void> {
  if (recordIfExplaining(() => ({ write: 'blob', container, does: 'delete' }))) return;
  await changeInAccounts(storage, { container, name }, (account, isOwner) => {
    // Copies have other ETags.
    const options = etag === undefined || !isOwner ? {} : { conditions: { ifMatch: etag } };
    const client = account.container(container).getBlobClient(name);
    return unlessRefused(['missing', 'changed'], client.delete(options), container);
  });
}

/** Deletes a blob that the holder of `BLOCK_UPLOAD_PERMISSIONS` wrote, and may have leased or made snapshots of. */
export async function deleteUpload(storage: Storage, { container, name }: BlobAddress): Promise<void> {
  if (recordIfExplaining(() => ({ write: 'blob', container, does: 'delete' }))) return;
  await changeInAccounts(storage, { container, name }, (account) => {
    const client = account.container(container).getBlobClient(name);
    const remove = async () => {
      await unlessRefused(['missing'], client.delete({ deleteSnapshots: 'include' }), container);
    };
    return remove().catch(async (error: unknown) => {
      if (!(error instanceof StorageConflict && error.reason === 'leased')) throw error;
      await storageCall(client.getBlobLeaseClient().breakLease(0), container);
      await remove();
    });
  });
}

/**
 * Deletes a blob without references. If storage is unavailable, the blob is left as an orphan. With a backup it always is, so that the backup has
 * time to copy it.
 */
export async function dropBlob(storage: Storage, blob: BlobAddress): Promise<void> {
  if (storage.backup) return;
  try {
    await deleteBlob(storage, blob);
  } catch (error) {
    if (!(error instanceof RowkeyError)) throw error;
  }
}

/** Lists the blobs of a container whose names begin with `prefix`, in order: one transaction for each 5,000. */
export function listContainer(storage: Storage, container: string, prefix = ''): AsyncGenerator<ListedBlob> {
  return listInAccounts(storage, container, (account) => listContainerOf(account, container, prefix));
}

/** Lists the blobs of a container of one account. */
export async function* listContainerOf(
  account: Storage,
  container: string,
  prefix: string,
): AsyncGenerator<ListedBlob> {
  recordIfExplaining(() => ({ read: 'blobs', container, prefix }));
  const pages = account.container(container).listBlobsFlat({ includeMetadata: true, prefix }).byPage();
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
  const found = await readInAccount(storage, { container, name }, (account) =>
    unlessRefused(
      ['missing', 'changed'],
      account
        .container(container)
        .getBlobClient(name)
        .download(0, undefined, { maxRetryRequests: STREAM_RETRIES, conditions: etag ? { ifMatch: etag } : {} }),
      container,
    ),
  );
  const stream = found?.readableStreamBody as AsyncIterable<Uint8Array> | undefined;
  return stream && storageCalls(stream, container);
}

export function abortOptions(signal: AbortSignal | undefined): { abortSignal?: AbortSignal } {
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
  request: BlobSasRequest,
): Promise<string> {
  const isIn = (account: Storage) => storageCall(account.container(container).getBlobClient(name).exists(), container);
  const account = await (request.permissions === READ_PERMISSIONS
    ? accountToRead(storage, { container, name }, isIn)
    : accountOfBlob(storage, { container, name }));
  return signUrlIn(account, { container, name }, request);
}

async function signUrlIn(
  account: Storage,
  { container, name }: BlobAddress,
  { permissions, startsAt, expiresAt, headers }: BlobSasRequest,
): Promise<string> {
  const { url, containerName } = account.container(container).getBlobClient(name);
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
  const { credential, accountName } = account.blobs;
  const query =
    credential instanceof StorageSharedKeyCredential
      ? generateBlobSASQueryParameters(values, credential)
      : generateBlobSASQueryParameters(values, await keyFor(account, startsAt, expiresAt), accountName);
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
  const options = {
    metadata: { ...metadata },
    ...toTier(tier),
    ...(etag === undefined ? {} : { sourceConditions: { ifMatch: etag } }),
    ...(md5 === undefined ? {} : { sourceContentMD5: md5 }),
  };
  const target = await accountOfBlob(storage, to);
  const copied = await readInAccount(storage, from, async (account) => {
    // The service authorizes the source separately, also in the same account.
    const source = await signUrlIn(account, from, {
      permissions: READ_PERMISSIONS,
      startsAt: new Date(now - SOURCE_VALID_MS),
      expiresAt: new Date(now + SOURCE_VALID_MS),
    });
    const copy = target.container(to.container).getBlobClient(to.name).syncCopyFromURL(source, options);
    return unlessRefused(['missing', 'changed'], copy, to.container);
  });
  return copied !== undefined;
}

/** Storage copies no more at once: https://learn.microsoft.com/rest/api/storageservices/copy-blob-from-url */
const MAX_COPY_BYTES = 256 * 1_048_576;
/** A blob of so many bytes is written in one transaction. */
const MAX_PUT_BYTES = 8 * 1_048_576;
const BLOCKS_AT_ONCE = 2;

/**
 * Copies a blob to an account that may be of another owner, with its headers and metadata, unless the name exists there. By storage itself if it
 * may; else the bytes pass through this process. Returns false if the source does not exist.
 */
export async function copyToAccount(
  from: Storage,
  to: Storage,
  { source, target, length, isAppendBlob }: CopyToAccount,
): Promise<boolean> {
  const client = to.container(target.container).getBlockBlobClient(target.name);
  const conditions = { ifNoneMatch: '*' };
  let isRefused = false;
  if (!isAppendBlob && length <= MAX_COPY_BYTES && !refusing.has(from)) {
    const now = Date.now();
    const validity = { startsAt: new Date(now - SOURCE_VALID_MS), expiresAt: new Date(now + SOURCE_VALID_MS) };
    const url = await signUrlIn(from, source, { permissions: READ_PERMISSIONS, ...validity });
    try {
      await storageCall(client.syncCopyFromURL(url, { conditions }), target.container);
      return true;
    } catch (error) {
      if (error instanceof StorageConflict) return error.reason !== 'missing';
      // A firewall of the account may let the app read, but not the other account.
      isRefused = true;
    }
  }
  const blob = from.container(source.container).getBlobClient(source.name);
  const found = await unlessRefused(
    ['missing'],
    blob.download(0, undefined, { maxRetryRequests: STREAM_RETRIES }),
    source.container,
  );
  if (!found?.readableStreamBody) return false;
  const { contentType, contentEncoding, contentDisposition, cacheControl, metadata = {} } = found;
  const options = {
    conditions,
    metadata,
    blobHTTPHeaders: {
      ...(contentType && { blobContentType: contentType }),
      ...(contentEncoding && { blobContentEncoding: contentEncoding }),
      ...(contentDisposition && { blobContentDisposition: contentDisposition }),
      ...(cacheControl && { blobCacheControl: cacheControl }),
    },
  };
  const upload = async () => {
    const stream = found.readableStreamBody as Readable;
    if (length > MAX_PUT_BYTES) return client.uploadStream(stream, MAX_PUT_BYTES, BLOCKS_AT_ONCE, options);
    const bytes = await buffer(stream);
    return client.upload(bytes, bytes.byteLength, options);
  };
  await unlessRefused(['exists', 'changed'], upload(), target.container);
  if (isRefused) refusing.add(from);
  return true;
}

interface CopyToAccount {
  readonly source: BlobAddress;
  readonly target: BlobAddress;
  /** In bytes. */
  readonly length: number;
  readonly isAppendBlob: boolean;
}

/** Accounts from which storage may not copy to others. */
const refusing = new WeakSet<Storage>();
