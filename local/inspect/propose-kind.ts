import { compileTemplate, type KeyTemplate, parseKey } from '../../lib/define/keys/key-template.ts';
import { padTime } from '../../lib/storage/row-journal.ts';
import type { Row } from '../../lib/storage/rows.ts';
import type { RowGroup } from './find-kinds.ts';
import { declarePart, formOf, type KeyPart, type KeyShape, type PartType, rebuilderOf, shapeOf } from './key-shape.ts';
import { declareValues, fieldName, type StoredType, textOf, typeOf, whyNoField } from './stored-types.ts';

/** A field of a proposed declaration. */
export interface ProposedField {
  readonly field: string;
  /** In TypeScript, without `optional`. */
  readonly schema: string;
  readonly isOptional: boolean;
  /** The property that holds it. Undefined for a field that is read from the key. */
  readonly property: string | undefined;
  readonly type?: StoredType | undefined;
  readonly notes: readonly string[];
}

/** A kind of rows, as a declaration. */
export interface ProposedKind {
  readonly table: string;
  readonly name: string;
  readonly partition: string;
  readonly row: string;
  /** True if the partition key begins with a time that Rowkey knows as one. */
  readonly appends: boolean;
  /** True if it begins with any time. */
  readonly beginsWithTime: boolean;
  readonly where: RowGroup['where'];
  /** The fields of the key first. */
  readonly fields: readonly ProposedField[];
  readonly keyFields: readonly string[];
  /** Fields that have no value twice in the sample. */
  readonly unique: readonly string[];
  /** Properties that no field can have, each with the reason. */
  readonly without: readonly { readonly property: string; readonly reason: string }[];
  /** The rows that the declaration reads. */
  readonly rows: readonly Row[];
  /** Why other rows of the kind are not read, and how many. */
  readonly notRead: ReadonlyMap<string, number>;
  /** Why the kind cannot be declared at all. */
  readonly problem: string | undefined;
  readonly notes: readonly string[];
}

/** The part of the keys that have one form, if the others are exceptions. */
const MOST = 0.95;
const MIN_UNIQUE_ROWS = 20;
const MIN_NUMBERS = 3;
const MIN_NUMBER_ROWS = 10;
const MAX_UNIQUE_LENGTH = 100;
/** Parts of the key that are a time. A partition key that begins with one needs `appends`. */
const TIMES: readonly PartType[] = ['ticks', 'instant', 'day'];

/** Nineteen digits may be ticks. */
function isTime({ type, texts }: KeyPart): boolean {
  return TIMES.includes(type) || type === 'compact' || (type === 'digits' && texts[0]?.length === 19);
}

interface Names {
  readonly kind: string;
  /** What one row is called in names of fields. */
  readonly one: string;
  /** Names of the parts of the partition keys of the table, by their place. Kinds of one partition share them. */
  readonly ofPartition: Map<string, string>;
}

