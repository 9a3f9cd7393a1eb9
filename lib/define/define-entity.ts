import { z } from 'zod';
import { DeclarationError } from '../errors.ts';
import { Attachment, type AttachmentDeclaration } from './codec/reference.ts';
import type {
  Access,
  ClaimOwner,
  ColumnType,
  Declared,
  DeclaredEntity,
  DeclaredReference,
  GrantedPartition,
  LookupDeclaration,
  Period,
} from './entity.ts';
import { frozenCopy } from './frozen-copy.ts';
import type { Condition, Index } from './indexes.ts';
import { compileTemplate, type FieldsOf } from './keys/key-template.ts';
import { fieldsHiddenFrom, rolesToReadBy, rolesToReadIndex } from './readers.ts';
import type { Total } from './totals.ts';
import type { Typed } from './typed.ts';
import { type FieldSchema, fieldSchemas, schemaError } from './validate/field-schema.ts';
import { anything, byName, declaredEntity, names, optionErrors, optionsOf, partErrors } from './validate/options.ts';
import { validationErrors } from './validate/validate-entity.ts';
import { omit, type Values } from './values.ts';
import { withoutPrototype } from './without-prototype.ts';

/** A template whose fields are all in the schema; otherwise a sentence for the compiler to show. */
type Checked<Template extends string, Field extends string> = [Exclude<FieldsOf<Template>, Field>] extends [never]
  ? Template
  : NotAKeyField<Exclude<FieldsOf<Template>, Field>>;

/** Sentences for the compiler to show. */
type NotAField<Name extends string> = `"${Name}" is not a field of the schema`;
type NotAKeyField<Name extends string> = `${NotAField<Name>}, or is encrypted`;

/** Fields of this entity that are copied from another entity, which a field refers to by key. */
export interface DenormalizedDeclaration<Field extends string = string> {
  readonly source: Declared;
  readonly reference: { readonly field: Field; readonly keyField: string };
  readonly copies: Partial<Readonly<Record<Field, (source: Values) => unknown>>>;
  /**
   * Without it, one row of the source's partition has copies, which change in the transaction of the source. With it, any number
   * of entities of any partition have copies, which a queue updates after a change of the source.
   */
  readonly fanOut?: boolean;
}

export type AnyIndexes = Readonly<Record<string, Index>>;
/** Without any index, `defineEntity` reports the name. */
export type NameOf<Indexes> = [keyof Indexes] extends [never] ? string : keyof Indexes & string;
export type AnyTotals = Readonly<Record<string, Total>>;

/** As `Checked`, for indexes and totals. A constraint of their types would take the compiler six lines to explain. */
export type CheckedParts<Parts, Field extends string> = [Misnamed<Parts[keyof Parts], Field>] extends [never]
  ? Parts
  : {
      readonly [Name in keyof Parts]: [Misnamed<Parts[Name], Field>] extends [never]
        ? Parts[Name]
        : NotAKeyField<Misnamed<Parts[Name], Field>>;
    };
type Misnamed<Part, Field extends string> = Part extends { readonly uses: readonly (infer Used extends string)[] }
  ? string extends Used
    ? never
    : Exclude<Used, Field>
  : never;

/** The restricted fields by names that the compiler infers, so that it also infers their roles. */
interface OfFields<Readable extends string, Role extends string, Restricted extends string> {
  readonly restricted?: {
    readonly [Field in Restricted]?: Field extends Readable ? readonly Role[] : NotAField<Field>;
  };
}

export interface Declaration<
  Shape extends z.ZodRawShape,
  Partition extends string,
  Row extends string,
  Encrypted extends keyof Shape & string = never,
  Indexes extends AnyIndexes = AnyIndexes,
  Role extends string = string,
  Restricted extends string = never,
  Attached extends string = never,
