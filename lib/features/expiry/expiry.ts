import pMap from 'p-map';
import { RowkeyError } from '../../base/errors.ts';
import { isoInstant } from '../../base/time.ts';
import { pick } from '../../base/values.ts';
import { currentValues, toSnapshot } from '../../define/codec/entity-codec.ts';
import { liveValues } from '../../define/declaration/change.ts';
import type { Engine } from '../../define/declaration/engine.ts';
import type { Entity, Feature } from '../../define/declaration/entity.ts';
import type { Expiry } from '../../define/declaration/expiry.ts';
import type { IndexEntry, Projection } from '../../define/declaration/projection.ts';
import { addPeriods, periodOf } from '../../define/keys/calendar.ts';
import { compileTemplate } from '../../define/keys/key-template.ts';
import {
  addressIfAny,
  copyProperties,
  indexEntriesOf,
  isSameEntry,
  rowsAt,
} from '../../define/places/index-entries.ts';
import { fieldSchemas } from '../../define/schema/field-schema.ts';
import { declarationOf, readJoinedRow } from '../../engine/read/entity-rows.ts';
import { markOf } from '../../engine/read/unreadable-field.ts';
import { repairEntries } from '../../engine/reconcile/reconcile.ts';
import type { EntityWrite } from '../../engine/write/checks.ts';
import { writePartitions } from '../../engine/write/entity-batch.ts';
import { prepareDeleteOfExpired } from '../../engine/write/expired.ts';
import { type Address, type Row, scanTable, type TableScan } from '../../storage/rows.ts';
import { inPattern } from '../../telemetry/span.ts';

/**
 * Expiry: a timer deletes entities that have not changed for a number of days, or whose instant has passed, with their index entries,
 * children and blobs. Their unique values become free.
 *
 * The clock is a field with the day (UTC) of the last change. Each change through the API sets it. A request without effect
 * does not, nor does upkeep by the engine: a write of a child, a new count, a new copy of another entity's fields, a repair,
 * a new wrapping of keys. An index in a table of its own has an entry under that day, so the timer
 * reads only the entries of due days. The entry moves when the day changes; further changes on the same day cost nothing
 * more. The entities of a partition are deleted together, each under the ETag with which its clock was read, so an entity that changes
 * concurrently stays.
 *
 * With an instant, reads and writes treat the entity as absent from that instant on (`hasExpired`), so the timer may be late. The index has
 * its entry under the day of the instant, and the row key begins with the instant: the timer reads the entries that are due, by days.
 */
export const expiry: Feature = {
  name: 'expiry',
  isUsed: (entity) => entity.expiry !== undefined,
  validate: validationErrors,
  keptFields: ({ expiry: declared }) => (declared?.clock === undefined ? [] : [declared.clock]),
  write: {
    complete({ expiry: declared }, { after, isUpkeep }, { now }) {
      if (declared?.clock === undefined || (isUpkeep && after[declared.clock] !== undefined)) return after;
      return { ...after, [declared.clock]: periodOf('day', now) };
    },
  },
  memory: {
    remember: (entity, { expiryTable }) => ({ expiryTable: entity.expiry ? tableOf(entity) : expiryTable }),
    leftTables: ({ expiryTable }, entity) =>
      expiryTable === undefined || entity?.expiry ? undefined : (table) => table === expiryTable,
  },
  projections: {
    of: (entity) => (entity.expiry ? [toProjection(entity, entity.expiry)] : []),
  },
  timer: {
    name: 'expire',
    // Hourly, so that the next run soon continues the work that a run could not finish.
    schedule: '0 50 * * * *',
    async run(engine, entity, { until, log }) {
      const { deleted, failed, reasons } = await expireEntities(engine, entity, { until });
      log([`${entity.name}: ${deleted} expired entities deleted, ${failed} not.`, ...reasons].join(' '));
    },
  },
};

const INDEX = 'expiry';
const MAX_DAYS = 36_500;
/** All changes of a day would otherwise go to one partition. */
const BUCKETS = 16;
const PAGE_ROWS = 100;
/** Bounds memory use: an entity with further rows may have 3.5 MiB. */
const WIDE_PAGE_ROWS = 8;
const READS_CONCURRENCY = 16;

function tableOf({ table, expiry: declared }: Entity): string {
  return declared?.table ?? `${table}${INDEX}`;
}

function toProjection(entity: Entity, { clock, at: instant }: Expiry): Projection {
  const source = `${entity.partition.template}_${entity.row.template}`;
  const bucket = `{${entity.keyFields.at(-1)}%${BUCKETS}}`;
  const at = {
    table: tableOf(entity),
    partition: compileTemplate(instant === undefined ? `{${clock}}_${bucket}` : `{${instant}.day}_${bucket}`),
    row: compileTemplate(instant === undefined ? source : `{${instant}}_${source}`),
  };
  return {
    name: INDEX,
    at,
    settle: 'inline',
    // An entity that was stored before expiry was declared has no clock until it changes.
    rows(values) {
      if (instant === undefined) return typeof values[clock] === 'string' ? rowsAt(INDEX, at, [values]) : [];
      const due = Date.parse(String(values[instant]));
      // In one form, so that the keys sort by time: the schema may accept an offset, or no milliseconds.
      return Number.isNaN(due) ? [] : rowsAt(INDEX, at, [{ ...values, [instant]: isoInstant(due) }]);
    },
    properties: (values) => copyProperties(entity, values, 'keys'),
    isPartial: true,
  };
}

