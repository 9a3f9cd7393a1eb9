import { supportedMimeTypes } from 'file-type';
import type { z } from 'zod';
import { type DeclaredEntity, isOneRow, isWrittenByClients } from '../entity.ts';
import type { Index } from '../indexes.ts';
import { CALENDAR_UNITS } from '../keys/calendar.ts';
import { indexTables, isUnique } from '../keys/index-entries.ts';
import { forbiddenInKeys, type KeyTemplate, type Part } from '../keys/key-template.ts';
import { type FieldSchema, fieldSchemas, isOptional } from './field-schema.ts';

/** https://learn.microsoft.com/rest/api/storageservices/understanding-the-table-service-data-model; a period adds up to 8 digits. */
const TABLE_NAME = /^[a-z][a-z0-9]{2,54}$/;
/** https://learn.microsoft.com/rest/api/storageservices/naming-and-referencing-containers--blobs--and-metadata */
const CONTAINER_NAME = /^(?=.{3,63}$)[a-z0-9]+(-[a-z0-9]+)*$/;
/** Part of a path and of the names of functions, which are compared without regard to case. */
const ENTITY_NAME = /^[a-z][a-z0-9]{0,59}$/;
const INDEX_NAME = /^[a-z][A-Za-z0-9]{0,49}$/;
const FIELD_NAME = /^[a-z][A-Za-z0-9_]{0,199}$/;
/** The tables SDK gives these names a meaning of their own. */
const SDK_NAMES = ['partitionKey', 'rowKey', 'timestamp', 'etag'];
/** Every plain object has these members, so values that callers send would seem to have fields of these names. */
const INHERITED_NAMES = Object.getOwnPropertyNames(Object.prototype);
/** The service allows 252 properties; the engine has some of its own. */
const MAX_FIELDS = 240;
/** The Functions host accepts no larger body. */
const MAX_FILE_BYTES = 104_857_600;
/** A hundred years. */
const MAX_KEEP = { day: 36_500, month: 1_200, year: 100 };
/** One byte of a hash chooses the bucket. */
const MAX_BUCKETS = 256;
/** The largest whole number that JavaScript holds exactly has so many digits. */
const MAX_WIDTH = 16;
/** The issuer makes these up, and nobody chooses them: `sub` by OpenID Connect, `oid` at Entra ID. */
const ISSUED_CLAIMS = ['oid', 'sub'];
/** A text that begins with its day. */
const DAY_FIRST = '^\\d{4}-\\d{2}-\\d{2}';

/** Everything that is wrong with one declaration, a sentence each. What needs the whole model is checked by `validateModel`. */
export function validationErrors(entity: DeclaredEntity, declared: z.ZodObject): string[] {
  const checks = [
    nameErrors(entity, declared),
    keyErrors(entity),
    periodErrors(entity),
    fieldErrors(entity),
    attachmentErrors(entity),
    accessErrors(entity),
    indexErrors(entity),
    childErrors(entity),
    countErrors(entity),
    copyErrors(entity),
  ];
  return checks.flatMap((errors) => [...errors]).map((error) => `Entity "${entity.name}": ${error}`);
}

/** What is wrong with a declared name that every plain object has as a member, or nothing. */
export function* inheritedNameErrors(what: string, names: readonly string[]): Generator<string> {
  for (const name of names)
    if (INHERITED_NAMES.includes(name))
      yield `the ${what} name "${name}" is a member of every JavaScript object; every name but ${INHERITED_NAMES.join(', ')} is accepted.`;
}

function* nameErrors(entity: DeclaredEntity, declared: z.ZodObject): Generator<string> {
  if (!ENTITY_NAME.test(entity.name))
    yield `the name is not accepted; a name is 1 to 60 lower-case letters and digits and begins with a letter.`;
  const archive = entity.archive ? [entity.archive.table] : [];
  for (const table of [entity.table, ...archive, ...indexTables(entity)])
    if (!TABLE_NAME.test(table))
      yield `the table name "${table}" is not accepted; a table name is 3 to 55 lower-case letters and digits and begins with a letter.`;
  yield* inheritedNameErrors('entity', [entity.name]);
  yield* inheritedNameErrors('archive', archive);
  yield* inheritedNameErrors('index', Object.keys(entity.indexes));
  // Attachments are among them.
  yield* inheritedNameErrors('field', Object.keys(entity.schema.shape));
  for (const index of Object.keys(entity.indexes))
    if (!INDEX_NAME.test(index))
      yield `the index name "${index}" is not accepted; an index name is 1 to 50 letters and digits and begins with a lower-case letter.`;
  for (const field of Object.keys(entity.schema.shape)) {
    if (!FIELD_NAME.test(field))
      yield `the field name "${field}" is not accepted; a field name is letters, digits and _, and begins with a lower-case letter.`;
    if (SDK_NAMES.includes(field))
      yield `the field name "${field}" is reserved by the tables SDK; every name but ${SDK_NAMES.join(', ')} is accepted.`;
  }
  if (Object.keys(entity.schema.shape).length > MAX_FIELDS)
    yield `the schema has more than ${MAX_FIELDS} fields, which one row cannot hold; a data series (defineSeries) spreads more over several rows.`;
  for (const field of Object.keys(entity.attachments))
    if (Object.hasOwn(declared.shape, field))
      yield `the attachment "${field}" has the name of a field of the schema; it needs a name of its own.`;
}