> {
  /** Unknown fields are rejected. Every field is stored under its own name. */
  readonly schema: z.ZodObject<Shape>;
  /** Lower-case letters and digits. */
  readonly table: string;
  readonly key: {
    readonly partition: Checked<Partition, Exclude<keyof Shape & string, Encrypted>>;
    readonly row: Checked<Row, Exclude<keyof Shape & string, Encrypted>>;
  };
  readonly indexes?: CheckedParts<Indexes, Exclude<keyof Shape & string, Encrypted>>;
  /**
   * Maintained totals: the number of entities of each group across partitions, with exact sums and the extremes of their
   * fields. The engine keeps them like indexes in other partitions.
   */
  readonly totals?: AnyTotals;
  /**
   * Encrypted properties pattern: storage receives only the ciphertext of these texts. A replace of the entity sets them
   * too. They are omitted for callers without the roles in `access.restricted`. Using one in a key or an index is a compile
   * error.
   */
  readonly encrypted?: readonly Encrypted[];
  /** Large entities pattern: files, such as a photo. Each has its own routes and a field of its name that describes it. */
  readonly attachments?: Readonly<Record<string, AttachmentDeclaration>>;
  /** Large entities pattern: texts that may be longer than one property holds. */
  readonly large?: readonly (keyof Shape & string)[];
  /**
   * Vertical split: groups of rarely read fields, each in a row of its own beside the entity. A read includes a group only if it
   * asks for the group or for a field of it; a write of other fields neither reads nor writes its row.
   */
  readonly split?: Readonly<Record<string, readonly (keyof Shape & string)[]>>;
  /**
   * Wide entities pattern: the fields may take several rows of the partition, up to 2,000 fields and 3.5 MiB. One range query reads
   * them, and one transaction changes them.
   */
  readonly wide?: boolean;
  /** Increased when the meaning of stored data changes; `upgrades` then converts what earlier versions stored. */
  readonly version?: number;
  readonly upgrades?: Readonly<Record<number, (values: Values) => Values>>;
  /** `POST …/archive` moves an entity to this table, under the same key. */
  readonly archive?: { readonly table: string };
  /** `POST …/move` changes these fields of the partition key. */
  readonly movable?: readonly (keyof Shape & string)[];
  /** High volume delete pattern: a table for each day, month or year, dropped as a whole past retention. */
  readonly period?: Period<keyof Shape & string>;
  /**
   * Expiry: entities that have not changed for `days` whole days are deleted with their index entries. `clock` is a
   * `z.iso.date()` field that the engine sets to the UTC day of each change through the API.
   */
  readonly expiry?: { readonly days: number; readonly clock: keyof Shape & string };
  readonly denormalized?: readonly DenormalizedDeclaration<keyof Shape & string>[];
  /** Fields whose value must be that of an existing entity when they are written. */
  readonly references?: Partial<Readonly<Record<keyof Shape & string, DeclaredReference>>>;
  /**
   * Compound key pattern: the row key of this entity begins with its parent's row key, in the same table and partition. It
   * is read, moved, archived and deleted with its parent, and cannot exist without it.
   */
  readonly childOf?: DeclaredEntity;
  /** Fields that are computed from others and cannot be written. Return `undefined` for no value. */
  readonly derived?: Partial<Readonly<Record<keyof Shape & string, (values: Values) => unknown>>>;
  /** Fields that count the entities of another declaration in the same table and partition. They cannot be written. */
  readonly counts?: Partial<Readonly<Record<keyof Shape & string, Declared>>>;
  readonly access: Access<(keyof Shape & string) | Attached, Role> &
    OfFields<(keyof Shape & string) | Attached, Role, Restricted> & {
      readonly own?: { readonly index?: NoInfer<NameOf<Indexes>> };
    };
  /** Seconds for which a client may reuse a response without a new request. By default it revalidates each time. */
  readonly maxAge?: number;
  /**
   * Lookup table: `GET` of the entity's own path lists all entities from the memory of the process. `index` has one partition with
   * a copy of every entity.
   */
  readonly lookup?: LookupDeclaration;
}

type AnyDeclaration = Declaration<z.ZodRawShape, string, string>;
type OptionsOf<Declared> = Record<keyof NonNullable<Declared>, z.ZodType>;

