import { randomBytes } from 'node:crypto';
import { fieldsToProperties } from '../define/codec/entity-codec.ts';
import type { Entity } from '../define/entity.ts';
import type { Pattern } from '../define/pattern.ts';
import type { Values } from '../define/values.ts';
import type { Engine } from '../engine/engine.ts';
import { isUnknown, makeAndNote, type NotedChange, noteChange } from '../engine/note-change.ts';
import { runExclusive } from '../engine/run-exclusive.ts';
import { notFound } from '../engine/write/entity-store.ts';
import { busy, RowkeyError } from '../errors.ts';
import {
  firstRowKey,
  isCount,
  MAX_COUNT,
  propertyOf,
  readCount,
  rowAddresses,
  rowOf,
  slotNumbers,
  slotsOf,
} from '../pattern-helpers/series-rows.ts';
import { StorageConflict } from '../storage/errors.ts';
import { type Action, type Address, type Row, readRow, submit, tryAction, trySubmit } from '../storage/rows.ts';
import { inPattern } from '../telemetry/span.ts';
import { backOff } from '../time.ts';

/**
 * Data series pattern: the counts of a day or a year are properties of one entity instead of separate entities, so setting a
 * count is one merge and reading a chart is one get. Wide entities pattern: if one row cannot hold all counts, they are in
 * several rows, which are read concurrently and changed in one transaction.
 */
export const dataSeries: Pattern<Entity> = {
  name: 'data series',
  isUsed: ({ series }) => series !== undefined,
  rowKeys(entity) {
    const { first, last, perRow } = slotsOf(entity);
    const isWide = last - first + 1 > perRow;
    return isWide ? [{ what: 'its further rows', row: entity.row, isNumbered: true }] : [];
  },
  rowForm: {
    entityRow: (entity, row) => firstRowKey(slotsOf(entity), row),
    reasonToRefuse(_entity, { properties }) {
      const wrong = Object.entries(properties).find(([name, count]) => /^Count\d{3}$/.test(name) && !isCount(count));
      return wrong && `The property ${wrong[0]} is not a count.`;
    },
  },
};

/** Each row keeps the ids of its last writers. A writer whose reply was lost finds its id there and does not add again. */
const WRITERS_KEPT = 64;
const WRITER = /^[\w-]{1,64}$/;
const PATIENCE_MS = 15_000;
const BACK_OFF_MS = 20;
const LONGEST_BACK_OFF_MS = 400;

export interface Series {
  readonly values: Values;
  /** One count for each slot, in order; 0 by default. */
  readonly counts: readonly number[];
}

/** Reads all counts: one get for each row of the series, concurrently. Throws `not-found` if no row exists. */
export const readSeries = inPattern(
  'data series',
  async ({ storage }: Engine, entity: Entity, key: Values): Promise<Series> => {
    const slots = slotsOf(entity);
    const rows = await Promise.all(rowAddresses(entity, key).map((address) => readRow(storage, address)));
    if (rows.every((row) => row === undefined)) throw notFound(entity, key);
    const counts = slotNumbers(slots).map((slot) => readCount(rows[rowOf(slots, slot)], slot));
    return { values: key, counts };
  },
);

