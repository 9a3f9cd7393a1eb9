import { z } from 'zod';
import { callApp } from '../../base/app-mistake.ts';
import { checkJson } from '../../base/check-json.ts';
import { RowkeyError } from '../../base/errors.ts';
import { MAX_JSON_DEPTH } from '../../base/json-value.ts';
import { recentFor } from '../../base/once.ts';
import { isHeld } from '../../base/parse-json.ts';
import { hasValue, mapValues, omit, pick, type Values } from '../../base/values.ts';
import type { Entity } from '../declaration/entity.ts';
import { describeIssues } from '../schema/issues.ts';
import { fitsColumn } from './entity-codec.ts';
import { withCanonicalTexts } from './existing-rows.ts';

/** The schema of an entity, of any kind. Not every read includes the fields that are apart. */
function wholeSchema(entity: Entity): z.ZodType {
  const apart = entity.apartFields;
  return entity.union ?? (apart.length === 0 ? entity.schema : entity.schema.partial(maskOf(apart)));
}

/** The schema of an entity as callers read it: an unreadable field may be null in lists and in responses to writes. */
function schemaWithGaps(entity: Entity): z.ZodType {
  const remote = entity.referenceFields;
  if (remote.length === 0) return wholeSchema(entity);
  const readable = wholeSchema(entity);
  const whole = readable instanceof z.ZodObject ? readable : entity.schema;
  const fields = Object.entries(whole.shape as z.ZodRawShape).filter(([field]) => remote.includes(field));
  return whole.extend(Object.fromEntries(fields.map(([field, type]) => [field, z.nullable(type)])));
}

/** An entity as every route returns it: the children are present if a request includes them. */
export function readableSchema(entity: Entity): z.ZodType {
  const whole = schemaWithGaps(entity);
  if (entity.children.length === 0 || !(whole instanceof z.ZodObject)) return whole;
  const lists = entity.children.map((child) => [
    child.name,
    z.array(toPartial(child, schemaWithGaps(child)).meta({ title: child.name })).optional(),
  ]);
  return whole.extend(Object.fromEntries(lists));
}

/** The schema of a partial copy or of selected fields. Only the `certain` fields are always present. */
export function partialSchema(entity: Entity, certain: readonly string[]): z.ZodType {
  return toPartial(entity, readableSchema(entity), certain);
}

function toPartial(entity: Entity, whole: z.ZodType, certain: readonly string[] = []): z.ZodObject {
  return (whole instanceof z.ZodObject ? whole : entity.schema).partial().required(maskOf(certain));
}

/** The fields that callers may write: without derived fields and without those in `without`. */
export function writableSchema(entity: Entity, without: readonly string[] = []): z.ZodObject {
  const left = [...entity.decidedFields, ...without];
  return entity.schema.omit(maskOf(left));
}

/** The fields that callers may write of a whole entity, which for an entity of several kinds depend on its kind. */
export function creatableSchema(entity: Entity, without: readonly string[] = []): z.ZodType {
  if (!(entity.union instanceof z.ZodDiscriminatedUnion)) return writableSchema(entity, without);
  const left = [...entity.decidedFields, ...without];
  return mapKinds(entity, (kind) => kind.omit(maskOf(left.filter((field) => field in kind.shape))));
}

/** What a caller sends for a new entity. The fields that are set from the caller or have a computed default are optional. */
export function sentSchema(entity: Entity, optional: readonly string[] = []): z.ZodType {
  const left = [...optional, ...Object.keys(entity.access.set ?? {}), ...Object.keys(entity.defaults)];
  return withOptional(entity, creatableSchema(entity), left);
}

/** The schema of an entity, of any kind, in which these fields are optional. */
function withOptional(entity: Entity, whole: z.ZodType, optional: readonly string[]): z.ZodType {
  if (optional.length === 0) return whole;
  const toSent = (kind: z.ZodObject) => kind.partial(maskOf(optional.filter((field) => field in kind.shape)));
  return whole instanceof z.ZodObject ? toSent(whole) : mapKinds({ ...entity, union: whole }, toSent);
}