const AccessOptions = optionsOf({
  read: names,
  write: names,
  restricted: z.record(z.string(), names.optional()).optional(),
  own: optionsOf({
    claim: z.string().optional(),
    index: z.string().optional(),
    verifiedBy: byName.optional(),
    through: declaredEntity().optional(),
    permissions: z.string().optional(),
  } satisfies OptionsOf<ClaimOwner & GrantedPartition>)
    .refine(
      ({ claim, index, through, permissions }) =>
        through === undefined
          ? claim !== undefined && index !== undefined && permissions === undefined
          : permissions !== undefined && claim === undefined && index === undefined,
      { error: 'claim and index are accepted, or through and permissions' },
    )
    .optional(),
} satisfies OptionsOf<Access>);

/** Numbers and names with `anything` have a check of their own, which says what is accepted. */
export const ENTITY_OPTIONS = {
  schema: anything,
  table: z.string(),
  key: optionsOf({ partition: z.string(), row: z.string() } satisfies OptionsOf<AnyDeclaration['key']>),
  indexes: byName.optional(),
  totals: byName.optional(),
  encrypted: names.optional(),
  attachments: z
    .record(
      z.string(),
      optionsOf({
        container: z.string(),
        maxBytes: anything,
        types: names,
        public: z.boolean().optional(),
        maxAge: anything,
      } satisfies OptionsOf<AttachmentDeclaration>),
    )
    .optional(),
  large: names.optional(),
  split: z.record(z.string(), names).optional(),
  wide: z.boolean().optional(),
  version: anything,
  upgrades: byName.optional(),
  archive: optionsOf({ table: z.string() } satisfies OptionsOf<AnyDeclaration['archive']>).optional(),
  movable: names.optional(),
  period: optionsOf({
    per: anything,
    field: z.string(),
    keep: anything,
    archiveTo: anything,
  } satisfies OptionsOf<Period>).optional(),
  expiry: optionsOf({ days: anything, clock: z.string() } satisfies OptionsOf<AnyDeclaration['expiry']>).optional(),
  denormalized: z
    .array(
      optionsOf({
        source: declaredEntity({ isFunction: true }),
        reference: optionsOf({ field: z.string(), keyField: z.string() }),
        copies: byName,
        fanOut: z.boolean().optional(),
      } satisfies OptionsOf<DenormalizedDeclaration>),
    )
    .readonly()
    .optional(),
  references: z
    .record(
      z.string(),
      optionsOf({
        to: declaredEntity({ isFunction: true }),
        by: z.string().optional(),
        onDelete: anything,
      } satisfies OptionsOf<DeclaredReference>).optional(),
    )
    .optional(),
  childOf: declaredEntity().optional(),
  derived: byName.optional(),
  counts: z.record(z.string(), declaredEntity({ isFunction: true }).optional()).optional(),
  access: AccessOptions,
  maxAge: anything,
  lookup: optionsOf({ index: z.string(), maxAge: anything } satisfies OptionsOf<LookupDeclaration>).optional(),
} satisfies OptionsOf<AnyDeclaration>;
const EntityOptions = optionsOf(ENTITY_OPTIONS);

/** An object whose inferred names must all be of `Field`. */
type FieldsNamed<Name extends string, Field extends string, Value> = {
  readonly [Each in Name]?: Each extends Field ? Value : NotAField<Each>;
};

/** The parts of a declaration whose names the typed store needs. `Declaration` documents them and adds their rules. */
export interface NamedParts<
  Field extends string,
  Large extends string,
  Attached extends string,
  Derived extends string,
  Counting extends string,
  Copied extends string,
  Parent extends DeclaredEntity,
  Clock extends string,
  Group extends string = string,
  Apart extends string = string,
  Totals = unknown,
  Lookup extends string = string,
> {
  readonly totals?: Totals;
  readonly lookup?: LookupDeclaration<Lookup>;
  readonly split?: { readonly [Each in Group]: readonly Apart[] };
  readonly expiry?: { readonly days: number; readonly clock: Clock };
  readonly large?: readonly Large[];
  readonly attachments?: Readonly<Record<Attached, AttachmentDeclaration>>;
  readonly derived?: FieldsNamed<Derived, Field, (values: Values) => unknown>;
  readonly counts?: FieldsNamed<Counting, Field, Declared>;
  readonly denormalized?: readonly {
    readonly source: Declared;
    readonly reference: unknown;
    readonly copies: FieldsNamed<Copied, Field, (source: Values) => unknown>;
    readonly fanOut?: boolean;
  }[];
  readonly childOf?: Parent;
}

