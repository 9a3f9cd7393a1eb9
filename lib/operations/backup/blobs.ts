import { hash } from 'node:crypto';
import pMap from 'p-map';
import { HOUR_MS } from '../../base/time.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import type { Engine } from '../../engine/engine.ts';
import {
  AUDIT_CONTAINER,
  isMovable,
  isOwnBlob,
  PERIOD_ARCHIVES_CONTAINER,
  readInAccount,
} from '../../storage/blob-owner.ts';
import {
  copyToAccount,
  createBlob,
  deleteBlob,
  type ListedBlob,
  listContainer,
  listContainerOf,
  readBlob,
} from '../../storage/blobs.ts';
import { ofAccount } from '../../storage/errors.ts';
import { BACKUP_CONTAINER } from '../../storage/row-journal.ts';
import { accountsOf, type Storage } from '../../storage/storage.ts';
import { inPattern } from '../../telemetry/span.ts';
import { containersOf } from '../collect-orphans.ts';
import { resourcesOf } from '../resources.ts';
import { blobFolder, JOURNAL, type Manifest } from './format.ts';

/**
 * Copies of blobs in a backup. The bytes of a blob never change, and one without a reference is kept for a day, so a run in each hour misses none.
 *
 * Each blob that is stored is copied again when as many days have passed as the retention has: then a rule of the account may delete what was
 * copied for the period before the last one.
 */

const CONCURRENCY = 8;
/** Processes append to a blob of an hour as long as requests take that began in the hour. */
const COMPLETE_AFTER_MS = 2 * HOUR_MS;

interface BlobsOptions {
  /** The retention. */
  readonly days: number;
  /** No copy begins after it. In milliseconds. */
  readonly until?: number | undefined;
  /** Ends the run as `until` does. */
  readonly signal?: AbortSignal | undefined;
}

export interface BlobsReport {
  readonly copied: number;
  readonly copiedBytes: number;
  /** False for a run that ended at `until`. */
  readonly isComplete: boolean;
  /** What the backup has of the blobs that the app has now. */
  readonly blobs: Manifest['blobs'];
}

/** Copies the blobs of the app that the backup lacks. Safe to run twice or concurrently: the next run continues. */
export const copyToBackup = inPattern(
  'backup',
  async (
    engine: Engine,
    entities: readonly Entity[],
    { days, until = Number.POSITIVE_INFINITY, signal }: BlobsOptions,
  ): Promise<BlobsReport> => {
    const { storage, now } = engine;
    const { backup } = storage;
    const report = {
      copied: 0,
      copiedBytes: 0,
      isComplete: true,
      blobs: {} as Record<string, { count: number; bytes: number }>,
    };
    if (!backup) return report;
    for (const { container, account } of sourcesOf(storage, entities)) {
      const folder = `${blobFolder(now(), days)}/${container}/`;
      const total = report.blobs[container] ?? { count: 0, bytes: 0 };
      report.blobs[container] = total;
      const note = ({ length }: ListedBlob) => {
        total.count += 1;
        total.bytes += length;
      };
      const listed = listKept(account ?? storage, container, now());
      await pMap(
        missingIn(backup, { folder, listed, note }),
        async (blob) => {
          if (now() >= until || signal?.aborted) {
            report.isComplete = false;
            return;
          }
          const target = { container: BACKUP_CONTAINER, name: folder + blob.name };
          const isAppendBlob = container === AUDIT_CONTAINER;
          const copy = async (from: Storage) => {
            const what = { source: blob, target, length: blob.length, isAppendBlob };
            return (await ofAccount(from, copyToAccount(from, backup, what))) || undefined;
          };
          if (!(await (account ? copy(account) : readInAccount(storage, blob, copy)))) return;
          note(blob);
          report.copied += 1;
          report.copiedBytes += blob.length;
        },
        { concurrency: CONCURRENCY },
      );
    }
    return report;
  },
);

/** The containers to copy. While the account of the audit log is away, the log has blobs in the others: there, each account is listed. */
function sourcesOf(storage: Storage, entities: readonly Entity[]) {
  const { containers } = resourcesOf(entities);
  const whole = [...containersOf(entities), PERIOD_ARCHIVES_CONTAINER].filter((name) => containers.includes(name));
  return [
    ...whole.map((container) => ({ container, account: undefined })),
    ...accountsOf(storage).map((account) => ({ container: AUDIT_CONTAINER, account })),
  ];
}

/** The blobs of the app in a container that change no more, in the order of their names. */
async function* listKept(storage: Storage, container: string, now: number): AsyncGenerator<ListedBlob> {
  if (container === AUDIT_CONTAINER) {
    for await (const blob of listContainerOf(storage, container, '')) if (isHourOver(blob.name, now)) yield blob;
    return;
  }
  for await (const blob of listContainer(storage, container))
    if (isMovable(container) ? isOwnBlob(blob.name) : blob.metadata.state === 'verified') yield blob;
}

const HOUR = /(\d{4})\/(\d\d)\/(\d\d)\/(\d\d)00\//;

function isHourOver(name: string, now: number): boolean {
  const [, year, month, day, hour] = HOUR.exec(name) ?? [];
  return year !== undefined && Date.parse(`${year}-${month}-${day}T${hour}:00:00Z`) + COMPLETE_AFTER_MS <= now;
}

interface Compared {
  readonly folder: string;
  readonly listed: AsyncGenerator<ListedBlob>;
  /** Called for each blob that is not missing. */
  readonly note: (blob: ListedBlob) => void;
}

/** The blobs that have no copy: compares two listings in the order of names. If their orders differ, a blob is found to exist when it is copied. */
async function* missingIn(backup: Storage, { folder, listed, note }: Compared): AsyncGenerator<ListedBlob> {
  const copies = listContainerOf(backup, BACKUP_CONTAINER, folder);
  let copy = await copies.next();
  for await (const blob of listed) {
    while (!copy.done && copy.value.name < folder + blob.name) copy = await copies.next();
    if (!copy.done && copy.value.name === folder + blob.name) note(blob);
    else yield blob;
  }
}

/**
 * Brings lines of the journal to the account of the backup that were stored in those of the app while it was away. Readers skip a line that they
 * have seen, so a blob that has grown is copied as a whole. Returns how many blobs were copied and deleted.
 */
export const carryLines = inPattern(
  'backup',
  async ({ storage, now }: Engine): Promise<{ readonly carried: number; readonly deleted: number }> => {
    const { backup } = storage;
    const done = { carried: 0, deleted: 0 };
    if (!backup) return done;
    for (const account of accountsOf(storage))
      for await (const { name, etag, modifiedAt } of listContainerOf(account, BACKUP_CONTAINER, `${JOURNAL}/`)) {
        const bytes = await readBlob(account, { container: BACKUP_CONTAINER, name });
        if (!bytes) continue;
        const digest = hash('sha256', bytes).slice(0, DIGEST_LENGTH);
        const target = { container: BACKUP_CONTAINER, name: name.replace(/\.ndjson$/, `_${digest}.ndjson`) };
        if (await createBlob(backup, target, bytes, { type: 'application/x-ndjson' })) done.carried += 1;
        if (modifiedAt + COMPLETE_AFTER_MS > now()) continue;
        // A process that appends meanwhile finds the blob changed or gone, and opens another one.
        await deleteBlob(account, { container: BACKUP_CONTAINER, name }, etag);
        done.deleted += 1;
      }
    return done;
  },
);

const DIGEST_LENGTH = 16;