/** What a caller sends for an entity whose key is in the path: the key fields are optional. */
export function replaceableSchema(entity: Entity): z.ZodType {
  return sentSchema(entity, entity.keyFields);
}

function mapKinds(
  { name, schema, union }: Pick<Entity, 'name' | 'schema' | 'union'>,
  map: (kind: z.ZodObject) => z.ZodObject,
): z.ZodType {
  if (!(union instanceof z.ZodDiscriminatedUnion)) return schema;
  const [first, ...others] = union.options.map((kind) => {
    if (!(kind instanceof z.ZodObject)) throw new Error(`A kind of ${name} is not an object.`);
    return map(kind);
  });
  return first ? z.discriminatedUnion('kind', [first, ...others]) : schema;
}

/** Fields in the form that zod's `pick` and `omit` expect. */
export function maskOf(fields: readonly string[]): Record<string, true> {
  return Object.fromEntries(fields.map((field) => [field, true]));
}

/**
 * Validates a whole entity. The fields in `held` are already valid and not part of the input. Throws `invalid-input`, which
 * names every invalid field, and `wrong-operation` for a mistake of a function of the declaration.
 */
export function validate(entity: Entity, input: unknown, held: Values = {}): Values {
  checkFields(input);
  const fields = Object.keys(held);
  const optional = Object.keys(entity.defaults);
  const parseAs = (form: string, build: typeof creatableSchema) =>
    parseFields(entity, input, [form, fields], () => withOptional(entity, build(entity, fields), optional));
  const written = parseAs('writable', writableSchema);
  // Only the schema of the union knows the fields and defaults of each kind.
  const whole = entity.union ? parseAs('creatable', creatableSchema) : written;
  const given: Values = { ...whole, ...held };
  const values = optional.length > 0 ? withDefaults(entity, given, fields) : given;
  const all = withDerived(entity, values);
  // Functions of the app compute derived fields and some defaults.
  if (values !== given || Object.keys(entity.derived).length > 0) checkFields(omit(all, fields));
  for (const field of entity.keyFields)
    if (!(field in held) || field in entity.derived) checkKeyText(field, all[field]);
  return all;
}

/** Throws `invalid-input` for fields that JSON cannot hold. The schema must not get them: it would overflow the stack, or drop members. */
export function checkFields(fields: unknown): void {
  checkJson(fields, MAX_JSON_DEPTH + 1);
}

/** The values with the defaults of fields that they lack, but for the `held` ones. They are computed from the fields that callers write. */
function withDefaults(entity: Entity, values: Values, held: readonly string[]): Values {
  const absent = Object.entries(entity.defaults).filter(
    ([field]) => values[field] === undefined && !held.includes(field),
  );
  if (absent.length === 0) return values;
  const given = omit(values, entity.decidedFields);
  const computed = mapValues(Object.fromEntries(absent), (compute, field) =>
    callApp(`The default of "${field}" of ${entity.name}`, () => compute(given)),
  );
  checkComputed(entity, computed, 'default of the field');
  return { ...values, ...validateRequired(entity, computed, Object.keys(computed)) };
}

/**
 * Throws `wrong-operation` for a computed value of another type: no value of a caller has made it so. Numbers of a caller may have made
 * one that is not finite, which `checkFields` rejects.
 */
function checkComputed(entity: Entity, computed: Values, what: string): void {
  for (const [field, value] of Object.entries(computed))
    if (hasValue(value) && (typeof value !== 'number' || Number.isFinite(value)) && !fitsColumn(entity, field, value))
      throw new RowkeyError('wrong-operation', `The ${what} "${field}" of ${entity.name} has a value of another type.`);
}