/**
 * Compiles, validates and freezes a declaration; `defineModel` links it with the others and validates its patterns. Throws an
 * error that lists everything that is wrong with its names, keys, versions and access.
 */
export function defineEntity<
  Shape extends z.ZodRawShape,
  const Partition extends string,
  const Row extends string,
  const Encrypted extends keyof Shape & string = never,
  const Name extends string = string,
  Indexes extends AnyIndexes = Record<never, never>,
  Large extends keyof Shape & string = never,
  Attached extends string = never,
  Derived extends string = never,
  Counting extends string = never,
  Copied extends string = never,
  Parent extends DeclaredEntity = never,
  Clock extends keyof Shape & string = never,
  const Role extends string = string,
  Restricted extends string = never,
  Group extends string = never,
  Apart extends keyof Shape & string = never,
  Totals extends AnyTotals = Record<never, never>,
  const Lookup extends NameOf<Indexes> = never,
>(
  name: Name,
  declaration: Declaration<Shape, Partition, Row, Encrypted, Indexes, Role, Restricted, NoInfer<Attached>> &
    NamedParts<
      keyof Shape & string,
      Large,
      Attached,
      Derived,
      Counting,
      Copied,
      Parent,
      Clock,
      Group,
      Apart,
      CheckedParts<Totals, Exclude<keyof Shape & string, Encrypted>>,
      Lookup
    >,
): DeclaredEntity<Shape, Name, FieldsOf<Partition> | FieldsOf<Row>, Indexes, Role> &
  Typed<{
    readonly partition: Partition;
    readonly row: Row;
    readonly encrypted: Encrypted;
    readonly large: Large;
    readonly attachments: Attached;
    readonly decided: Derived | Counting | Copied | Clock;
    readonly totals: Totals;
    readonly parent: Parent['name'];
    readonly groups: Group;
    readonly apart: Apart;
    readonly lookup: Lookup;
  }> {
  const { indexes, totals } = declaration;
  rejectErrors(name, optionErrors(EntityOptions, declaration));
  rejectErrors(name, [...partErrors('index', indexes), ...partErrors('totals', totals)]);
  const entity = withEntityName(name, () =>
    compile<Shape, Partition, Row, Encrypted, Name, Indexes, Role>(name, declaration),
  );
  rejectErrors(
    name,
    withEntityName(name, () => validationErrors(entity)),
  );
  return entity;
}

/** Throws an error that lists everything that is wrong with an entity. */
export function rejectErrors(name: string, errors: readonly string[]): void {
  if (errors.length > 0) throw new DeclarationError(errors.map((error) => `Entity "${name}": ${error}`).join('\n'));
}

/** Adds the name of the entity to errors of the template and column parsers, which do not know it. */
function withEntityName<Result>(name: string, check: () => Result): Result {
  try {
    return check();
  } catch (error) {
    throw new DeclarationError(`Entity "${name}": ${error instanceof Error ? error.message : error}`, { cause: error });
  }
}

function compile<
  Shape extends z.ZodRawShape,
  Partition extends string,
  Row extends string,
  Encrypted extends keyof Shape & string,
  Name extends string,
  Indexes extends AnyIndexes,
  Role extends string,
