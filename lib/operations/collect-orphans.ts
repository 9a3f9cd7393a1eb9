import pMap from 'p-map';
import { z } from 'zod';
import { ROW_TYPES, SYSTEM_PARTITIONS, SYSTEM_ROWS } from '../base/engine-names.ts';
import { isoInstant } from '../base/time.ts';
import { furtherRowRange, listedRows } from '../define/codec/further-rows.ts';
import type { Entity } from '../define/declaration/entity.ts';
import { tablesOf } from '../define/places/index-entries.ts';
import type { Engine } from '../engine/engine.ts';
import { unlessTableMissing } from '../engine/period-tables.ts';
import { LARGE_CONTAINER, ORPHAN_AFTER_MS, parseReferrer } from '../engine/read/text-blobs.ts';
import { ARRIVALS_CONTAINER } from '../features/large-entities/attachment.ts';
import { isOwnBlob } from '../storage/blob-owner.ts';
import { blobLength, deleteBlob, deleteUpload, type ListedBlob, listContainer } from '../storage/blobs.ts';
import { BACKUP_CONTAINER } from '../storage/row-journal.ts';
import { type Address, type Row, readRange, readRow, tryAction } from '../storage/rows.ts';
import { SYSTEM_TABLE } from '../storage/slot-row.ts';
import { inPattern } from '../telemetry/span.ts';
import { blobFolder } from './backup/format.ts';

/**
 * Large entities pattern: an orphan is a blob that no row refers to. It is left by a crash, by a write with an unknown outcome,
 * by children that were deleted with their parent, or with the dropped table of a period. The blob's metadata names the row that should
 * refer to the blob. Blobs of the last day are kept, because a running write may still refer to them.
 *
 * A search lists all blobs, 5,000 in one transaction. It asks for the row, one transaction for each blob, only if the blob has changed since
 * the last complete search, or if its table is gone. So each blob is asked for once after its upload, and once after each announcement.
 * No other blob can be an orphan:
 *
 *   - its row referred to it when it was asked for, or the blob would have been deleted;
 *   - the engine announces a blob, which changes it, before any write that removes the reference (text-blobs.ts);
 *   - a copy that a move between storage accounts makes is new there.
 *
 * Rows that are changed by hand or restored announce nothing. If the row of the position is deleted, the next search asks for all.
 *
 * With a backup, an orphan stays until the backup has a copy, as a cut from before may refer to it. The next search then begins where this one did.
 */

const CONCURRENCY = 16;

const Position = z.object({
  /** All blobs that had not changed since then were asked for. Absent before the first search that was complete. */
  Since: z.iso.datetime().optional(),
  /** Of a search that is not complete: it asks for blobs that have not changed since then. Absent in earlier releases. */
  Before: z.iso.datetime().optional(),
  /** The first blob that it did not reach. */
  Container: z.string().optional(),
  Name: z.string().optional(),
});
const POSITION: Address = { table: SYSTEM_TABLE, partition: SYSTEM_PARTITIONS.orphans, row: SYSTEM_ROWS.position };

interface CollectOptions {
  readonly until?: number;
  /** The retention of the backup, if there is one. */
  readonly days?: number | undefined;
}

/**
 * Deletes orphans and uploads that were never accepted. Returns counts: `checked` has the blobs that were asked for, `kept` the orphans that the
 * backup has not copied yet, `foreign` the blobs of other programs, which stay. No check starts after `until`, in milliseconds: the next
 * run then continues, in any process. Safe to run twice or concurrently.
 */
