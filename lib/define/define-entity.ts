import type { z } from 'zod';
import { DeclarationError } from '../base/errors.ts';
import { frozenCopy, mapValues, omit, present, type Values } from '../base/values.ts';
import { compileAccess } from './declaration/access.ts';
import { Attachment } from './declaration/attachment.ts';
import {
  acceptedOptions,
  type ChecksOf,
  type ColumnType,
  type Declaration,
  type DeclaredEntity,
  type Options,
  optionsWith,
  withDefaults,
} from './declaration/declaration.ts';
import type { Checked, EntityBy } from './declaration/declared-types.ts';
import type { Condition, Index } from './declaration/indexes.ts';
import type { Total } from './declaration/totals.ts';
import { compileTemplate } from './keys/key-template.ts';
import { fieldsHiddenFrom, rolesToReadBy, rolesToReadIn, rolesToReadIndex } from './places/readers.ts';
import { type FieldSchema, fieldSchemas, schemaError } from './schema/field-schema.ts';
import { optionErrors, partErrors } from './schema/options.ts';
import { validationErrors } from './validate/validate-entity.ts';

type Compute = (values: Values) => unknown;
/** A function of the fields, or what has a condition on them. */
type Computed = Compute | Index | Total;

const ACCEPTED = acceptedOptions(() => true);

/**
 * Compiles, validates and freezes a declaration; `defineModel` links it with the others and validates its patterns. Throws an
 * error that lists everything that is wrong with its names, keys, versions and access.
 *
 * @example
 * const vehicles = defineEntity('vehicles', {
 *   schema: z.object({ depot: z.string(), vehicleId: z.string(), plate: z.string() }),
 *   table: 'vehicles',
 *   key: { partition: '{depot}', row: 'vehicle_{vehicleId}' },
 *   access: { read: ['reader'], write: ['editor'] },
 * });
 */
export function defineEntity<
  const Name extends string,
  Shape extends z.ZodRawShape,
  const Given extends Options<keyof Shape & string>,
>(
  name: Name,
  declaration: { readonly schema: z.ZodObject<Shape>; readonly checks?: ChecksOf<Shape> } & Checked<
    Given,
    keyof Shape & string
  >,
): EntityBy<Name, Shape, Given> {
  return compileEntity(name, declaration as unknown as Declaration) as unknown as EntityBy<Name, Shape, Given>;
}

/** Compiles a declaration that TypeScript has not checked. */
export function compileEntity(name: string, declaration: Declaration): DeclaredEntity {
  const { indexes, totals } = declaration;
  rejectErrors(name, optionErrors(ACCEPTED, declaration));
  rejectErrors(name, [
    ...partErrors('index', ['intraPartitionIndex({ … })', 'interPartitionIndex({ … })', 'indexEntity({ … })'], indexes),
    ...partErrors('totals', ['total({ … })'], totals),
  ]);
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
  const error = schemaError('the schema', declaration.schema);
  if (error) throw new Error(error);
  const { schema: given, key, ...options } = declaration;
  const compiled = {
    ...withDefaults(options),
    access: compileAccess(options.access),
    // A write without a read would drop what the other program has stored.
    sharedTable: options.existing ? true : options.sharedTable,
  };
  const { attachments, split } = compiled;
  for (const field of Object.keys(attachments))
    if (Object.hasOwn(given.shape, field))
      throw new Error(`the attachment "${field}" has the name of a field of the schema. Give it a name of its own.`);
  const describing = Object.keys(attachments).map((field) => [field, Attachment.optional()]);
  const schema = given.extend(Object.fromEntries(describing)).strict();
  const partition = compileTemplate(key.partition, key);
  const row = compileTemplate(key.row);
  const { former } = key;
  // A write may not have read the fields that are apart, so what used them would depend on the write.
  const apart: readonly string[] = Object.values(split).flat();
  const forReaders = (roles: readonly string[], compute: Compute) =>
    withoutFields([...apart, ...fieldsHiddenFrom(roles, compiled)], compute);
  const computed = Object.keys(optionsWith('isComputed')).map((option) => {
    const members: Readonly<Record<string, Computed>> = Object(compiled)[option];
    return [
      option,
      mapValues(members, (member, field) => {
        if (typeof member === 'function') return forReaders(rolesToReadIn(compiled, field), member);
        const { when } = member;
        if (!when) return member;
        const readers = 'kind' in member ? rolesToReadIndex(compiled, member) : rolesToReadBy(compiled, member.uses);
        return { ...member, when: forReaders(readers, when) as Condition };
      }),
    ];
  });
  return frozenCopy({
    ...compiled,
    ...Object.fromEntries(computed),
    name,
    schema,
    union: undefined,
    partition,
    row,
    formerKey: former && { partition: compileTemplate(former.partition), row: compileTemplate(former.row) },
    keyFields: [...new Set([...partition.fields, ...row.fields])],
    columns: columnsOf(schema),
    denormalized: mapValues(compiled.denormalized, (link) => ({ ...link, copies: present(link.copies) })),
    series: undefined,
  });
}

/** The function, which never sees these fields. */
function withoutFields(fields: readonly string[], compute: Compute): Compute {
  return fields.length === 0 ? compute : (values) => compute(omit(values, fields));
}

const INT32 = { minimum: -2_147_483_648, maximum: 2_147_483_647 };

/** Table storage has few types; the schema decides which one a field is stored as. */
function columnsOf(schema: z.ZodObject): Record<string, ColumnType> {
  return mapValues(fieldSchemas(schema), columnType);
}

function columnType({ type, minimum, maximum }: FieldSchema): ColumnType {
  if (type === 'string') return 'String';
  if (type === 'boolean') return 'Boolean';
  if (type === 'number') return 'Double';
  if (type !== 'integer') return 'Json';
  return (minimum ?? -Infinity) >= INT32.minimum && (maximum ?? Infinity) <= INT32.maximum ? 'Int32' : 'Int64';
}
