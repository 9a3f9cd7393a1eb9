import { createHash } from 'node:crypto';
import { RowkeyError } from '../../base/errors.ts';
import { boundsOf, CALENDAR_UNITS, type CalendarUnit, periodOf } from './calendar.ts';

/**
 * Keys are built from templates. `empid_{employeeId}` contains the field as it is. `{year:4}` is a number, zero-padded to
 * four digits. `{email#}` is a short stable hash, which spreads a growing key over 256 partitions. `{orderId%8}` is one of
 * eight buckets of that hash, few enough to read them all concurrently. `{cast[]}` is each element of a list, in an index.
 * `{at~}` is an instant; the newest sorts first.
 *
 * Only this file knows how a key is formatted, escaped and parsed.
 */

/** Table storage allows keys of 1 KiB: 512 UTF-16 code units. */
export const MAX_KEY_LENGTH = 512;
/** `!` sorts below every character that is not escaped, except the space, so escaping hardly changes the order. */
const ESCAPE = '!';
/**
 * The characters that Table storage rejects in keys (`/ \ # ?`, C0, 0x7f-0x9f), `%` (some clients decode it twice) and the
 * escape.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const ESCAPED = /[/\\#?%!\u0000-\u001f\u007f-\u009f]/g;
/** Sorts after every code unit that a key may contain. */
const AFTER_ALL = '\uffff';
const BEFORE_SURROGATES = '\ud7ff';

type FieldName<Inner extends string> = Inner extends
  | `${infer Field}${'#' | '~' | '[]'}`
  | `${infer Field}${':' | '%'}${number}`
  | `${infer Field}.${CalendarUnit}`
  ? Field
  : Inner;

/** The names of the fields that a template uses, as a union. It makes a misspelt field a compile error. */
export type FieldsOf<Template extends string> = Template extends `${string}{${infer Inner}}${infer Rest}`
  ? FieldName<Inner> | FieldsOf<Rest>
  : never;

type FieldValues = Readonly<Record<string, unknown>>;

export interface Part {
  readonly field: string;
  readonly hash: boolean;
  /** The number of buckets of a hash, if it has any. */
  readonly buckets: number | undefined;
  readonly newestFirst: boolean;
  /** The field is a list; each element makes a key. */
  readonly each: boolean;
  readonly width: number | undefined;
  /** Only this period of the instant is in the key. */
  readonly unit: CalendarUnit | undefined;
  /** The text between this field and the next. */
  readonly after: string;
}

export interface KeyTemplate {
  readonly template: string;
  /** Every field that decides the key, in order, each once. */
  readonly fields: readonly string[];
  /** The fields that can be parsed from a key, in order. */
  readonly readable: readonly string[];
  readonly head: string;
  readonly parts: readonly Part[];
  /** True if the declaration says that the keys may begin with a time: see append-only.ts. */
  readonly appends: boolean;
}

const PART = new RegExp(`^([a-z]\\w*)(?:(#|~|\\[\\])?(?:([:%])(\\d+))?|\\.(${CALENDAR_UNITS.join('|')}))$`);

/** Parses a template. Throws a plain error if keys of the template could not be parsed unambiguously. */
export function compileTemplate(template: string, { appends = false } = {}): KeyTemplate {
  const pieces = template.split(/\{([^{}]*)\}/);
  const parts: Part[] = [];
  // A brace outside of a field is a typing error: all entities would share one key.
  if (pieces.some((piece, index) => index % 2 === 0 && /[{}]/.test(piece)))
    throw new Error(`The key template ${template} has a brace without its pair. Write a field as {name}.`);
  for (let index = 1; index < pieces.length; index += 2) {
    const match = PART.exec(pieces[index] ?? '');
    if (!match?.[1])
      throw new Error(
        `The key template ${template} has the unreadable field {${pieces[index]}}. Use {field}, {field:4}, {field#}, {field%8}, {field~}, {field[]} and ${CALENDAR_UNITS.map((unit) => `{field.${unit}}`).join(', ')}.`,
      );
    const after = pieces[index + 1] ?? '';
    // The first character of a separator is escaped in values by two digits, so it must be ASCII and not occur in an escape.
    if (/^[A-Za-z0-9!]|^[^ -~]/.test(after))
      throw new Error(
        `The key template ${template} needs a separator after {${match[1]}} that begins with ASCII punctuation.`,
      );
    if (after === '' && index + 2 < pieces.length)
      throw new Error(`The key template ${template} needs a separator after {${match[1]}}.`);
    const [, field, mark, sign, number, period] = match;
    const width = sign === ':' ? Number(number) : undefined;
    const buckets = sign === '%' ? Number(number) : undefined;
    parts.push({
      field,
      hash: mark === '#' || sign === '%',
      buckets,
      newestFirst: mark === '~',
      each: mark === '[]',
      width,
      unit: CALENDAR_UNITS.find((unit) => unit === period),
      after,
    });
  }
  const readable = parts.filter((part) => !part.hash && !part.unit).map((part) => part.field);
  const fields = [...new Set(parts.map((part) => part.field))];
  return { template, fields, readable, head: pieces[0] ?? '', parts, appends };
}

