import { findNotJson, sayNotJson } from '../../../lib/base/json-value.ts';
import { toMergePatch } from '../../../lib/base/merge-patch.ts';
import { parseJson } from '../../../lib/base/parse-json.ts';
import { parseDecimal } from '../../../lib/define/declaration/csv-value.ts';
import { type Entity, type ReferenceDescription, type Roles, readableFields, type Values } from '../api/model.ts';
import { joinNames } from '../ui/format.ts';
import { findHint, findProblem } from './find-problem.ts';

/** The fields of a form, from the described schema. */

export interface FormField {
  readonly name: string;
  readonly input: 'text' | 'long' | 'number' | 'date' | 'json' | 'choice';
  readonly isRequired: boolean;
  /** True if a row may have an empty text, which differs from no value. */
  readonly canBeEmpty: boolean;
  /** Beside the label, such as "generated if empty" or "default draft". */
  readonly note: string;
  /** What a value must be. */
  readonly hint: string;
  /** The entity and the field to which the field refers, if it does. */
  readonly reference?: ReferenceDescription | undefined;
  /** Values with their texts. */
  readonly choices: readonly { readonly text: string; readonly value: unknown }[];
  readonly schema: Schema;
}

type Schema = Readonly<Record<string, unknown>>;
/** The text of a field that has an empty text as its value. The text of a field without a value is `''`. */
export const EMPTY_TEXT = Symbol('empty text');
export type FieldText = string | typeof EMPTY_TEXT;
export type Texts = Readonly<Record<string, FieldText>>;
type Parsed = { readonly value: unknown; readonly problem?: never } | { readonly problem: string };

const LONG_TEXT = 500;
const LARGEST = Number.MAX_SAFE_INTEGER;

/** The fields that the caller may set: all for a new row, all but the key for a change. */
export function formFields(entity: Entity, user: Roles, purpose: 'create' | 'change'): FormField[] {
  const names = readableFields(entity, user);
  // The kind decides which other fields a row has.
  const ordered = entity.kinds ? ['kind', ...names.filter((name) => name !== 'kind')] : names;
  return ordered.flatMap((name) => {
    const field = entity.fields[name];
    const isKey = entity.key.fields.includes(name);
    if (!field || field.derived || field.kept || field.fromCaller || (isKey && purpose === 'change')) return [];
    const { schema, type } = field;
    const choices = findChoices(schema);
    const input = choices.length > 0 ? 'choice' : findInput(schema, type);
    const notes = [
      isKey ? 'key' : '',
      field.encrypted ? 'encrypted' : '',
      entity.movable.includes(name) && isKey ? 'a move changes it later' : '',
      field.generated && purpose === 'create' ? sayFilled(field) : '',
    ];
    const isRequired = !field.optional && !(field.generated && purpose === 'create');
    const canBeEmpty = !isKey && schema.type === 'string' && findProblem(schema, '') === undefined;
    const note = notes.filter(Boolean).join(', ');
    const hint = input === 'choice' || input === 'date' ? '' : findHint(schema, input === 'json');
    return [{ name, hint, input, isRequired, canBeEmpty, note, reference: entity.references[name], choices, schema }];
  });
}

/** What an app fills in for an empty field: a constant, or something that is made for each row. */
function sayFilled({ default: constant }: Entity['fields'][string]): string {
  return constant === undefined ? 'generated if empty' : `default ${constant}`;
}

/** A sentence with the fields that an app takes from the token. Empty if there are none. */
export function sayFromCaller(entity: Entity): string {
  const names = Object.keys(entity.fields).filter((name) => entity.fields[name]?.fromCaller);
  return names.length > 0
    ? `${joinNames(names, 'and')} ${names.length === 1 ? 'is' : 'are'} taken from your sign-in.`
    : '';
}

/** A sentence with the required fields. Empty if every field is optional or generated. */
export function sayRequired(fields: readonly FormField[]): string {
  const names = fields.flatMap(({ name, isRequired }) => (isRequired ? [name] : []));
  return names.length > 0 ? `Each row needs ${joinNames(names, 'and')}.` : '';
}

