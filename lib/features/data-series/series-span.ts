import pMap from 'p-map';
import { RowkeyError } from '../../base/errors.ts';
import { DAY_MS, HOUR_MS, isoSeconds, MINUTE_MS } from '../../base/time.ts';
import type { Values } from '../../base/values.ts';
import type { Slots, Span } from '../../define/declaration/declaration.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { periodValue, slotLength } from '../../define/define-series.ts';
import {
  addPeriods,
  CALENDAR_UNITS,
  type CalendarUnit,
  keptPeriods,
  periodOf,
  periodOfTable,
} from '../../define/keys/calendar.ts';
import { rangeOfPrefix } from '../../define/keys/key-template.ts';
import type { Engine } from '../../engine/engine.ts';
import { unlessTableMissing } from '../../engine/period-tables.ts';
import { readEntityRow } from '../../engine/read/entity-rows.ts';
import { type Address, type Row, readRange } from '../../storage/rows.ts';
import { inPattern } from '../../telemetry/span.ts';
import { openCounts, rowAddresses, rowOf, slotsOf } from './data-series.ts';
import { findLostRow, lostRowError } from './lost-rows.ts';

/** The count of one slot, as charts draw it. */
export interface SeriesPoint {
  /** When the slot begins: `2026-11-20T09:00:00Z`. */
  readonly at: string;
  readonly count: number;
}

/** The first and the last instant, each in full or as a prefix: `2026-11-20T09`. */
export interface SpanBounds {
  readonly from: string;
  readonly to: string;
}

/** Days of a year and a month. */
const MAX_ROWS = 400;
/** About 4 million characters, as in a page of a list. A day has 86,400 seconds. */
const MAX_POINTS = 90_000;
const READS_CONCURRENCY = 16;

/**
 * Reads the counts from one instant to another, over as many keys as that takes; a slot without a count is 0. One range query for
 * rows that follow each other in a partition, else one get for each row, concurrently. Throws `invalid-input`, `BlobGone`.
 */
export const readSpan = inPattern(
  'data series',
  async (engine: Engine, entity: Entity, key: Values, bounds: SpanBounds): Promise<SeriesPoint[]> => {
    const wanted = wantedRows(entity, key, parseBounds(bounds));
    const addresses = wanted.map(({ address }) => address).filter(({ table }) => isKept(entity, table, engine.now()));
    const rows = await pMap(queriesOf(entity, addresses), (query) => query(engine), { concurrency: READS_CONCURRENCY });
    const byAddress = new Map(rows.flat().map((row) => [idOf(row), row]));
    await requireRows(engine, entity, wanted, byAddress);
    const open = async ({ address, points }: WantedRow) => {
      const countOf = await openCounts(engine.storage, byAddress.get(idOf(address)));
      return points.map(({ slot, at }) => ({ at: isoSeconds(at), count: countOf(slot) }));
    };
    return (await pMap(wanted, open, { concurrency: READS_CONCURRENCY })).flat();
  },
);

/**
 * Throws `needs-repair` if a row is absent that another row of its series says exists. Reads another row only if the span is within the
 * rows after the first one.
 */
async function requireRows(
  engine: Engine,
  entity: Entity,
  wanted: readonly WantedRow[],
  byAddress: ReadonlyMap<string, Row>,
): Promise<void> {
  for (const { address, series } of wanted) {
    if (series.length === 1 || byAddress.has(idOf(address))) continue;
    const known = series.map((one) => byAddress.get(idOf(one)));
    const isAsked = wanted.some((one) => one.address === series[0]);
    const all = isAsked || known[0] ? known : [await readEntityRow(engine, entity, series[0]), ...known.slice(1)];
    const lost = findLostRow(all);
    // A read beside a write may see rows of two states.
    if (lost !== undefined && series[lost] === address && !(await readEntityRow(engine, entity, address)))
      throw lostRowError(entity);
  }
}

/** The span of a series. Throws a plain error if the entity declares none. */
function spanOf(entity: Entity): Span {
  const { span } = slotsOf(entity);
  if (!span) throw new Error(`${entity.name} does not declare a span.`);
  return span;
}

