import { createHash, hash, randomBytes } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import pMap from 'p-map';
import { z } from 'zod';
import { RowkeyError } from '../../base/errors.ts';
import { jsonText } from '../../base/json-text.ts';
import { DAY_MS, HOUR_MS, isoInstant, MINUTE_MS, SECOND_MS } from '../../base/time.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import type { Engine } from '../../engine/engine.ts';
import { unlessTableMissing } from '../../engine/period-tables.ts';
import { listBlobs } from '../../storage/append-blobs.ts';
import { blobLength, createBlob, readBlob } from '../../storage/blobs.ts';
import { type Cost, measureCost } from '../../storage/cost.ts';
import { BACKUP_CONTAINER, timeOf, toTime, withAttempt } from '../../storage/row-journal.ts';
import { type Row, scanTable } from '../../storage/rows.ts';
import { SYSTEM_TABLE } from '../../storage/slot-row.ts';
import { accountsOf, type Storage } from '../../storage/storage.ts';
import { inPattern } from '../../telemetry/span.ts';
import { type AppTables, ownRowsIn, tablesIn } from '../app-tables.ts';
import { resourcesOf } from '../resources.ts';
import { type BlobsReport, copyToBackup } from './blobs.ts';
import { type Manifest, manifestName, PARTS, Part, PROGRESS } from './format.ts';
import { tablesInBackup } from './journal.ts';
import { readManifests } from './read-backup.ts';

/**
 * A snapshot has each row of the app that is stored while all tables are scanned. It is not of one instant: the journal since its begin brings all
 * rows to the same one.
 *
 * Rows are in parts. The key of a row decides whether a part ends with it, so a change of some rows changes their parts alone, and a
 * part that the last snapshot has is not stored again. A part is used again for as long as the retention, and a rule of the account deletes it
 * after twice that time, when no snapshot of the retention has it.
 *
 * A run that ends before its snapshot is complete leaves its progress, and the next one continues after the last part of each table.
 */

export interface SnapshotOptions {
  /** The retention. */
  readonly days: number;
  /** No page is read after it. In milliseconds. */
  readonly until?: number | undefined;
  /** Ends the run as `until` does. */
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((progress: SnapshotProgress) => void) | undefined;
  /** How often progress is stored. */
  readonly saveEveryMs?: number | undefined;
}

interface SnapshotProgress {
  readonly table: string;
  /** Of all tables so far, also in earlier runs. */
  readonly rows: number;
}

export interface SnapshotReport {
  readonly id: string;
  /** False for a run that ended at `until`. */
  readonly isComplete: boolean;
  readonly tables: number;
  readonly rows: number;
  readonly parts: { readonly written: number; readonly reused: number };
  /** Of all parts, compressed, and of those that this run has stored. */
  readonly bytes: { readonly total: number; readonly written: number };
  /** All runs of the snapshot. */
  readonly took: NonNullable<Manifest['took']>;
  /** Set if the snapshot is complete. */
  readonly copies?: BlobsReport | undefined;
  readonly finishedAt?: string | undefined;
}

const PAGE_SIZE = 1_000;
const CONCURRENCY = 4;
/** One part in so many rows, on average. */
export const ROWS_OF_PART = 1_024;
const MAX_PART_ROWS = 5_000;
/** In characters. */
const MAX_PART_LENGTH = 8 * 1_048_576;
/** More than the clocks of the servers of storage differ. To replay more of the journal does no harm. */
export const CLOCKS_MS = MINUTE_MS;
/** An older snapshot that is not complete is begun again: a restore would have to replay the journal since then. */
const CONTINUE_WITHIN_MS = 6 * HOUR_MS;
const SAVE_EVERY_MS = MINUTE_MS;

const TableState = z.object({
  rows: z.int(),
  parts: z.array(Part),
  /** The last row of the last part. */
  after: z.object({ partition: z.string(), row: z.string() }).optional(),
  isComplete: z.boolean(),
});
type TableState = z.infer<typeof TableState>;

const Progress = z.object({
  id: z.string(),
  begunAt: z.string(),
  /** The greatest time of the rows so far. */
  latest: z.string(),
  tables: z.record(z.string(), TableState),
  /** What earlier runs took. */
  took: z.object({ seconds: z.number(), transactions: z.int(), bytes: z.int() }),
});
type Progress = z.infer<typeof Progress>;

/** Writes a snapshot, or continues one. Safe to run twice or concurrently. */
export const takeSnapshot = inPattern(
  'backup',
  (engine: Engine, entities: readonly Entity[], options: SnapshotOptions): Promise<SnapshotReport> =>
    measureCost((cost) => take(engine, entities, { ...options, cost })),
);

