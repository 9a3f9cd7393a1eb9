import { FURTHER_ROW } from '../../base/engine-names.ts';
import { hasCode } from '../../base/errors.ts';
import { HOUR_MS, MINUTE_MS } from '../../base/time.ts';
import { TOMBSTONE } from '../../define/codec/entity-codec.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { prefixOfChildren } from '../../define/keys/key-template.ts';
import type { Engine } from '../../engine/engine.ts';
import type { ChangeRecord } from '../../engine/note-change.ts';
import { type JournalRow, padTime, timeBefore, toTime } from '../../storage/row-journal.ts';
import type { Address } from '../../storage/rows.ts';
import { inPattern } from '../../telemetry/span.ts';
import type { Manifest, SnapshotLine } from './format.ts';
import { openRows } from './past.ts';
import {
  type BackupSource,
  compareVersions,
  foldRow,
  type RowState,
  readJournal,
  readManifests,
  readSnapshotTable,
  snapshotFor,
  type WantedRows,
} from './read-backup.ts';

/** What one entity was, and when: from the backup. */

interface Span {
  /** Instants with seven digits, both inclusive. */
  readonly from: string;
  readonly to: string;
}

/** An entity between two of its changes. */
export interface EntityVersion {
  /** When the version began, by the clock of storage. */
  readonly at: string;
  /** Reads the entity as it was. */
  readonly engine: Engine;
}

/** The rows of an entity in a backup. */
interface History {
  readonly stored: ReadonlyMap<string, SnapshotLine>;
  readonly versions: ReadonlyMap<string, readonly JournalRow[]>;
  /** When each transaction changed one of the rows. */
  readonly times: readonly string[];
}

/**
 * The versions of an entity in a span, the first one as it was when the span began. At most `top`. Reads the journal of the span, and of
 * up to a day before. Throws `not-found` if the backup begins after the span.
 */
export const readVersions = inPattern(
  'backup',
  async (
    present: Engine,
    address: Address,
    { from, to, top }: Span & { readonly top: number },
  ): Promise<{ readonly items: EntityVersion[]; readonly next: string | undefined }> => {
    const source = sourceOf(present);
    const manifest = await snapshotBefore(source, from);
    const begin = manifest.finishedAt > from ? manifest.finishedAt : from;
    const history = await readHistory(source, manifest, { address, to });
    const cuts = [begin, ...history.times.filter((time) => time > begin)];
    const items: EntityVersion[] = [];
    for (const at of cuts.slice(0, top)) {
      const rows = rowsAt(history, address, at);
      items.push({ at, engine: await openRows(present, { source, time: at, rowsOf: async () => rows }) });
    }
    return { items, next: cuts[top] };
  },
);

/** The snapshot from which the state at an instant follows; the first one if the backup begins later. */
async function snapshotBefore(source: BackupSource, at: string): Promise<Manifest> {
  try {
    return await snapshotFor(source, at);
  } catch (error) {
    if (!hasCode(error, 'not-found')) throw error;
    const oldest = (await Array.fromAsync(readManifests(source))).at(-1);
    if (!oldest) throw error;
    return oldest;
  }
}

async function readHistory(
  source: BackupSource,
  manifest: Manifest,
  { address, to }: { readonly address: Address; readonly to: string },
): Promise<History> {
  const { table, partition } = address;
  const isOfEntity = (row: string) => row === address.row || row.startsWith(address.row + FURTHER_ROW);
  const stored = new Map<string, SnapshotLine>();
  for await (const line of readSnapshotTable(source, manifest, { table, partition }))
    if (isOfEntity(line.row)) stored.set(line.row, line);
  const versions = new Map<string, JournalRow[]>();
  const times = new Set<string>();
  for await (const line of readJournal(source, { from: manifest.begunAt, to })) {
    if ('dropped' in line || line.table !== table || line.partition !== partition) continue;
    for (const version of line.rows)
      if (isOfEntity(version.row)) {
        times.add(line.time);
        versions.set(version.row, [...(versions.get(version.row) ?? []), version]);
      }
  }
  return { stored, versions, times: [...times].sort() };
}

function rowsAt({ stored, versions }: History, { table, partition }: Address, at: string): RowState[] {
  return [...new Set([...stored.keys(), ...versions.keys()])].sort().flatMap((row) => {
    const until = (versions.get(row) ?? []).filter(({ time }) => time <= at);
    const state = foldRow(stored.get(row), until, undefined);
    return state ? [{ table, partition, row, ...state }] : [];
  });
}

/** So long before its record in the audit log may a change have been made: the clocks of processes differ, and a request takes time. */
const RECORDED_WITHIN_MS = 15 * MINUTE_MS;
/** A parent with many children is deleted after its record. */
const DELETED_WITHIN_MS = HOUR_MS;

/** A record of the audit log that says which row was deleted. */
export type DeletedRow = ChangeRecord & { readonly row: string };

interface Line {
  readonly time: string;
  /** No row of its transaction is earlier. */
  readonly begin: string;
}

/** A row of a deleted entity, or of its children. */
interface FormerRow extends Address {
  stored?: SnapshotLine;
  readonly versions: { readonly version: JournalRow; readonly line: Line }[];
}

/**
 * Opens the entity of each record, with its children, as it was right before it was deleted. Each has its own instant: others were changed
 * between two deletes.
 */