/** The values with the derived fields, which follow from the fields that callers write. Throws `wrong-operation` for a mistake of their functions. */
export function withDerived(entity: Entity, values: Values): Values {
  const given = omit(values, entity.decidedFields);
  const derived = Object.entries(entity.derived).map(([field, derive]) => {
    return [field, callApp(`The derived field "${field}" of ${entity.name}`, () => derive(given))] as const;
  });
  checkComputed(entity, Object.fromEntries(derived), 'derived field');
  const kept = omit(values, Object.keys(entity.derived));
  const present = Object.fromEntries(derived.filter(([, value]) => value !== undefined));
  return { ...kept, ...withCanonicalTexts(entity, present) };
}

/**
 * The messages of the checks that an entity with these values fails. Its functions see what every write has read, and no ciphertext or reference
 * to a blob. Throws `wrong-operation` for a mistake of one.
 */
export function failedChecks(entity: Entity, values: Values): string[] {
  const { decidedFields, referenceFields, attachments, split } = entity;
  const checks = Object.entries(entity.checks);
  if (checks.length === 0) return [];
  const hidden = [...decidedFields, ...referenceFields, ...Object.keys(attachments), ...Object.values(split).flat()];
  const given = omit(values, hidden);
  return checks.flatMap(([message, check]) => {
    const what = `The check ${JSON.stringify(message)} of ${entity.name}`;
    const isPassed: unknown = callApp(what, () => check(given as never));
    if (typeof isPassed !== 'boolean')
      throw new RowkeyError('wrong-operation', `${what} returned neither true nor false.`);
    return isPassed ? [] : [message];
  });
}

/** Also an operation of the app tells its caller of it: the message is a constant, and the check is there for what callers send. */
export class CheckFailed extends RowkeyError {}

/** Throws `invalid-input` for values that fail a check of the declaration, and `wrong-operation` for a mistake of its function. */
export function checkTogether(entity: Entity, values: Values): void {
  const failed = failedChecks(entity, values);
  if (failed.length > 0) throw new CheckFailed('invalid-input', `The entity is not valid: ${failed.join('; ')}.`);
}

/** Validates some fields of an entity, which must not be removed. Throws `invalid-input`. */
export function validateFields(entity: Entity, given: Values): Values {
  checkFields(given);
  const parsed = parseFields(entity, given, ['partial', []], () => writableSchema(entity).partial());
  // The schema of an absent field may have a default.
  return pick(parsed, Object.keys(given));
}

/** Validates the fields of a key within a body. Throws `invalid-input`. */
export function validateKey(entity: Entity, input: unknown): Values {
  const { keyFields } = entity;
  const isObject = typeof input === 'object' && input !== null && !Array.isArray(input);
  const given = isObject ? pick({ ...input }, keyFields) : input;
  const key = parseFields(entity, given, ['key', []], () => entity.schema.pick(maskOf(keyFields)).required());
  checkFields(key);
  for (const [field, value] of Object.entries(key)) checkKeyText(field, value);
  return key;
}

/**
 * Clients remove a dot segment from a path, the host cannot distinguish an encoded `%2F` from an encoded slash, and it rejects a path
 * with a NUL.
 */
const LOST_IN_PATHS = /^\.{1,2}$|%2f|\0/i;

/** Throws `invalid-input` for a text that storage, or with `isKey` a path, cannot contain. */
export function checkText(field: string, value: unknown, isKey: boolean): void {
  checkFields({ [field]: value });
  if (isKey) checkKeyText(field, value);
}

function checkKeyText(field: string, value: unknown): void {
  if (typeof value !== 'string' || !LOST_IN_PATHS.test(value)) return;
  const accepted = 'a text that a path can contain: not . or .., and without %2F and NUL';
  throw new RowkeyError('invalid-input', `"${field}" must be ${accepted}.`, { field, accepted });
}

