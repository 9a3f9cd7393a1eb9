import { randomBytes } from 'node:crypto';
import { busy, RowkeyError } from '../../base/errors.ts';
import { backOff } from '../../base/time.ts';
import type { Values } from '../../base/values.ts';
import { fieldsToProperties, TOMBSTONE } from '../../define/codec/entity-codec.ts';
import { type Conditions, checkConditions } from '../../define/declaration/conditions.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import type { Engine } from '../../engine/engine.ts';
import { makeAndNote, type NotedChange, noteChange } from '../../engine/note-change.ts';
import { withPeriodTable } from '../../engine/period-tables.ts';
import { isForeign, notFound, readEntityRow } from '../../engine/read/entity-rows.ts';
import { announceOrphans, BlobGone, sha256 } from '../../engine/read/text-blobs.ts';
import { runExclusive } from '../../engine/run-exclusive.ts';
import { isShared } from '../../engine/shared-tables.ts';
import { checkWritable } from '../../engine/write/checks.ts';
import { duplicateKey } from '../../engine/write/conflict.ts';
import type { BlobAddress } from '../../storage/blobs.ts';
import { StorageConflict } from '../../storage/errors.ts';
import { type Action, type Address, deleteSame, type Properties, type Row, submit } from '../../storage/rows.ts';
import { inPattern } from '../../telemetry/span.ts';
import {
  blobOf,
  COUNT,
  dropOtherBlobs,
  isOutgrown,
  MAX_COUNT,
  openCount,
  openCounts,
  propertyOf,
  rowAddresses,
  rowOf,
  slotNumbers,
  slotsOf,
  writeCountsBlob,
} from './data-series.ts';
import { findLostRow, lostRowError, markFirst, marksIn, marksOf } from './lost-rows.ts';

/** Each row keeps the ids of its last writers. A writer whose reply was lost finds its id there and does not add again. */
const WRITERS_KEPT = 64;
const WRITER = /^[\w-]{1,64}$/;
const PATIENCE_MS = 15_000;
const BACK_OFF_MS = 20;
const LONGEST_BACK_OFF_MS = 400;
/** Reads of a row whose blob was replaced meanwhile. */
const READ_ATTEMPTS = 4;

export interface Series {
  readonly values: Values;
  /** One count for each slot, in order; 0 by default. */
  readonly counts: readonly number[];
  /** Changes when any row does. */
  readonly etag: string;
}

/** Reads all counts: one get for each row of the series, concurrently, and one for a blob. Throws `not-found`, `BlobGone`. */
export const readSeries = inPattern(
  'data series',
  async (engine: Engine, entity: Entity, key: Values): Promise<Series> => {
    const slots = slotsOf(entity);
    const found = await readWholeSeries(engine, entity, rowAddresses(entity, key));
    const rows = found.map((row) => (row && isForeign(entity, row) ? undefined : row));
    const etag = etagOf(rows);
    if (etag === undefined) throw notFound(entity, key);
    const opened = await Promise.all(rows.map((row) => openCounts(engine.storage, row)));
    const counts = slotNumbers(slots).map((slot) => opened[rowOf(slots, slot)]?.(slot) ?? 0);
    return { values: key, counts, etag };
  },
);

/**
 * Sets counts by slot: one merge, or one transaction if the slots are in several rows. With conditions, reads all rows first and
 * writes all of them under their ETags. Throws `etag-mismatch`, `busy`.
 */
export const setCounts = inPattern(
  'data series',
  async (
    engine: Engine,
    entity: Entity,
    key: Values,
    counts: ReadonlyMap<number, number>,
    conditions: Conditions = {},
  ): Promise<void> => {
    checkWritable(entity, key, engine.now());
    const slots = slotsOf(entity);
    const addresses = rowAddresses(entity, key);
    const common = toCommonProperties(entity, key);
    const change = toNotedChange(entity, addresses[0], [...counts.keys()]);
    const countsOf = (index: number) =>
      Object.fromEntries(
        [...counts].filter(([slot]) => rowOf(slots, slot) === index).map(([slot, count]) => [propertyOf(slot), count]),
      );
    if (!isConditional(conditions) && !slots.overflow && !isShared(engine, entity)) {
      const indexes = [...new Set([...counts.keys()].map((slot) => rowOf(slots, slot)))];
      const actions = addresses.flatMap(({ row }, index): Action[] => {
        const own = countsOf(index);
        if (Object.keys(own).length === 0 && index > 0) return [];
        const marks = index === 0 ? marksOf(indexes) : marksIn(index);
        if (Object.keys({ ...own, ...marks }).length === 0) return [];
        return [{ kind: 'upsert-merge', row, properties: { ...own, ...marks, ...common } }];
      });
      if (actions.length > 0) await submitNoted(engine, entity, change, actions);
      return;
    }
    const id = createWriter();
    await changeRows(engine, entity, { key, addresses }, async (rows, blobs) => {
      if (isWrittenBy(rows, id)) return noteChange(engine, change);
      checkConditions(conditions, etagOf(rows));
      if (counts.size === 0) return;
      if (slots.overflow) return writeLarge(engine, entity, key, { row: rows[0], counts, id, change, blobs });
      const actions = addresses.map(({ row }, index): Action => {
        const current = rows[index];
        const marks = index === 0 ? marksOf([...addresses.keys()]) : marksIn(index);
        const own = { ...countsOf(index), ...marks, Writers: addWriter(current, id) };
        return toWrite('merge', { row }, current, { ...own, ...common });
      });
      await submitNoted(engine, entity, change, actions);
    });
  },
);

