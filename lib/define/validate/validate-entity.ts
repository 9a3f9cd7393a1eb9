import type { z } from 'zod';
import type { DeclaredEntity } from '../declaration/declaration.ts';
import { forbiddenInKeys, type KeyTemplate, type Part } from '../keys/key-template.ts';
import { indexKeyFields, isUnique } from '../places/index-entries.ts';
import {
  type FieldSchema,
  fieldSchemas,
  isInstant,
  isOptional,
  keepsValues,
  patternsIn,
} from '../schema/field-schema.ts';
import { isSlow } from '../schema/slow-pattern.ts';
import { appendErrors } from './append-only.ts';
import { VerifiedBy } from './malformed-terms.ts';

/** https://learn.microsoft.com/rest/api/storageservices/understanding-the-table-service-data-model; a period adds up to 8 digits. */
const TABLE_NAME = /^[a-z][a-z0-9]{2,54}$/;
/** Names of the service ignore case, and the emulator needs the case of the creation. */
const EXISTING_TABLE_NAME = /^[A-Za-z][A-Za-z0-9]{2,62}$/;
/** Part of a path and of function names, which ignore case. */
const ENTITY_NAME = /^[a-z][a-z0-9]{0,59}$/;
const INDEX_NAME = /^[a-z][A-Za-z0-9]{0,49}$/;
const FIELD_NAME = /^[a-z][A-Za-z0-9_]{0,199}$/;
/** The tables SDK reserves these names. */
const SDK_NAMES = ['partitionKey', 'rowKey', 'timestamp', 'etag'];
/** Every plain object inherits these members, so an absent field of such a name would seem to be present. */
const INHERITED_NAMES = Object.getOwnPropertyNames(Object.prototype);
/** The service allows 252 properties. The rest is for system properties. */
const MAX_FIELDS = 240;
/** Several rows hold more. The limit bounds the time of validation and the size of the API's description. */
const MAX_WIDE_FIELDS = 2_000;
/** One byte of a hash chooses the bucket. */
const MAX_BUCKETS = 256;
/** The number of digits of the largest integer that JavaScript represents exactly. */
const MAX_WIDTH = 16;
/** The issuer assigns these claims, and users cannot choose them: `sub` in OpenID Connect, `oid` in Entra ID. */
export const ISSUED_CLAIMS = ['oid', 'sub'];
/** https://openid.net/specs/openid-connect-core-1_0.html#IDToken. The others are GUIDs, or are compared as the schema says. */
const CASE_SENSITIVE_CLAIM = 'sub';
/**
 * Lists the errors of one declaration, independent of its patterns. `validateModel` checks patterns and whatever needs the
 * whole model.
 */
export function validationErrors(entity: DeclaredEntity): string[] {
  const checks = [
    nameErrors(entity),
    keyErrors(entity),
    patternErrors(entity),
    namedFieldErrors(entity),
    versionErrors(entity),
    accessErrors(entity),
    labelErrors(entity),
    archiveErrors(entity),
    sharedTableErrors(entity),
    indexErrors(entity),
  ];
  const errors = checks.flatMap((found) => [...found]);
  // Only the fields of valid keys are known.
  return errors.length > 0 ? errors : [...appendErrors(entity)];
}

/** Yields an error for each name that every plain object inherits. */
export function* inheritedNameErrors(what: string, names: readonly string[]): Generator<string> {
  for (const name of names)
    if (INHERITED_NAMES.includes(name))
      yield `the ${what} name "${name}" is a member of every JavaScript object. Choose a name other than ${INHERITED_NAMES.join(', ')}.`;
}

