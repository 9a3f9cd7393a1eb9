import { measureCost } from '../../lib/storage/cost.ts';
import { type Row, scanTable } from '../../lib/storage/rows.ts';
import type { Storage } from '../../lib/storage/storage.ts';

/** Rows of a table, from its beginning and from places all over its keys. */
export interface Sample {
  readonly table: string;
  /** In key order. */
  readonly rows: readonly Row[];
  /** True if these are all rows of the table. */
  readonly isWhole: boolean;
  readonly transactions: number;
}

export interface SampleOptions {
  readonly table: string;
  /** The most rows. */
  readonly rows: number;
  /** The most reads. A read is one storage transaction, unless storage returns a short page. */
  readonly reads: number;
  readonly signal?: AbortSignal;
  readonly onRead?: (rows: number) => void;
}

interface Place {
  readonly partition: string;
  readonly row: string;
}

/** Keys that have not been read: those after `from`, and before `to`. */
interface Gap {
  readonly from: Place;
  /** Undefined for the end of the table. */
  readonly to: Place | undefined;
  /** True if the partition of `from` has several rows. */
  readonly isInside: boolean;
  /** How often the gap has been divided. */
  readonly turn: number;
}

const PAGE = 1_000;
/** The first read gets half of the sample, so that a small table takes few reads; the others share the rest. */
const FIRST_PART = 2;
const LATER_PARTS = 80;

/**
 * Reads some rows of a table. Table storage returns rows in key order only, and kinds of rows often differ in the beginning of their keys: so
 * the reads after the first one begin in the middle of what is not read, as often as the bounds allow.
 */
export function sampleTable(storage: Storage, options: SampleOptions): Promise<Sample> {
  return measureCost(async (cost) => ({ ...(await readRows(storage, options)), transactions: cost.transactions }));
}

async function readRows(storage: Storage, options: SampleOptions): Promise<Omit<Sample, 'transactions'>> {
  const { table, rows: most, reads, signal, onRead } = options;
  const found = new Map<string, Row>();
  const readAfter = async (after: Place | undefined, limit: number, before?: Place) => {
    const page = await scanTable(storage, { table, after, limit, isTyped: true, mayPause: true });
    // The end itself, too: it may be a place from which a read began, and such a read begins after it.
    const inGap = page.rows.filter((row) => !before || !isBefore(before, row));
    for (const row of inGap) found.set(JSON.stringify([row.partition, row.row]), row);
    onRead?.(inGap.length);
    const last = inGap.at(-1);
    const isInside = last !== undefined && inGap.at(-2)?.partition === last.partition;
    const isAtEnd = last !== undefined && before !== undefined && !isBefore(last, before);
    return { last, isInside, isOver: isAtEnd || inGap.length < page.rows.length || !page.more };
  };
  const first = await readAfter(undefined, Math.min(PAGE, Math.ceil(most / FIRST_PART)));
  const gaps: Gap[] =
    first.isOver || !first.last ? [] : [{ from: first.last, to: undefined, isInside: first.isInside, turn: 0 }];
  for (let read = 1; read < reads && found.size < most && !signal?.aborted; read += 1) {
    const gap = gaps.shift();
    if (!gap) break;
    const middle = middleOf(gap);
    const limit = Math.min(PAGE, most - found.size, Math.ceil(most / LATER_PARTS));
    const { last, isInside, isOver } = await readAfter(middle, limit, gap.to);
    if (middle !== gap.from) gaps.push({ ...gap, to: middle, turn: gap.turn + 1 });
    if (!isOver) gaps.push({ from: last ?? middle, to: gap.to, isInside, turn: gap.turn + 1 });
  }
  return {
    table,
    rows: [...found.values()].sort((one, other) => (isBefore(one, other) ? -1 : 1)),
    isWhole: gaps.length === 0,
  };
}

function isBefore(one: Place, other: Place): boolean {
  return one.partition === other.partition ? one.row < other.row : one.partition < other.partition;
}

/**
 * A place in the gap from which to read. Of three reads, one begins where an earlier one ended, so that small gaps are closed, one looks for other
 * partitions, and one for the rest of a partition that has several rows.
 */
function middleOf({ from, to, isInside, turn }: Gap): Place {
  const { partition } = from;
  const isOnePartition = to?.partition === partition;
  if (turn % 3 === 2) return from;
  if (isOnePartition || (isInside && turn % 3 === 1)) {
    const row = middleText(from.row, isOnePartition ? to.row : undefined);
    return row === undefined ? from : { partition, row };
  }
  const between = middleText(partition, to?.partition);
  return between === undefined ? from : { partition: between, row: '' };
}

/** Characters that stand at the same place of keys. */
const CLASSES = ['09', 'az', 'AZ', ' ~'].map((ends) => ({ first: ends.charCodeAt(0), last: ends.charCodeAt(1) }));
const DIGITS = 4;

/**
 * A text between two texts: after all that begin with the same word as the first; else in the middle, as if both were numbers whose digits
 * are characters of one class. Undefined if none is known.
 */
function middleText(from: string, to: string | undefined): string | undefined {
  const word = /^[A-Za-z]+[^A-Za-z0-9]+/.exec(from)?.[0] ?? '';
  if (word !== '' && !to?.startsWith(word)) return `${word}~`;
  let shared = 0;
  while (to !== undefined && shared < from.length && from[shared] === to[shared]) shared += 1;
  const code = from.charCodeAt(shared);
  const { first, last } = CLASSES.find((one) => code >= one.first && code <= one.last) ?? { first: 0x20, last: 0x7e };
  const base = last - first + 2;
  const numberOf = (text: string) => {
    let number = 0;
    for (let at = 0; at < DIGITS; at += 1) {
      const digit = Math.min(Math.max(text.charCodeAt(at) - first, -1), base - 2) + 1;
      number = number * base + (at < text.length ? digit : 0);
    }
    return number;
  };
  const end = to?.slice(shared) ?? '';
  const isInClass = end !== '' && end.charCodeAt(0) <= last;
  let rest = Math.floor((numberOf(from.slice(shared)) + (isInClass ? numberOf(end) : base ** DIGITS - 1)) / 2);
  let text = from.slice(0, shared);
  for (let power = base ** (DIGITS - 1); power >= 1; power /= base) {
    const digit = Math.floor(rest / power);
    if (digit === 0) break;
    text += String.fromCharCode(digit - 1 + first);
    rest %= power;
  }
  return text > from && (to === undefined || text < to) ? text : undefined;
}
