import { z } from 'zod';
import type { Denormalized, DenormalizedDeclaration } from './denormalization.ts';
import {
  type Access,
  type ColumnType,
  canWriteThroughGrant,
  type Entity,
  isWrittenByClients,
  type Role,
  type Values,
} from './entity.ts';
import type { Index } from './indexes.ts';
import { compileTemplate, type FieldsOf } from './key-template.ts';
import { Attachment, type AttachmentDeclaration } from './reference.ts';

/** A template whose fields are all in the schema, or a sentence that says which is not: the compiler shows it. */
type Checked<Template extends string, Field extends string> =
  Exclude<FieldsOf<Template>, Field> extends never
    ? Template
    : `{${Exclude<FieldsOf<Template>, Field>}} is not a field of the schema`;

export interface Declaration<
  Shape extends z.ZodRawShape,
  Partition extends string,
  Row extends string,
  Encrypted extends keyof Shape & string = never,
> {
  /** Unknown fields are refused. Every field is stored under its own name. */
  readonly schema: z.ZodObject<Shape>;
  /** Lower-case letters and digits. */
  readonly table: string;
  readonly key: {
    readonly partition: Partition & Checked<Partition, Exclude<keyof Shape & string, Encrypted>>;
    readonly row: Row & Checked<Row, Exclude<keyof Shape & string, Encrypted>>;
  };
  readonly indexes?: Readonly<Record<string, Index<Exclude<keyof Shape & string, Encrypted>>>>;
  /**
   * Encrypted properties pattern: texts of which storage only ever has the ciphertext. Replaced with their entity, and
   * left out for who lacks the roles in `access.restricted`. A key or an index of one is a compile error.
   */
  readonly encrypted?: readonly Encrypted[];
  /** Large entities pattern: files, such as a photo. Each has a field of its name that describes it, and routes of its own. */
  readonly attachments?: Readonly<Record<string, AttachmentDeclaration>>;
  /** Large entities pattern: texts that may be longer than one property holds. */
  readonly large?: readonly (keyof Shape & string)[];
  /** Counted up when what is stored changes its meaning; `upgrades` then reads what earlier versions stored. */
  readonly version?: number;
  readonly upgrades?: Readonly<Record<number, (values: Values) => Values>>;
  /** `POST …/archive` moves an entity to this table, under the same key. */
  readonly archive?: { readonly table: string };
  /** `POST …/move` changes these fields of the partition key. */
  readonly movable?: readonly (keyof Shape & string)[];
  /** High volume delete pattern: a table a day, chosen by this field (an ISO instant), dropped after so many days. */
  readonly perDay?: { readonly field: keyof Shape & string; readonly keepDays: number };
  readonly denormalized?: readonly DenormalizedDeclaration<keyof Shape & string>[];
  /**
   * Compound key pattern: this entity's row key begins with that one's, in its table and partition. It is read with it, cannot
   * be without it, and goes where it goes.
   */
  readonly detailOf?: Entity;
  /** Fields that nobody writes, as they follow from others: `undefined` for none. */
  readonly derived?: Partial<Readonly<Record<keyof Shape & string, (values: Values) => unknown>>>;
  /** Fields that say how many of another entity of this table and partition there are: nobody writes them. */
  readonly counts?: Partial<Readonly<Record<keyof Shape & string, Entity>>>;
  readonly access: Access<keyof Shape & string>;
  /** Seconds for which a client may go on with what it read without asking again; without it, it asks each time. */
  readonly maxAge?: number;
}

const TABLE_NAME = /^[a-z][a-z0-9]{2,54}$/;

/** Declares what is stored. Throws a plain error that says what is wrong with a declaration. */
export function defineEntity<
  Shape extends z.ZodRawShape,
  const Partition extends string,
  const Row extends string,
  const Encrypted extends keyof Shape & string = never,