function* keyErrors(entity: DeclaredEntity): Generator<string> {
  const { partition, row, movable, keyFields, schema, derived, large, encrypted, counts } = entity;
  if (keyFields.length === 0) yield 'the key has no field; its partition or row template needs at least one.';
  yield* templateErrors(entity, 'the partition key', partition);
  yield* templateErrors(entity, 'the row key', row);
  if ([...partition.parts, ...row.parts].some(({ each }) => each))
    yield 'the key has a list in it; {field[]} is accepted in an inter-partition index only.';
  const copied = copiedFields(entity);
  for (const field of keyFields) {
    if (!Object.hasOwn(derived, field) && isOptional(schema, field))
      yield `the key field "${field}" is optional, and an entity without it has no key; it must be required or have a default.`;
    if (![...partition.readable, ...row.readable].includes(field))
      yield `the key has the field "${field}" only as a hash, so two entities could get one key; it must be in the key as it is, too.`;
    if (large.includes(field)) yield `the key field "${field}" is large; a key is at most 512 characters.`;
    if (encrypted.includes(field)) yield `the key field "${field}" is encrypted, and keys are stored in plain text.`;
    if (copied.includes(field) || Object.hasOwn(counts, field))
      yield `the key field "${field}" is set by the engine when another entity changes; a key never changes that way.`;
  }
  for (const field of movable)
    if (!partition.fields.includes(field))
      yield `"${field}" is movable and is not in the partition key; a move changes fields of the partition key.`;
}

/** What a key, or the key of an index, cannot be made of. */
function* templateErrors({ schema }: DeclaredEntity, what: string, template: KeyTemplate): Generator<string> {
  if (template.template === '') yield `${what} is empty; it needs text or a field.`;
  const literals = [template.head, ...template.parts.map(({ after }) => after)].join('');
  const forbidden = [...literals].find((character) => character !== '!' && forbiddenInKeys(character));
  if (forbidden)
    yield `${what} has the character ${JSON.stringify(forbidden)} between its fields; / \\ # ? % and control characters are not accepted in keys.`;
  const fields = fieldSchemas(schema);
  for (const part of template.parts) {
    const problem = partProblem(part, fields[part.field]);
    if (problem) yield `${what} has the field "${part.field}", ${problem}`;
  }
  const lists = new Set(template.parts.filter(({ each }) => each).map(({ field }) => field));
  if (lists.size > 1) yield `${what} has several lists (${[...lists].join(', ')}); one is accepted.`;
}

function partProblem(part: Part, field: FieldSchema | undefined): string | undefined {
  if (!field) return 'which the schema does not have.';
  const { keyType: type } = field;
  if (part.each)
    return type === 'array' && field.elements === 'string'
      ? undefined
      : 'of which {…[]} needs a list of texts (z.array(z.string())).';
  if (part.width !== undefined) {
    if (part.width < 1 || part.width > MAX_WIDTH)
      return `whose width is ${part.width}; 1 to ${MAX_WIDTH} digits are accepted.`;
    return type === 'integer' ? undefined : 'which has a width and is not a whole number (z.int32() or z.int()).';
  }
  if (part.buckets !== undefined && (part.buckets < 1 || part.buckets > MAX_BUCKETS))
    return `in ${part.buckets} buckets; 1 to ${MAX_BUCKETS} are accepted.`;
  if (part.newestFirst) return isInstant(field) ? undefined : 'of which {…~} needs an instant (z.iso.datetime()).';
  if (type === 'string' || type === 'integer' || type === 'number') return undefined;
  return 'which is neither a text nor a number; keys are made of those.';
}

function isInstant({ keyType, format, pattern }: FieldSchema): boolean {
  return (
    keyType === 'string' && (format === 'date-time' || format === 'date' || pattern?.startsWith(DAY_FIRST) === true)
  );
}

