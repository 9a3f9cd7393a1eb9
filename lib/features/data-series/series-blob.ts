import type { Entity } from '../../define/declaration/entity.ts';
import { blobPrefix, createBlobName, LARGE_CONTAINER, readBytes, toReferrer } from '../../engine/read/text-blobs.ts';
import { type BlobAddress, dropBlob, writeBlob } from '../../storage/blobs.ts';
import type { Address, Row } from '../../storage/rows.ts';
import type { Storage } from '../../storage/storage.ts';
import { COUNT, MAX_IN_ROW, propertyOf, readCount, slotsOf } from './series-rows.ts';

/**
 * Counts that outgrow the row of their series. The row has the counts that changed last. When a change would make them too many, all
 * counts are written to a new blob, and then the row is replaced under its ETag by one that names the blob and has no counts. So a
 * blob never changes, the row decides which blob counts, and a change of any slots is one write of the row. A blob that was replaced,
 * or whose row was not written, is deleted; after a crash the timer does so.
 *
 * The blob has the counts of all slots from 0, four bytes each, little-endian.
 */

const BYTES = 4;
const REFERENCE = 'CountsBlob';
const PART = 'counts';

/** The blob that the row names. A row that a client wrote may name the blob of another row, which is not its own. */
export function blobOf(row: Row | undefined): BlobAddress | undefined {
  const name = row?.properties[REFERENCE];
  const isOwn = row && typeof name === 'string' && name.startsWith(blobPrefix(row, PART));
  return isOwn ? { container: LARGE_CONTAINER, name } : undefined;
}

/** Reads the blob of a row, if it has one. Returns the counts by slot. Throws `BlobGone`. */
export async function openCounts(storage: Storage, row: Row | undefined): Promise<(slot: number) => number> {
  const blob = blobOf(row);
  const bytes = blob && (await readBytes(storage, blob));
  const inRow = countsOf(row);
  const inBlob = (slot: number) =>
    bytes && (slot + 1) * BYTES <= bytes.length ? bytes.readInt32LE(slot * BYTES) : undefined;
  return (slot) => inRow.get(slot) ?? inBlob(slot) ?? 0;
}

/** The counts that the row has. A series has many more slots, whose names need not be made. */
function countsOf(row: Row | undefined): ReadonlyMap<number, number> {
  const slots = Object.keys(row?.properties ?? {}).flatMap((name) => {
    const slot = COUNT.test(name) ? Number(name.slice('Count'.length)) : undefined;
    return slot !== undefined && propertyOf(slot) === name ? [slot] : [];
  });
  return new Map(slots.filter((slot) => hasCount(row, slot)).map((slot) => [slot, readCount(row, slot)]));
}

/** Reads the count of one slot. Reads no blob if the row has the count. */
export async function openCount(storage: Storage, row: Row | undefined, slot: number): Promise<number> {
  return hasCount(row, slot) ? readCount(row, slot) : (await openCounts(storage, row))(slot);
}

function hasCount(row: Row | undefined, slot: number): boolean {
  return row?.properties[propertyOf(slot)] !== undefined;
}

/** True if the row has no room for the counts beside those that it has. */
export function isOutgrown(row: Row | undefined, counts: ReadonlyMap<number, number>): boolean {
  const own = Object.keys(row?.properties ?? {}).filter((name) => COUNT.test(name));
  return new Set([...own, ...[...counts.keys()].map(propertyOf)]).size > MAX_IN_ROW;
}

/** Writes the counts of a row, changed by `counts`, to a new blob. Returns it with the properties that name it. Throws `BlobGone`. */
export async function writeCountsBlob(
  storage: Storage,
  entity: Entity,
  address: Address,
  { row, counts }: { readonly row: Row | undefined; readonly counts: ReadonlyMap<number, number> },
): Promise<{ blob: BlobAddress; properties: Readonly<Record<string, string>> }> {
  const { first, last } = slotsOf(entity);
  const current = await openCounts(storage, row);
  const bytes = Buffer.alloc((last + 1) * BYTES);
  for (let slot = first; slot <= last; slot += 1) bytes.writeInt32LE(counts.get(slot) ?? current(slot), slot * BYTES);
  const blob = { container: LARGE_CONTAINER, name: createBlobName(address, PART) };
  await writeBlob(storage, blob, bytes, { type: 'application/octet-stream', metadata: toReferrer(address) });
  return { blob, properties: { [REFERENCE]: blob.name } };
}

/** Deletes the blobs that the row does not name. */
export async function dropOtherBlobs(
  storage: Storage,
  blobs: readonly BlobAddress[],
  kept: BlobAddress | undefined,
): Promise<void> {
  for (const blob of blobs) if (blob.name !== kept?.name) await dropBlob(storage, blob);
}