/** Proposes the declaration of a kind of rows. */
export function proposeKind(table: string, group: RowGroup, names: Names): ProposedKind {
  const { rows, partitionHead, rowHead, where, mixed } = group;
  const taken = new Set<string>();
  const usual = rows.filter(({ row }) => row !== '');
  const partitionShape = shapeOfMost(
    rows.map(({ partition }) => partition),
    partitionHead,
  );
  const rowShape = shapeOfMost(
    usual.map(({ row }) => row),
    rowHead,
  );
  const known: KnownPart[] = [];
  const partition = declareKey({
    rows,
    keyOf: (row) => row.partition,
    shape: partitionShape,
    names,
    taken,
    known,
    isPartition: true,
  });
  const row = declareKey({
    rows: usual,
    keyOf: (each) => each.row,
    shape: rowShape,
    names,
    taken,
    known,
    isPartition: false,
  });
  const ofKey = [...partition.fields, ...row.fields];
  const notRead = new Map<string, number>();
  const [whyNotPartition, whyNotRow] = [rebuilderOf(partition.template), rebuilderOf(row.template)];
  const read = rows.filter((each) => {
    const reason = whyNotPartition(each.partition) ?? whyNotRow(each.row);
    if (reason !== undefined) notRead.set(reason, (notRead.get(reason) ?? 0) + 1);
    return reason === undefined;
  });
  const named = new Set([...ofKey.map(({ property }) => property), where?.property]);
  const { fields, without } = declareProperties(rows, named, taken);
  return {
    table,
    name: names.kind,
    partition: partition.template,
    row: row.template,
    appends:
      partitionShape.parts[0] !== undefined && TIMES.includes(partitionShape.parts[0].type) && !partition.isText[0],
    beginsWithTime: partitionShape.parts[0] !== undefined && isTime(partitionShape.parts[0]),
    where,
    fields: [...ofKey, ...fields],
    keyFields: ofKey.map(({ field }) => field),
    unique: fields.filter((field) => isUniqueIn(rows, field)).map(({ field }) => field),
    without,
    rows: read,
    notRead,
    problem: problemOf(partition.template, row.template, ofKey.length),
    notes: [
      ...partition.notes,
      ...row.notes,
      ...(mixed
        ? [
            `Rows of several kinds (${mixed.property} is ${mixed.values.join(', ')}) have keys of one form, so they are one entity`,
          ]
        : []),
    ],
  };
}

/** Declares the properties that are not in `named`, or says why no field can have them. */
function declareProperties(rows: readonly Row[], named: ReadonlySet<string | undefined>, taken: Set<string>) {
  const all = new Set(rows.flatMap((each) => Object.keys(each.properties)));
  const without: { property: string; reason: string }[] = [];
  const fields: ProposedField[] = [];
  for (const property of all) {
    if (named.has(property)) continue;
    const values = rows.flatMap(({ properties }) => (properties[property] === undefined ? [] : [properties[property]]));
    const reason = whyNoField(property);
    const declared = reason === undefined ? declareValues(values) : { problem: reason };
    if ('problem' in declared) without.push({ property, reason: declared.problem });
    else
      fields.push({
        field: fieldName(property, taken),
        property,
        isOptional: values.length < rows.length,
        ...declared,
      });
  }
  return { fields, without };
}

function problemOf(partition: string, row: string, fields: number): string | undefined {
  if (partition === '') return 'The partition key is empty, which no key template can be.';
  if (row === '') return 'The row key is empty, which no key template can be.';
  if (fields === 0) return 'No part of the key differs in the sample, and a key needs a field.';
  return undefined;
}

/** The shape of the keys, or of those of one form if nearly all have it. */
function shapeOfMost(keys: readonly string[], head: string): KeyShape {
  const byForm = [...Map.groupBy(keys, signatureOf).values()];
  const most = byForm.find((ofForm) => ofForm.length >= keys.length * MOST);
  return shapeOf(most ?? keys, head);
}

/** The key without its letters and digits. */
function signatureOf(key: string): string {
  const guid = key.replace(/[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}/g, 'guid');
  return guid.replace(/[\p{L}\p{N}]+/gu, (word) => (formOf(word) === 'text' ? 'a' : formOf(word)));
}

/** A part of the key that has a field. */
interface KnownPart {
  readonly part: KeyPart;
  readonly field: string;
  readonly property: string | undefined;
  readonly textOf: ReadonlyMap<Row, string>;
}

interface KeyOptions {
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string;
  readonly shape: KeyShape;
  readonly names: Names;
  readonly taken: Set<string>;
  readonly known: KnownPart[];
  readonly isPartition: boolean;
}