function* periodErrors(entity: DeclaredEntity): Generator<string> {
  const { period, archive, movable, indexes, keyFields, schema, denormalized, counts, childOf, access } = entity;
  if (!period) return;
  const { field, keep, per } = period;
  if (!CALENDAR_UNITS.includes(per)) {
    yield `period.per is "${per}"; ${CALENDAR_UNITS.map((unit) => `"${unit}"`).join(', ')} are accepted.`;
    return;
  }
  if (archive || movable.length > 0 || Object.keys(indexes).length > 0)
    yield 'an entity with a period has no index, archive or move; remove period, or those.';
  if (denormalized.length > 0 || Object.keys(counts).length > 0 || childOf)
    yield 'an entity with a period has no denormalized field, count or parent, because the other entity is in another table.';
  if (access.own) yield 'an entity with a period cannot be granted (access.own), because a grant names one table.';
  if (!Number.isInteger(keep) || keep < 1 || keep > MAX_KEEP[per])
    yield `period.keep is ${keep}; it must be a whole number of ${per}s from 1 to ${MAX_KEEP[per]}.`;
  if (!keyFields.includes(field))
    yield `period.field "${field}" is not in the key, so the key would not tell the table; it must be a key field.`;
  const type = fieldSchemas(schema)[field];
  if (!type || !isInstant(type))
    yield `period.field "${field}" is not an instant; it must be z.iso.datetime(), z.iso.date() or a pattern that begins with a day.`;
}

function* fieldErrors(entity: DeclaredEntity): Generator<string> {
  const { encrypted, large, columns, version, upgrades, maxAge, derived, counts, attachments } = entity;
  for (const field of encrypted)
    if (columns[field] !== 'String') yield `the encrypted field "${field}" is not a text; it must be z.string().`;
  for (const field of large)
    if (columns[field] !== 'String') yield `the large field "${field}" is not a text; it must be z.string().`;
  if (!Number.isInteger(version) || version < 1) yield `version is ${version}; it must be a whole number from 1.`;
  for (let from = 1; from < version; from += 1)
    if (!Object.hasOwn(upgrades, from))
      yield `nothing upgrades version ${from}; upgrades needs a function for each version before ${version}.`;
  for (const from of Object.keys(upgrades))
    if (!(Number(from) >= 1 && Number(from) < version))
      yield `upgrades has a function for version ${from}, which is not before version ${version}; count up version, or leave it out.`;
  if (maxAge !== undefined && !(Number.isInteger(maxAge) && maxAge >= 1))
    yield `maxAge is ${maxAge}; it must be a whole number of seconds from 1.`;
  const decided = [
    ...copiedFields(entity),
    ...Object.keys(derived),
    ...Object.keys(counts),
    ...Object.keys(attachments),
  ];
  for (const field of new Set(decided))
    if (decided.filter((other) => other === field).length > 1)
      yield `the field "${field}" is set by two of denormalized, derived, counts and attachments; one of them is accepted.`;
}

function* attachmentErrors({ attachments }: DeclaredEntity): Generator<string> {
  for (const [field, { container, maxBytes, types }] of Object.entries(attachments)) {
    const what = `the attachment "${field}"`;
    if (!CONTAINER_NAME.test(container))
      yield `${what} has the container name "${container}", which is not accepted; a container name is 3 to 63 lower-case letters, digits and single hyphens.`;
    if (!Number.isInteger(maxBytes) || maxBytes < 1 || maxBytes > MAX_FILE_BYTES)
      yield `${what} has maxBytes ${maxBytes}; it must be a whole number from 1 to ${MAX_FILE_BYTES}, which is the largest body of the Functions host.`;
    if (types.length === 0) yield `${what} accepts no type; types needs at least one, such as image/png.`;
    for (const type of types)
      if (!(supportedMimeTypes as ReadonlySet<string>).has(type))
        yield `${what} accepts ${type}, which cannot be told from a file's bytes, so no file would be accepted; types such as image/png can.`;
  }
}

