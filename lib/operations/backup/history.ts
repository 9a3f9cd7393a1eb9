import { FURTHER_ROW } from '../../base/engine-names.ts';
import { hasCode } from '../../base/errors.ts';
import { HOUR_MS, MINUTE_MS } from '../../base/time.ts';
import { TOMBSTONE } from '../../define/codec/entity-codec.ts';
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

/**
 * For each partition of these records of deletes, the last instant at which all of its rows were there. A parent with many children is deleted
 * after its record.
 */
export async function instantsBefore(
  present: Engine,
  deletes: readonly (ChangeRecord & { readonly row: string })[],
): Promise<ReadonlyMap<string, string>> {
  const source = sourceOf(present);
  const times = deletes.map(({ at }) => Date.parse(at));
  const from = toTime(Math.min(...times) - RECORDED_WITHIN_MS) ?? '';
  const to = toTime(Math.max(...times) + HOUR_MS) ?? '';
  const found = new Map<string, { readonly version: JournalRow; readonly lineTime: string }[]>();
  const recorded = new Map(deletes.map((record) => [nameOf(record), padTime(record.at)]));
  for await (const line of readJournal(source, { from, to })) {
    if ('dropped' in line) continue;
    for (const version of line.rows) {
      const name = nameOf({ ...line, row: version.row });
      if (recorded.has(name)) found.set(name, [...(found.get(name) ?? []), { version, lineTime: line.time }]);
    }
  }
  const before = new Map<string, string>();
  for (const record of deletes) {
    const name = nameOf(record);
    const at = recorded.get(name) ?? '';
    const distance = (time: string) => Math.abs(Date.parse(time) - Date.parse(at));
    const sorted = (found.get(name) ?? []).toSorted((one, other) => compareVersions(one.version, other.version));
    // A tombstone goes in a transaction of its own, before which there was no entity any more.
    const ends = sorted.filter(
      ({ version }, index) =>
        isDeleted(version) &&
        !(index > 0 && sorted.slice(index - 1, index).some((former) => isDeleted(former.version))),
    );
    const [nearest] = ends.map(({ lineTime }) => lineTime).sort((one, other) => distance(one) - distance(other));
    const instant = nearest === undefined ? at : timeBefore(nearest);
    const known = before.get(record.partition);
    if (known === undefined || instant < known) before.set(record.partition, instant);
  }
  return before;
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
