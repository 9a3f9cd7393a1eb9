import { gunzipSync } from 'node:zlib';
import { RowkeyError } from '../../base/errors.ts';
import { HOUR_MS } from '../../base/time.ts';
import { listBlobs, readLines } from '../../storage/append-blobs.ts';
import { readBlob } from '../../storage/blobs.ts';
import { ofAccount, unlessAway } from '../../storage/errors.ts';
import type { JournalRow } from '../../storage/row-journal.ts';
import { BACKUP_CONTAINER } from '../../storage/row-journal.ts';
import { compareKeys } from '../../storage/scan-accounts.ts';
import { accountsOf, type Storage } from '../../storage/storage.ts';
import { inPattern } from '../../telemetry/span.ts';
import { hourOf } from '../append-log.ts';
import { JOURNAL, JournalLine, MANIFESTS, Manifest, type SnapshotLine } from './format.ts';

/**
 * Reads a backup: the rows of the app as they were at an instant, its *cut*. A cut has exactly the transactions whose time is not later, so it
 * is exact for each partition. Partitions are on servers with clocks of their own, so across partitions it is as exact as these clocks agree.
 *
 * The state of a row is its version in the last snapshot that had ended by then, and what the journal has of it since that snapshot
 * began, in the order of the times that storage gave the versions.
 */

/** Where the rows of a backup are. With `storage`, the accounts of the app are read too, where lines wait if the account of the backup was away. */
export interface RowSource {
  readonly backup: Storage;
  readonly storage?: Storage | undefined;
}

/** Where a backup is. */
export interface BackupSource extends RowSource {
  /** The retention. */
  readonly days: number;
}

/** Which rows are wanted: all, those of some tables, of one, of a partition of it, or one row. */
export interface WantedRows {
  readonly hasTable?: ((table: string) => boolean) | undefined;
  readonly table?: string | undefined;
  readonly partition?: string | undefined;
  readonly row?: string | undefined;
}

export interface RowState extends SnapshotLine {
  readonly table: string;
}

/** The manifests of all complete snapshots, the newest first. Reads one blob for each that is taken. */
export async function* readManifests({ backup }: RowSource): AsyncGenerator<Manifest> {
  const names = await listBlobs(backup, { container: BACKUP_CONTAINER, prefix: `${MANIFESTS}/` });
  for (const name of names.reverse()) {
    const bytes = await readBlob(backup, { container: BACKUP_CONTAINER, name });
    if (bytes) yield Manifest.parse(JSON.parse(bytes.toString()));
  }
}

/** The snapshot from which the state at an instant follows. Throws `not-found` if the backup begins later. */
export async function snapshotFor(source: RowSource, at: string): Promise<Manifest> {
  let oldest: Manifest | undefined;
  for await (const manifest of readManifests(source)) {
    if (manifest.finishedAt <= at) return manifest;
    oldest = manifest;
  }
  const from = oldest ? `It begins at ${oldest.finishedAt}.` : 'It has no snapshot yet.';
  throw new RowkeyError('not-found', `The backup has nothing of ${at}. ${from}`);
}

/** The lines of the journal with times from one instant to another, both inclusive. Each once, in the order of their hours. */
export async function* readJournal(
  source: RowSource,
  { from, to }: { readonly from: string; readonly to: string },
): AsyncGenerator<JournalLine> {
  for (const hour of hoursBetween(from, to)) {
    const seen = new Set<string>();
    for (const account of [source.backup, ...(source.storage ? accountsOf(source.storage) : [])]) {
      const blobs = { container: BACKUP_CONTAINER, prefix: `${JOURNAL}/${hour}/` };
      const names = await unlessAway(ofAccount(account, listBlobs(account, blobs)));
      for (const name of names.result ?? [])
        for await (const text of readLines(account, { container: BACKUP_CONTAINER, name })) {
          const line = JournalLine.parse(JSON.parse(text));
          if (line.time < from || line.time > to || seen.has(line.id)) continue;
          seen.add(line.id);
          yield line;
        }
    }
  }
}

/** The rows of the app as they were at an instant, in the order of tables and keys. Throws `not-found` if the backup begins later. */
export const readState = inPattern('backup', async (source: RowSource, at: string, wanted: WantedRows = {}) => {
  const manifest = await snapshotFor(source, at);
  const changes = await foldJournal(source, { from: manifest.begunAt, to: at }, wanted);
  const tables = new Set([...Object.keys(manifest.tables), ...changes.keys()]);
  return { manifest, rows: mergeTables(source, { manifest, changes, wanted, tables: [...tables].sort() }) };
});

const isWanted = ({ table: only, hasTable }: WantedRows, table: string) =>
  (only === undefined || table === only) && (hasTable?.(table) ?? true);

interface Merge {
  readonly manifest: Manifest;
  readonly changes: ReadonlyMap<string, TableChanges>;
  readonly wanted: WantedRows;
  readonly tables: readonly string[];
}