>(name: string, declaration: Declaration<Shape, Partition, Row, Encrypted>): Entity<Shape> {
  const {
    table,
    key,
    indexes = {},
    archive,
    movable = [],
    perDay,
    denormalized = [],
    derived = {},
    counts = {},
    encrypted = [],
    large = [],
    attachments = {},
    version = 1,
    upgrades = {},
    access,
  } = declaration;
  const wrong = (why: string) => new Error(`The entity ${name} cannot be defined: ${why}.`);
  for (const field of Object.keys(attachments))
    if (field in declaration.schema.shape) throw wrong(`its attachment ${field} is a field of the schema, too`);
  const describing = Object.keys(attachments).map((field) => [field, Attachment.optional()] as const);
  const schema = declaration.schema.extend(Object.fromEntries(describing)) as unknown as z.ZodObject<Shape>;
  const partition = compileTemplate(key.partition);
  const row = compileTemplate(key.row);
  const tables = [table, archive?.table, ...Object.values(indexes).map(({ elsewhere }) => elsewhere?.table)].filter(
    (used) => used !== undefined,
  );
  for (const used of tables)
    if (!TABLE_NAME.test(used)) throw wrong(`the table name ${used} is not 3 to 55 lower-case letters and digits`);
  for (const field of Object.keys(schema.shape))
    if (!/^[a-z]/.test(field)) throw wrong(`the field ${field} does not begin with a lower-case letter`);
  if (perDay && (archive || movable.length || Object.keys(indexes).length))
    throw wrong('a table a day has no index, archive or move');
  const keyFields = [...new Set([...partition.fields, ...row.fields])];
  if ([...partition.parts, ...row.parts].some(({ each }) => each)) throw wrong('a list is in its key');
  for (const [indexName, index] of Object.entries(indexes)) {
    const why = doubtful(index, keyFields);
    if (why) throw wrong(`its index ${indexName} ${why}`);
  }
  const restricted = Object.keys(access.restricted ?? {});
  for (const field of keyFields)
    if (restricted.includes(field)) throw wrong(`the restricted field ${field} is part of its key`);
  for (const [field, roles] of Object.entries<readonly Role[] | undefined>(access.restricted ?? {}))
    if (!access.write.every((role) => roles?.includes(role))) throw wrong(`who writes it may not see ${field}`);
  for (const field of encrypted)
    if (!restricted.includes(field)) throw wrong(`${field} is encrypted and not restricted to any role`);
  for (const [indexName, index] of Object.entries(indexes))
    if (large.length > 0 && index.kind !== 'index-entity' && index.copies === 'everything')
      throw wrong(`its index ${indexName} copies everything, and ${large.join(', ')} may be large`);
  for (let from = 1; from < version; from += 1) if (!upgrades[from]) throw wrong(`nothing upgrades version ${from}`);
  const { own } = access;
  if (own && 'through' in own) {
    const why = notOwned(own, partition.fields);
    if (why) throw wrong(`what is one's own ${why}`);
  }
  const copied = denormalized.flatMap((link) => Object.keys(link.copies));
  for (const [indexName, index] of Object.entries(indexes))
    for (const field of index.uses)
      if (copied.includes(field)) throw wrong(`its index ${indexName} uses ${field}, which another entity decides`);
  for (const field of movable)
    if (!partition.fields.includes(field)) throw wrong(`${field} is not in the partition key, so it cannot be moved`);

  const master = declaration.detailOf;
  const isWithin =
    master?.table === table &&
    master.partition.template === key.partition &&
    key.row.startsWith(`${master.row.template}_`);
  if (master && !isWithin)
    throw wrong(`its key does not begin with that of ${master.name}, in the same table and partition`);
  if (master?.detailOf) throw wrong(`${master.name}, of which it is a detail, is a detail itself`);
  // The row of a detail goes where its master goes, and nothing that follows from it goes along.
  if (master && (Object.keys(indexes).length || denormalized.length || Object.keys(counts).length))
    throw wrong(`as a detail of ${master.name} it can have no index, denormalized field or count`);

  const columns = columnsOf(schema);
  for (const field of [...encrypted, ...large])
    if (columns[field] !== 'String') throw wrong(`${field} is to be encrypted or large, and no text`);

  const links: Denormalized[] = denormalized.map((link) => ({
    source: link.source,
    target: () => entity as Entity,
    reference: link.reference,
    copies: Object.fromEntries(Object.entries(link.copies).flatMap(([field, copy]) => (copy ? [[field, copy]] : []))),
  }));
  const entity: Entity<Shape> = {
    name,
    union: undefined,
    schema: schema.strict() as z.ZodObject<Shape>,
    table,
    partition,
    row,
    keyFields,
    columns,
    indexes,
    archive: undefined,
    movable,
    perDay,
    denormalized: links,
    derived: Object.fromEntries(
      Object.entries(derived).flatMap(([field, derive]) =>
        derive ? [[field, derive as (values: Values) => unknown]] : [],
      ),
    ),
    dependents: [],
    counts: Object.fromEntries(
      Object.entries<Entity | undefined>(counts).flatMap(([field, of]) => (of ? [[field, of]] : [])),
    ),
    countedBy: [],
    encrypted,
    large,
    attachments,
    version,
    upgrades,
    access: access as Access,
    maxAge: declaration.maxAge,
    series: undefined,
    detailOf: declaration.detailOf,
    details: [],
  };
  if (isWrittenByClients(entity) && !canWriteThroughGrant(entity as Entity))
    throw wrong('what would be written past the API would have to be followed by others');
  const { own: _, ...archiveAccess } = access;
  if (archive)
    Object.assign(entity, {
      archive: {
        ...entity,
        name: archive.table,
        table: archive.table,
        indexes: {},
        movable: [],
        denormalized: [],
        dependents: [],
        countedBy: [],
        access: archiveAccess,
        // Known once they are defined.
        get details() {
          return entity.details.map((detail) => ({ ...detail, table: archive.table }));
        },
      },
    });
  for (const [field, counted] of Object.entries(entity.counts)) {
    const isBeside = counted.table === table && counted.partition.template === key.partition;
    const isFound = row.fields.every((name) => counted.keyFields.includes(name));
    if (!isBeside || !isFound || archive || movable.length > 0)
      throw wrong(`${field} counts ${counted.name}, whose keys do not lead to it in one partition for good`);
    // What is counted is added to as it is stored: a 64-bit one is no number there.
    if (columns[field] !== 'Int32') throw wrong(`the count ${field} is not declared as z.int32()`);
    if (counted.detailOf) throw wrong(`${field} counts ${counted.name}, which are details of ${counted.detailOf.name}`);
    counted.countedBy.push({ target: () => entity as Entity, field });
  }
  master?.details.push(entity as Entity);
  for (const link of links) {
    if (link.source.table !== table) throw wrong(`it copies from ${link.source.name}, which is in another table`);
    if (link.source.detailOf) throw wrong(`it copies from ${link.source.name}, which are details of another entity`);
    // A source remembers one row that copies it.
    if (row.fields.length > 0 || link.source.dependents.length > 0)
      throw wrong(`it copies from ${link.source.name}, and only one row of a partition may, under a key of no fields`);
    link.source.dependents.push(link);
  }
  return entity;
}