function* nameErrors(entity: DeclaredEntity): Generator<string> {
  if (!ENTITY_NAME.test(entity.name))
    yield `the name is not accepted. Use 1 to 60 lower-case letters and digits, a letter first.`;
  const archive = entity.archive ? [entity.archive.table] : [];
  const totals = Object.values(entity.totals).map(({ table }) => table);
  const indexes = Object.values(entity.indexes).flatMap(({ remote }) => remote?.table ?? []);
  const expiry = entity.expiry?.table === undefined ? [] : [entity.expiry.table];
  for (const table of [entity.table, ...archive, ...indexes, ...totals, ...expiry])
    if (!(entity.existing && table === entity.table ? EXISTING_TABLE_NAME : TABLE_NAME).test(table))
      yield `the table name "${table}" is not accepted. Use 3 to 55 lower-case letters and digits, a letter first.`;
  yield* inheritedNameErrors('entity', [entity.name]);
  yield* inheritedNameErrors('archive', archive);
  const indexNames = [...Object.keys(entity.indexes), ...Object.keys(entity.totals)];
  yield* inheritedNameErrors('index', indexNames);
  // Includes attachments.
  yield* inheritedNameErrors('field', Object.keys(entity.schema.shape));
  for (const index of indexNames)
    if (!INDEX_NAME.test(index))
      yield `the index name "${index}" is not accepted. Use 1 to 50 letters and digits, a lower-case letter first.`;
  for (const field of Object.keys(entity.schema.shape)) {
    if (!FIELD_NAME.test(field))
      yield `the field name "${field}" is not accepted. Use letters, digits and _, a lower-case letter first.`;
    if (SDK_NAMES.includes(field))
      yield `the field name "${field}" is reserved by the tables SDK. Choose a name other than ${SDK_NAMES.join(', ')}.`;
  }
  const fields = Object.keys(entity.schema.shape).length;
  if (fields > MAX_FIELDS && !entity.wide)
    yield `the schema has more than ${MAX_FIELDS} fields, which one row cannot hold. Declare the entity wide, or as a data series (defineSeries) if the fields are counts.`;
  if (fields > MAX_WIDE_FIELDS)
    yield `the schema has ${fields} fields. Use at most ${MAX_WIDE_FIELDS}, even in a wide entity.`;
}

function* keyErrors(entity: DeclaredEntity): Generator<string> {
  const { partition, row, movable, keyFields, schema, derived } = entity;
  if (keyFields.length === 0) yield 'the key has no field. Add one to its partition or row template.';
  yield* templateErrors(entity, 'the partition key', partition);
  yield* templateErrors(entity, 'the row key', row);
  if ([...partition.parts, ...row.parts].some(({ each }) => each))
    yield 'the key has a list in it. Use {field[]} in an inter-partition index only.';
  for (const field of keyFields) {
    if (!Object.hasOwn(derived, field) && isOptional(schema, field))
      yield `the key field "${field}" is optional, and an entity without it has no key. Make it required, or give it a default.`;
    if (![...partition.readable, ...row.readable].includes(field))
      yield `the key has the field "${field}" only as a hash, so two entities could get one key. Add it to the key as it is, too.`;
  }
  yield* formerKeyErrors(entity);
  for (const field of movable)
    if (!partition.fields.includes(field))
      yield `"${field}" is movable and is not in the partition key. Remove it from movable, or add it to the partition key.`;
    else if (Object.hasOwn(derived, field))
      yield `"${field}" is movable and derived from other fields. Remove it from movable, and name the fields of the partition key that it is derived from.`;
}

/** The same fields give an entity one address under each key, so it has both or none, and the way back is as the way there. */
function* formerKeyErrors(entity: DeclaredEntity): Generator<string> {
  const { formerKey, partition, row, keyFields, movable } = entity;
  if (!formerKey) return;
  yield* templateErrors(entity, 'the former partition key', formerKey.partition);
  yield* templateErrors(entity, 'the former row key', formerKey.row);
  if (formerKey.partition.template === partition.template && formerKey.row.template === row.template)
    yield 'the former key is the key. Remove key.former.';
  for (const field of movable)
    if (!formerKey.partition.fields.includes(field))
      yield `"${field}" is movable and is not in the former partition key. Remove it from movable until the entities have their new key.`;
  const readable = [...formerKey.partition.readable, ...formerKey.row.readable];
  const used = [...formerKey.partition.fields, ...formerKey.row.fields];
  const other = [
    ...keyFields.filter((field) => !readable.includes(field)),
    ...used.filter((field) => !keyFields.includes(field)),
  ];
  if (other.length > 0)
    yield `the key and the former key differ in the fields ${[...new Set(other)].join(', ')}. Only a key of the same fields can be moved: export, purge and import the entities instead.`;
}

