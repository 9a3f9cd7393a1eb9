import pMap from 'p-map';
import { AUDIT_CONTAINER, accountOfBlob, PERIOD_ARCHIVES_CONTAINER } from '../../storage/blob-owner.ts';
import { blobLength, copyToAccount, listContainer } from '../../storage/blobs.ts';
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
    if (isOfNoRow ? isWhole : names.has(name)) copies.set(`${container}/${name}`, { container, name, at, length });
  }
  const done = { copied: 0, bytes: 0 };
  await pMap(
    copies.values(),
    async (copy) => {
      signal?.throwIfAborted();
      if ((await blobLength(storage, copy)) === copy.length) return;
      const { container, name, at, length } = copy;
      const source = { container: BACKUP_CONTAINER, name: at };
      const target = { container, name };
      await copyToAccount(backup, await accountOfBlob(storage, target), {
        source,
        target,
        length,
        isAppendBlob: false,
      });
      done.copied += 1;
      done.bytes += copy.length;
      onCopied?.();
    },
    { concurrency: CONCURRENCY },
  );
  const found = new Set([...copies.values()].map(({ name }) => name));
  return { ...done, missing: [...names].filter((name) => !found.has(name)).slice(0, MAX_MISSING) };
}