function* validationErrors(entity: Entity): Generator<string> {
  if (!entity.expiry) return;
  const { days, clock, at } = entity.expiry;
  if (at !== undefined) {
    yield* instantErrors(entity, at);
    return;
  }
  if (!Number.isInteger(days) || days < 1 || days > MAX_DAYS)
    yield `expiry.days is ${days}. Use a whole number of days from 1 to ${MAX_DAYS}.`;
  const type = fieldSchemas(entity.schema)[clock];
  if (type?.format !== 'date') yield `expiry.clock "${clock}" is not a date. Declare it as z.iso.date().`;
}

/** Reads must know the instant wherever they find the entity, and nothing may list it past the instant. */
function* instantErrors(entity: Entity, at: string): Generator<string> {
  const field = fieldSchemas(entity.schema)[at];
  if (field?.format !== 'date-time') yield `expiry.at "${at}" is not an instant. Declare it as z.iso.datetime().`;
  if ([...entity.encrypted, ...entity.apartFields, ...entity.keptFields, ...entity.keyFields].includes(at))
    yield `expiry.at "${at}" is encrypted, split, in the key or set by a pattern. Use a field that callers write and every read can see.`;
  for (const [name, index] of Object.entries(entity.indexes))
    if ('copies' in index && Array.isArray(index.copies) && !index.copies.includes(at))
      yield `the index "${name}" copies no "${at}", so a read through it could not tell what has expired. Copy it too.`;
  if (entity.lookup)
    yield 'a lookup table is kept in memory, past the instants of its entities. Remove expiry.at or lookup.';
  if (entity.isWrittenByClients)
    yield 'clients write the rows straight to storage, so they have no entries of expiry. Remove expiry.at or access.own.';
}

interface Expired {
  readonly deleted: number;
  /** Entities that could not be deleted now, for example because they are being moved. The next run tries again. */
  readonly failed: number;
  /** Why, and the marks of the rows, of the first of them. */
  readonly reasons: readonly string[];
}

/** Enough for a log line. */
const MAX_REASONS = 10;

/** Deletes entities that are due, oldest first, and stale entries of entities that have changed since. */
export const expireEntities = inPattern(
  'expiry',
  async (engine: Engine, declared: Entity, { until }: { readonly until: number }): Promise<Expired> => {
    const entity = await declarationOf(engine, declared);
    if (!entity.expiry) return { deleted: 0, failed: 0, reasons: [] };
    const range = dueAt(entity.expiry, engine.now());
    const table = tableOf(entity);
    const limit = entity.furtherRows ? WIDE_PAGE_ROWS : PAGE_ROWS;
    let deleted = 0;
    const failures: string[] = [];
    // A message may have a value of the entity.
    const fail = (address: Address, { code }: RowkeyError) =>
      failures.push(`${address.table} ${markOf(address)}: ${code}`);
    const result = () => ({ deleted, failed: failures.length, reasons: failures.slice(0, MAX_REASONS) });
    let after: { partition: string; row: string } | undefined;
    for (;;) {
      const { rows, more } = await scanTable(engine.storage, {
        table,
        after,
        ...range,
        limit,
      });
      if (engine.now() >= until) return result();
      const found = await pMap(rows, (row) => findDue(engine, entity, row), { concurrency: READS_CONCURRENCY });
      for (const each of found) if (each && 'error' in each) fail(each.of, each.error);
      const due = found.flatMap((each) => (!each || 'error' in each ? [] : each));
      for (const some of Map.groupBy(due, ({ address: { partition } }) => partition).values()) {
        if (engine.now() >= until) return result();
        for (const [{ address }, outcome] of await writePartitions(engine, some))
          if (!(outcome instanceof RowkeyError)) deleted += 1;
          // Changed or deleted meanwhile: its own write settles the entry.
          else if (!OVERTAKEN.has(outcome.code)) fail(address, outcome);
      }
      after = rows.at(-1);
      if (!more || !after) return result();
    }
  },
);

/** The entries that are due. */
function dueAt({ days, at }: Expiry, now: number): Pick<TableScan, 'beforePartition' | 'rowKeys'> {
  const today = periodOf('day', now);
  // A change late on a day leaves `days` whole days.
  if (at === undefined) return { beforePartition: addPeriods('day', today, -days) };
  return { beforePartition: addPeriods('day', today, 1), rowKeys: { from: '', before: isoInstant(now + 1) } };
}

const OVERTAKEN = new Set<string>(['etag-mismatch', 'not-found']);

/** Returns the delete of the entity of an entry that is due. Settles the entry if the entity has another one, or does not exist. */
async function findDue(
  engine: Engine,
  entity: Entity,
  { table, partition, row, properties }: Row,
): Promise<EntityWrite | { readonly of: Address; readonly error: RowkeyError } | undefined> {
  // An entry has too few fields for an upgrade, which does not change a key.
  const address = addressIfAny(entity, pick(currentValues(entity, properties), entity.keyFields));
  // The consistency check reports a row that no entity could have written.
  if (!address) return undefined;
  const entry: IndexEntry = { index: INDEX, table, partition, row };
  try {
    const found = await readJoinedRow(engine, entity, address, { fields: Object.keys(entity.columns) });
    const values = liveValues(toSnapshot(entity, found));
    if (values && indexEntriesOf(entity, values).some((each) => isSameEntry(each, entry))) {
      return found && prepareDeleteOfExpired(engine, entity, found);
    }
    await repairEntries(engine, entity, address, entry);
    return undefined;
  } catch (error) {
    if (!(error instanceof RowkeyError) || error.code === 'storage-unavailable') throw error;
    return { of: address, error };
  }
}
