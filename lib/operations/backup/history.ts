import { hasCode } from '../../base/errors.ts';
import { HOUR_MS, MINUTE_MS } from '../../base/time.ts';
import { TOMBSTONE } from '../../define/codec/entity-codec.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import type { Engine } from '../../engine/engine.ts';
import type { ChangeRecord } from '../../engine/note-change.ts';
import { type JournalRow, padTime, timeBefore, toTime } from '../../storage/row-journal.ts';
import type { Address } from '../../storage/rows.ts';
import { inPattern } from '../../telemetry/span.ts';
import type { Manifest } from './format.ts';
import { openRows } from './past.ts';
import {
  type BackupSource,
  compareVersions,
  type RowHistory,
  readHistories,
  readManifests,
  rowsOf,
  snapshotFor,
  stateAt,
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
    const wanted = { table: address.table, entities: rowsOf([address]) };
    const histories = await readHistories(source, { manifest, to, wanted });
    const times = new Set(histories.flatMap(({ versions }) => versions.map(({ line }) => line.time)));
    const cuts = [begin, ...[...times].filter((time) => time > begin).sort()];
    const items: EntityVersion[] = [];
    for (const at of cuts.slice(0, top)) {
      const states = histories.flatMap((history) => stateAt(history, at));
      items.push({ at, engine: await openRows(present, { source, time: at, read: async () => states }) });
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

/** So long before its record in the audit log may a change have been made: the clocks of processes differ, and a request takes time. */
const RECORDED_WITHIN_MS = 15 * MINUTE_MS;
/** A parent with many children is deleted after its record. */
const DELETED_WITHIN_MS = HOUR_MS;

/** A record of the audit log that says which row was deleted. */
export type DeletedRow = ChangeRecord & { readonly row: string };

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
  const { table } = entity;
  const begin = manifest.begunAt < from ? manifest : { ...manifest, begunAt: from };
  const entities = rowsOf(deletes, entity);
  const histories = await readHistories(source, { manifest: begin, to, wanted: { table, entities } });
  const byRecord = new Map(deletes.map((record): [DeletedRow, RowHistory[]] => [record, []]));
  for (const history of histories) for (const record of entities.ownersOf(history)) byRecord.get(record)?.push(history);
  const instants = Map.groupBy(deletes, (record) =>
    instantBefore(record, byRecord.get(record)?.find(({ row }) => row === record.row)?.versions ?? []),
  );
  const opened = new Map<DeletedRow, Engine>();
  for (const [time, records] of instants) {
    const some = new Set(records.flatMap((record) => byRecord.get(record) ?? []));
    const states = [...some].flatMap((history) => stateAt(history, time));
    const read = async ({ partition }: WantedRows) =>
      states.filter((state) => state.partition === (partition ?? state.partition));
    const past = await openRows(present, { source, time, read });
    for (const record of records) opened.set(record, past);
  }
  return opened;
}

/** The last instant at which the row of a record was there. */
function instantBefore({ at }: DeletedRow, versions: RowHistory['versions']): string {
  const recorded = padTime(at);
  const distance = (time: string) => Math.abs(Date.parse(time) - Date.parse(recorded));
  const sorted = versions.toSorted(compareVersions);
  // A tombstone goes in a transaction of its own, before which there was no entity any more.
  const ends = sorted.filter((version, index) => {
    const former = sorted[index - 1];
    return isDeleted(version) && !(former && isDeleted(former));
  });
  const [nearest] = ends.toSorted((one, other) => distance(one.line.time) - distance(other.line.time));
  if (!nearest) return recorded;
  // A process that finds a version has it in a line of its own, beside that of the transaction.
  const lines = versions.filter((version) => version.time === nearest.time && isDeleted(version));
  return timeBefore(lines.map(({ line }) => line.begin).reduce((one, other) => (other < one ? other : one)));
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