export const collectOrphans = inPattern(
  'orphans',
  async (
    engine: Engine,
    entities: readonly Entity[],
    { until = Infinity, days }: CollectOptions = {},
  ): Promise<{ checked: number; deleted: number; kept: number; foreign: number; isComplete: boolean }> => {
    const { storage } = engine;
    const old = isoInstant(engine.now() - ORPHAN_AFTER_MS);
    let checked = 0;
    let deleted = 0;
    let kept = 0;
    let foreign = 0;
    const isOwn = ({ name }: ListedBlob) => {
      const own = isOwnBlob(name);
      if (!own) foreign += 1;
      return own;
    };
    const options = { concurrency: CONCURRENCY };
    await pMap(
      listContainer(storage, ARRIVALS_CONTAINER),
      async (blob) => {
        if (!isOwn(blob) || blob.modifiedAt > Date.parse(old)) return;
        checked += 1;
        await deleteUpload(storage, blob);
        deleted += 1;
      },
      options,
    );
    const found = await readRow(storage, POSITION);
    const { Since, Before, ...from } = Position.safeParse(found?.properties).data ?? {};
    const before = Before ?? old;
    let end: ListedBlob | undefined;
    async function* blobsUntilEnd() {
      for await (const blob of listFrom(engine, containersOf(entities), Before === undefined ? {} : from)) {
        if (engine.now() >= until) {
          end = blob;
          return;
        }
        yield blob;
      }
    }
    const isTableGone = findGone(engine, entities);
    const mayBeOrphan = async ({ modifiedAt, metadata }: ListedBlob) => {
      if (modifiedAt > Date.parse(before)) return false;
      return Since === undefined || modifiedAt > Date.parse(Since) || isTableGone(parseReferrer(metadata));
    };
    await pMap(
      blobsUntilEnd(),
      async (blob) => {
        if (!isOwn(blob) || !(await mayBeOrphan(blob))) return;
        checked += 1;
        if (!(await isUnreferred(engine, blob))) return;
        if (days !== undefined && !(await isInBackup(engine, blob, days))) {
          kept += 1;
          return;
        }
        await deleteBlob(storage, blob, blob.etag);
        deleted += 1;
      },
      options,
    );
    const counts = { checked, deleted, kept, foreign, isComplete: end === undefined };
    if (kept > 0) return counts;
    const position: z.infer<typeof Position> = end
      ? { ...(Since === undefined ? {} : { Since }), Before: before, Container: end.container, Name: end.name }
      : { Since: before };
    const properties = { EntityType: ROW_TYPES.orphans, ...position };
    // If another run has written the row, or an operator has deleted it, that is the newer position.
    const row = POSITION.row;
    await tryAction(
      storage,
      POSITION,
      found ? { kind: 'replace', row, properties, etag: found.etag } : { kind: 'insert', row, properties },
    );
    return counts;
  },
);

/** True for rows of tables that were dropped. Asks once for each table that no declared entity has, such as those of periods. */
function findGone({ storage }: Engine, entities: readonly Entity[]) {
  const declared = new Set(entities.flatMap((entity) => tablesOf(entity).slice(entity.period ? 1 : 0)));
  const gone = new Map<string, Promise<boolean>>();
  return (row: Address | undefined): boolean | Promise<boolean> => {
    if (!row || declared.has(row.table)) return false;
    const known = gone.get(row.table);
    if (known) return known;
    const isGone = unlessTableMissing(
      readRow(storage, row).then(() => false),
      true,
    );
    gone.set(row.table, isGone);
    return isGone;
  };
}

/** The blobs of the containers, in order, from a position on. */
async function* listFrom(
  { storage }: Engine,
  containers: readonly string[],
  from: Pick<z.infer<typeof Position>, 'Container' | 'Name'>,
): AsyncGenerator<ListedBlob> {
  const first = Math.max(0, containers.indexOf(from.Container ?? ''));
  for (const container of containers.slice(first)) {
    const start = container === from.Container ? (from.Name ?? '') : '';
    for (const prefix of start === '' ? [''] : prefixesFrom(start))
      for await (const blob of listContainer(storage, container, prefix)) if (blob.name >= start) yield blob;
  }
}

/** Names begin with the three digits of a slot or, in earlier releases, with the name of a table. */
const BEGINNINGS = [...'0123456789abcdefghijklmnopqrstuvwxyz'];
const BEGINS_ALIKE = 3;

/** The prefixes of the names with the same beginning as this name, and of those after them: a listing can begin at a prefix only. */
function prefixesFrom(name: string): string[] {
  const start = name.slice(0, BEGINS_ALIKE);
  const later = Array.from(start, (character, at) =>
    BEGINNINGS.filter((other) => other > character).map((other) => start.slice(0, at) + other),
  );
  return [start, ...later.toReversed().flat()];
}

/** The containers whose blobs each belong to a row. */
export function containersOf(entities: readonly Entity[]): string[] {
  const declared = entities.flatMap((entity) =>
    entity.features.flatMap(({ stored }) => stored?.blobs?.containers(entity) ?? []),
  );
  return [...new Set([LARGE_CONTAINER, ...declared])];
}

/** True if the copy is there that the backup keeps for its whole retention from now on. */
async function isInBackup({ storage, now }: Engine, { container, name }: ListedBlob, days: number): Promise<boolean> {
  if (!storage.backup) return false;
  const copy = `${blobFolder(now(), days)}/${container}/${name}`;
  return (await blobLength(storage.backup, { container: BACKUP_CONTAINER, name: copy })) !== undefined;
}

async function isUnreferred(engine: Engine, { name, metadata }: ListedBlob): Promise<boolean> {
  const address: Address | undefined = parseReferrer(metadata);
  // Another program has replaced the metadata.
  if (!address) return false;
  const row = await unlessTableMissing(readRow(engine.storage, address), undefined);
  if (!row) return true;
  const refers = ({ properties }: Row) =>
    Object.values(properties).some((value) => typeof value === 'string' && value.includes(name));
  if (refers(row) || Object.keys(listedRows(row.properties)).length === 0) return !refers(row);
  const { first: from, before } = furtherRowRange(address.row);
  const { rows } = await readRange(engine.storage, { ...address, from, before });
  return !rows.some(refers);
}
