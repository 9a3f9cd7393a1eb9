import { z } from 'zod';
import { buildKey, compileTemplate, forbiddenInKeys, parseKey } from '../../lib/define/keys/key-template.ts';
import { isUuids } from './stored-types.ts';

/** What the texts of one part of a key are. */
export type PartType = 'ticks' | 'guid' | 'instant' | 'day' | 'digits' | 'hash' | 'compact' | 'number' | 'text';

/** A part of a key that differs among the rows. */
export interface KeyPart {
  readonly type: PartType;
  /** The text between this part and the next. */
  readonly after: string;
  /** The part in the key of each row. */
  readonly texts: readonly string[];
}

/** What keys of one kind consist of. */
export interface KeyShape {
  readonly head: string;
  readonly parts: readonly KeyPart[];
}

/** The most digits that a number has exactly. */
const MAX_DIGITS = 15;
/** The separators of parts, the most certain ones first. */
const SEPARATORS = ['|', ';', '~', '=', ',', '_', ':', '$', '+', '-', '.'];
/** Separators that names and addresses have, too. They count if one of their sides has a form of its own. */
const WEAK = new Set(['-', '.', ':', '+', ',']);

const GUID = '[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}';
const DAY = '\\d{4}-\\d{2}-\\d{2}';
const PATTERNS: readonly (readonly [PartType, RegExp])[] = [
  ['ticks', /^\d{19}/],
  ['guid', new RegExp(`^${GUID}`)],
  ['instant', new RegExp(`^${DAY}T\\d{2}:\\d{2}:\\d{2}(\\.\\d{1,7})?Z`)],
  ['day', new RegExp(`^${DAY}(?![\\dT])`)],
  ['hash', /^(?:[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}|[0-9A-F]{32}|[0-9A-F]{40}|[0-9A-F]{64})(?![0-9a-fA-F])/],
  ['compact', /^(?:19|20|21)\d{2}(?:0[1-9]|1[0-2])(?:(?:0[1-9]|[12]\d|3[01])(?:[01]\d|2[0-3])?)?(?!\d)/],
  ['digits', /^\d+/],
];

/** The form at the beginning of a text, and the text of it. */
function formAt(type: PartType, pattern: RegExp, text: string): string | undefined {
  const found = pattern.exec(text)?.[0];
  if (found === undefined) return undefined;
  if (type === 'ticks') return isReverseTicks(found) ? found : undefined;
  if (type === 'day') return z.iso.date().safeParse(found).success ? found : undefined;
  return found;
}

const TICKS = compileTemplate('{at~}');

/** True for ticks before the maximum date, of an instant in these times. Other numbers have 19 digits as well. */
function isReverseTicks(text: string): boolean {
  const at = String(parseKey(TICKS, text)?.at ?? '');
  return at >= '1980' && at < '2100';
}

/** The form of a whole text, or `text`. */
export function formOf(text: string): PartType {
  for (const [type, pattern] of PATTERNS) if (formAt(type, pattern, text) === text) return type;
  return 'text';
}

/** What has one of these forms is a value, though the sample has no other. */
const VALUES = new Set<PartType>(['ticks', 'guid', 'instant', 'day', 'hash', 'compact']);

/** True if a text begins with a value of such a form, which ends before a separator or with the text. */
export function beginsWithValue(text: string): boolean {
  return PATTERNS.some(([type, pattern]) => {
    const found = VALUES.has(type) ? formAt(type, pattern, text) : undefined;
    return found !== undefined && (found === text || SEPARATORS.includes(text.charAt(found.length)));
  });
}

/** The shape of keys, none of which is empty. `head` is a text with which each begins. */
export function shapeOf(keys: readonly string[], head = ''): KeyShape {
  const rests = keys.map((key) => key.slice(head.length));
  if (isConstant(rests) && !VALUES.has(formOf(rests[0] ?? ''))) return { head: head + (rests[0] ?? ''), parts: [] };
  return splitParts(rests, head);
}

function splitParts(texts: readonly string[], head: string): KeyShape {
  const type = typeOfAll(texts);
  if (type !== 'text') return { head, parts: [{ type, after: '', texts }] };
  const found = splitAtForm(texts) ?? splitAtSeparator(texts);
  if (!found) return { head, parts: [{ type: 'text', after: '', texts }] };
  const { first, separator, rests } = found;
  // A number beside other parts differs in other rows, such as a year.
  const isNumber = (side: readonly string[]) => formOf(side[0] ?? '') !== 'text';
  const following = isNumber(rests) ? splitParts(rests, '') : shapeOf(rests);
  if (isConstant(first) && !isNumber(first))
    return { ...following, head: head + first[0] + separator + following.head };
  const part = { type: typeOfAll(first), after: separator + following.head, texts: first };
  return { head, parts: [part, ...following.parts] };
}

