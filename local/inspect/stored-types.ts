import { z } from 'zod';

/** The types of Table storage. */
export type StoredType = 'String' | 'Int32' | 'Int64' | 'Double' | 'Boolean' | 'DateTime' | 'Guid' | 'Binary';

/** The type of a property, as a typed read of rows has it. */
export function typeOf(value: unknown): StoredType {
  if (typeof value === 'string') return 'String';
  if (typeof value === 'boolean') return 'Boolean';
  if (typeof value === 'number') return 'Int32';
  return (value as { readonly type: StoredType }).type;
}

/** The value of a property as a text. */
export function textOf(value: unknown): string {
  return typeof value === 'object' && value !== null && 'value' in value ? String(value.value) : String(value);
}

/** How values of one property are declared, or why they cannot be. */
export type Declared =
  | {
      readonly schema: string;
      /** The type that `existing` names, unless the schema says it. */
      readonly type?: StoredType;
      readonly notes: readonly string[];
    }
  | { readonly problem: string };

/** A value that occurs so often in so many rows is one of a list. */
const MIN_ENUM_ROWS = 50;
const MIN_ENUM_EACH = 5;
const MAX_ENUM = 8;

/** Of so few values of another type, the field keeps its type. */
const MAX_OTHERS = 0.05;

/** Declares the values that one property has in the sample. */
export function declareValues(values: readonly unknown[]): Declared {
  const groups = [...Map.groupBy(values, formOf)].sort(([, one], [, other]) => other.length - one.length);
  const forms = groups.map(([form]) => form);
  // A program that has widened a number reads what it has stored before, and so does Rowkey.
  const widened = (['Int64', 'Double'] as const).find(
    (wide) => [...forms].sort().join() === [wide, 'Int32'].sort().join(),
  );
  if (widened) return widened === 'Int64' ? declareInt64(values, true) : { schema: 'z.number()', notes: [] };
  const [[form, most] = ['String', []] as const, ...others] = groups;
  const said = groups.map(([one, ofForm]) => `${ofForm.length} ${one}`).join(', ');
  const number = values.length - most.length;
  if (form === 'NaN' || number > values.length * MAX_OTHERS)
    return { problem: form === 'NaN' ? 'it has numbers that JSON does not have' : `values of several types (${said})` };
  const declared = declareForm(form, most);
  if (others.length === 0) return declared;
  return {
    ...declared,
    notes: [...declared.notes, `has values of several types (${said}): Rowkey reads the first only`],
  };
}

/** The type of a value. Infinity and NaN are of none that JSON has. */
function formOf(value: unknown): StoredType | 'NaN' {
  const type = typeOf(value);
  return type === 'Double' && !Number.isFinite(Number(textOf(value))) ? 'NaN' : type;
}

function declareForm(type: StoredType, values: readonly unknown[]): Possible {
  const texts = values.map(textOf);
  switch (type) {
    case 'Boolean':
      return { schema: 'z.boolean()', notes: [] };
    case 'Int32':
      return { schema: 'z.int32()', notes: [] };
    case 'Int64':
      return declareInt64(values);
    case 'Double':
      return { schema: 'z.number()', notes: [] };
    case 'DateTime':
      return { schema: 'z.iso.datetime()', type, notes: [] };
    case 'Guid':
      return { schema: isUuids(texts) ? 'z.uuid()' : 'z.guid()', type, notes: [] };
    case 'Binary':
      return { schema: 'z.base64()', type, notes: [] };
    default:
      return declareTexts(texts);
  }
}

/** Zod has no pattern for GUIDs of other versions than those of the standard. */
export function isUuids(texts: readonly string[]): boolean {
  return texts.every((text) => z.uuid().safeParse(text).success);
}

type Possible = Exclude<Declared, { readonly problem: string }>;

function declareInt64(values: readonly unknown[], isMixed = false): Possible {
  if (values.every((value) => Number.isSafeInteger(Number(textOf(value)))))
    return { schema: 'z.int()', type: 'Int64', notes: [] };
  const note = 'has numbers beyond 2^53, so it is a text of digits';
  const others = isMixed ? ['has values of Int32, too, which Rowkey does not read as a text'] : [];
  return { schema: 'z.string().regex(/^-?\\d+$/)', type: 'Int64', notes: [note, ...others] };
}

function declareTexts(texts: readonly string[]): Possible {
  const counts = new Map<string, number>();
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1);
  const isEnum =
    texts.length >= MIN_ENUM_ROWS &&
    counts.size <= MAX_ENUM &&
    [...counts].every(([text, count]) => count >= MIN_ENUM_EACH && /^[A-Za-z][\w-]{0,39}$/.test(text));
  if (isEnum) {
    const choices = [...counts.keys()].sort().map((text) => `'${text}'`);
    return { schema: `z.enum([${choices.join(', ')}])`, notes: [`has these ${counts.size} values only`] };
  }
  if (!texts.every(isJson)) return { schema: 'z.string()', notes: [] };
  const isTexts = texts.every((text) => z.array(z.string()).safeParse(JSON.parse(text)).success);
  // Rowkey stores a list as its JSON, without spaces.
  if (isTexts && texts.every((text) => JSON.stringify(JSON.parse(text)) === text))
    return { schema: 'z.array(z.string())', notes: ['has JSON'] };
  return { schema: 'z.string()', notes: ['has JSON. A z.object or a z.array of its members reads it, too'] };
}

function isJson(text: string): boolean {
  if (!/^\s*[[{]/.test(text)) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** The names of properties that `existing` accepts. */
const PROPERTY_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,254}$/;
/** Begins what Rowkey itself stores in such rows. */
const OWN_PROPERTY = 'Rowkey';

/** Why no field can have the property. Undefined if one can. */
export function whyNoField(property: string): string | undefined {
  if (property.startsWith(OWN_PROPERTY)) return `names with ${OWN_PROPERTY} are those of Rowkey`;
  return PROPERTY_NAME.test(property) ? undefined : 'its name has other characters than A-Z, a-z, 0-9 and _';
}

/** The names that the SDK reserves, and those that every object has. */
const RESERVED = new Set([
  'partitionKey',
  'rowKey',
  'timestamp',
  'etag',
  ...Object.getOwnPropertyNames(Object.prototype),
]);

/** A name for the field of a property that is in none of `taken`, to which it is added. */
export function fieldName(property: string, taken: Set<string>): string {
  const words = property
    .normalize('NFD')
    .replace(/\p{M}/gu, '')
    .replace(/^[^A-Za-z]+/, '')
    .replace(/[^A-Za-z0-9]+([A-Za-z0-9]?)/g, (_, next: string) => next.toUpperCase());
  // `ID` and `URLPath` become `id` and `urlPath`.
  const camel = words.replace(/^[A-Z]+(?=[A-Z][a-z]|[^A-Za-z]|$)|^[A-Z]/, (upper) => upper.toLowerCase()).slice(0, 100);
  const name = camel === '' ? 'property' : RESERVED.has(camel) ? `${camel}Value` : camel;
  let free = name;
  for (let number = 2; taken.has(free); number += 1) free = `${name}${number}`;
  taken.add(free);
  return free;
}