function declareKey({ rows, keyOf, shape, names, taken, known, isPartition }: KeyOptions) {
  const plain = templateOf(
    shape,
    shape.parts.map((part, index) => declarePart(part, `part${index}`).template),
  );
  // Only these rows have the form, and their parts are read as the rows of any kind are.
  const whyNot = isUsable(plain) ? rebuilderOf(plain) : () => '';
  const read = rows.filter((row) => whyNot(keyOf(row)) === undefined);
  const compiled = compileTemplate(isUsable(plain) ? plain : '');
  const textsOf = (part: KeyPart, index: number) =>
    read.map((row) => rawPart(compiled, keyOf(row), `part${index}`, part));
  const fields: ProposedField[] = [];
  const notes: string[] = [];
  const isText: boolean[] = [];
  const templates = shape.parts.map((part, index) => {
    const texts = textsOf(part, index);
    const same = known.find(
      ({ part: other, textOf: textIn }) =>
        other.type === part.type && read.length > 1 && read.every((row, at) => textIn.get(row) === texts[at]),
    );
    if (same) return declarePart(part, same.field).template;
    const used = known.map(({ property }) => property);
    const found = findProperty(read, texts, { part, used });
    const id = `${shape.head} ${index}`;
    const guess = guessName(part, { before: index === 0 ? shape.head : (shape.parts[index - 1]?.after ?? ''), names });
    const wanted = found?.property ?? (isPartition ? names.ofPartition.get(id) : undefined) ?? guess;
    const field = fieldName(wanted, taken);
    if (isPartition && (found || !names.ofPartition.has(id))) names.ofPartition.set(id, field);
    const asText = found?.type === 'String' && (part.type === 'digits' || part.type === 'ticks');
    known.push({
      part,
      field,
      property: found?.property,
      textOf: new Map(read.map((row, at) => [row, texts[at] ?? ''])),
    });
    isText.push(asText);
    const width = part.texts[0]?.length;
    const isNumber = part.type === 'number' && found !== undefined && found.type !== 'String';
    const declared = asText
      ? { template: `{${field}}`, schema: `z.string().regex(/^\\d{${width}}$/)` }
      : { ...declarePart(part, field), ...(isNumber ? { schema: 'z.int()' } : {}) };
    const note = asText ? undefined : noteOn(part, declared.template);
    if (note) notes.push(`${field}: ${note}`);
    // The schema of a text does not say the type, and z.int() says Int64.
    const type = found && ['DateTime', 'Guid', 'Int32', 'Int64'].includes(found.type) ? { type: found.type } : {};
    fields.push({ field, schema: declared.schema, isOptional: false, property: found?.property, notes: [], ...type });
    for (const other of nearlyEqual(read, texts, part)) notes.push(`${field}: ${other}`);
    return declared.template;
  });
  const template = templateOf(shape, templates);
  return { template: isUsable(template) ? template : '', fields, notes, isText };
}

function templateOf({ head, parts }: KeyShape, templates: readonly string[]): string {
  return head + parts.map(({ after }, index) => `${templates[index]}${after}`).join('');
}

/** True if the template compiles, and no constant text of it has a character that Rowkey rejects there. */
function isUsable(template: string): boolean {
  try {
    compileTemplate(template);
    return template !== '' && !/[%!]/.test(template.replace(/\{[^}]*\}/g, ''));
  } catch {
    return false;
  }
}

/** The part of a key as it is in the key. */
function rawPart(template: KeyTemplate, key: string, field: string, part: KeyPart): string {
  const value = parseKey(template, key)?.[field] ?? '';
  return part.type === 'digits' ? String(value).padStart(part.texts[0]?.length ?? 0, '0') : String(value);
}

/** The property that has the same value as a part of the key in each row. */
function findProperty(
  rows: readonly Row[],
  texts: readonly string[],
  { part, used }: { readonly part: KeyPart; readonly used: readonly (string | undefined)[] },
) {
  const [first] = rows;
  if (!first) return undefined;
  for (const property of Object.keys(first.properties).filter(
    (name) => whyNoField(name) === undefined && !used.includes(name),
  )) {
    const types = new Set(rows.map(({ properties }) => typeIf(properties[property])));
    const [type] = types;
    if (types.size !== 1 || type === undefined) continue;
    // Few numbers are equal by chance.
    if (type.startsWith('Int') && rows.length < MIN_NUMBER_ROWS && new Set(texts).size < MIN_NUMBERS) continue;
    if (rows.every(({ properties }, index) => isPart(properties[property], texts[index] ?? '', part)))
      return { property, type };
  }
  return undefined;
}