interface Split {
  readonly first: readonly string[];
  readonly separator: string;
  /** What follows. Never empty. */
  readonly rests: readonly string[];
}

/** Splits texts that all begin with the same form, which is followed by the same separator. */
function splitAtForm(texts: readonly string[]): Split | undefined {
  for (const [type, pattern] of PATTERNS) {
    const first = texts.map((text) => formAt(type, pattern, text));
    if (!first.every((form) => form !== undefined)) continue;
    const separators = new Set(texts.map((text, index) => text.slice(first[index]?.length)[0]));
    const [separator] = separators;
    if (separators.size !== 1 || separator === undefined || !SEPARATORS.includes(separator)) continue;
    // The parser of keys would end the part at the first separator.
    if (first.some((form) => form.includes(separator))) continue;
    const rests = texts.map((text, index) => text.slice((first[index]?.length ?? 0) + 1));
    if (rests.every((rest) => rest !== '')) return { first, separator, rests };
  }
  return undefined;
}

function splitAtSeparator(texts: readonly string[]): Split | undefined {
  for (const separator of SEPARATORS) {
    const counts = new Set(texts.map((text) => text.split(separator).length));
    if (counts.size !== 1 || counts.has(1)) continue;
    const first = texts.map((text) => text.slice(0, text.indexOf(separator)));
    const rests = texts.map((text) => text.slice(text.indexOf(separator) + 1));
    if (![...first, ...rests].every((text) => text !== '')) continue;
    const isFormed = (side: readonly string[]) => typeOfAll(side) !== 'text';
    if (!WEAK.has(separator) || isFormed(first) || isFormed(rests)) return { first, separator, rests };
  }
  return undefined;
}

function isConstant(texts: readonly string[]): boolean {
  return texts.every((text) => text === texts[0]);
}

/** The form that all texts have. */
function typeOfAll(texts: readonly string[]): PartType {
  const types = new Set(texts.map(formOf));
  const [type = 'text'] = types;
  if (types.size === 1 && type !== 'digits') return type;
  if (![...types].every((one) => ['digits', 'compact', 'ticks', 'hash'].includes(one))) return 'text';
  if (!texts.every((text) => /^\d+$/.test(text))) return 'text';
  const widths = new Set(texts.map((text) => text.length));
  const isPadded = texts.some((text) => text.length > 1 && text.startsWith('0'));
  // Without a zero at the beginning, a later number may have more digits.
  if (isPadded) return widths.size === 1 ? 'digits' : 'text';
  return 'number';
}

/** How a part is declared: its template and the schema of its field. */
export function declarePart(
  { type, texts }: Pick<KeyPart, 'type' | 'texts'>,
  field: string,
): { readonly template: string; readonly schema: string } {
  const width = texts[0]?.length ?? 0;
  const plain = `{${field}}`;
  switch (type) {
    case 'ticks':
      return { template: `{${field}~}`, schema: 'z.iso.datetime()' };
    case 'instant':
      return { template: plain, schema: 'z.iso.datetime()' };
    case 'day':
      return { template: plain, schema: 'z.iso.date()' };
    case 'guid':
      return {
        template: plain,
        schema: isUuids(texts) ? 'z.uuid()' : 'z.guid()',
      };
    case 'hash':
      return {
        template: plain,
        schema: `z.string().regex(/^[${texts.some((text) => /[A-F]/.test(text)) ? '0-9A-F' : '0-9a-f'}]{${width}}$/)`,
      };
    case 'compact':
      return { template: plain, schema: `z.string().regex(${widthsOf(texts)})` };
    case 'digits':
      return width <= MAX_DIGITS
        ? { template: `{${field}:${width}}`, schema: 'z.int().min(0)' }
        : { template: plain, schema: `z.string().regex(/^\\d{${width}}$/)` };
    case 'number':
      return { template: plain, schema: 'z.string().regex(/^\\d+$/)' };
    default:
      return { template: plain, schema: 'z.string()' };
  }
}

function widthsOf(texts: readonly string[]): string {
  const widths = new Set(texts.map((text) => text.length));
  return widths.size === 1 ? `/^\\d{${[...widths][0]}}$/` : '/^\\d+$/';
}

/** Returns a function that says why a key cannot be built again from the template, and returns undefined if it can. */
export function rebuilderOf(template: string): (key: string) => string | undefined {
  const compiled = compileTemplate(template);
  return (key) => {
    const values = parseKey(compiled, key);
    if (!values) return key === '' ? 'the key is empty' : `the key has another form than ${template}`;
    try {
      if (buildKey(compiled, values) === key) return undefined;
    } catch {
      // The values are not those of a key.
    }
    const forbidden = [...key].find(forbiddenInKeys);
    return forbidden === undefined
      ? `a part of the key has a separator of ${template}`
      : `the key has "${forbidden}", which Rowkey escapes`;
  };
}
