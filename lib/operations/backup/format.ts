import { z } from 'zod';
import { DAY_MS, isoInstant } from '../../base/time.ts';

/**
 * The format of a backup, which is readable without Rowkey: docs/backup.md describes it. All of it is in one container of the backup account,
 * and nothing in it is ever changed or deleted by the app: a rule of the account deletes what is older than the retention.
 *
 * - `journal/yyyy/MM/dd/HH00/nnnnnn.ndjson`: transactions in the order of their appends, by the hour of their time. A line may be there twice.
 * - `parts/{table}/{day}-{hash}.ndjson.gz`: rows of a snapshot in the order of their keys. A part that did not change belongs to several snapshots.
 * - `manifests/{id}.json`: which parts a snapshot has. Written last; the id begins with its time.
 * - `progress/{id}/nnnnnn.json`: how far a snapshot is that is not complete yet. Only the next run reads it.
 * - `blobs/{day}/{container}/{name}`: copies of blobs, whose bytes never change. All are copied again when the retention has passed since the day.
 */

export const JOURNAL = 'journal';
export const PARTS = 'parts';
export const MANIFESTS = 'manifests';
export const BLOBS = 'blobs';
export const PROGRESS = 'progress';

/** The name of the manifest of a snapshot. */
export const manifestName = (id: string) => `${MANIFESTS}/${id}.json`;

/**
 * The folder of the copies of blobs at a time: it begins again with each period of so many days, so that what is older than two periods is
 * needed by no instant of the retention. All live blobs are copied again into each.
 */
export function blobFolder(milliseconds: number, days: number): string {
  const period = days * DAY_MS;
  return `${BLOBS}/${isoInstant(Math.floor(milliseconds / period) * period).slice(0, 'yyyy-MM-dd'.length)}`;
}

const Properties = z.record(z.string(), z.unknown());

const RowLine = z.union([
  z.object({ row: z.string(), time: z.string(), properties: Properties }),
  z.object({ row: z.string(), time: z.string(), merge: Properties, isUpsert: z.literal(true).optional() }),
  z.object({ row: z.string(), time: z.string(), deleted: z.literal(true) }),
]);

/** A transaction on one partition, or the drop of a table. */
export const JournalLine = z.union([
  z.object({
    id: z.string(),
    time: z.string(),
    table: z.string(),
    partition: z.string(),
    rows: z.array(RowLine).readonly(),
  }),
  z.object({ id: z.string(), time: z.string(), table: z.string(), dropped: z.literal(true) }),
]);
export type JournalLine = z.infer<typeof JournalLine>;

/** A row as a snapshot found it. */
export const SnapshotLine = z.object({
  partition: z.string(),
  row: z.string(),
  time: z.string(),
  properties: Properties,
});
export type SnapshotLine = z.infer<typeof SnapshotLine>;

/** The parts of a table are in the order of keys; `first` is the first key of each, `sha256` of its bytes as they are stored. */
export const Part = z.object({
  name: z.string(),
  /** When it was written. */
  at: z.string(),
  rows: z.int(),
  bytes: z.int(),
  sha256: z.string(),
  first: z.object({ partition: z.string(), row: z.string() }),
});

export type Part = z.infer<typeof Part>;

export const Manifest = z.object({
  format: z.literal('rowkey-backup'),
  formatVersion: z.literal(1),
  id: z.string(),
  /** By the clock of storage: each row that was stored before, and is still stored, is in the snapshot. */
  begunAt: z.string(),
  /** By the clock of storage: no row of the snapshot is later. */
  finishedAt: z.string(),
  tables: z.record(z.string(), z.object({ rows: z.int(), parts: z.array(Part).readonly() })),
  /** The blobs that the backup had copied when the snapshot ended. */
  blobs: z.record(z.string(), z.object({ count: z.int(), bytes: z.int() })),
  /** The version of each entity in the model. */
  entities: z.record(z.string(), z.object({ table: z.string(), version: z.int() })),
  /** What the runs of the snapshot took. `transactions` are those of storage, as billed; `bytes` are those of the parts that it wrote. */
  took: z.object({ seconds: z.number(), transactions: z.int(), bytes: z.int() }).optional(),
});
export type Manifest = z.infer<typeof Manifest>;