/** Yields the errors of a key, or of the key of an index. */
function* templateErrors(
  { schema }: DeclaredEntity,
  what: string,
  template: KeyTemplate,
  { isTotal = false } = {},
): Generator<string> {
  if (template.template === '') yield `${what} is empty. Add text or a field.`;
  const literals = [template.head, ...template.parts.map(({ after }) => after)].join('');
  const forbidden = [...literals].find((character) => character !== '!' && forbiddenInKeys(character));
  if (forbidden)
    yield `${what} has the character ${JSON.stringify(forbidden)} between its fields. Use none of / \\ # ? % and no control characters.`;
  const fields = fieldSchemas(schema);
  for (const part of template.parts) {
    const problem = partProblem(part, fields[part.field], isTotal);
    if (problem) yield `${what} has the field "${part.field}", ${problem}`;
  }
  const lists = new Set(template.parts.filter(({ each }) => each).map(({ field }) => field));
  if (lists.size > 1) yield `${what} has several lists (${[...lists].join(', ')}). Keep one of them.`;
}

function partProblem(part: Part, field: FieldSchema | undefined, isTotal: boolean): string | undefined {
  if (!field) return 'which the schema does not have. Add it to the schema, or correct the name.';
  const { keyType: type } = field;
  if (part.each)
    return type === 'array' && field.elements === 'string'
      ? undefined
      : 'which is not a list of texts. Declare it as z.array(z.string()), or remove [].';
  if (part.width !== undefined) {
    if (part.width < 1 || part.width > MAX_WIDTH) return `whose width is ${part.width}. Use 1 to ${MAX_WIDTH} digits.`;
    return type === 'integer'
      ? undefined
      : 'which has a width and is not a whole number. Declare it as z.int32() or z.int(), or remove the width.';
  }
  if (part.buckets !== undefined && (part.buckets < 1 || part.buckets > MAX_BUCKETS))
    return `in ${part.buckets} buckets. Use 1 to ${MAX_BUCKETS}.`;
  if (part.unit && !isTotal) return `of which only totals take the ${part.unit}. Use the field as it is.`;
  if (part.unit)
    return isInstant(field) ? undefined : `which has no ${part.unit}. Declare it as z.iso.date() or z.iso.datetime().`;
  if (part.newestFirst)
    return isInstant(field) ? undefined : 'which is not an instant. Declare it as z.iso.datetime(), or remove ~.';
  if (type === 'string' || type === 'integer' || type === 'number') return undefined;
  return 'which is neither a text nor a number. Use a field that is.';
}

/** Any caller who may read the entity reaches its patterns, by a filter or a key. */
function* patternErrors({ schema }: DeclaredEntity): Generator<string> {
  for (const [field, type] of Object.entries<z.ZodType>(schema.shape))
    for (const pattern of patternsIn(type))
      if (isSlow(pattern))
        yield `the field "${field}" has the pattern ${pattern}, whose evaluation may take exponential time. Let a repeated group match each text in one way only, such as ^[a-z]+(-[a-z]+)*$, and contain no backreference.`;
}

function* namedFieldErrors(entity: DeclaredEntity): Generator<string> {
  const { derived, defaults, denormalized, references, columns, schema } = entity;
  const copies = Object.values(denormalized).map((link) => ['copies', link.copies] as const);
  const named = [
    ['derived', derived],
    ['defaults', defaults],
    ['denormalized', denormalized],
    ['references', references],
    ...copies,
  ] as const;
  for (const [what, fields] of named)
    for (const field of Object.keys(fields))
      if (!Object.hasOwn(columns, field))
        yield `${what} names the field "${field}", which the schema does not have. Add it to the schema, or correct the name.`;
  for (const field of Object.keys(defaults).filter((name) => Object.hasOwn(columns, name)))
    if (isOptional(schema, field))
      yield `defaults names the field "${field}", which is optional, also in some kinds only. Declare it as required: a write may leave it out.`;
    else if (schema.shape[field]?.safeParse(undefined).success)
      yield `defaults names the field "${field}", which has a default in the schema. Remove one of them.`;
}

function* versionErrors({ version, upgrades, maxAge }: DeclaredEntity): Generator<string> {
  if (!Number.isInteger(version) || version < 1) yield `version is ${version}. Use a whole number from 1.`;
  for (let from = 1; from < version; from += 1)
    if (!Object.hasOwn(upgrades, from)) yield `nothing upgrades version ${from}. Add a function for it to upgrades.`;
  for (const from of Object.keys(upgrades))
    if (!(Number(from) >= 1 && Number(from) < version))
      yield `upgrades has a function for version ${from}, which is not before version ${version}. Increase version, or remove the function.`;
  if (maxAge !== undefined && !(Number.isInteger(maxAge) && maxAge >= 1))
    yield `maxAge is ${maxAge}. Use a whole number of seconds from 1.`;
}