>(
  name: Name,
  declaration: Declaration<Shape, Partition, Row, Encrypted, Indexes, Role>,
): DeclaredEntity<Shape, Name, FieldsOf<Partition> | FieldsOf<Row>, Indexes, Role> {
  const { table, key, archive, access, attachments = {}, denormalized = [] } = declaration;
  const error = schemaError('the schema', declaration.schema);
  if (error) throw new Error(error);
  for (const field of Object.keys(attachments))
    if (Object.hasOwn(declaration.schema.shape, field))
      throw new Error(`the attachment "${field}" has the name of a field of the schema; it needs a name of its own.`);
  const describing = Object.keys(attachments).map((field) => [field, Attachment.optional()]);
  const schema = declaration.schema.extend(Object.fromEntries(describing)).strict() as unknown as z.ZodObject<Shape>;
  const partition = compileTemplate(key.partition);
  const row = compileTemplate(key.row);
  const split = withoutPrototype(declaration.split ?? {});
  const { encrypted = [] } = declaration;
  // A write may not have read the fields that are apart, so what used them would depend on the write.
  const apart: readonly string[] = Object.values(split).flat();
  const forReaders = <Compute extends (values: Values) => unknown>(
    roles: readonly string[],
    compute: Compute,
  ): Compute => withoutFields([...apart, ...fieldsHiddenFrom(roles, { access, encrypted })], compute);
  return frozenCopy({
    name,
    schema,
    union: undefined,
    table,
    partition,
    row,
    keyFields: [...new Set([...partition.fields, ...row.fields])] as (FieldsOf<Partition> | FieldsOf<Row>)[],
    columns: columnsOf(schema),
    indexes: withoutPrototype(
      mapValues<Index>((declaration.indexes ?? {}) as AnyIndexes, (index) =>
        withCondition(index, (when) => forReaders(rolesToReadIndex({ access }, index), when)),
      ),
    ) as Indexes,
    totals: mapValues<Total>(declaration.totals ?? {}, (declared) =>
      withCondition(declared, (when) => forReaders(rolesToReadBy({ access }, declared.uses), when)),
    ),
    archive,
    movable: declaration.movable ?? [],
    period: declaration.period,
    expiry: declaration.expiry,
    denormalized: denormalized.map((link) => ({ ...link, copies: omitUndefined(link.copies) })),
    derived: mapValues(omitUndefined<(values: Values) => unknown>(declaration.derived ?? {}), (derive, field) =>
      forReaders(rolesToReadBy({ access }, [field]), derive),
    ),
    split,
    wide: declaration.wide ?? false,
    counts: omitUndefined<Declared>(declaration.counts ?? {}),
    references: omitUndefined<DeclaredReference>(declaration.references ?? {}),
    large: declaration.large ?? [],
    attachments: withoutPrototype(attachments),
    encrypted,
    version: declaration.version ?? 1,
    upgrades: withoutPrototype(declaration.upgrades ?? {}),
    childOf: declaration.childOf,
    access: access as Access<string, Role>,
    series: undefined,
    maxAge: declaration.maxAge,
    lookup: declaration.lookup,
  });
}

function withCondition<Of extends Index | Total>(of: Of, change: (when: Condition) => Condition): Of {
  return of.when ? { ...of, when: change(of.when) } : of;
}

/** The function, which never sees these fields. */
function withoutFields<Compute extends (values: Values) => unknown>(
  fields: readonly string[],
  compute: Compute,
): Compute {
  return fields.length === 0 ? compute : (((values) => compute(omit(values, fields))) as Compute);
}

function mapValues<Value>(
  record: Readonly<Record<string, Value>>,
  change: (value: Value, name: string) => Value,
): Record<string, Value> {
  const changed = Object.entries(record).map(([name, value]) => [name, change(value, name)] as const);
  return withoutPrototype(Object.fromEntries(changed));
}

function omitUndefined<Value>(record: { readonly [field: string]: Value | undefined }): Record<string, Value> {
  const entries = Object.entries(record).flatMap(([field, value]) =>
    value === undefined ? [] : [[field, value] as const],
  );
  return withoutPrototype(Object.fromEntries(entries));
}

const INT32 = { minimum: -2_147_483_648, maximum: 2_147_483_647 };

/** Table storage has few types; the schema decides which one a field is stored as. */
function columnsOf(schema: z.ZodObject): Record<string, ColumnType> {
  const columns = Object.entries(fieldSchemas(schema)).map(([field, type]) => [field, columnType(type)] as const);
  return withoutPrototype(Object.fromEntries(columns));
}

function columnType({ type, minimum, maximum }: FieldSchema): ColumnType {
  if (type === 'string') return 'String';
  if (type === 'boolean') return 'Boolean';
  if (type === 'number') return 'Double';
  if (type !== 'integer') return 'Json';
  return (minimum ?? -Infinity) >= INT32.minimum && (maximum ?? Infinity) <= INT32.maximum ? 'Int32' : 'Int64';
}
