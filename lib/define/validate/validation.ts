import { z } from 'zod';
import { RowkeyError } from '../../errors.ts';
import { decidedFields, referenceFields } from '../codec/kept-fields.ts';
import type { Entity } from '../entity.ts';
import type { Values } from '../values.ts';

/** What a caller who reads gets: one entity, be it of several kinds. */
export function readableSchema(entity: Entity): z.ZodType {
  return entity.union ?? entity.schema;
}

/** The same in a list, or in the answer to a write, where a field that cannot be read is null. */
export function schemaWithGaps(entity: Entity): z.ZodType {
  const remote = referenceFields(entity);
  if (remote.length === 0) return readableSchema(entity);
  const fields = Object.entries(entity.schema.shape).filter(([field]) => remote.includes(field));
  return entity.schema.extend(Object.fromEntries(fields.map(([field, type]) => [field, z.nullable(type)])));
}

/** The same of a part of it: of a part copy, or of selected fields. Only `certain` fields are always there. */
export function partialSchema(entity: Entity, certain: readonly string[]): z.ZodType {
  const gaps = schemaWithGaps(entity);
  const whole = gaps instanceof z.ZodObject ? gaps : entity.schema;
  return whole.partial().required(maskOf(certain));
}

/** One entity with the details that may be read along with it: `select` may leave out any of their fields. */
export function schemaWithDetails(entity: Entity): z.ZodType {
  const whole = readableSchema(entity);
  if (entity.children.length === 0 || !(whole instanceof z.ZodObject)) return whole;
  const lists = entity.children.map((detail) => [detail.name, z.array(partialSchema(detail, [])).optional()]);
  return whole.extend(Object.fromEntries(lists));
}

/** What callers may write: the schema without the fields that follow from others, and without those named. */
export function writableSchema(entity: Entity, without: readonly string[] = []): z.ZodObject {
  const left = [...decidedFields(entity), ...without];
  return entity.schema.omit(maskOf(left));
}

/** Fields as zod picks and omits them. */
export function maskOf(fields: readonly string[]): Record<string, true> {
  return Object.fromEntries(fields.map((field) => [field, true]));
}

/**
 * Checks a whole entity. The fields of `held` are as they were checked before, and not in the input. Throws
 * `invalid-input` naming every field that is wrong.
 */
export function validate(entity: Entity, input: unknown, held: Values = {}): Values {
  const written = parse(writableSchema(entity, Object.keys(held)), input);
  // What a kind has, and has by default, and another one has not is known by the kind alone.
  const whole = entity.union ? (parse(entity.union, input) as Values) : written;
  const values: Values = { ...whole, ...held };
  for (const [field, value] of Object.entries(values))
    if (!(field in held)) checkText(field, value, entity.keyFields.includes(field));
  const derived = Object.entries(entity.derived).map(([field, derive]) => [field, derive(values)] as const);
  return { ...values, ...Object.fromEntries(derived.filter(([, value]) => value !== undefined)) };
}

/** A dot segment is taken out of a path on its way, and the host cannot tell an encoded `%2F` from an encoded slash. */
const LOST_IN_PATHS = /^\.{1,2}$|%2f/i;

function checkText(field: string, value: unknown, isKey: boolean): void {
  const refuse = (accepted: string) => {
    throw new RowkeyError('invalid-input', `The field ${field} cannot be kept as it is.`, { field, accepted });
  };
  // JSON may hold half of a character, UTF-8 cannot.
  const text = typeof value === 'object' ? JSON.stringify(value) : value;
  if (typeof text !== 'string') return;
  if (!text.isWellFormed() || (typeof value === 'object' && /\\ud[89a-f]/i.test(text))) refuse('well-formed Unicode');
  if (isKey && LOST_IN_PATHS.test(text)) refuse('a text that a path can hold: not a dot or two, and without %2F');
}

/** Checks fields that came as texts, in a path or a query. Throws `invalid-input` naming the field. */
export function validateTexts(
  entity: Entity,
  texts: Readonly<Record<string, string | undefined>>,
  fields: readonly string[],
): Values {
  const typed = fields.map((field) => [field, fromText(entity, field, texts[field])]);
  const parsed = parse(entity.schema.pick(maskOf(fields)).required(), Object.fromEntries(typed));
  return Object.fromEntries(Object.entries(parsed).map(([field, value]) => [field, fromOneElement(value)]));
}

/** Checks `input` against any schema, with the same answer. */
export function parse<Schema extends z.ZodType>(schema: Schema, input: unknown): z.output<Schema> {
  const parsed = schema.safeParse(input);
  if (parsed.success) return parsed.data;
  const all = parsed.error.issues.flatMap(({ path, message, ...issue }) =>
    issue.code === 'unrecognized_keys'
      ? issue.keys.map((field) => ({
          field: [...path, field].join('.'),
          message: 'the field does not exist, or cannot be written',
        }))
      : [{ field: path.join('.'), message: messageOf(issue, valueAt(input, path), message) }],
  );
  // The caller chooses how many errors there are, and how long the names of unknown fields are.
  const errors = all.slice(0, MAX_ERRORS).map(({ field, message }) => {
    return { field: shortened(field, MAX_FIELD_LENGTH), message: shortened(message, MAX_MESSAGE_LENGTH) };
  });
  const [first] = errors;
  const field = first?.field ? { field: first.field } : {};
  const subject = first?.field ? `The field ${first.field}` : 'The body';
  const more = all.length > MAX_ERRORS ? ` The first ${MAX_ERRORS} of ${all.length} errors are listed.` : '';
  const message = `${subject} is not valid: ${first?.message}.${more}`;
  throw new RowkeyError('invalid-input', message, { ...field, errors });
}

/** Zod says of a missing field that undefined was received, and of a date not what one looks like. */
function messageOf(issue: { readonly code: string }, value: unknown, message: string): string {
  if (issue.code === 'invalid_type' && value === undefined) return 'a value is required';
  if (message === 'Invalid ISO date') return 'must be a date of the calendar such as 2026-11-20';
  if (message === 'Invalid ISO datetime') return 'must be an ISO 8601 instant such as 2026-11-20T09:00:00Z';
  return message;
}

function valueAt(input: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce((value: unknown, key) => Object(value)[key], input);
}

/** An answer lists so many errors at most, with this many characters of each. */
const MAX_ERRORS = 20;
const MAX_FIELD_LENGTH = 100;
const MAX_MESSAGE_LENGTH = 300;

function shortened(text: string, length: number): string {
  // Half of a surrogate pair is no text that can be sent.
  return text.length <= length ? text : `${text.slice(0, length).toWellFormed()}…`;
}

/** A text for a list is one element of it, as an index by its elements is asked. */
function fromOneElement(value: unknown): unknown {
  return Array.isArray(value) ? value[0] : value;
}

/** As JSON has it. JavaScript takes a blank for zero as well, and hexadecimal digits. */
const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;

/** A text that is none of the type stays one, for the schema to refuse. */
function fromText(entity: Entity, field: string, text: string | undefined): unknown {
  const type = entity.columns[field];
  if (text === undefined || type === 'String') return text;
  if (type === 'Json') return [text];
  if (type === 'Boolean') return /^(true|false)$/.test(text) ? text === 'true' : text;
  return NUMBER.test(text) ? Number(text) : text;
}
