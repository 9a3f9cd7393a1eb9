import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { DeclarationError } from '../base/errors.ts';
import { frozenCopy } from '../base/values.ts';
import {
  acceptedOptions,
  type Declaration,
  type DeclaredEntity,
  type Options,
  type OptionsWith,
} from './declaration/declaration.ts';
import type { Checked, EntityBy } from './declaration/declared-types.ts';
import { compileEntity, rejectErrors } from './define-entity.ts';
import { schemaError, schemaMetadata } from './schema/field-schema.ts';
import { byName, optionErrors } from './schema/options.ts';

/**
 * Inheritance pattern: several kinds of entities in one table, distinguished by the field `kind`. They share the key and
 * the fields of `schema`; each kind adds its own fields. One query returns all kinds.
 */

type Kinds = Readonly<Record<string, z.ZodObject>>;

type UnionOptions<Field extends string> = Omit<Options<Field>, keyof OptionsWith<'notInUnion'>>;

const ACCEPTED = acceptedOptions(({ notInUnion }) => !notInUnion, { kinds: byName });

type FieldOfKinds<Of extends Kinds> = { [Name in keyof Of]: keyof Of[Name]['shape'] & string }[keyof Of];

/** One kind: the shared fields and its own. */
type Kind<Shape extends z.ZodRawShape, Name extends string, Own extends z.ZodObject> = z.infer<z.ZodObject<Shape>> &
  z.infer<Own> & { readonly kind: Name };

/** The type of a read: a union that TypeScript narrows by `kind`. */
export type KindOf<Shape extends z.ZodRawShape, Of extends Kinds> = {
  [Name in keyof Of & string]: Kind<Shape, Name, Of[Name]>;
}[keyof Of & string];

/**
 * Declares an entity of several kinds. Throws a plain error if kinds declare a field of one name differently.
 *
 * @example
 * const assets = defineUnion('assets', {
 *   schema: z.object({ depot: z.string(), assetId: z.string() }),
 *   kinds: { van: z.object({ plate: z.string() }), crane: z.object({ tons: z.number() }) },
 *   table: 'assets',
 *   key: { partition: '{depot}', row: '{assetId}' },
 *   access: { read: ['reader'], write: ['editor'] },
 * });
 */
export function defineUnion<
  const Name extends string,
  Shape extends z.ZodRawShape,
  Of extends Kinds,
  const Given extends UnionOptions<keyof Shape & string>,
>(
  name: Name,
  declaration: {
    readonly schema: z.ZodObject<Shape>;
    readonly kinds: Of;
    readonly checks?: Readonly<Record<string, (values: KindOf<Shape, Of>) => boolean>>;
  } & Checked<Given, keyof Shape & string, (keyof Shape & string) | FieldOfKinds<Of>>,
): EntityBy<Name, Shape, Given> & { readonly union: z.ZodType<KindOf<Shape, Of>> } {
  const union: unknown = compileUnion(name, declaration as unknown as Declaration & { readonly kinds: Kinds });
  return union as EntityBy<Name, Shape, Given> & { readonly union: z.ZodType<KindOf<Shape, Of>> };
}

function compileUnion(name: string, given: Declaration & { readonly kinds: Kinds }): DeclaredEntity {
  rejectErrors(name, optionErrors(ACCEPTED, given));
  const { kinds, schema, ...declaration } = given;
  const ofKinds = Object.entries(kinds).map(([kind, type]) => schemaError(`the kind "${kind}"`, type));
  const error = [schemaError('the schema', schema), ...ofKinds].find((each) => each !== undefined);
  if (error) throw new DeclarationError(`Entity "${name}": ${error}`);
  const own: Record<string, z.ZodType> = {};
  for (const [kind, { shape }] of Object.entries(kinds))
    for (const [field, type] of Object.entries<z.ZodType>(shape)) {
      const refuse = (why: string) =>
        new DeclarationError(`Entity "${name}": the kind "${kind}" declares the field "${field}"${why}`);
      const other = own[field];
      if (field === 'kind') throw refuse(', which contains the kind. Rename it.');
      if (field in schema.shape) throw refuse(', which the schema declares for all kinds. Remove it from one of them.');
      if (other && !isDeepStrictEqual(jsonOf(other), jsonOf(type)))
        throw refuse(', which another kind declares with another type. Use one type, or rename it.');
      own[field] = type;
    }
  const [first, ...others] = Object.entries(kinds).map(([kind, { shape }]) =>
    z.strictObject({ ...schema.shape, ...shape, kind: z.literal(kind) }),
  );
  if (!first) throw new DeclarationError(`Entity "${name}": kinds is empty. Add a kind.`);
  const union = z.discriminatedUnion('kind', [first, ...others]);
  const optional = Object.fromEntries(Object.entries(own).map(([field, type]) => [field, type.optional()]));
  // The table has columns for the fields of all kinds.
  const whole = schema.extend({ ...optional, kind: z.enum(Object.keys(kinds)) });
  return frozenCopy({ ...compileEntity(name, { ...declaration, schema: whole }), union });
}

function jsonOf(type: z.ZodType): unknown {
  return z.toJSONSchema(type, { unrepresentable: 'any', metadata: schemaMetadata });
}
