import pMap from 'p-map';
import { DAY_MS } from '../base/time.ts';
import { furtherRowRange, listedRows } from '../define/codec/further-rows.ts';
import type { Entity } from '../define/declaration/entity.ts';
import type { Engine } from '../engine/engine.ts';
import { unlessTableMissing } from '../engine/period-tables.ts';
import { LARGE_CONTAINER, parseReferrer } from '../engine/read/text-blobs.ts';
import { ARRIVALS_CONTAINER } from '../features/large-entities/attachment.ts';
import { deleteBlob, deleteUpload, type ListedBlob, listContainer } from '../storage/blobs.ts';
import { type Address, type Row, readRange, readRow } from '../storage/rows.ts';
import { inPattern } from '../telemetry/span.ts';

/**
 * Large entities pattern: an orphan is a blob that no row refers to. It is left by a crash, by a write with an unknown outcome,
 * or by children that were deleted with their parent. The blob's metadata names the row that should refer to the blob. Blobs of
 * the last day are kept, because a running write may still refer to them.
 */

const GRACE_MS = DAY_MS;
const CONCURRENCY = 16;

/** Deletes orphans and uploads that were never accepted. Returns counts of blobs. Safe to run twice or concurrently. */
export const collectOrphans = inPattern(
  'orphans',
  async (engine: Engine, entities: readonly Entity[]): Promise<{ checked: number; deleted: number }> => {
    const before = engine.now() - GRACE_MS;
    let checked = 0;
    let deleted = 0;
    const collect = async (blob: ListedBlob, remove: () => Promise<boolean>) => {
      if (blob.modifiedAt > before) return;
      checked += 1;
      if (await remove()) deleted += 1;
    };
    const options = { concurrency: CONCURRENCY };
    for (const container of containersOf(entities))
      await pMap(
        listContainer(engine.storage, container),
        (blob) =>
          collect(blob, async () => {
            if (!(await isUnreferred(engine, blob))) return false;
            await deleteBlob(engine.storage, blob, blob.etag);
            return true;
          }),
        options,
      );
    await pMap(
      listContainer(engine.storage, ARRIVALS_CONTAINER),
      (blob) => collect(blob, () => deleteUpload(engine.storage, blob).then(() => true)),
      options,
    );
    return { checked, deleted };
  },
);

/** The containers whose blobs each belong to a row. */
export function containersOf(entities: readonly Entity[]): string[] {
  const declared = entities.flatMap((entity) =>
    entity.features.flatMap(({ stored }) => stored?.blobs?.containers(entity) ?? []),
  );
  return [...new Set([LARGE_CONTAINER, ...declared])];
}

async function isUnreferred(engine: Engine, { name, metadata }: ListedBlob): Promise<boolean> {
  const address: Address | undefined = parseReferrer(metadata);
  // The engine did not write this blob.
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