function* accessErrors(entity: DeclaredEntity): Generator<string> {
  const { keyFields, encrypted, indexes } = entity;
  const { own, write, restricted = {} } = entity.access;
  for (const field of keyFields)
    if (Object.hasOwn(restricted, field))
      yield `the restricted field "${field}" is part of the key, which every path shows; a key field cannot be restricted.`;
  for (const [field, roles] of Object.entries<readonly string[] | undefined>(restricted))
    if (!write.every((role) => roles?.includes(role)))
      yield `roles that write must be able to read the restricted field "${field}"; add ${write.filter((role) => !roles?.includes(role)).join(', ')} to its roles.`;
  for (const field of Object.keys(restricted))
    if (!Object.hasOwn(entity.columns, field))
      yield `access.restricted names the field "${field}", which the schema does not have; each name in it must be a field.`;
  for (const field of encrypted)
    if (!Object.hasOwn(restricted, field))
      yield `the encrypted field "${field}" is not restricted; access.restricted must name the roles that read it.`;
  if (own && 'through' in own) yield* grantErrors(entity, own);
  if (own && 'index' in own) {
    if (!own.verifiedBy && !ISSUED_CLAIMS.includes(own.claim))
      yield `access.own trusts the claim "${own.claim}", which the issuer may not have verified; verifiedBy must name the claims that say so, or be {} if the issuer verifies every value. ${ISSUED_CLAIMS.join(' and ')} need none.`;
    const index = Object.hasOwn(indexes, own.index) ? indexes[own.index] : undefined;
    if (!index)
      yield `access.own names the index "${own.index}", which is not declared; it must be a unique index of one field.`;
    else if (!isUnique(index) || fieldsOf(index).length !== 1)
      yield `access.own names the index "${own.index}", which may lead to several entities; it must be a unique index of one field.`;
  }
  if (isWrittenByClients(entity) && !isOneRow(entity))
    yield 'clients may write it straight to storage (access.own), where nothing keeps indexes, copies, counts, children, archives, encrypted fields, large fields or attachments; leave those out, or grant only r.';
}

/** A granted partition must belong to one entity alone, or its holder reads what is another's. */
function* grantErrors(
  { partition }: DeclaredEntity,
  { through, permissions }: { readonly through: DeclaredEntity; readonly permissions: string },
): Generator<string> {
  if (!/^(?=.)r?a?u?d?$/.test(permissions))
    yield `access.own has the permissions "${permissions}"; some of raud are accepted, in this order.`;
  if (!through.access.own || 'through' in through.access.own)
    yield `access.own goes through "${through.name}", of which no caller has one; that entity needs access.own with a claim and an index.`;
  if (partition.fields.length === 0)
    yield "access.own grants the partition, which has no field, so it is everybody's; it needs a field.";
  const stranger = partition.fields.find((field) => !Object.hasOwn(through.columns, field));
  if (stranger) {
    yield `access.own grants the partition by "${stranger}", which "${through.name}" does not have; every field of the partition key must be one of its fields.`;
    return;
  }
  const given = partition.readable;
  const isGiven = (fields: readonly string[]) => fields.every((field) => given.includes(field));
  const indexes = Object.values(through.indexes).filter((index) => isUnique(index) && !index.when);
  if (partition.fields.length > 0 && !isGiven(through.keyFields) && !indexes.some((index) => isGiven(fieldsOf(index))))
    yield `access.own grants the partition by ${partition.fields.join(', ')}, which two of "${through.name}" may share, so one could open the other's; "${through.name}" needs a unique inter-partition index of ${partition.fields.join(', ')} without a condition.`;
}

function fieldsOf({ remote, row }: Index): string[] {
  return [...new Set([...(remote?.partition.fields ?? []), ...row.fields])];
}

function copiedFields({ denormalized }: DeclaredEntity): string[] {
  return denormalized.flatMap((link) => Object.keys(link.copies));
}

function* indexErrors(entity: DeclaredEntity): Generator<string> {
  const { indexes, keyFields, large, encrypted, counts } = entity;
  const decided = [...copiedFields(entity), ...Object.keys(counts)];
  for (const [name, index] of Object.entries(indexes)) {
    const what = `the index "${name}"`;
    if (index.remote) yield* templateErrors(entity, `the partition key of ${what}`, index.remote.partition);
    yield* templateErrors(entity, `the row key of ${what}`, index.row);
    for (const why of placeErrors(index, keyFields)) yield `${what} ${why}`;
    if (large.length > 0 && index.kind !== 'index-entity' && index.copies === 'everything')
      yield `${what} copies everything, and ${large.join(', ')} may be large; copies must be 'keys' or a list of other fields.`;
    for (const field of fieldsOf(index)) {
      if (large.includes(field))
        yield `${what} has the large field "${field}" in its key; a key is at most 512 characters.`;
      if (encrypted.includes(field))
        yield `${what} has the encrypted field "${field}" in its key; keys are stored in plain text.`;
    }
    for (const field of index.uses)
      if (decided.includes(field))
        yield `${what} uses "${field}", which changes with another entity and would leave the index stale; fields that this entity's own writes set are accepted.`;
  }
}