/** The description of the model is public, and every list of rows has their labels. */
function* labelErrors({ label, columns, encrypted, large, split, access }: DeclaredEntity): Generator<string> {
  if (label === undefined) return;
  const apart: readonly string[] = [...large, ...Object.values(split).flat()];
  if (!Object.hasOwn(columns, label))
    yield `label names the field "${label}", which the schema does not have. Add it to the schema, or correct the name.`;
  else if (columns[label] !== 'String')
    yield `the label "${label}" is no text. Name a text, such as a name or a title.`;
  else if (encrypted.includes(label) || apart.includes(label))
    yield `the label "${label}" is ${apart.includes(label) ? 'large or in a split' : 'encrypted'}, so lists are without it. Name another text.`;
  else if (Object.hasOwn(access.restricted ?? {}, label))
    yield `the label "${label}" is restricted, and labels are for all who read the entity. Name another text, or remove it from access.restricted.`;
}

function* accessErrors(entity: DeclaredEntity): Generator<string> {
  const { keyFields, indexes, counts, denormalized } = entity;
  const { own, write, restricted = {}, discloses = [] } = entity.access;
  for (const field of keyFields)
    if (Object.hasOwn(restricted, field))
      yield `the restricted field "${field}" is part of the key, which every path shows. Remove it from access.restricted.`;
  for (const [field, roles] of Object.entries<readonly string[] | undefined>(restricted))
    if (!write.every((role) => roles?.includes(role)))
      yield `roles that write must be able to read the restricted field "${field}". Add ${write.filter((role) => !roles?.includes(role)).join(', ')} to its roles.`;
  for (const field of Object.keys(restricted))
    if (!Object.hasOwn(entity.columns, field))
      yield `access.restricted names the field "${field}", which the schema does not have. Add it to the schema, or correct the name.`;
  const copied = Object.values(denormalized).flatMap(({ copies }) => Object.keys(copies));
  for (const field of discloses)
    if (!copied.includes(field) && !Object.hasOwn(counts, field))
      yield `access.discloses names "${field}", which is neither a copy nor a count, and so shows nothing of other entities. Remove it.`;
  if (own && 'through' in own) yield* grantErrors(entity, own);
  if (own && 'index' in own) {
    if (own.verifiedBy && !VerifiedBy.safeParse(own.verifiedBy).success)
      yield `access.own has verifiedBy, which needs a list of accepted values by the name of each claim, such as { verified: [true] }.`;
    if (!own.verifiedBy && !ISSUED_CLAIMS.includes(own.claim))
      yield `access.own trusts the claim "${own.claim}", which the issuer may not have verified. Name the claims that say so in verifiedBy, or set it to {} if the issuer verifies every value. ${ISSUED_CLAIMS.join(' and ')} need none.`;
    const index = Object.hasOwn(indexes, own.index) ? indexes[own.index] : undefined;
    if (!index)
      yield `access.own names the index "${own.index}", which is not declared. Name a unique index of one field.`;
    else if (!isUnique(index) || indexKeyFields(index).length !== 1)
      yield `access.own names the index "${own.index}", which may lead to several entities. Name a unique index of one field.`;
    else if (own.claim === CASE_SENSITIVE_CLAIM)
      for (const field of indexKeyFields(index))
        if (!keepsExactly(entity, field))
          yield `access.own finds the entity by the claim "${own.claim}" in "${field}", whose schema may store two claims as one value, so one caller would be the other. Remove toLowerCase, trim, transform, catch and default from it.`;
  }
}

/** An archive may leave out what nothing else of it needs. */
function* archiveErrors(entity: DeclaredEntity): Generator<string> {
  const { archive, keyFields, access, counts, references, denormalized, expiry, split, union } = entity;
  const without = archive?.without ?? [];
  if (without.length === 0) return;
  for (const [what, isUsed] of [
    ['of several kinds', union !== undefined],
    ['with copied fields (denormalized)', Object.keys(denormalized).length > 0],
    ['with groups of fields (split)', Object.keys(split).length > 0],
  ] as const)
    if (isUsed) yield `archive.without is not possible for an entity ${what}. Remove without.`;
  const rules = [...Object.values(access.rules ?? {}), ...Object.values(access.unveiled ?? {})].flat();
  const needed = new Map([
    ...keyFields.map((field) => [field, 'the key'] as const),
    ...rules.flatMap(({ where = {} }) => Object.keys(where).map((field) => [field, 'a rule of access'] as const)),
    ...Object.keys(access.set ?? {}).map((field) => [field, 'access.set'] as const),
    ...Object.keys(counts).map((field) => [field, 'counts'] as const),
    ...Object.keys(references).map((field) => [field, 'references'] as const),
    ...Object.values(expiry ?? {}).map((field) => [String(field), 'expiry'] as const),
  ]);
  for (const field of without)
    if (!Object.hasOwn(entity.columns, field))
      yield `archive.without names "${field}", which is neither a field of the schema nor a file. Correct the name.`;
    else if (needed.has(field))
      yield `archive.without names the field "${field}", which ${needed.get(field)} needs. Remove it from without.`;
}