/** Builds a key. Throws `invalid-input`, which names the field that is missing, empty or does not fit. */
export function buildKey(template: KeyTemplate, values: FieldValues): string {
  let key = template.head;
  for (const part of template.parts) key += encodeField(part, values[part.field]) + part.after;
  return key.length <= MAX_KEY_LENGTH ? key : refuseKey(template);
}

/** Every key that `values` may have: one, or one for each bucket if the field of a bucket has no value. */
export function buildKeys(template: KeyTemplate, values: FieldValues): string[] {
  let keys = [template.head];
  for (const part of template.parts) {
    const { buckets, field } = part;
    const isOpen = buckets !== undefined && values[field] === undefined;
    const texts = isOpen
      ? Array.from({ length: buckets }, (_, bucket) => toBucket(buckets, bucket))
      : [encodeField(part, values[field])];
    keys = keys.flatMap((key) => texts.map((text) => key + text + part.after));
  }
  return keys.map((key) => (key.length <= MAX_KEY_LENGTH ? key : refuseKey(template)));
}

/** Every key that begins with `prefix`. */
export function rangeOfPrefix(prefix: string): KeyRange {
  return { from: prefix, before: afterPrefix(prefix) };
}

/** A text that follows every key that begins with `prefix`, and precedes every other key after those. */
export function lastOfPrefix(prefix: string): string {
  return prefix + AFTER_ALL;
}

/**
 * The prefix of keys that are built from the same fields with `template`, a `_` and more. The last text of `key` may
 * contain `_`; the longer template escapes it.
 */
export function prefixOfChildren({ head, parts }: KeyTemplate, key: string): string {
  if (parts.at(-1)?.after !== '') return `${key}_`;
  const last = parts.slice(0, -1).reduce((start, { after }) => key.indexOf(after, start) + after.length, head.length);
  return `${key.slice(0, last)}${key.slice(last).replaceAll('_', escapeCharacter)}_`;
}

/**
 * The fields that a key was built from, except hashes, or undefined if the key does not match the template. A field with a unit
 * has the text of its period, from which the same key can be built again.
 */
export function parseKey(template: KeyTemplate, key: string): Record<string, string | number> | undefined {
  if (!key.startsWith(template.head)) return undefined;
  let rest = key.slice(template.head.length);
  const values: Record<string, string | number> = {};
  for (const part of template.parts) {
    const end = part.after === '' ? rest.length : rest.indexOf(part.after);
    if (end < 0) return undefined;
    const raw = rest.slice(0, end);
    rest = rest.slice(end + part.after.length);
    if (raw === '' || (part.width !== undefined && !/^\d+$/.test(raw))) return undefined;
    if (part.newestFirst && !isInvertedTicks(raw)) return undefined;
    if (part.unit && periodOf(part.unit, unescapeText(raw)) !== unescapeText(raw)) return undefined;
    if (!part.hash) values[part.field] = decodeField(part, raw);
  }
  return rest === '' ? values : undefined;
}

/** Whether a key is of this template and agrees with those of its fields that `values` has. */
export function isKeyOf(template: KeyTemplate, key: string, values: FieldValues): boolean {
  const parsed = parseKey(template, key);
  const isComparable = ({ field, hash, each }: Part) => !hash && !each && values[field] !== undefined;
  return (
    parsed !== undefined &&
    template.parts
      .filter(isComparable)
      .every((part) => encodeField(part, values[part.field]) === encodeField(part, parsed[part.field]))
  );
}

export interface KeyRange {
  /** Inclusive. */
  readonly from: string;
  /** Exclusive. Undefined if the range has no end. */
  readonly before: string | undefined;
}

