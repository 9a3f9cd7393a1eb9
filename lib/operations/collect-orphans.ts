import pMap from 'p-map';
import type { Entity } from '../define/entity.ts';
import type { Engine } from '../engine/engine.ts';
import { ARRIVALS_CONTAINER } from '../patterns/attachment.ts';
import { unlessTableMissing } from '../patterns/high-volume-delete.ts';
import { LARGE_CONTAINER, referrerOf } from '../patterns/large-entities.ts';
import { deleteBlob, type ListedBlob, listContainer } from '../storage/blobs.ts';
import { type Address, readRow } from '../storage/rows.ts';
import { inPattern } from '../telemetry/span.ts';

/**
 * Large entities pattern: a blob that no row refers to was left behind by a crash, by a write whose outcome nobody
 * learned, or with details that went with their entity. It is told by the row that its metadata names, and only once it
 * is so old that no write that could still refer to it is under way.
 */

const GRACE_MS = 24 * 60 * 60 * 1_000;
const CONCURRENCY = 16;

/** Deletes orphans and uploads that were never taken in. Answers how many. Safe to run twice or beside itself. */
export const collectOrphans = inPattern(
  'orphans',
  async (engine: Engine, entities: readonly Entity[]): Promise<{ looked: number; deleted: number }> => {
    const before = engine.now() - GRACE_MS;
    let looked = 0;
    let deleted = 0;
    const collect = async (blob: ListedBlob, isOrphan: () => Promise<boolean>) => {
      if (blob.modifiedAt > before) return;
      looked += 1;
      if (!(await isOrphan())) return;
      await deleteBlob(engine.storage, blob, blob.etag);
      deleted += 1;
    };
    const options = { concurrency: CONCURRENCY };
    for (const container of containersOf(entities))
      await pMap(
        listContainer(engine.storage, container),
        (blob) => collect(blob, () => isUnreferred(engine, blob)),
        options,
      );
    await pMap(listContainer(engine.storage, ARRIVALS_CONTAINER), (blob) => collect(blob, async () => true), options);
    return { looked, deleted };
  },
);

/** Those of which each blob belongs to a row. */
export function containersOf(entities: readonly Entity[]): string[] {
  const declared = entities.flatMap(({ attachments }) => Object.values(attachments).map(({ container }) => container));
  return [...new Set([LARGE_CONTAINER, ...declared])];
}

async function isUnreferred(engine: Engine, { name, metadata }: ListedBlob): Promise<boolean> {
  const address: Address | undefined = referrerOf(metadata);
  // What somebody else has put there is theirs to delete.
  if (!address) return false;
  const row = await unlessTableMissing(readRow(engine.storage, address), undefined);
  const refers = (value: unknown) => typeof value === 'string' && value.includes(name);
  return !row || !Object.values(row.properties).some(refers);
}