async function take(
  engine: Engine,
  entities: readonly Entity[],
  options: SnapshotOptions & { readonly cost: Cost },
): Promise<SnapshotReport> {
  const { storage } = engine;
  const { backup } = storage;
  if (!backup)
    throw new RowkeyError('wrong-setting', 'The model declares no backup. Add backup: { days: 35 } to defineModel.');
  const { until = Number.POSITIVE_INFINITY } = options;
  const app: AppTables = { storage, resources: resourcesOf(entities, engine.now()) };
  const isIn = tablesInBackup(entities);
  const { result: names, attempt } = await withAttempt(() => tablesIn(app, ...accountsOf(storage)));
  const [previous, begun] = await Promise.all([
    readManifests({ backup }).next(),
    readProgress(backup, engine.now() - CONTINUE_WITHIN_MS),
  ]);
  const state = begun ?? begin(attempt?.date, engine.now());
  const run = createRun({ engine, backup, previous: previous.value, state, options });
  run.noteDate(attempt);
  const tables = [...names].filter((table) => table === SYSTEM_TABLE || isIn(table)).sort();
  await pMap(
    tables,
    async (table) => {
      const isOwnRow = await ownRowsIn(app, table);
      const isKept = (row: Row) => isIn(table, row.partition) && isOwnRow(row);
      await run.scan(table, isKept, until);
    },
    { concurrency: CONCURRENCY },
  );
  const isComplete = tables.every((table) => state.tables[table]?.isComplete);
  if (!isComplete) {
    await run.save();
    return { ...run.report(), isComplete, copies: undefined };
  }
  // A blob to which a row of the snapshot refers is kept for a day after that.
  const copies = await copyToBackup(engine, entities, { days: options.days, until, signal: options.signal });
  const finishedAt = run.finishedAt();
  const manifest: Manifest = {
    format: 'rowkey-backup',
    formatVersion: 1,
    id: state.id,
    begunAt: state.begunAt,
    finishedAt,
    tables: Object.fromEntries(tables.map((table) => [table, tableOf(state, table)])),
    blobs: copies.blobs,
    entities: Object.fromEntries(entities.map(({ name, table, version }) => [name, { table, version }])),
    took: run.took(),
  };
  const address = { container: BACKUP_CONTAINER, name: manifestName(state.id) };
  // Another run may have completed the same snapshot.
  await createBlob(backup, address, Buffer.from(jsonText(manifest)), { type: 'application/json' });
  return { ...run.report(), isComplete, copies, finishedAt };
}

/** The beginning of the id of a snapshot: `2026-11-29T02-00-00-000Z`. */
export const toIdTime = (now: number) => isoInstant(now).replace(/[:.]/g, '-');

/** The id begins with the time, so that the order of names is that of snapshots. */
function begin(date: string | undefined, now: number): Progress {
  const at = Number.isNaN(Date.parse(date ?? '')) ? now : Date.parse(date ?? '');
  const begunAt = toTime(at - CLOCKS_MS) ?? '';
  const id = `${toIdTime(now)}-${randomBytes(4).toString('hex')}`;
  return { id, begunAt, latest: begunAt, tables: {}, took: { seconds: 0, transactions: 0, bytes: 0 } };
}

/** The progress of the last snapshot, unless it is complete or began before `since`. */
async function readProgress(backup: Storage, since: number): Promise<Progress | undefined> {
  const names = await listBlobs(backup, { container: BACKUP_CONTAINER, prefix: `${PROGRESS}/` });
  const name = names.at(-1);
  const bytes = name && (await readBlob(backup, { container: BACKUP_CONTAINER, name }));
  if (!bytes) return undefined;
  const progress = Progress.parse(JSON.parse(bytes.toString()));
  if (progress.begunAt < isoInstant(since)) return undefined;
  const manifest = { container: BACKUP_CONTAINER, name: manifestName(progress.id) };
  return (await blobLength(backup, manifest)) === undefined ? progress : undefined;
}

const tableOf = ({ tables }: Progress, table: string) => {
  const { rows, parts }: Pick<TableState, 'rows' | 'parts'> = tables[table] ?? { rows: 0, parts: [] };
  return { rows, parts };
};

interface RunOptions {
  readonly engine: Engine;
  readonly backup: Storage;
  readonly previous: Manifest | undefined;
  readonly state: Progress;
  readonly options: SnapshotOptions & { readonly cost: Cost };
}