/**
 * The keys whose first fields are `given` and whose next field lies between `from` and `to`, both inclusive. Bounds of a text
 * are read as prefixes, so that `to=2026-11-20` includes the whole day. Throws `invalid-input` naming the bound.
 */
export function keyRange(
  template: KeyTemplate,
  bounds: { from?: string | undefined; to?: string | undefined } = {},
  given: FieldValues = {},
): KeyRange {
  const open = template.parts.findIndex(({ field }) => given[field] === undefined);
  const before = open < 0 ? template.parts : template.parts.slice(0, open);
  const head = before.reduce((key, part) => key + encodeField(part, given[part.field]) + part.after, template.head);
  const next = template.parts[open];
  if (next?.newestFirst) bounds = invertedBounds(bounds);
  const bound = (name: 'from' | 'to') => {
    const value = bounds[name];
    const key = head + (value === undefined || !next ? '' : encodeBound(next, name, value));
    if (key.length <= MAX_KEY_LENGTH) return key;
    throw new RowkeyError('invalid-input', `The bound ${name} is longer than a key.`, {
      field: name,
      accepted: `a text that makes a key of at most ${MAX_KEY_LENGTH} characters after escaping`,
    });
  };
  return { from: bound('from'), before: afterPrefix(bound('to')) };
}

/** The first key, in the ordinal order of Table storage, after all keys that begin with `prefix`. */
function afterPrefix(prefix: string): string | undefined {
  const last = prefix.at(-1);
  if (last === undefined) return undefined;
  if (last >= BEFORE_SURROGATES) return prefix + AFTER_ALL;
  return prefix.slice(0, -1) + String.fromCharCode(last.charCodeAt(0) + 1);
}

/**
 * 256 values. At the published target of 2,000 entities a second for each partition, that is half a million entities a
 * second.
 */
function shortHash(value: string): string {
  return createHash('sha256').update(value, 'utf8').digest('hex').slice(0, 2);
}

function toBucket(buckets: number, bucket: number): string {
  return String(bucket).padStart(String(buckets - 1).length, '0');
}

function decodeField(part: Part, raw: string): string | number {
  if (part.newestFirst) return instantOf(raw);
  return part.width === undefined ? unescapeText(raw) : Number(raw);
}

function encodeBound(part: Part, name: 'from' | 'to', value: string): string {
  if (part.newestFirst) return value;
  const { width } = part;
  const accepted = width === undefined ? 'well-formed Unicode' : `a whole number of at most ${width} digits`;
  const isAccepted = width === undefined ? value.isWellFormed() : /^\d+$/.test(value) && value.length <= width;
  if (!isAccepted) throw new RowkeyError('invalid-input', `"${name}" must be ${accepted}.`, { field: name, accepted });
  return width === undefined ? escapeText(value, part.after) : value.padStart(width, '0');
}

function encodeField(part: Part, value: unknown): string {
  const refuse = (accepted: string) =>
    new RowkeyError('invalid-input', `The field ${part.field} cannot be part of a key: ${accepted}.`, {
      field: part.field,
      accepted,
    });
  if (part.width !== undefined) {
    const text = typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? String(value) : '';
    if (text === '' || text.length > part.width)
      throw refuse(`a whole number of at most ${part.width} digits is needed`);
    return text.padStart(part.width, '0');
  }
  const text = typeof value === 'number' ? String(value) : value;
  if (typeof text !== 'string' || text === '') throw refuse('a text that is not empty is needed');
  if (part.newestFirst) {
    const ticks = ticksOf(text);
    if (ticks === undefined) throw refuse(`${INSTANT_EXAMPLE}, is needed`);
    return toDigits(ticks);
  }
  if (part.unit) {
    const period = periodOf(part.unit, text);
    if (period === undefined) throw refuse(`a text that begins with the ${part.unit} of an ISO date is needed`);
    return escapeText(period, part.after);
  }
  if (!text.isWellFormed()) throw refuse('well-formed Unicode is needed');
  if (part.buckets !== undefined) return toBucket(part.buckets, Number.parseInt(shortHash(text), 16) % part.buckets);
  return part.hash ? shortHash(text) : escapeText(text, part.after);
}

/** Escapes the first character of the following separator too, so that the key can be parsed unambiguously. */
function escapeText(text: string, separator: string): string {
  const escaped = text.replace(ESCAPED, escapeCharacter);
  const first = separator[0];
  return first === undefined ? escaped : escaped.replaceAll(first, escapeCharacter);
}