/** A row outside the partition must belong to one entity alone, or be competed for openly. */
function* placeErrors(index: Index, keyFields: readonly string[]): Generator<string> {
  if (index.kind !== 'inter-partition' && index.row.parts.some(({ each }) => each))
    yield 'has a row for each element of a list; only an inter-partition index may.';
  const lacking = (fields: readonly string[]) => keyFields.filter((field) => !fields.includes(field)).join(', ');
  const readable = [...(index.remote?.partition.readable ?? []), ...index.row.readable];
  if (index.kind === 'inter-partition' && !index.unique) {
    const missing = lacking(readable);
    if (missing !== '')
      yield `is not unique and lacks ${missing} in its key; it must contain every key field, so that entities with one value get rows of their own.`;
  }
  if (index.kind === 'inter-partition' && index.unique) {
    const hashed = fieldsOf(index).find((field) => !readable.includes(field));
    if (hashed)
      yield `is unique and has "${hashed}" only as a hash, so two values could be taken for one; the field must be in its key as it is, too.`;
  }
  if (index.kind === 'index-entity' && index.remote) {
    const missing = lacking(index.holds.readable);
    if (missing !== '') yield `holds too little to find an entity; "holds" must contain ${missing}, too.`;
  }
  if (index.kind === 'index-entity' && !index.remote && index.holds.readable.length === 0)
    yield 'holds no field; "holds" must contain a field of the row key.';
}

function* childErrors(entity: DeclaredEntity): Generator<string> {
  const { childOf: parent } = entity;
  if (!parent) return;
  const isWithin =
    parent.table === entity.table &&
    parent.partition.template === entity.partition.template &&
    entity.row.template.startsWith(`${parent.row.template}_`);
  if (!isWithin)
    yield `the key of a child must begin with that of its parent "${parent.name}" and "_", in the same table and partition.`;
  if (parent.childOf) yield `its parent "${parent.name}" is a child itself; one level of children is accepted.`;
  if (parent.period) yield `its parent "${parent.name}" has a table for each period; a parent has one table.`;
  if (Object.hasOwn(parent.schema.shape, entity.name))
    yield `its parent "${parent.name}" has a field "${entity.name}", which a read with ?include=${entity.name} would replace; one of them needs another name.`;
  // The row of a child goes where its parent goes, and nothing that follows from it goes along.
  const others = [Object.keys(entity.indexes), entity.denormalized, Object.keys(entity.counts)];
  if (others.some(({ length }) => length > 0))
    yield `a child of "${parent.name}" can have no index, denormalized field or count.`;
  if (entity.archive || entity.movable.length > 0)
    yield `a child of "${parent.name}" is archived and moved with its parent; leave out archive and movable.`;
}

function* countErrors({ table, partition, row, counts, columns, archive, movable }: DeclaredEntity): Generator<string> {
  for (const [field, counted] of Object.entries(counts)) {
    const isBeside = counted.table === table && counted.partition.template === partition.template && !counted.period;
    const isFound = row.fields.every((name) => counted.keyFields.includes(name));
    if (!isBeside || !isFound || archive || movable.length > 0)
      yield `"${field}" counts "${counted.name}", whose keys do not lead to this row for good; both must have one table and partition key, every field of this row key must be in the other's key, and this entity can have no archive or move.`;
    // A count is added to as it is stored: a 64-bit one is no number there.
    if (columns[field] !== 'Int32') yield `the count "${field}" must be declared as z.int32().`;
    if (counted.childOf)
      yield `"${field}" counts "${counted.name}", which are children of "${counted.childOf.name}"; children are not counted.`;
  }
}

function* copyErrors(entity: DeclaredEntity): Generator<string> {
  const { table, partition, row, denormalized, columns } = entity;
  for (const { source, reference } of denormalized) {
    const what = `the denormalized fields copy from "${source.name}"`;
    if (source.table !== table || source.partition.template !== partition.template)
      yield `${what}, which is in another table or partition; both must have one table and one partition key.`;
    if (source.childOf) yield `${what}, which are children of another entity; a child cannot be copied from.`;
    if (!Object.hasOwn(columns, reference.field) || !source.keyFields.includes(reference.keyField))
      yield `${what} by the reference ${reference.field} to ${reference.keyField}; it must be from a field of this entity to a key field of the other.`;
    const missing = source.row.fields.find((field) => field !== reference.keyField && !Object.hasOwn(columns, field));
    if (missing) yield `${what}, whose row key has the field "${missing}", which this entity does not have.`;
    if (row.fields.length > 0) yield `${what}, and only one row of a partition may, under a row key without fields.`;
  }
}