export function findInput({ type, format, maxLength }: Schema, stored: string): FormField['input'] {
  if (type === 'integer' || type === 'number') return 'number';
  if (type !== 'string') return stored === 'Json' || type !== undefined ? 'json' : 'text';
  if (format === 'date') return 'date';
  return Number(maxLength) > LONG_TEXT ? 'long' : 'text';
}

/** The values of a Boolean, of an enumeration, or of a union of constants. */
function findChoices(schema: Schema): FormField['choices'] {
  const { type, enum: values, anyOf } = schema;
  if (type === 'boolean') return [true, false].map(toChoice);
  if (Array.isArray(values)) return values.map(toChoice);
  const isConstants = Array.isArray(anyOf) && anyOf.every((one) => Object.hasOwn(Object(one), 'const'));
  return isConstants ? anyOf.map((one) => toChoice(Object(one).const)) : [];
}

const toChoice = (value: unknown) => ({ text: String(value), value });

/** The text of a value in its input. */
export function toFieldText(field: FormField, value: unknown): FieldText {
  if (value === undefined || value === null) return '';
  if (value === '' && field.canBeEmpty) return EMPTY_TEXT;
  return field.input === 'json' ? JSON.stringify(value, null, 2) : String(value);
}

/** The value of a text, or what is wrong with it. */
export function parseField(field: FormField, text: FieldText): Parsed {
  if (text === EMPTY_TEXT) return { value: '' };
  if (text === '') return field.isRequired ? { problem: 'is required' } : { value: undefined };
  const parsed = parseText(field, text);
  if (parsed.problem !== undefined) return parsed;
  const problem = findProblem(field.schema, parsed.value);
  return problem === undefined ? parsed : { problem };
}

function parseText({ input, choices, schema }: FormField, text: string): Parsed {
  if (input === 'choice') {
    const choice = choices.find((one) => one.text === text);
    return choice
      ? { value: choice.value }
      : { problem: `must be one of: ${choices.map((one) => one.text).join(', ')}` };
  }
  if (input === 'number') {
    const value = parseDecimal(text, schema.type === 'integer');
    if (value !== undefined) return { value };
    const isTooLarge = /^[-+]?\d+$/.test(text.trim());
    return { problem: isTooLarge ? `must be from -${LARGEST} to ${LARGEST}` : 'must be a number' };
  }
  if (input !== 'json') return { value: text };
  try {
    const value = parseJson(text);
    const found = findNotJson(value);
    return found ? { problem: [found.path.join('.'), sayNotJson(found)].join(' ').trim() } : { value };
  } catch {
    return { problem: 'must be JSON' };
  }
}

/** What is wrong, by field. */
export function findProblems(fields: readonly FormField[], texts: Texts): Readonly<Record<string, string>> {
  const found = fields.flatMap((field) => {
    const { problem } = parseField(field, texts[field.name] ?? '');
    return problem === undefined ? [] : [[field.name, problem] as const];
  });
  return Object.fromEntries(found);
}

export function toTexts(fields: readonly FormField[], values: Values): Texts {
  return Object.fromEntries(fields.map((field) => [field.name, toFieldText(field, values[field.name])]));
}

/** The values of the fields that have one. The texts must be valid. */
export function toValues(fields: readonly FormField[], texts: Texts): Values {
  const pairs = fields.map((field) => [field.name, valueIn(field, texts)] as const);
  return Object.fromEntries(pairs.filter(([, value]) => value !== undefined));
}

/** What a change sends: the values of changed texts, and null for a field that loses its value. */
export function toPatch(fields: readonly FormField[], before: Texts, texts: Texts): Values {
  const changed = fields.filter(({ name }) => (before[name] ?? '') !== (texts[name] ?? ''));
  return Object.fromEntries(changed.map((field) => [field.name, valueIn(field, texts) ?? null]));
}

function valueIn(field: FormField, texts: Texts): unknown {
  const parsed = parseField(field, texts[field.name] ?? '');
  return parsed.problem === undefined ? parsed.value : undefined;
}

/** The patch that restores what `patch` changed. */
export function toUndo(patch: Values, before: Values): Values {
  return Object.fromEntries(
    Object.entries(patch).map(([field, value]) => [field, toMergePatch(value, before[field] ?? null)]),
  );
}