/** True if keys contain this character only escaped. */
export function forbiddenInKeys(character: string): boolean {
  return character.search(ESCAPED) >= 0;
}

function escapeCharacter(character: string): string {
  return ESCAPE + character.charCodeAt(0).toString(16).padStart(2, '0');
}

function unescapeText(text: string): string {
  return text.replace(/!([0-9a-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}

function refuseKey(template: KeyTemplate): never {
  const fields = template.fields.join(', ');
  throw new RowkeyError('invalid-input', `The key made from ${fields} is longer than ${MAX_KEY_LENGTH} characters.`, {
    field: template.fields[0] ?? fields,
    accepted: `a key of at most ${MAX_KEY_LENGTH} characters after escaping`,
  });
}

/**
 * Log tail pattern: a key that begins with the time left until the maximum date sorts newest first, so the newest n rows
 * are the first n. The format is that of .NET, `(DateTime.MaxValue.Ticks - at.Ticks).ToString("D19")`, so that .NET code
 * can share the table.
 */

const TICKS_PER_MILLISECOND = 10_000n;
const MAX_TICKS = 3_155_378_975_999_999_999n;
const DIGITS = 19;
/** Milliseconds from 0001-01-01, where ticks begin, to 1970-01-01. */
const EPOCH_MS = 62_135_596_800_000n;
const INSTANT_EXAMPLE = 'an ISO instant in UTC, such as 2026-11-20T08:00:00Z';
const INSTANT = /^(\d{4}-\d{2}-\d{2})(?:T(\d{2}:\d{2}:\d{2})(?:\.(\d{1,7}))?Z)?$/;

function isInvertedTicks(text: string): boolean {
  return text.length === DIGITS && /^\d+$/.test(text) && BigInt(text) <= MAX_TICKS;
}

/** The instant of 19 digits, with three fractional digits unless it needs more. */
function instantOf(digits: string): string {
  const ticks = MAX_TICKS - BigInt(digits);
  const milliseconds = ticks / TICKS_PER_MILLISECOND;
  const rest = ticks % TICKS_PER_MILLISECOND;
  const instant = new Date(Number(milliseconds - EPOCH_MS)).toISOString();
  return rest === 0n ? instant : instant.replace('Z', `${String(rest).padStart(4, '0')}Z`);
}

/**
 * The digits of two bounds. A day, a month or a year as a bound means all of it, so it begins at `from` and ends at `to`. Throws
 * `invalid-input`.
 */
function invertedBounds({ from, to }: { from?: string | undefined; to?: string | undefined }): {
  from: string;
  to: string;
} {
  return {
    from: to === undefined ? '' : toDigits(boundTicks('to', to).last),
    to: from === undefined ? '' : toDigits(boundTicks('from', from).first),
  };
}

function boundTicks(field: string, bound: string): { readonly first: bigint; readonly last: bigint } {
  const unit = CALENDAR_UNITS.find((each) => periodOf(each, bound) === bound);
  const { first, last } = unit ? boundsOf(unit, bound) : { first: bound, last: bound };
  const [begin, end] = [ticksOf(first), ticksOf(last)];
  if (begin === undefined || end === undefined)
    throw new RowkeyError('invalid-input', `"${field}" must be an instant, a day, a month or a year, in UTC.`, {
      field,
      accepted: `${INSTANT_EXAMPLE}, or 2026-11-20, 2026-11 or 2026`,
    });
  return { first: begin, last: unit ? end + TICKS_PER_MILLISECOND - 1n : end };
}

function toDigits(ticks: bigint): string {
  return String(MAX_TICKS - ticks).padStart(DIGITS, '0');
}

/** The ticks of an ISO instant in UTC with up to seven fractional digits. Undefined for the year 0000, which .NET does not have. */
function ticksOf(instant: string): bigint | undefined {
  const [, day, time = '00:00:00', fraction = ''] = INSTANT.exec(instant) ?? [];
  const milliseconds = Date.parse(`${day}T${time}Z`);
  // `Date.parse` accepts 31 November.
  if (!(milliseconds >= -EPOCH_MS) || periodOf('day', instant) === undefined) return undefined;
  return (BigInt(milliseconds) + EPOCH_MS) * TICKS_PER_MILLISECOND + BigInt(fraction.padEnd(7, '0'));
}