function createRun({ engine, backup, previous, state, options }: RunOptions) {
  const { days, onProgress, saveEveryMs = SAVE_EVERY_MS, cost, signal } = options;
  const { storage, now } = engine;
  const parts = { written: 0, reused: 0 };
  let writtenBytes = 0;
  let lastDate = 0;
  const startedAt = performance.now();
  let savedAt = startedAt;
  let saves = 0;
  const day = isoInstant(now()).slice(0, 'yyyy-MM-dd'.length);
  const oldest = isoInstant(now() - days * DAY_MS);

  /** The parts of a table in the last snapshot that may be used again. */
  const reusableIn = (table: string) =>
    new Map(previous?.tables[table]?.parts.flatMap((part) => (part.at >= oldest ? [[part.sha256, part]] : [])));

  function noteDate(attempt: { readonly latestMs: number } | undefined): void {
    if (attempt && attempt.latestMs > lastDate) lastDate = attempt.latestMs;
  }

  async function storePart(table: string, open: OpenPart, reusable: ReadonlyMap<string, Part>): Promise<Part> {
    const bytes = await compress(open.lines.join(''));
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    const known = reusable.get(sha256);
    if (known) {
      parts.reused += 1;
      return known;
    }
    const { partition, row } = open.first;
    const name = `${PARTS}/${table}/${day}-${sha256}.ndjson.gz`;
    await createBlob(backup, { container: BACKUP_CONTAINER, name }, bytes, { type: 'application/gzip' });
    parts.written += 1;
    writtenBytes += bytes.length;
    return {
      name,
      at: isoInstant(now()),
      rows: open.lines.length,
      bytes: bytes.length,
      sha256,
      first: { partition, row },
    };
  }

  /** Scans a table, or the rest of it, until its end or the time is over. */
  async function scan(table: string, isKept: (row: Row) => boolean, until: number): Promise<void> {
    const of = state.tables[table] ?? { rows: 0, parts: [], isComplete: false };
    state.tables[table] = of;
    const reusable = reusableIn(table);
    const limit = PAGE_SIZE * accountsOf(storage).length;
    const query = { table, limit, limitOfAccount: PAGE_SIZE, isTyped: true, mayPause: true };
    let open: OpenPart | undefined;
    let at: { readonly after?: TableState['after']; readonly resume?: string } = of.after ? { after: of.after } : {};
    const close = async (part: OpenPart) => {
      const stored = await storePart(table, part, reusable);
      of.parts.push(stored);
      of.rows += stored.rows;
      of.after = part.last;
      if (part.latest > state.latest) state.latest = part.latest;
      open = undefined;
      onProgress?.({ table, rows: countRows() });
      if (performance.now() - savedAt >= saveEveryMs) await save();
    };
    while (!of.isComplete) {
      if (now() >= until || signal?.aborted) return;
      const { result: page, attempt } = await withAttempt(() =>
        unlessTableMissing(scanTable(storage, { ...query, ...at }), { rows: [], more: false, resume: undefined }),
      );
      noteDate(attempt);
      for (const row of page.rows) {
        if (!isKept(row)) continue;
        open ??= { first: toKey(row), last: toKey(row), lines: [], length: 0, latest: '' };
        addRow(open, row);
        if (isFull(open)) await close(open);
      }
      const last = page.rows.at(-1);
      if (page.resume !== undefined) at = { resume: page.resume };
      else if (page.more && last) at = { after: toKey(last) };
      else {
        if (open) await close(open);
        of.isComplete = true;
      }
    }
  }

  const countRows = () => Object.values(state.tables).reduce((sum, { rows }) => sum + rows, 0);

  /** Stores how far the snapshot is. */
  async function save(): Promise<void> {
    savedAt = performance.now();
    const bytes = Buffer.from(jsonText({ ...state, took: took() }));
    const isStored = async () => {
      saves += 1;
      const name = `${PROGRESS}/${state.id}/${String(saves).padStart(6, '0')}.json`;
      return createBlob(backup, { container: BACKUP_CONTAINER, name }, bytes, { type: 'application/json' });
    };
    while (!(await isStored()));
  }

  /** What all runs of the snapshot took so far. */
  function took(): Progress['took'] {
    return {
      seconds: state.took.seconds + (performance.now() - startedAt) / 1_000,
      transactions: state.took.transactions + cost.transactions,
      bytes: state.took.bytes + writtenBytes,
    };
  }

  function report() {
    const all = Object.values(state.tables).flatMap((table) => table.parts);
    const total = all.reduce((sum, { bytes }) => sum + bytes, 0);
    const tables = Object.keys(state.tables).length;
    return { id: state.id, tables, rows: countRows(), parts, bytes: { total, written: writtenBytes }, took: took() };
  }

  /** No row of the snapshot is later, and none was read later. `Date` is rounded down. */
  function finishedAt(): string {
    const last = toTime((lastDate || now()) + SECOND_MS) ?? '';
    return last > state.latest ? last : state.latest;
  }

  return { scan, save, report, took, finishedAt, noteDate };
}

interface OpenPart {
  readonly first: TableState['after'] & object;
  last: TableState['after'] & object;
  readonly lines: string[];
  length: number;
  /** The greatest time of its rows. */
  latest: string;
}

const toKey = ({ partition, row }: Row) => ({ partition, row });

function addRow(open: OpenPart, { partition, row, etag, properties }: Row): void {
  const time = timeOf(etag) ?? '';
  const line = `${jsonText({ partition, row, time, properties })}
`;
  open.lines.push(line);
  open.length += line.length;
  open.last = { partition, row };
  if (time > open.latest) open.latest = time;
}

function isFull({ last, lines, length }: OpenPart): boolean {
  if (lines.length >= MAX_PART_ROWS || length >= MAX_PART_LENGTH) return true;
  const key = hash('sha256', JSON.stringify([last.partition, last.row]), 'buffer');
  return key.readUInt32BE() % ROWS_OF_PART === 0;
}

const deflate = promisify(gzip);
/** Where the header of gzip names the system on which it was made. */
const SYSTEM_AT = 9;
const UNKNOWN_SYSTEM = 255;

/** The same bytes for the same text on each machine. */
async function compress(text: string): Promise<Buffer> {
  const bytes = await deflate(text);
  bytes[SYSTEM_AT] = UNKNOWN_SYSTEM;
  return bytes;
}
