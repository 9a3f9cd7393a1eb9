import pMap from 'p-map';
import { appendBlock, createAppendBlob } from '../../storage/append-blobs.ts';
import { AUDIT_CONTAINER, accountOfBlob, PERIOD_ARCHIVES_CONTAINER } from '../../storage/blob-owner.ts';
import { blobLength, listContainer, readBlob } from '../../storage/blobs.ts';
import { copyBlob } from '../../storage/copy-blobs.ts';
import { BACKUP_CONTAINER } from '../../storage/row-journal.ts';
import type { Properties } from '../../storage/rows.ts';
import type { Storage } from '../../storage/storage.ts';
import { BLOBS } from './format.ts';
import type { RowState } from './read-backup.ts';

/** Copies blobs of a backup to where its rows are restored. The bytes of a blob never change, so any copy of it is the right one. */

export interface RestoredBlobs {
  readonly copied: number;
  readonly bytes: number;
  /** The first names that rows refer to, and the backup does not have. */
  readonly missing: readonly string[];
}

/** A reference to a blob in a value, which may be JSON. */
const NAMES =
  /(?:[\da-f]{3}\/)?[A-Za-z][A-Za-z0-9]{2,62}\/[\w-]{22}\/[^/"\\]+\/(?:(?:[\w-]{8})+\/)?[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}(?:\.[^/"\\]+)?/g;

/** Passes rows on, and adds the names of the blobs that they refer to. */
export async function* noteBlobs(rows: AsyncIterable<RowState>, names: Set<string>): AsyncGenerator<RowState> {
  for await (const row of rows) {
    for (const name of namesIn(row.properties)) names.add(name);
    yield row;
  }
}

function* namesIn(properties: Properties): Generator<string> {
  for (const value of Object.values(properties))
    if (typeof value === 'string' && value.includes('/')) for (const [name] of value.matchAll(NAMES)) yield name;
}

interface BlobsOptions {
  readonly backup: Storage;
  /** Those of rows. */
  readonly names: ReadonlySet<string>;
  /** True to copy period archives and the audit log, too. */
  readonly isWhole: boolean;
  readonly signal?: AbortSignal | undefined;
  readonly onCopied?: (() => void) | undefined;
}

const CONCURRENCY = 8;
/** https://learn.microsoft.com/rest/api/storageservices/append-block */
const MAX_BLOCK_BYTES = 4 * 1_048_576;
const MAX_MISSING = 20;
/** The name of a copy: the first day of its period, its container and its name. */
const COPY = new RegExp(`^${BLOBS}/[^/]+/([^/]+)/(.+)$`);

interface Copy {
  readonly container: string;
  readonly name: string;
  /** In the backup. */
  readonly at: string;
  readonly length: number;
}

export async function restoreBlobs(storage: Storage, options: BlobsOptions): Promise<RestoredBlobs> {
  const { backup, names, isWhole, signal, onCopied } = options;
  const copies = new Map<string, Copy>();
  for await (const { name: at, length } of listContainer(backup, BACKUP_CONTAINER, `${BLOBS}/`)) {
    const [, container, name] = COPY.exec(at) ?? [];
    if (container === undefined || name === undefined) continue;
    const isOfNoRow = container === AUDIT_CONTAINER || container === PERIOD_ARCHIVES_CONTAINER;
    // The later ones of the audit log are longer.
    if (isOfNoRow ? isWhole : names.has(name)) copies.set(`${container}/${name}`, { container, name, at, length });
  }
  const done = { copied: 0, bytes: 0 };
  await pMap(
    copies.values(),
    async (copy) => {
      signal?.throwIfAborted();
      if ((await blobLength(storage, copy)) === copy.length) return;
      await (copy.container === AUDIT_CONTAINER ? copyLog(backup, storage, copy) : copyTo(backup, storage, copy));
      done.copied += 1;
      done.bytes += copy.length;
      onCopied?.();
    },
    { concurrency: CONCURRENCY },
  );
  const found = new Set([...copies.values()].map(({ name }) => name));
  return { ...done, missing: [...names].filter((name) => !found.has(name)).slice(0, MAX_MISSING) };
}

async function copyTo(backup: Storage, storage: Storage, { container, name, at }: Copy): Promise<void> {
  const account = await accountOfBlob(storage, { container, name });
  const source = backup.container(BACKUP_CONTAINER).getBlobClient(at);
  await copyBlob(source, account.container(container).getBlockBlobClient(name), undefined);
}

/** The log goes on in append blobs. One that an interrupted restore has begun is continued. */
async function copyLog(backup: Storage, storage: Storage, { container, name, at }: Copy): Promise<void> {
  const account = await accountOfBlob(storage, { container, name });
  const bytes = await readBlob(backup, { container: BACKUP_CONTAINER, name: at });
  if (!bytes) return;
  let position = await blobLength(account, { container, name });
  if (position === undefined) await createAppendBlob(account, { container, name });
  for (position ??= 0; position < bytes.length; position += MAX_BLOCK_BYTES)
    await appendBlock(
      account,
      { container, name },
      {
        bytes: bytes.subarray(position, position + MAX_BLOCK_BYTES),
        position,
      },
    );
}