/** Validates fields that arrive as texts, in a path or a query. Throws `invalid-input`, which names the field. */
export function validateTexts(
  entity: Entity,
  texts: Readonly<Record<string, string | undefined>>,
  fields: readonly string[],
): Values {
  const typed: Record<string, unknown> = {};
  for (const field of fields) typed[field] = textToValue(entity, field, texts[field]);
  const values: Record<string, unknown> = { ...validateRequired(entity, typed, fields) };
  // A text for a list field is one element of the list, for an index of list elements.
  for (const [field, value] of Object.entries(values)) if (Array.isArray(value)) values[field] = value[0];
  return values;
}

/** Schemas of one entity at a time; a caller chooses the fields of some of them. */
const MAX_COMPILED = 100;

const compiledOf = recentFor<Entity, z.ZodType>(MAX_COMPILED);

/** Returns the schema of these fields from memory after the first time, because building and compiling a schema takes longer than validating with it. */
export function compileOnce<Schema extends z.ZodType>(
  entity: Entity,
  form: string,
  fields: readonly string[],
  build: () => Schema,
): Schema {
  const schemas = compiledOf(entity);
  const id = JSON.stringify([form, ...fields]);
  const known = schemas.get(id) as Schema | undefined;
  if (known) return known;
  const schema = build();
  schemas.set(id, schema);
  return schema;
}

/** Validates some fields, all of them required. Throws `invalid-input`, which names the field. */
export function validateRequired(entity: Entity, values: Values, fields: readonly string[]): Values {
  return parseFields(entity, values, ['texts', fields], () => entity.schema.pick(maskOf(fields)).required());
}

function parseFields(
  entity: Entity,
  input: unknown,
  [form, fields]: readonly [form: string, fields: readonly string[]],
  build: () => z.ZodType,
): Values {
  const parsed = parse(compileOnce(entity, form, fields, build), input, `A check of the schema of ${entity.name}`);
  return withCanonicalTexts(entity, parsed as Values);
}

/** Validates `input` against any schema. Throws `invalid-input`, and `wrong-operation` if a check of the schema throws. */
export function parse<Schema extends z.ZodType>(
  schema: Schema,
  input: unknown,
  check = 'A check of a schema',
): z.output<Schema> {
  const parsed = callApp(check, () => schema.safeParse(input));
  if (parsed.success) return parsed.data;
  const all = describeIssues(parsed.error, input, () => NO_SUCH_FIELD);
  // The caller controls the number of errors and the length of unknown field names.
  const errors = all.slice(0, MAX_ERRORS).map(({ field, message }) => {
    return { field: shortened(field, MAX_FIELD_LENGTH), message: shortened(message, MAX_MESSAGE_LENGTH) };
  });
  const [first] = errors;
  const field = first?.field ? { field: first.field } : {};
  const subject = first?.field ? `"${first.field}"` : 'The body';
  const more = all.length > MAX_ERRORS ? ` The first ${MAX_ERRORS} of ${all.length} errors are listed.` : '';
  const message = `${subject} ${first?.message}.${more}`;
  throw new RowkeyError('invalid-input', message, { ...field, errors });
}

const NO_SUCH_FIELD = 'does not exist or cannot be written';

/** Limits the number of errors in a response, and the length of each. */
const MAX_ERRORS = 20;
const MAX_FIELD_LENGTH = 100;
const MAX_MESSAGE_LENGTH = 300;

function shortened(text: string, length: number): string {
  // Half of a surrogate pair cannot be sent.
  return text.length <= length ? text : `${text.slice(0, length).toWellFormed()}…`;
}

/** A number as in JSON. `Number` also accepts a blank and hexadecimal digits. */
const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;

/** The value that a text in a path or a query stands for. A text that does not match the type stays a text, for the schema to reject. */
export function textToValue(entity: Entity, field: string, text: string | undefined): unknown {
  const type = entity.columns[field];
  if (text === undefined || type === 'String') return text;
  if (type === 'Json') return [text];
  if (type === 'Boolean') return /^(true|false)$/.test(text) ? text === 'true' : text;
  return NUMBER.test(text) && isHeld(text) ? Number(text) : text;
}