/** Sets counts by slot, without an ETag: one merge, or one transaction if the slots are in several rows. */
export const setCounts = inPattern(
  'data series',
  async (engine: Engine, entity: Entity, key: Values, counts: ReadonlyMap<number, number>): Promise<void> => {
    const slots = slotsOf(entity);
    const [first, ...others] = rowAddresses(entity, key);
    const actions = [first, ...others].flatMap((address, index): Action[] => {
      const own = [...counts].filter(([slot]) => rowOf(slots, slot) === index);
      const properties = Object.fromEntries(own.map(([slot, count]) => [propertyOf(slot), count]));
      if (!address || own.length === 0) return [];
      return [
        { kind: 'upsert-merge', row: address.row, properties: { ...properties, ...toCommonProperties(entity, key) } },
      ];
    });
    if (!first || actions.length === 0) return;
    const { table, partition } = first;
    const set = () => submit(engine.storage, { table, partition, actions });
    await makeAndNote(engine, toNotedChange(entity, first, [...counts.keys()]), set);
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
    { slot, by, id }: { slot: number; by: number; id?: string | undefined },
  ): Promise<number> => {
    const slots = slotsOf(entity);
    const address = rowAddresses(entity, key)[rowOf(slots, slot)];
    if (!address) throw notFound(entity, key);
    const writer = id ?? randomBytes(6).toString('base64url');
    const until = engine.now() + PATIENCE_MS;
    const change = toNotedChange(entity, address, [slot]);
    const untilDone = async (): Promise<number> => {
      for (let attempt = 1; engine.now() < until; attempt += 1) {
        const row = await readRow(engine.storage, address);
        const writers = readWriters(row);
        // This increment has succeeded before: its reply was lost, or the request is a repetition.
        if (writers.includes(writer)) {
          noteChange(engine, change);
          return readCount(row, slot);
        }
        const count = requireInRange(readCount(row, slot) + by);
        const properties = {
          [propertyOf(slot)]: count,
          Writers: [writer, ...writers].slice(0, WRITERS_KEPT).join(','),
          ...toCommonProperties(entity, key),
        };
        const action: Action = row
          ? { kind: 'merge', row: address.row, properties, etag: row.etag }
          : { kind: 'insert', row: address.row, properties };
        try {
          await submit(engine.storage, { ...address, actions: [action] });
          noteChange(engine, change);
          return count;
        } catch (error) {
          if (isUnknown(error)) noteChange(engine, { ...change, outcome: 'unknown' });
          if (!(error instanceof StorageConflict) || error.reason.startsWith('table')) throw error;
          await backOff(attempt, BACK_OFF_MS, LONGEST_BACK_OFF_MS);
        }
      }
      throw busy('Other requests keep changing the same counts.');
    };
    return runExclusive(engine.storage, JSON.stringify(address), untilDone);
  },
);

/** Deletes all rows of a series in one transaction, without an ETag. Throws `not-found`, `busy`. */
export const deleteSeries = inPattern(
  'data series',
  async (engine: Engine, entity: Entity, key: Values): Promise<void> => {
    const addresses = rowAddresses(entity, key);
    const [first] = addresses;
    if (!first) throw notFound(entity, key);
    const change = { operation: 'delete', entity: entity.name, address: first, fields: [] } as const;
    const isDeleted = await makeAndNote(engine, change, () => deleteRows(engine, addresses));
    if (!isDeleted) throw notFound(entity, key);
  },
);

/** False if there is no row. A transaction fails if it deletes a row that is absent, so several rows are read first. */
async function deleteRows(engine: Engine, addresses: readonly Address[]): Promise<boolean> {
  const { storage } = engine;
  const [first] = addresses;
  if (!first) return false;
  if (addresses.length === 1) return tryAction(storage, first, { kind: 'delete', row: first.row });
  const until = engine.now() + PATIENCE_MS;
  for (let attempt = 1; engine.now() < until; attempt += 1) {
    const rows = (await Promise.all(addresses.map((address) => readRow(storage, address)))).flatMap((row) => row ?? []);
    if (rows.length === 0) return false;
    const actions = rows.map(({ row }): Action => ({ kind: 'delete', row }));
    if (await trySubmit(storage, { ...first, actions })) return true;
    await backOff(attempt, BACK_OFF_MS, LONGEST_BACK_OFF_MS);
  }
  throw busy('Other requests keep changing the same counts.');
}

/** Parses the number of a slot. Throws `invalid-input`. */
export function toSlot(entity: Entity, text: string): number {
  const { name, first, last } = slotsOf(entity);
  const slot = /^\d{1,4}$/.test(text) ? Number(text) : -1;
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

/** The change for the audit log. Its fields are slot numbers as in the path. */
function toNotedChange({ name }: Entity, address: Address, slots: readonly number[]): NotedChange {
  return { operation: 'count', entity: name, address, fields: slots.map(String) };
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
