import type { z } from 'zod';
import { DAY_MS, MINUTE_MS } from '../../base/time.ts';

/**
 * ISO instants of which one moment has several texts: with and without a fraction of the second, or with an offset. Their order is not that of their
 * texts: `…00.5Z` sorts before `…00Z`.
 */

const INSTANT = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2})(?::(\d{2})(?:\.(\d+))?)?(?:Z|([+-]\d{2}):?(\d{2}))?$/;
const DATE = /^\d{4}(?:-\d{2}(?:-\d{2})?)?$/;

interface Moment {
  /** Milliseconds of the beginning of the second. */
  readonly second: number;
  /** The digits of the fraction, without zeros at the end. */
  readonly fraction: string;
  /** A date, which is before each instant of its day. */
  readonly isDate: boolean;
}

function momentOf(text: string): Moment | undefined {
  if (DATE.test(text)) return toMoment(Date.parse(text), '', true);
  const [, minute, second = '00', fraction = '', hours = '+00', minutes = '00'] = INSTANT.exec(text) ?? [];
  if (minute === undefined) return undefined;
  return toMoment(Date.parse(`${minute}:${second}${hours}:${minutes}`), fraction.replace(/0+$/, ''), false);
}

function toMoment(second: number, fraction: string, isDate: boolean): Moment | undefined {
  return Number.isNaN(second) ? undefined : { second, fraction, isDate };
}

/**
 * Negative if the first instant is earlier, positive if it is later, 0 for the same moment. An instant without an offset is in UTC. A text that is no
 * instant is compared by code unit.
 */
export function compareInstants(one: string, other: string): number {
  const [first, second] = [momentOf(one), momentOf(other)];
  if (!first || !second) return compareTexts(one, other);
  return (
    first.second - second.second ||
    Number(second.isDate) - Number(first.isDate) ||
    compareTexts(first.fraction, second.fraction)
  );
}

const AFTER_DIGITS = ':';

export function compareTexts(one: string, other: string): number {
  return Number(one > other) - Number(one < other);
}

/**
 * Texts between which the texts of all instants at this moment are, if an offset moves them by at most so many milliseconds. Undefined for a text
 * that is no instant.
 */
export function textsAround(
  text: string,
  offsetMs: number,
): { readonly from: string; readonly before: string } | undefined {
  const moment = momentOf(text);
  if (!moment) return undefined;
  const minuteOf = (milliseconds: number) => {
    const text = new Date(milliseconds).toISOString().slice(0, '2026-11-20T09:00'.length);
    // After the year 9999 it begins with a plus, which is before all digits.
    return text.startsWith('+') ? AFTER_DIGITS : text;
  };
  try {
    return {
      from: minuteOf(moment.second - offsetMs),
      before: minuteOf(moment.second + offsetMs + MINUTE_MS),
    };
  } catch {
    return undefined;
  }
}

/** Each fraction that a schema may demand. */
const FRACTIONS = ['', ':00', ...Array.from({ length: 9 }, (_, digits) => `:00.${'0'.repeat(digits + 1)}`)];
const WITH_OFFSET = FRACTIONS.map((fraction) => `2026-11-20T10:00${fraction}+01:00`);
/** One instant in several texts, in the forms that schemas accept. */
const SAME = [...FRACTIONS.map((fraction) => `2026-11-20T09:00${fraction}Z`), ...WITH_OFFSET];
const known = new WeakMap<z.ZodType, number | undefined>();

/**
 * By how many milliseconds an offset moves the texts of a field that stores one instant as several texts, because it accepts any fraction or an
 * offset and does not convert it: less than a day, or 0. Undefined for another field.
 */
export function offsetOfForms(schema: z.ZodObject, field: string): number | undefined {
  const type: z.ZodType | undefined = schema.shape[field];
  if (!type) return undefined;
  if (!known.has(type)) {
    const stored = SAME.map((text) => type.safeParse(text)).flatMap(({ success, data }) => (success ? [data] : []));
    const longest = WITH_OFFSET.some((text) => stored.includes(text)) ? DAY_MS : 0;
    known.set(type, new Set(stored).size > 1 ? longest : undefined);
  }
  return known.get(type);
}