/**
 * Adds `by` to a count under the ETag of its row, and retries after a conflict. Increments of one row run one at a time within
 * a process. Returns the new count. A repeated request with the same `id` is added once, unless 64 other increments of the
 * row came between.
 */
export const increment = inPattern(
  'data series',
  async (
    engine: Engine,
    entity: Entity,
    key: Values,
    { slot, by, id = createWriter() }: { slot: number; by: number; id?: string | undefined },
  ): Promise<number> => {
    checkWritable(entity, key, engine.now());
    const addresses = rowAddresses(entity, key);
    const index = rowOf(slotsOf(entity), slot);
    const address = addresses[index];
    if (!address) throw notFound(entity, key);
    const change = toNotedChange(entity, address, [slot]);
    // The first row is marked, too.
    const read = [address, ...(index > 0 && isShared(engine, entity) ? [addresses[0]] : [])] as const;
    return changeRows(engine, entity, { key, addresses: read }, async ([row], blobs) => {
      // This increment has succeeded before: its reply was lost, or the request is a repetition.
      if (isWrittenBy([row], id)) {
        noteChange(engine, change);
        return openCount(engine.storage, row, slot);
      }
      const count = requireInRange((await openCount(engine.storage, row, slot)) + by);
      if (slotsOf(entity).overflow) {
        await writeLarge(engine, entity, key, { row, counts: new Map([[slot, count]]), id, change, blobs });
        return count;
      }
      const common = toCommonProperties(entity, key);
      const isNew = !row || isTombstone(row);
      const marks = isNew ? markFirst(addresses[0].row, [index], common) : [];
      const properties = {
        [propertyOf(slot)]: count,
        Writers: addWriter(row, id),
        ...common,
        // Only a transaction that also writes the first row may say that it exists.
        ...(isNew ? marksIn(index) : {}),
      };
      await submitNoted(engine, entity, change, [toWrite('merge', address, row, properties), ...marks]);
      return count;
    });
  },
);

/** Deletes all rows of a series, in one transaction. Throws `not-found`, `etag-mismatch`, `busy`. */
export const deleteSeries = inPattern(
  'data series',
  async (engine: Engine, entity: Entity, key: Values, conditions: Conditions = {}): Promise<void> => {
    const addresses = rowAddresses(entity, key);
    const change = { operation: 'delete', entity: entity.name, address: addresses[0], fields: [] } as const;
    // Only under an ETag is the blob known that the row names. A backup orders a delete by the version that it deletes.
    if (isConditional(conditions) || slotsOf(entity).overflow || engine.storage.journal)
      return deleteUnderEtags(engine, entity, key, { change, conditions });
    await changeRows(engine, entity, { key, addresses, isDelete: true }, async (rows) => {
      if (etagOf(rows) === undefined) throw notFound(entity, key);
      const there = rows.flatMap((row) => row ?? []);
      await submitNoted(
        engine,
        entity,
        change,
        there.map(({ row }) => ({ kind: 'delete', row })),
      );
    });
  },
);

/**
 * Storage has no conditional delete inside a transaction. So one transaction replaces all rows by tombstones, under their ETags, and
 * then each tombstone is deleted under its own. A crash between leaves tombstones, which count as no rows. The tombstone has the id of
 * its writer, who recognizes it after a lost reply.
 */
