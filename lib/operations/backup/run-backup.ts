import { DAY_MS, HOUR_MS } from '../../base/time.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import type { Engine } from '../../engine/engine.ts';
import { record } from '../../telemetry/metrics.ts';
import { type BlobsReport, copyToBackup } from './blobs.ts';
import { readManifests } from './read-backup.ts';
import { type SnapshotReport, takeSnapshot } from './snapshot.ts';

/** What the timer of a backup does in each hour: it takes the snapshot of the day, or copies blobs. */

/** The snapshot of a day begins in this hour, in UTC. */
const SNAPSHOT_HOUR_MS = 2 * HOUR_MS;

interface BackupOptions {
  /** The retention. */
  readonly days: number;
  /** In milliseconds. The next run continues. */
  readonly until?: number | undefined;
}

/** True if the snapshot of the day is missing, or there is none at all. `finishedAt` is that of the last one. */
export function isSnapshotDue(now: number, finishedAt: string | undefined): boolean {
  const due = Math.floor((now - SNAPSHOT_HOUR_MS) / DAY_MS) * DAY_MS + SNAPSHOT_HOUR_MS;
  return finishedAt === undefined || Date.parse(finishedAt) < due;
}

/** Takes a snapshot if one is due, and else copies blobs. Reports how old the last snapshot is. Safe to run twice or concurrently. */
export async function runBackup(
  engine: Engine,
  entities: readonly Entity[],
  options: BackupOptions,
): Promise<{ readonly snapshot?: SnapshotReport; readonly copies: BlobsReport | undefined }> {
  const { backup } = engine.storage;
  const { value: last } = backup ? await readManifests({ backup }).next() : { value: undefined };
  let { finishedAt } = last ?? {};
  try {
    if (!isSnapshotDue(engine.now(), finishedAt)) return { copies: await copyToBackup(engine, entities, options) };
    const snapshot = await takeSnapshot(engine, entities, options);
    finishedAt = snapshot.finishedAt ?? finishedAt;
    return { snapshot, copies: snapshot.copies };
  } finally {
    if (finishedAt !== undefined) record.snapshotAge(engine.now() - Date.parse(finishedAt));
  }
}
