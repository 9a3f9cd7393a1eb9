import { z } from 'zod';
import { pick, type Values } from '../../base/values.ts';
import type { Slots } from '../../define/declaration/declaration.ts';
import type { Entity, Feature } from '../../define/declaration/entity.ts';
import { addressOf } from '../../define/places/index-entries.ts';
import {
  blobPrefix,
  createBlobName,
  formerBlobPrefix,
  LARGE_CONTAINER,
  readBytes,
  toReferrer,
} from '../../engine/read/text-blobs.ts';
import { type BlobAddress, blobLength, dropBlob, writeBlob } from '../../storage/blobs.ts';
import { type Address, type Row, readRow } from '../../storage/rows.ts';
import type { Storage } from '../../storage/storage.ts';
import { checkSeriesRows } from './lost-rows.ts';

/**
 * Data series pattern: the counts of a day or a year are properties of one entity instead of separate entities, so setting a
 * count is one merge and reading a chart is one get. Wide entities pattern: if one row cannot hold all counts, they are in
 * several rows, which are read concurrently and changed in one transaction. Large entities pattern: see `writeCountsBlob`.
 */
export const dataSeries: Feature = {
  name: 'data series',
  isUsed: ({ series }) => series !== undefined,
  layout: {
    numbered: {
      keys(entity) {
        const { first, last, perRow } = slotsOf(entity);
        const isWide = last - first + 1 > perRow;
        return isWide ? [{ what: 'its further rows', row: entity.row, isNumbered: true }] : [];
      },
      entityRow: (entity, row) => firstRowKey(slotsOf(entity), row),
      reasonToRefuse(entity, row) {
        const { properties } = row;
        if (slotsOf(entity).overflow && properties[REFERENCE] !== undefined && !blobOf(row))
          return `The property ${REFERENCE} names no blob of the row.`;
        const wrong = Object.entries(properties).find(([name, count]) => COUNT.test(name) && !isCount(count));
        return wrong && `The property ${wrong[0]} is not a count.`;
      },
    },
  },
  check: {
    async entity(engine, entity, subject) {
      const { row } = subject.address;
      const first = firstRowKey(slotsOf(entity), row);
      const rows = [first, ...furtherRowKeys(slotsOf(entity), first)].map((key) => ({ row: key }));
      return checkSeriesRows(engine, entity, subject, rows);
    },
  },
  memory: {
    remember: ({ series }) => (series ? { slots: pick({ ...series }, ['first', 'last', 'perRow', 'overflow']) } : {}),
    refuse: ({ series }, before) => layoutChanges(Memory.parse(before).slots, series),
  },
};

const Memory = z.object({
  slots: z
    .object({ first: z.number(), last: z.number(), perRow: z.number(), overflow: z.literal('blob').optional() })
    .optional(),
});
type Layout = Pick<Slots, 'first' | 'last' | 'perRow'> & { readonly overflow?: 'blob' | undefined };

function* layoutChanges(before: Layout | undefined, now: Layout | undefined): Generator<string> {
  if (!before || !now) return;
  if (now.first > before.first || now.last < before.last)
    yield `the slots changed from ${before.first} to ${before.last} to ${now.first} to ${now.last}; the counts of the others could not be read`;
  if (before.overflow && !now.overflow) yield 'slots.overflow was removed; counts that are in blobs could not be read';
  const isMoved = (slot: number) => slot >= now.first && slot <= now.last && rowOf(before, slot) !== rowOf(now, slot);
  if (slotNumbers(before).some(isMoved))
    yield `the rows of the slots changed from ${describeRows(before)}, to ${describeRows(now)}; stored counts would not be found`;
}

function describeRows({ first, perRow }: Layout): string {
  return `${perRow} for each row, beginning with ${first}`;
}

/** Large entities pattern for data series: the counts that a row cannot hold are in a blob. See `writeCountsBlob`. */
export const largeSeries: Feature = {
  name: 'large series',
  isUsed: ({ series }) => series?.overflow !== undefined,
  *validate({ access: { own } }) {
    if (own)
      yield 'a series with slots.overflow cannot be granted (access.own), because a grant opens rows and not their blobs. Remove slots.overflow or access.own.';
  },
  check: {
    /** A blob that is lost cannot be restored, so the finding has no repair. */
    async entity({ storage }, _entity, { address }) {
      const blob = blobOf(await readRow(storage, address));
      if (!blob || (await blobLength(storage, blob)) !== undefined) return [];
      return [{ kind: 'lost-blob', of: blob.container, ...address }];
    },
  },
};

/** How the counts of a series are laid out over its rows. */

export const MAX_COUNT = 2_147_483_647;
/** The counts in the row of a series with a blob. The rest of 252 properties is for key fields and system properties. */
const MAX_IN_ROW = 200;

/** The slots of a series. Throws a plain error if the entity is not a series. */
export function slotsOf({ name, series }: Entity): Slots {
  if (!series) throw new Error(`${name} does not declare a series.`);
  return series;
}

export function slotNumbers({ first, last }: Pick<Slots, 'first' | 'last'>): number[] {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}

/** All rows of a series, whether they exist or not. */
export function rowAddresses(entity: Entity, key: Values): [Address, ...Address[]] {
  const first = addressOf(entity, key);
  return [first, ...furtherRowKeys(slotsOf(entity), first.row).map((row) => ({ ...first, row }))];
}

/** The row keys after the declared one: `_2`, `_3` and so on are appended. */
function furtherRowKeys({ first, last, perRow }: Slots, row: string): string[] {
  const rows = Math.ceil((last - first + 1) / perRow);
  return Array.from({ length: rows - 1 }, (_, index) => `${row}_${index + 2}`);
}

/** The first row key of the series that a row may belong to. */
function firstRowKey(slots: Slots, row: string): string {
  const shorter = row.replace(/_\d+$/, '');
  return furtherRowKeys(slots, shorter).includes(row) ? shorter : row;
}

export function rowOf({ first, perRow }: Pick<Slots, 'first' | 'perRow'>, slot: number): number {
  return Math.floor((slot - first) / perRow);
}

/** The properties that are counts. */
export const COUNT = /^Count\d{3,}$/;

export function propertyOf(slot: number): string {
  return `Count${String(slot).padStart(3, '0')}`;
}

function readCount(row: Row | undefined, slot: number): number {
  const count = row?.properties[propertyOf(slot)];
  // A client with a grant may have written any value.
  return isCount(count) ? count : 0;
}

function isCount(count: unknown): count is number {
  return typeof count === 'number' && Number.isInteger(count) && count >= 0 && count <= MAX_COUNT;
}

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
  const isOwn =
    row &&
    typeof name === 'string' &&
    [blobPrefix(row, PART), formerBlobPrefix(row, PART)].some((prefix) => name.startsWith(prefix));
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
