import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../base/time.ts';
import type { ColumnType, Slots, Span } from '../declaration/declaration.ts';
import { addPeriods, CALENDAR_UNITS, type CalendarUnit, periodOf } from '../keys/calendar.ts';

/**
 * The time of the slots of a series with a span (UTC). The slots of a key divide the longest period of its unit: 31 days, 366 days.
 * In a shorter month or year the last slots have no time, so a span leaves them out.
 */

const MONTHS_OF_YEAR = 12;
const LONGEST_DAYS = { day: 1, month: 31, year: 366 };

/** The accepted numbers of slots, for an error message. */
export const ACCEPTED_SLOTS: Readonly<Record<CalendarUnit, string>> = {
  day: '24 (hours), 1440 (minutes) and other divisors of 86400',
  month: '31 (days), 744 (hours) and other multiples of 31 that divide a day into whole seconds',
  year: '12 (months), 366 (days), 8784 (hours) and other multiples of 366 that divide a day into whole seconds',
};

/** The milliseconds of a slot, or `month`. Undefined if so many slots do not divide the unit. */
export function slotLength(per: CalendarUnit, count: number): number | 'month' | undefined {
  if (per === 'year' && count === MONTHS_OF_YEAR) return 'month';
  const length = (LONGEST_DAYS[per] * DAY_MS) / count;
  const isWholeSeconds = length % 1_000 === 0 && DAY_MS % length === 0;
  return isWholeSeconds ? length : undefined;
}

/** Milliseconds, both inclusive. */
export interface Instants {
  readonly first: number;
  readonly last: number;
}

/** A slot, with the period of its key and the milliseconds at which it begins. */
export interface SlotTime {
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

/** A period as the value of a field: a year may be a number. */
export function periodValue(type: ColumnType | undefined, period: string): string | number {
  return type === 'String' ? period : Number(period);
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