/** The fields of the key besides the period. */
export function spanKeyFields(entity: Entity): string[] {
  return entity.keyFields.filter((field) => field !== spanOf(entity).field);
}

/** A row, and the points of the span that are in it. */
interface WantedRow {
  readonly address: Address;
  /** All rows of the series. */
  readonly series: readonly [Address, ...Address[]];
  readonly points: readonly SlotTime[];
}

function wantedRows(entity: Entity, key: Values, instants: Instants): WantedRow[] {
  const slots = slotsOf(entity);
  const span = spanOf(entity);
  const wanted: WantedRow[] = [];
  // Both limits are checked before the next period, because a caller may request ten thousand years.
  let count = 0;
  for (const { period, slots: ofPeriod } of periodsOf(slotsBetween(slots, span, instants))) {
    count += ofPeriod.length;
    const addresses = rowAddresses(entity, { ...key, [span.field]: periodValue(entity.columns[span.field], period) });
    for (const [index, points] of Map.groupBy(ofPeriod, ({ slot }) => rowOf(slots, slot))) {
      const address = addresses[index];
      if (address) wanted.push({ address, series: addresses, points });
    }
    if (count > MAX_POINTS) throw tooLong(`${MAX_POINTS} counts`);
    if (wanted.length > MAX_ROWS) throw tooLong(`the counts of ${MAX_ROWS} rows`);
  }
  return wanted;
}

/** Groups slots, which come in order, by their period. */
function* periodsOf(points: Iterable<SlotTime>): Generator<{ period: string; slots: SlotTime[] }> {
  let current: { period: string; slots: SlotTime[] } | undefined;
  for (const point of points) {
    if (current?.period !== point.period) {
      if (current) yield current;
      current = { period: point.period, slots: [] };
    }
    current.slots.push(point);
  }
  if (current) yield current;
}

/** False if the table is of a period before retention or after the next period: it has no rows that a caller may expect. */
function isKept({ period, table }: Entity, name: string, now: number): boolean {
  if (!period) return true;
  const { first, last } = keptPeriods(period, now);
  const ofTable = periodOfTable(period.per, table, name);
  return ofTable !== undefined && first <= ofTable && ofTable <= last;
}

type Query = (engine: Engine) => Promise<readonly Row[]>;

function queriesOf(entity: Entity, addresses: readonly Address[]): Query[] {
  const partitions = Map.groupBy(addresses, ({ table, partition }) => JSON.stringify([table, partition]));
  return [...partitions.values()].flatMap((group): Query[] =>
    group.length > 1 && areAdjacent(entity)
      ? [(engine) => readAdjacent(engine, entity, group)]
      : group.map((address) => (engine) => readSingle(engine, entity, address)),
  );
}

/** True if the rows of successive periods follow each other in a partition: their keys differ only at the end. */
function areAdjacent(entity: Entity): boolean {
  const { parts } = entity.row;
  const { field } = spanOf(entity);
  const last = parts.at(-1);
  return last?.field === field && last.after === '' && parts.filter((part) => part.field === field).length === 1;
}

async function readSingle(engine: Engine, entity: Entity, address: Address): Promise<readonly Row[]> {
  const row = await readEntityRow(engine, entity, address);
  return row ? [row] : [];
}

/**
 * One range query. Clients may have written any number of other rows between these addresses: then each address is read for
 * itself.
 */
async function readAdjacent(engine: Engine, entity: Entity, addresses: readonly Address[]): Promise<readonly Row[]> {
  const [address] = addresses;
  const keys = addresses.map(({ row }) => row).toSorted();
  const [first, last] = [keys.at(0), keys.at(-1)];
  if (!address || first === undefined || last === undefined) return [];
  const { table, partition } = address;
  const range = { table, partition, from: first, before: rangeOfPrefix(last).before, limit: addresses.length + 1 };
  const type = entity.isWrittenByClients ? undefined : entity.name;
  const read = readRange(engine.storage, { ...range, type });
  const { rows, more } = await unlessTableMissing(read, { rows: [], more: false });
  if (!more) return rows;
  const found = await pMap(addresses, (one) => readSingle(engine, entity, one), { concurrency: READS_CONCURRENCY });
  return found.flat();
}