const typeIf = (value: unknown) => (value === undefined ? undefined : typeOf(value));

function isPart(value: unknown, text: string, { type }: KeyPart): boolean {
  switch (typeOf(value)) {
    case 'String':
      return value === text;
    case 'Guid':
      return type === 'guid' && textOf(value) === text;
    case 'DateTime':
      return type === 'ticks' ? padTime(textOf(value)) === padTime(text) : type === 'instant' && textOf(value) === text;
    case 'Int32':
    case 'Int64':
      return (type === 'digits' || type === 'number') && BigInt(textOf(value)) === BigInt(text);
    default:
      return false;
  }
}

/** What is said of properties from which a part of the key is computed in a way that no template has. */
function nearlyEqual(rows: readonly Row[], texts: readonly string[], { type }: KeyPart): string[] {
  const [first] = rows;
  if (!first || rows.length < 2) return [];
  const is = (compute: (text: string) => string) => (property: string) =>
    rows.every(({ properties }, index) => {
      const value = properties[property];
      return value !== undefined && compute(textOf(value)) === texts[index] && textOf(value) !== texts[index];
    });
  return Object.keys(first.properties).flatMap((property) => {
    if (is((text) => text.toLowerCase())(property)) return [`is ${property} in lower case`];
    if (is((text) => text.toUpperCase())(property)) return [`is ${property} in upper case`];
    const date = (text: string) => text.slice(0, 10);
    if (type === 'day' && is(date)(property)) return [`is the day of ${property}`];
    if (type === 'compact' && is((text) => text.replace(/\D/g, '').slice(0, texts[0]?.length))(property))
      return [`is the time of ${property}, cut off`];
    return [];
  });
}

function noteOn({ type, texts }: KeyPart, template: string): string | undefined {
  const width = texts[0]?.length ?? 0;
  if (type === 'compact') return 'is a date without hyphens. It stays a text, and ranges of it are ranges of texts';
  if (type === 'hash') return 'is a hash, which Rowkey cannot compute: a new row needs it';
  if (type === 'digits' && width === 19) return 'may be ticks, oldest first. No template has these: it stays a text';
  if (type === 'digits' && !template.includes(':')) return 'has more digits than a number has exactly: it stays a text';
  return undefined;
}

/** A name for a part of the key that no property has. */
function guessName(
  { type, texts }: KeyPart,
  { before, names }: { readonly before: string; readonly names: Names },
): string {
  const word = /([A-Za-z]{2,})[^A-Za-z]*$/.exec(before)?.[1] ?? '';
  const of = (suffix: string, alone: string) => (word === '' ? alone : `${word}${suffix}`);
  switch (type) {
    case 'ticks':
    case 'instant':
      return of('At', 'at');
    case 'day':
      return of('Day', 'day');
    case 'compact':
      return of('', texts[0]?.length === 6 ? 'month' : texts[0]?.length === 8 ? 'day' : 'hour');
    case 'hash':
      return of('Hash', 'hash');
    case 'text':
      return of('', 'key');
    default:
      return of('Id', before === '' ? 'id' : `${names.one}Id`);
  }
}

function isUniqueIn(rows: readonly Row[], { property, schema }: ProposedField): boolean {
  if (property === undefined || /datetime|number|boolean|base64|enum/.test(schema)) return false;
  const texts = rows.flatMap(({ properties }) =>
    properties[property] === undefined ? [] : [textOf(properties[property])],
  );
  return (
    texts.length >= MIN_UNIQUE_ROWS &&
    new Set(texts).size === texts.length &&
    texts.every((text) => text !== '' && text.length <= MAX_UNIQUE_LENGTH)
  );
}
