import pMap from 'p-map';
import { z } from 'zod';
import { DAY_MS } from '../base/time.ts';
import { furtherRowRange, listedRows } from '../define/codec/further-rows.ts';
import type { Entity } from '../define/declaration/entity.ts';
import type { Engine } from '../engine/engine.ts';
import { unlessTableMissing } from '../engine/period-tables.ts';
import { SYSTEM_TABLE } from '../engine/read/continuation.ts';
import { LARGE_CONTAINER, parseReferrer } from '../engine/read/text-blobs.ts';
import { ARRIVALS_CONTAINER } from '../features/large-entities/attachment.ts';
import { deleteBlob, deleteUpload, type ListedBlob, listContainer } from '../storage/blobs.ts';
import { type Address, type Row, readRange, readRow, submit, tryAction } from '../storage/rows.ts';
import { inPattern } from '../telemetry/span.ts';

/**
 * Large entities pattern: an orphan is a blob that no row refers to. It is left by a crash, by a write with an unknown outcome,
 * or by children that were deleted with their parent. The blob's metadata names the row that should refer to the blob. Blobs of
 * the last day are kept, because a running write may still refer to them.
 */

const GRACE_MS = DAY_MS;
const CONCURRENCY = 16;

/** Where a run ended: the first blob that it did not check. */
const Position = z.object({ Container: z.string(), Name: z.string() });
const POSITION: Address = { table: SYSTEM_TABLE, partition: 'orphans', row: 'position' };

/**
 * Deletes orphans and uploads that were never accepted. Returns counts of blobs. No check starts after `until`, in milliseconds: the next
 * run then continues, in any process. Safe to run twice or concurrently.
 */
export const collectOrphans = inPattern(
  'orphans',
  async (
    engine: Engine,
    entities: readonly Entity[],
    { until = Infinity }: { readonly until?: number } = {},
  ): Promise<{ checked: number; deleted: number; isComplete: boolean }> => {
    const { storage } = engine;
    const before = engine.now() - GRACE_MS;
    let checked = 0;
    let deleted = 0;
    const collect = async (blob: ListedBlob, remove: () => Promise<boolean>) => {
      if (blob.modifiedAt > before) return;
      checked += 1;
      if (await remove()) deleted += 1;
    };
    const options = { concurrency: CONCURRENCY };
    await pMap(
      listContainer(storage, ARRIVALS_CONTAINER),
      (blob) => collect(blob, () => deleteUpload(storage, blob).then(() => true)),
      options,
    );
    let end: ListedBlob | undefined;
    async function* blobsUntilEnd(found: Row | undefined) {
      for await (const blob of listFrom(engine, containersOf(entities), Position.safeParse(found?.properties).data)) {
        if (engine.now() >= until) {
          end = blob;
          return;
        }
        yield blob;
      }
    }
    const found = await readRow(storage, POSITION);
    await pMap(
      blobsUntilEnd(found),
      (blob) =>
        collect(blob, async () => {
          if (!(await isUnreferred(engine, blob))) return false;
          await deleteBlob(storage, blob, blob.etag);
          return true;
        }),
      options,
    );
    if (end) {
      const properties = { EntityType: 'orphans', Container: end.container, Name: end.name };
      const actions = [{ kind: 'upsert', row: POSITION.row, properties } as const];
      await submit(storage, { ...POSITION, actions, isRepeatable: true });
    } else if (found) await tryAction(storage, POSITION, { kind: 'delete', row: POSITION.row, etag: found.etag });
    return { checked, deleted, isComplete: end === undefined };
  },
);

/** The blobs of the containers, in order, from a position on. */
async function* listFrom(
  { storage }: Engine,
  containers: readonly string[],
  from: z.infer<typeof Position> | undefined,
): AsyncGenerator<ListedBlob> {
  const first = Math.max(0, containers.indexOf(from?.Container ?? ''));
  for (const container of containers.slice(first)) {
    const start = container === from?.Container ? from.Name : '';
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