function idOf({ table, partition, row }: Address): string {
  return JSON.stringify([table, partition, row]);
}

function parseBounds({ from, to }: SpanBounds): Instants {
  const [first, last] = [parseBound('from', from), parseBound('to', to)];
  if (first.first <= last.last) return { first: first.first, last: last.last };
  throw new RowkeyError('invalid-input', '"from" must not be after "to".', { field: 'from', accepted: 'up to "to"' });
}

function parseBound(name: keyof SpanBounds, text: string): Instants {
  const instants = instantsOf(text);
  if (instants) return instants;
  throw new RowkeyError('invalid-input', `"${name}" is not a date or an instant in UTC.`, {
    field: name,
    accepted: '2026, 2026-11, 2026-11-20, 2026-11-20T09, 2026-11-20T09:30Z or 2026-11-20T09:30:00Z',
  });
}

function tooLong(accepted: string): RowkeyError {
  return new RowkeyError('invalid-input', `The span from "from" to "to" is longer than ${accepted}.`, {
    field: 'from',
    accepted: `a span of at most ${accepted}`,
  });
}

const MONTHS_OF_YEAR = 12;

/** Milliseconds, both inclusive. */
interface Instants {
  readonly first: number;
  readonly last: number;
}

/** A slot, with the period of its key and the milliseconds at which it begins. */
interface SlotTime {
  readonly period: string;
  readonly slot: number;
  readonly at: number;
}

/** The slots from the one that contains `first` to the one that contains `last`. */
export function* slotsBetween(slots: Slots, { per }: Span, { first, last }: Instants): Generator<SlotTime> {
  const length = slotLength(per, slots.last - slots.first + 1);
  if (length === undefined) return;
  for (let period = periodOf(per, first); ; period = addPeriods(per, period, 1)) {
    const start = Date.parse(period);
    const end = startOfNext(per, start);
    const startOf = (index: number) => (length === 'month' ? monthsLater(start, index) : start + index * length);
    const into = Math.max(0, first - start);
    let index = length === 'month' ? new Date(start + into).getUTCMonth() : Math.floor(into / length);
    for (let at = startOf(index); at < end; index += 1, at = startOf(index)) {
      if (at > last) return;
      yield { period, slot: slots.first + index, at };
    }
    if (end > last) return;
  }
}

const EARLIEST = '0000-01-01T00:00:00.000Z';
const PREFIX = /^\d{4}(-\d{2}(-\d{2}(T\d{2}(:\d{2}(:\d{2}(\.\d{3})?)?)?Z?)?)?)?$/;
/** The time that a prefix names, by its length. */
const TIME_MS: Readonly<Record<number, number>> = { 13: HOUR_MS, 16: MINUTE_MS, 19: 1_000, 23: 1 };

/** The instants that begin with a text: `2026`, `2026-11-20` or `2026-11-20T09:30Z`. Undefined for another text. */
export function instantsOf(text: string): Instants | undefined {
  if (!PREFIX.test(text)) return undefined;
  const prefix = text.replace('Z', '');
  const first = Date.parse(prefix + EARLIEST.slice(prefix.length));
  // `Date.parse` accepts 30 February and 24:00.
  if (Number.isNaN(first) || !new Date(first).toISOString().startsWith(prefix)) return undefined;
  const unit = CALENDAR_UNITS.find((one) => periodOf(one, first) === prefix);
  const next = unit ? startOfNext(unit, first) : first + (TIME_MS[prefix.length] ?? 1);
  return { first, last: next - 1 };
}

function startOfNext(per: CalendarUnit, start: number): number {
  return per === 'day' ? start + DAY_MS : monthsLater(start, per === 'month' ? 1 : MONTHS_OF_YEAR);
}

function monthsLater(start: number, count: number): number {
  const date = new Date(start);
  return date.setUTCMonth(date.getUTCMonth() + count);
}