/** True if different values of the field stay different when they are stored. */
export function keepsExactly({ schema, derived, defaults }: DeclaredEntity, field: string): boolean {
  return ![derived, defaults].some((computed) => Object.hasOwn(computed, field)) && keepsValues(schema, field);
}

/** A granted partition must belong to one entity, otherwise its holder could read rows of another entity. */
function* grantErrors(
  entity: DeclaredEntity,
  { through, permissions }: { readonly through: DeclaredEntity; readonly permissions: string },
): Generator<string> {
  const { partition } = entity;
  if (!/^(?=.)r?a?u?d?$/.test(permissions))
    yield `access.own has the permissions "${permissions}". Use some of raud, in this order.`;
  if (!through.access.own || 'through' in through.access.own)
    yield `access.own goes through "${through.name}", of which no caller has one. Give that entity access.own with a claim and an index.`;
  if (partition.fields.length === 0)
    yield "access.own grants the partition, which has no field, so it is everybody's. Add a field to the partition key.";
  const stranger = partition.fields.find((field) => !Object.hasOwn(through.columns, field));
  if (stranger) {
    yield `access.own grants the partition by "${stranger}", which "${through.name}" does not have. Use only its fields in the partition key.`;
    return;
  }
  const changed = partition.fields.find((field) => !keepsExactly(entity, field));
  if (changed !== undefined)
    yield `access.own grants the partition by "${changed}", whose schema may store the values of two of "${through.name}" as one, so one could open the other's. Remove toLowerCase, trim, transform, catch, default and derived from it; "${through.name}" may have them.`;
  const given = partition.readable;
  const isGiven = (fields: readonly string[]) => fields.every((field) => given.includes(field));
  const indexes = Object.values(through.indexes).filter((index) => isUnique(index) && !index.when);
  if (
    partition.fields.length > 0 &&
    !isGiven(through.keyFields) &&
    !indexes.some((index) => isGiven(indexKeyFields(index)))
  )
    yield `access.own grants the partition by ${partition.fields.join(', ')}, which two of "${through.name}" may share, so one could open the other's. Declare a unique inter-partition index of ${partition.fields.join(', ')} in "${through.name}", without a condition.`;
}

/** Nothing may be put, dropped or written by clients in a table of several programs without a look at whose the rows are. */
function* sharedTableErrors({ sharedTable, period, access: { own } }: DeclaredEntity): Generator<string> {
  if (!sharedTable) return;
  if (period)
    yield 'an entity with a period cannot have sharedTable, because its tables are dropped as a whole. Remove one of them.';
  if (own && 'through' in own && /[aud]/.test(own.permissions))
    yield `an entity that clients write with a grant cannot have sharedTable, because their rows cannot be told from those of other programs. Remove sharedTable, or leave "r" in the permissions of access.own.`;
}

function* indexErrors(entity: DeclaredEntity): Generator<string> {
  for (const [name, { remote, row, uses }] of Object.entries(entity.indexes)) {
    if (remote) yield* templateErrors(entity, `the partition key of the index "${name}"`, remote.partition);
    yield* templateErrors(entity, `the row key of the index "${name}"`, row);
    for (const field of uses)
      if (
        !Object.hasOwn(entity.columns, field) &&
        ![...row.fields, ...(remote?.partition.fields ?? [])].includes(field)
      )
        yield `the index "${name}" copies or holds "${field}", which the schema does not have. Add it to the schema, or correct the name.`;
  }
  for (const [name, { partition, row }] of Object.entries(entity.totals)) {
    yield* templateErrors(entity, `the partition key of the totals "${name}"`, partition, { isTotal: true });
    yield* templateErrors(entity, `the row key of the totals "${name}"`, row, { isTotal: true });
  }
}