async function deleteUnderEtags(
  engine: Engine,
  entity: Entity,
  key: Values,
  { change, conditions }: { readonly change: SeriesChange; readonly conditions: Conditions },
): Promise<void> {
  const addresses = rowAddresses(entity, key);
  const id = createWriter();
  const tombstones = await changeRows(engine, entity, { key, addresses, isDelete: true }, async (rows, blobs) => {
    if (isWrittenBy(rows, id)) {
      noteChange(engine, change);
      // Another writer may have written the series again since, and kept the id of this writer.
      return rows.flatMap((row) => (row && isTombstone(row) ? [row] : []));
    }
    const etag = etagOf(rows);
    if (etag === undefined) throw notFound(entity, key);
    checkConditions(conditions, etag);
    const properties = { EntityType: TOMBSTONE, Writers: id };
    const actions = addresses.map(({ row }, index): Action => {
      const current = rows[index];
      return current ? { kind: 'replace', row, properties, etag: current.etag } : { kind: 'insert', row, properties };
    });
    const named = rows.flatMap((row) => blobOf(row) ?? []);
    blobs.push(...named);
    await announceOrphans(engine.storage, addresses[0], named);
    const etags = await submitNoted(engine, entity, change, actions);
    await dropOtherBlobs(engine.storage, blobs, undefined);
    return addresses.map((address, index) => ({ ...address, etag: etags.get(address.row) ?? rows[index]?.etag }));
  });
  for (const { etag, ...address } of tombstones)
    if (etag !== undefined) await unlessFailed(deleteSame(engine.storage, { ...address, etag }, isTombstone));
}

/**
 * Writes counts to the row of a series with `overflow`, or all counts to a new blob if the row has no room. Adds to `blobs` those that
 * a row, if it is read again, may have lost or never had.
 */
async function writeLarge(
  engine: Engine,
  entity: Entity,
  key: Values,
  {
    row,
    counts,
    id,
    change,
    blobs,
  }: {
    readonly row: Row | undefined;
    readonly counts: ReadonlyMap<number, number>;
    readonly id: string;
    readonly change: SeriesChange;
    readonly blobs: BlobAddress[];
  },
): Promise<void> {
  const { storage } = engine;
  const { address } = change;
  const common = { Writers: addWriter(row, id), ...toCommonProperties(entity, key) };
  if (!isOutgrown(row, counts)) {
    const own = Object.fromEntries([...counts].map(([slot, count]) => [propertyOf(slot), count]));
    await submitNoted(engine, entity, change, [toWrite('merge', address, row, { ...own, ...common })]);
    return;
  }
  const { blob, properties } = await writeCountsBlob(storage, entity, address, { row, counts });
  const named = [blobOf(row) ?? []].flat();
  blobs.push(blob, ...named);
  await announceOrphans(storage, address, named);
  await submitNoted(engine, entity, change, [toWrite('replace', address, row, { ...properties, ...common })]);
  await dropOtherBlobs(storage, blobs, blob);
}

/** Changes a row under the ETag that was read, or inserts it. */
function toWrite(
  kind: 'merge' | 'replace',
  { row }: Pick<Address, 'row'>,
  current: Row | undefined,
  properties: Properties,
): Action {
  return current ? { kind, row, properties, etag: current.etag } : { kind: 'insert', row, properties };
}

type SeriesChange = NotedChange & { readonly address: Address };

function isConditional({ ifMatch, ifNoneMatch }: Conditions): boolean {
  return ifMatch !== undefined || ifNoneMatch !== undefined;
}

interface Changed {
  readonly key: Values;
  readonly addresses: readonly [Address, ...Address[]];
  readonly isDelete?: boolean;
}

/**
 * Reads the rows, and calls `change` again if another writer was faster. Throws `busy`, and if another program has a row at one of the keys
 * `duplicate-key`, or `not-found` for a delete.
 */
async function changeRows<Result>(
  engine: Engine,
  entity: Entity,
  { key, addresses, isDelete = false }: Changed,
  change: (rows: readonly (Row | undefined)[], blobs: BlobAddress[]) => Promise<Result>,
): Promise<Result> {
  const until = engine.now() + PATIENCE_MS;
  // The blobs of earlier attempts. The rows tell which of them are still in use.
  const blobs: BlobAddress[] = [];
  let inVain = 0;
  const untilDone = async (): Promise<Result> => {
    for (let attempt = 1; engine.now() < until; attempt += 1) {
      const rows = await readRows(engine, entity, addresses);
      if (rows.some((row) => row && isForeign(entity, row)))
        throw isDelete ? notFound(entity, key) : duplicateKey(entity, key);
      await dropOtherBlobs(engine.storage, blobs.splice(0), blobOf(rows[0]));
      try {
        return await change(rows, blobs);
      } catch (error) {
        const isConflict = error instanceof StorageConflict && !error.reason.startsWith('table');
        if (!isConflict && !(error instanceof BlobGone)) throw error;
        inVain = isConflict ? 0 : inVain + 1;
        if (inVain === READ_ATTEMPTS)
          throw new RowkeyError('needs-repair', `A blob of ${entity.name} is lost.`, { cause: error });
        await backOff(attempt, BACK_OFF_MS, LONGEST_BACK_OFF_MS);
      }
    }
    throw busy('Other requests keep changing the same counts.');
  };
  return runExclusive(engine.storage, JSON.stringify(addresses[0]), untilDone);
}

