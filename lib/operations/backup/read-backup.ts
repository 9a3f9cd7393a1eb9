import { gunzipSync } from 'node:zlib';
import { FURTHER_ROW } from '../../base/engine-names.ts';
import { RowkeyError } from '../../base/errors.ts';
import { HOUR_MS } from '../../base/time.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { prefixOfChildren } from '../../define/keys/key-template.ts';
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

/** Which rows are wanted: all, those of some tables, of one, of a partition of it, of some entities, or those after a key. */
export interface WantedRows {
  readonly hasTable?: ((table: string) => boolean) | undefined;
  readonly table?: string | undefined;
  readonly partition?: string | undefined;
  readonly entities?: EntityRows | undefined;
  readonly after?: Place | undefined;
}

interface Place {
  readonly partition: string;
  readonly row: string;
}

/** The rows of some entities of a table. */
interface EntityRows<Owner extends Place = Place> {
  /** The entities to which a row belongs. */
  ownersOf(place: Place): Owner[];
  /** False if no row from one key to before another one belongs to them. */
  mayBeIn(first: Place, next: Place | undefined): boolean;
}

/** The rows of entities: their own, their further rows, and with `parent`, which is their declaration, those of their children. */
export function rowsOf<Owner extends Place>(owners: readonly Owner[], parent?: Entity): EntityRows<Owner> {
  const named = new Map<string, Owner>();
  const beginnings = new Map<string, Owner>();
  const nameOf = (partition: string, row: string) => JSON.stringify([partition, row]);
  for (const owner of owners) {
    const { partition, row } = owner;
    named.set(nameOf(partition, row), owner);
    beginnings.set(nameOf(partition, row + FURTHER_ROW), owner);
    if (parent) beginnings.set(nameOf(partition, prefixOfChildren(parent.row, row)), owner);
  }
  const distinct = [...new Set(named.values())];
  return {
    ownersOf({ partition, row }) {
      const found = new Set<Owner | undefined>([named.get(nameOf(partition, row))]);
      for (let length = 1; length < row.length; length += 1)
        found.add(beginnings.get(nameOf(partition, row.slice(0, length))));
      return [...found].flatMap((owner) => owner ?? []);
    },
    mayBeIn: (first, next) =>
      distinct.some(({ partition, row }) => {
        const isBefore = next === undefined || compareKeys({ partition, row }, next) < 0;
        return isBefore && compareKeys({ partition, row: row + LAST_KEY }, first) >= 0;
      }),
  };
}

export interface RowState extends SnapshotLine {
  readonly table: string;
}

/** What a backup has of a row: from a snapshot, and in the journal since the snapshot began. */
export interface RowHistory extends Place {
  readonly table: string;
  readonly stored: SnapshotLine | undefined;
  readonly versions: readonly RowVersion[];
  /** When its table was dropped. */
  readonly drops: readonly string[];
}

/** A version of a row, with the line of the journal that has it. */
type RowVersion = JournalRow & { readonly line: LineTime };