/** A partition has to follow from the own entity alone, lest it be somebody else's as well. */
function notOwned({ through, permissions }: { through: Entity; permissions: string }, fields: readonly string[]) {
  if (!/^(?=.)r?a?u?d?$/.test(permissions)) return 'has permissions that are not some of raud, in this order';
  if (!through.access.own || 'through' in through.access.own) return `is not found through ${through.name}`;
  if (fields.length === 0) return 'is in a partition that it does not decide';
  const stranger = fields.find((field) => !(field in through.columns));
  return stranger && `is in a partition by ${stranger}, which ${through.name} has not`;
}

/** A place outside the partition must belong to one entity alone, or be competed for openly. */
function doubtful(index: Index, keyFields: readonly string[]): string | undefined {
  if (index.kind !== 'inter-partition' && index.row.parts.some(({ each }) => each))
    return 'is not in another partition, and has a row for each element';
  const lacks = (fields: readonly string[]) => keyFields.filter((field) => !fields.includes(field)).join(', ');
  if (index.kind === 'inter-partition' && !index.unique) {
    const missing = lacks([...index.elsewhere.partition.readable, ...index.row.readable]);
    return missing === '' ? undefined : `is not unique and lacks ${missing} in its key`;
  }
  if (index.kind !== 'index-entity' || !index.elsewhere) return undefined;
  const missing = lacks(index.holds.readable);
  return missing === '' ? undefined : `holds too little to find an entity: ${missing}`;
}

const Property = z.object({
  type: z.string().optional(),
  maximum: z.number().optional(),
  minimum: z.number().optional(),
});
const INT32 = { minimum: -2_147_483_648, maximum: 2_147_483_647 };

/** Table storage has few types; the schema decides which one a field is stored as. */
function columnsOf(schema: z.ZodObject): Record<string, ColumnType> {
  const { properties = {} } = z.toJSONSchema(schema, { io: 'output' });
  return Object.fromEntries(
    Object.entries(properties).map(([field, property]) => [field, columnType(Property.parse(property))]),
  );
}

function columnType({ type, minimum, maximum }: z.infer<typeof Property>): ColumnType {
  if (type === 'string') return 'String';
  if (type === 'boolean') return 'Boolean';
  if (type === 'number') return 'Double';
  if (type !== 'integer') return 'Json';
  return (minimum ?? -Infinity) >= INT32.minimum && (maximum ?? Infinity) <= INT32.maximum ? 'Int32' : 'Int64';
}