export async function openBeforeDeletes(
  present: Engine,
  entity: Entity,
  deletes: readonly DeletedRow[],
): Promise<ReadonlyMap<DeletedRow, Engine>> {
  const source = sourceOf(present);
  const times = deletes.map(({ at }) => Date.parse(at));
  const from = toTime(Math.min(...times) - RECORDED_WITHIN_MS) ?? '';
  const to = toTime(Math.max(...times) + DELETED_WITHIN_MS) ?? '';
  const manifest = await snapshotBefore(source, from);
  const rows = createFormerRows(entity, deletes);
  for (const partition of new Set(deletes.map((record) => record.partition)))
    for await (const stored of readSnapshotTable(source, manifest, { table: entity.table, partition }))
      for (const former of rows.of({ table: entity.table, ...stored })) former.stored = stored;
  const begin = manifest.begunAt < from ? manifest.begunAt : from;
  for await (const line of readJournal(source, { from: begin, to })) {
    if ('dropped' in line || line.table !== entity.table) continue;
    const { table, partition, time } = line;
    const ofLine = { time, begin: beginOf(line) };
    for (const version of line.rows)
      for (const former of rows.of({ table, partition, row: version.row }))
        former.versions.push({ version, line: ofLine });
  }
  const instants = Map.groupBy(deletes, (record) =>
    instantBefore(record, rows.ofRecord(record).get(record.row)?.versions ?? []),
  );
  const opened = new Map<DeletedRow, Engine>();
  for (const [time, records] of instants) {
    const formers = new Set(records.flatMap((record) => [...rows.ofRecord(record).values()]));
    const states = [...formers].flatMap((former) => stateOf(former, time));
    const rowsOf = async ({ table, partition }: WantedRows) =>
      states.filter((state) => state.table === table && state.partition === (partition ?? state.partition));
    const past = await openRows(present, { source, time, rowsOf });
    for (const record of records) opened.set(record, past);
  }
  return opened;
}

/** Collects rows by the records of their entities. */
function createFormerRows({ row: template }: Entity, deletes: readonly DeletedRow[]) {
  const byRecord = new Map<string, Map<string, FormerRow>>();
  const ends = new Map<string, readonly Map<string, FormerRow>[]>();
  for (const record of deletes) {
    const own = byRecord.get(nameOf(record)) ?? new Map<string, FormerRow>();
    byRecord.set(nameOf(record), own);
    const { row } = record;
    for (const prefix of [row + FURTHER_ROW, prefixOfChildren(template, row)]) {
      const name = nameOf({ ...record, row: prefix });
      ends.set(name, [...(ends.get(name) ?? []).filter((other) => other !== own), own]);
    }
  }
  const add = (own: Map<string, FormerRow>, address: Address) => {
    const former = own.get(address.row) ?? { ...address, versions: [] };
    own.set(address.row, former);
    return former;
  };
  return {
    ofRecord: (record: DeletedRow) => byRecord.get(nameOf(record)) ?? new Map<string, FormerRow>(),
    /** The row as a part of each entity that it belongs to. */
    of(address: Address): FormerRow[] {
      const { row } = address;
      const itself = byRecord.get(nameOf(address));
      const owners = new Set(itself ? [itself] : []);
      for (let length = 1; length < row.length; length += 1)
        for (const own of ends.get(nameOf({ ...address, row: row.slice(0, length) })) ?? []) owners.add(own);
      return [...owners].map((own) => add(own, address));
    },
  };
}

/** Times of rows that were deleted are those of their versions. */
function beginOf({ time, rows }: { readonly time: string; readonly rows: readonly JournalRow[] }): string {
  const stored = rows.filter((row) => !('deleted' in row)).map((row) => row.time);
  return [time, ...stored].reduce((one, other) => (other < one ? other : one));
}

/** The last instant at which the row of a record was there. */
function instantBefore({ at }: DeletedRow, versions: FormerRow['versions']): string {
  const recorded = padTime(at);
  const distance = (time: string) => Math.abs(Date.parse(time) - Date.parse(recorded));
  const sorted = versions.toSorted((one, other) => compareVersions(one.version, other.version));
  // A tombstone goes in a transaction of its own, before which there was no entity any more.
  const ends = sorted.filter(({ version }, index) => {
    const former = sorted[index - 1];
    return isDeleted(version) && !(former && isDeleted(former.version));
  });
  const [nearest] = ends.toSorted((one, other) => distance(one.line.time) - distance(other.line.time));
  if (!nearest) return recorded;
  // A process that finds a version has it in a line of its own, beside that of the transaction.
  const lines = versions.filter(({ version }) => version.time === nearest.version.time && isDeleted(version));
  return timeBefore(lines.map(({ line }) => line.begin).reduce((one, other) => (other < one ? other : one)));
}

function stateOf({ table, partition, row, stored, versions }: FormerRow, time: string): RowState[] {
  const until = versions.filter(({ line }) => line.time <= time).map(({ version }) => version);
  const state = foldRow(stored, until, undefined);
  return state ? [{ table, partition, row, ...state }] : [];
}

function nameOf({ table, partition, row }: Address): string {
  return JSON.stringify([table, partition, row]);
}

function isDeleted(version: JournalRow): boolean {
  return 'deleted' in version || ('properties' in version && version.properties.EntityType === TOMBSTONE);
}

/** Where the backup of an app is. Only apps with a backup have the routes that call this. */
export function sourceOf({ storage, past }: Engine): BackupSource {
  const { backup } = storage;
  if (!backup || !past) throw new Error('The app declares no backup.');
  return { backup, storage, days: past.days };
}