interface LineTime {
  readonly time: string;
  /** No row of its transaction is earlier. */
  readonly begin: string;
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

/** Throws `wrong-setting` for a model that is older than the rows: it would read what it does not know. */
export function requireVersions(entities: readonly Entity[], manifest: Manifest): void {
  for (const { name, version } of entities) {
    const stored = manifest.entities[name]?.version ?? 0;
    if (stored > version)
      throw new RowkeyError(
        'wrong-setting',
        `The backup has version ${stored} of ${name}, and the model version ${version}. Restore with the release that wrote the backup, or a later one.`,
      );
  }
}

/** True for a table of the entity, or of one of its periods. */
export const isTableOf = ({ table: own, period }: Pick<Entity, 'table' | 'period'>, table: string) =>
  table === own || (period !== undefined && table.startsWith(own) && /^\d+$/.test(table.slice(own.length)));

/** The lines of the journal with times from one instant to another, both inclusive. Each once, in the order of their hours. */
export async function* readJournal(
  { backup, storage }: RowSource,
  { from, to }: { readonly from: string; readonly to: string },
): AsyncGenerator<JournalLine> {
  const accounts = storage ? accountsOf(storage) : [];
  for (const [day, hours] of Map.groupBy(hoursBetween(from, to), (hour) => hour.slice(0, DAY_LENGTH))) {
    // The accounts of the app first: lines that are brought from there meanwhile are found where they go.
    const waiting = (await Promise.all(accounts.map((account) => listJournal(account, day)))).flat();
    const stored = await listJournal(backup, day);
    for (const hour of hours) {
      const isOfHour = ({ name }: JournalBlob) => name.startsWith(`${JOURNAL}/${hour}/`);
      const seen = new Set<string>();
      const isNew = ({ id, time }: JournalLine) => time >= from && time <= to && !seen.has(id) && seen.add(id);
      const own = waiting.filter(isOfHour);
      for (const blob of own) for await (const line of readJournalBlob(blob)) if (isNew(line)) yield line;
      const rest = own.length > 0 ? await listJournal(backup, hour) : stored.filter(isOfHour);
      for (const blob of rest) for await (const line of readJournalBlob(blob)) if (isNew(line)) yield line;
    }
  }
}

const DAY_LENGTH = 'yyyy/MM/dd'.length;

interface JournalBlob {
  readonly account: Storage;
  readonly name: string;
}

async function listJournal(account: Storage, folder: string): Promise<JournalBlob[]> {
  const blobs = { container: BACKUP_CONTAINER, prefix: `${JOURNAL}/${folder}/` };
  const { result: names = [] } = await unlessAway(ofAccount(account, listBlobs(account, blobs)));
  return names.map((name) => ({ account, name }));
}

async function* readJournalBlob({ account, name }: JournalBlob): AsyncGenerator<JournalLine> {
  for await (const text of readLines(account, { container: BACKUP_CONTAINER, name }))
    yield JournalLine.parse(JSON.parse(text));
}

/** The rows of the app as they were at an instant, in the order of tables and keys. Throws `not-found` if the backup begins later. */
export const readState = inPattern('backup', async (source: RowSource, at: string, wanted: WantedRows = {}) => {
  const { manifest, read } = await openState(source, at, wanted);
  return { manifest, rows: read(wanted) };
});

/** Reads the journal once for several reads of what was at an instant. Each read wants a part of `wanted`. */
export async function openState(source: RowSource, at: string, wanted: WantedRows) {
  const manifest = await snapshotFor(source, at);
  const read = await openHistories(source, { manifest, to: at, wanted, keep: withoutReplaced });
  async function* readStates(some: WantedRows): AsyncGenerator<RowState> {
    for await (const history of read(some)) yield* stateAt(history, at);
  }
  return { manifest, read: readStates };
}

/** All versions of rows from a snapshot to an instant, in the order of tables and keys. */
export async function readHistories(
  source: RowSource,
  { manifest, to, wanted }: { readonly manifest: Manifest; readonly to: string; readonly wanted: WantedRows },
): Promise<RowHistory[]> {
  const read = await openHistories(source, { manifest, to, wanted, keep: (versions) => versions });
  return Array.fromAsync(read(wanted));
}

/** The state of a row at an instant; none if it did not exist. */
export function stateAt({ table, partition, row, stored, versions, drops }: RowHistory, at: string): RowState[] {
  const until = versions.filter(({ line }) => line.time <= at);
  const state = foldRow(
    stored,
    until,
    drops.filter((time) => time <= at),
  );
  return state ? [{ table, partition, row, ...state }] : [];
}

const isWantedTable = ({ table: only, hasTable }: WantedRows, table: string) =>
  (only === undefined || table === only) && (hasTable?.(table) ?? true);

function isWantedRow({ partition, entities, after }: WantedRows, place: Place): boolean {
  if (partition !== undefined && place.partition !== partition) return false;
  if (after && compareKeys(place, after) <= 0) return false;
  return !entities || entities.ownersOf(place).length > 0;
}

interface HistoryOptions {
  readonly manifest: Manifest;
  readonly to: string;
  readonly wanted: WantedRows;
  /** The versions to keep, of those of a row so far. */
  keep(versions: RowVersion[]): RowVersion[];
}

/** Reads the journal since a snapshot began, and returns what reads the wanted rows, or some of them. */
async function openHistories(source: RowSource, { manifest, to, wanted, keep }: HistoryOptions) {
  const changes = await foldJournal(source, { from: manifest.begunAt, to }, wanted, keep);
  const tables = [...new Set([...Object.keys(manifest.tables), ...changes.keys()])].sort();
  return async function* read(some: WantedRows): AsyncGenerator<RowHistory> {
    for (const table of tables) {
      if (!isWantedTable(some, table)) continue;
      const { rows, drops }: TableChanges = changes.get(table) ?? { rows: new Map(), drops: [] };
      const pending = [...rows.values()].filter((changed) => isWantedRow(some, changed)).sort(compareKeys);
      let next = 0;
      const toHistory = ({ partition, row }: Place, stored?: SnapshotLine, changed?: RowChanges): RowHistory => {
        return { table, partition, row, stored, versions: changed?.versions ?? [], drops };
      };
      for await (const stored of readSnapshotTable(source, manifest, { ...some, table })) {
        let changed = pending[next];
        for (; changed && compareKeys(changed, stored) < 0; changed = pending[next]) {
          yield toHistory(changed, undefined, changed);
          next += 1;
        }
        const isSame = changed && compareKeys(changed, stored) === 0;
        if (isSame) next += 1;
        yield toHistory(stored, stored, isSame ? changed : undefined);
      }
      for (const changed of pending.slice(next)) yield toHistory(changed, undefined, changed);
    }
  };
}

interface RowChanges extends Place {
  versions: RowVersion[];
}

interface TableChanges {
  readonly rows: Map<string, RowChanges>;
  readonly drops: string[];
}

/** What the journal has of the wanted rows. */
async function foldJournal(
  source: RowSource,
  span: { readonly from: string; readonly to: string },
  wanted: WantedRows,
  keep: HistoryOptions['keep'],
): Promise<ReadonlyMap<string, TableChanges>> {
  const tables = new Map<string, TableChanges>();
  for await (const line of readJournal(source, span)) {
    const { table } = line;
    if (!isWantedTable(wanted, table)) continue;
    const changes: TableChanges = tables.get(table) ?? { rows: new Map(), drops: [] };
    tables.set(table, changes);
    if ('dropped' in line) {
      changes.drops.push(line.time);
      continue;
    }
    const { partition } = line;
    const ofLine = { time: line.time, begin: beginOf(line) };
    for (const version of line.rows) {
      const place = { partition, row: version.row };
      if (!isWantedRow(wanted, place)) continue;
      const key = JSON.stringify([partition, version.row]);
      const of = changes.rows.get(key) ?? { ...place, versions: [] };
      changes.rows.set(key, of);
      of.versions = keep([...of.versions, { ...version, line: ofLine }]);
    }
  }
  return tables;
}

/** Times of rows that were deleted are those of their versions. */
function beginOf({ time, rows }: { readonly time: string; readonly rows: readonly JournalRow[] }): string {
  const stored = rows.filter((row) => !('deleted' in row)).map((row) => row.time);
  return [time, ...stored].reduce((one, other) => (other < one ? other : one));
}

/** Leaves out versions that a later one replaces as a whole. */
function withoutReplaced(versions: RowVersion[]): RowVersion[] {
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
function foldRow(
  stored: State | undefined,
  versions: readonly JournalRow[],
  drops: readonly string[],
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
  return state && drops.every((time) => state.time > time) ? state : undefined;
}

/** The wanted rows of a table in a snapshot, in the order of their keys. Reads only the parts that may have them. */
async function* readSnapshotTable(
  { backup }: RowSource,
  { tables }: Manifest,
  wanted: WantedRows & { readonly table: string },
): AsyncGenerator<SnapshotLine> {
  const { table, partition, entities, after } = wanted;
  const parts = tables[table]?.parts ?? [];
  for (const [index, { name, first }] of parts.entries()) {
    const next = parts[index + 1]?.first;
    if (partition !== undefined) {
      if (next && compareKeys(next, { partition, row: '' }) <= 0) continue;
      if (compareKeys(first, { partition, row: LAST_KEY }) > 0) return;
    }
    if (after && next && compareKeys(next, after) <= 0) continue;
    if (entities && !entities.mayBeIn(first, next)) continue;
    const bytes = await readBlob(backup, { container: BACKUP_CONTAINER, name });
    if (!bytes) throw new RowkeyError('needs-repair', `The backup has lost the part ${name}.`);
    for (const text of gunzipSync(bytes).toString().split('\n')) {
      if (text === '') continue;
      const line: SnapshotLine = JSON.parse(text);
      if (isWantedRow(wanted, line)) yield line;
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
