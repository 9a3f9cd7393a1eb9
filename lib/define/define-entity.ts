import { z } from 'zod';
import { DeclarationError } from '../errors.ts';
import { Attachment, type AttachmentDeclaration } from './codec/reference.ts';
import type { Checked, Declaration, EntityBy, Options } from './declaration.ts';
import type {
  Access,
  ClaimOwner,
  ColumnType,
  Copied,
  Declared,
  DeclaredEntity,
  DeclaredReference,
  GrantedPartition,
  LookupDeclaration,
  Period,
} from './entity.ts';
import { frozenCopy } from './frozen-copy.ts';
import type { Condition, Index } from './indexes.ts';
import { compileTemplate } from './keys/key-template.ts';
import { fieldsHiddenFrom, rolesToReadBy, rolesToReadIndex } from './readers.ts';
import type { Total } from './totals.ts';
import { type FieldSchema, fieldSchemas, schemaError } from './validate/field-schema.ts';
import { anything, byName, declaredEntity, names, optionErrors, optionsOf, partErrors } from './validate/options.ts';
import { validationErrors } from './validate/validate-entity.ts';
import { omit, type Values } from './values.ts';
import { withoutPrototype } from './without-prototype.ts';

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
  key: optionsOf({ partition: z.string(), row: z.string() } satisfies OptionsOf<Declaration['key']>),
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
  archive: optionsOf({ table: z.string() } satisfies OptionsOf<Declaration['archive']>).optional(),
  movable: names.optional(),
  period: optionsOf({
    per: anything,
    field: z.string(),
    keep: anything,
    archiveTo: anything,
  } satisfies OptionsOf<Period>).optional(),
  expiry: optionsOf({ days: anything, clock: z.string() } satisfies OptionsOf<Declaration['expiry']>).optional(),
  denormalized: z
    .array(
      optionsOf({
        source: declaredEntity({ isFunction: true }),
        reference: optionsOf({ field: z.string(), keyField: z.string() }),
        copies: byName,
        fanOut: z.boolean().optional(),
      } satisfies OptionsOf<Copied>),
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
} satisfies OptionsOf<Declaration>;
const EntityOptions = optionsOf(ENTITY_OPTIONS);

/**
 * Compiles, validates and freezes a declaration; `defineModel` links it with the others and validates its patterns. Throws an
 * error that lists everything that is wrong with its names, keys, versions and access.
 */
export function defineEntity<
  const Name extends string,
  Shape extends z.ZodRawShape,
  const Given extends Options<keyof Shape & string>,
>(
  name: Name,
  declaration: { readonly schema: z.ZodObject<Shape> } & Checked<Given, keyof Shape & string>,
): EntityBy<Name, Shape, Given> {
  return compileEntity(name, declaration as unknown as Declaration) as unknown as EntityBy<Name, Shape, Given>;
}

/** The same for a declaration that the compiler has not checked. */
export function compileEntity(name: string, declaration: Declaration): DeclaredEntity {
  const { indexes, totals } = declaration;
  rejectErrors(name, optionErrors(EntityOptions, declaration));
  rejectErrors(name, [...partErrors('index', indexes), ...partErrors('totals', totals)]);
  const entity = withEntityName(name, () => compile(name, declaration));
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

function compile(name: string, declaration: Declaration): DeclaredEntity {
  const { table, key, archive, access, attachments = {}, denormalized = [] } = declaration;
  const error = schemaError('the schema', declaration.schema);
  if (error) throw new Error(error);
  for (const field of Object.keys(attachments))
    if (Object.hasOwn(declaration.schema.shape, field))
      throw new Error(`the attachment "${field}" has the name of a field of the schema; it needs a name of its own.`);
  const describing = Object.keys(attachments).map((field) => [field, Attachment.optional()]);
  const schema = declaration.schema.extend(Object.fromEntries(describing)).strict();
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
    keyFields: [...new Set([...partition.fields, ...row.fields])],
    columns: columnsOf(schema),
    indexes: withoutPrototype(
      mapValues<Index>(declaration.indexes ?? {}, (index) =>
        withCondition(index, (when) => forReaders(rolesToReadIndex({ access }, index), when)),
      ),
    ),
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
    access,
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