async function* mergeTables(source: RowSource, { manifest, changes, wanted, tables }: Merge) {
  for (const table of tables) {
    if (!isWanted(wanted, table)) continue;
    const { rows, droppedAt }: TableChanges = changes.get(table) ?? { rows: new Map() };
    const pending = [...rows.values()].sort(compareKeys);
    let next = 0;
    const merged = (stored: SnapshotLine | undefined, changed: RowChanges | undefined): RowState[] => {
      const key = stored ?? changed;
      const state = key && foldRow(stored, changed?.versions ?? [], droppedAt);
      return state ? [{ table, partition: key.partition, row: key.row, ...state }] : [];
    };
    for await (const stored of readSnapshotTable(source, manifest, { ...wanted, table })) {
      for (; pending[next] && compareKeys(pending[next] ?? stored, stored) < 0; next += 1)
        yield* merged(undefined, pending[next]);
      const same = pending[next] && compareKeys(pending[next] ?? stored, stored) === 0 ? pending[next] : undefined;
      if (same) next += 1;
      yield* merged(stored, same);
    }
    for (; next < pending.length; next += 1) yield* merged(undefined, pending[next]);
  }
}

interface RowChanges {
  readonly partition: string;
  readonly row: string;
  versions: JournalRow[];
}

interface TableChanges {
  readonly rows: Map<string, RowChanges>;
  /** The last drop of the table. */
  droppedAt?: string | undefined;
}

/** The versions in the journal from which the last state of each row follows. */
async function foldJournal(
  source: RowSource,
  span: { readonly from: string; readonly to: string },
  wanted: WantedRows,
): Promise<ReadonlyMap<string, TableChanges>> {
  const tables = new Map<string, TableChanges>();
  for await (const line of readJournal(source, span)) {
    const { table } = line;
    if (!isWanted(wanted, table)) continue;
    const changes: TableChanges = tables.get(table) ?? { rows: new Map() };
    tables.set(table, changes);
    if ('dropped' in line) {
      if (line.time > (changes.droppedAt ?? '')) changes.droppedAt = line.time;
      continue;
    }
    const { partition } = line;
    if (wanted.partition !== undefined && partition !== wanted.partition) continue;
    for (const version of line.rows) {
      const { row } = version;
      if (wanted.row !== undefined && row !== wanted.row) continue;
      const key = JSON.stringify([partition, row]);
      const of = changes.rows.get(key) ?? { partition, row, versions: [] };
      changes.rows.set(key, of);
      of.versions = withoutReplaced([...of.versions, version]);
    }
  }
  return tables;
}

/** Leaves out versions that a later one replaces as a whole. */
function withoutReplaced(versions: JournalRow[]): JournalRow[] {
  const sorted = versions.sort(compareVersions);
  const last = sorted.findLastIndex((version) => !('merge' in version));
  return last > 0 ? sorted.slice(last) : sorted;
}

/** A delete is never later than its time: at the same time as a row, it is of the version before. */
export function compareVersions(one: JournalRow, other: JournalRow): number {
  if (one.time !== other.time) return one.time < other.time ? -1 : 1;
  return Number('deleted' in other) - Number('deleted' in one);
}

type State = Pick<RowState, 'time' | 'properties'>;

/** The state of a row after its versions, from the one in a snapshot. Undefined if it does not exist. */
export function foldRow(
  stored: State | undefined,
  versions: readonly JournalRow[],
  droppedAt: string | undefined,
): State | undefined {
  let state = stored && { time: stored.time, properties: stored.properties };
  for (const version of versions.toSorted(compareVersions)) {
    const { time } = version;
    if (stored && time <= stored.time) continue;
    if ('deleted' in version) state = undefined;
    else if (!('merge' in version)) state = { time, properties: version.properties };
    // A row that the backup has not seen: half of it would never have been stored.
    else if (state || version.isUpsert) state = { time, properties: { ...state?.properties, ...version.merge } };
  }
  return state && (droppedAt === undefined || state.time > droppedAt) ? state : undefined;
}

/** The rows of a table in a snapshot, in the order of their keys. Reads only the parts that may have what is wanted. */
export async function* readSnapshotTable(
  { backup }: RowSource,
  { tables }: Manifest,
  { table, partition, row }: WantedRows & { readonly table: string },
): AsyncGenerator<SnapshotLine> {
  const parts = tables[table]?.parts ?? [];
  for (const [index, { name, first }] of parts.entries()) {
    const next = parts[index + 1]?.first;
    if (partition !== undefined) {
      if (next && compareKeys(next, { partition, row: row ?? '' }) <= 0) continue;
      if (compareKeys(first, { partition, row: row ?? LAST_KEY }) > 0) return;
    }
    const bytes = await readBlob(backup, { container: BACKUP_CONTAINER, name });
    if (!bytes) throw new RowkeyError('needs-repair', `The backup has lost the part ${name}.`);
    for (const text of gunzipSync(bytes).toString().split('\n')) {
      if (text === '') continue;
      const line: SnapshotLine = JSON.parse(text);
      if (partition !== undefined && line.partition !== partition) continue;
      if (row !== undefined && line.row !== row) continue;
      yield line;
    }
  }
}

/** Follows each key. */
const LAST_KEY = '\uffff';

/** Each hour from that of an instant to that of another, as in the names of blobs. */
function hoursBetween(from: string, to: string): string[] {
  const first = Math.floor(Date.parse(from) / HOUR_MS);
  const count = Math.floor(Date.parse(to) / HOUR_MS) - first + 1;
  return Array.from({ length: Math.max(0, count) }, (_, index) =>
    hourOf(new Date((first + index) * HOUR_MS).toISOString()),
  );
}