function submitNoted(
  engine: Engine,
  entity: Entity,
  change: SeriesChange,
  actions: readonly Action[],
): Promise<Map<string, string>> {
  const { table, partition } = change.address;
  const write = () => submit(engine.storage, { table, partition, actions });
  return makeAndNote(engine, change, () => withPeriodTable(engine, entity, { table, write }));
}

function readRows(engine: Engine, entity: Entity, addresses: readonly Address[]): Promise<(Row | undefined)[]> {
  return Promise.all(addresses.map((address) => readEntityRow(engine, entity, address)));
}

/** The rows of a series, none of which is lost. A read beside a write or a delete may see rows of two states, and is repeated. */
async function readWholeSeries(
  engine: Engine,
  entity: Entity,
  addresses: readonly Address[],
): Promise<(Row | undefined)[]> {
  for (let attempt = 1; ; attempt += 1) {
    const rows = await readRows(engine, entity, addresses);
    if (findLostRow(rows) === undefined) return rows;
    if (attempt === READ_ATTEMPTS) throw lostRowError(entity);
    await backOff(attempt, BACK_OFF_MS, LONGEST_BACK_OFF_MS);
  }
}

/** The ETag of the row, or a hash of the ETags of several. Undefined if the series does not exist. */
function etagOf(rows: readonly (Row | undefined)[]): string | undefined {
  const etags = rows.map((row) => (row && !isTombstone(row) ? row.etag : ''));
  if (etags.every((etag) => etag === '')) return undefined;
  return etags.length === 1 ? etags[0] : `W/"${sha256(JSON.stringify(etags))}"`;
}

function isTombstone(row: Row): boolean {
  return row.properties.EntityType === TOMBSTONE && !hasCounts(row);
}

/** A client with a grant may add a count to a tombstone, which is then a row again. */
function hasCounts({ properties }: Row): boolean {
  return Object.keys(properties).some((name) => COUNT.test(name));
}

/** The series is deleted already: a tombstone that stays counts as no row. */
async function unlessFailed(call: Promise<unknown>): Promise<void> {
  try {
    await call;
  } catch (error) {
    if (!(error instanceof RowkeyError)) throw error;
  }
}

function createWriter(): string {
  return randomBytes(6).toString('base64url');
}

function isWrittenBy(rows: readonly (Row | undefined)[], id: string): boolean {
  return rows.some((row) => readWriters(row).includes(id));
}

function addWriter(row: Row | undefined, id: string): string {
  return [id, ...readWriters(row)].slice(0, WRITERS_KEPT).join(',');
}

/** Parses the number of a slot. Throws `invalid-input`. */
export function toSlot(entity: Entity, text: string): number {
  const { name, first, last } = slotsOf(entity);
  const slot = /^\d{1,5}$/.test(text) ? Number(text) : -1;
  if (slot >= first && slot <= last) return slot;
  throw new RowkeyError('invalid-input', `"${name}" is out of range.`, {
    field: name,
    accepted: `${first} to ${last}`,
  });
}

/** Returns the last writers, newest first. Drops ids that only a client with a grant can have written. */
function readWriters(row: Row | undefined): string[] {
  return String(row?.properties.Writers ?? '')
    .split(',')
    .filter((writer) => WRITER.test(writer));
}

/** The most slots that the audit log names one by one. */
const MAX_FIELDS = 366;

/** The change for the audit log. Its fields are slot numbers as in the path. */
function toNotedChange({ name }: Entity, address: Address, slots: readonly number[]): SeriesChange {
  const sorted = slots.toSorted((one, other) => one - other);
  const fields = slots.length > MAX_FIELDS ? [`${sorted.at(0)}-${sorted.at(-1)}`] : slots.map(String);
  return { operation: 'count', entity: name, address, fields };
}

function toCommonProperties(entity: Entity, key: Values) {
  return { ...fieldsToProperties(entity, key), EntityType: entity.name, EntityVersion: entity.version };
}

function requireInRange(count: number): number {
  if (count >= 0 && count <= MAX_COUNT) return count;
  throw new RowkeyError('invalid-input', 'The count would be out of range.', {
    field: 'by',
    accepted: `a sum from 0 to ${MAX_COUNT}`,
  });
}
