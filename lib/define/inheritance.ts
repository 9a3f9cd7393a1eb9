import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { DeclarationError } from '../errors.ts';
import {
  type AnyIndexes,
  type AnyTotals,
  type CheckedParts,
  type Declaration,
  defineEntity,
  ENTITY_OPTIONS,
  type NamedParts,
  type NameOf,
  rejectErrors,
} from './define-entity.ts';
import type { DeclaredEntity } from './entity.ts';
import { frozenCopy } from './frozen-copy.ts';
import type { FieldsOf } from './keys/key-template.ts';
import type { Typed } from './typed.ts';
import { schemaError } from './validate/field-schema.ts';
import { byName, optionErrors, optionsOf } from './validate/options.ts';
import { schemaMetadata } from './validate/schema-metadata.ts';

/**
 * Inheritance pattern: several kinds of entities in one table, distinguished by the field `kind`. They share the key and
 * the fields of `schema`; each kind adds its own fields. One query returns all kinds.
 */

type Kinds = Readonly<Record<string, z.ZodObject>>;

type UnionDeclaration<
  Shape extends z.ZodRawShape,
  Partition extends string,
  Row extends string,
  Of extends Kinds,
  Indexes extends AnyIndexes,
  Role extends string,
  Restricted extends string,
  Attached extends string = never,
> = Omit<
  Declaration<Shape, Partition, Row, never, Indexes, Role, Restricted, Attached>,
  'encrypted' | 'large' | 'split' | 'wide'
> & {
  readonly kinds: Of;
};

const { encrypted: _encrypted, large: _large, split: _split, wide: _wide, ...shared } = ENTITY_OPTIONS;
const UnionOptions = optionsOf({ kinds: byName, ...shared } satisfies Record<
  keyof UnionDeclaration<z.ZodRawShape, string, string, Kinds, AnyIndexes, string, string>,
  z.ZodType
>);

type FieldOfKinds<Of extends Kinds> = { [Name in keyof Of]: keyof Of[Name]['shape'] & string }[keyof Of];

/** One kind: the shared fields and its own. */
type Kind<Shape extends z.ZodRawShape, Name extends string, Own extends z.ZodObject> = z.infer<z.ZodObject<Shape>> &
  z.infer<Own> & { readonly kind: Name };

/** The type of a read: a union that TypeScript narrows by `kind`. */
export type KindOf<Shape extends z.ZodRawShape, Of extends Kinds> = {
  [Name in keyof Of & string]: Kind<Shape, Name, Of[Name]>;
}[keyof Of & string];

/** Declares an entity of several kinds. Throws a plain error if kinds declare a field of one name differently. */
export function defineUnion<
  Shape extends z.ZodRawShape,
  const Partition extends string,
  const Row extends string,
  Of extends Kinds,
  const Name extends string = string,
  Indexes extends AnyIndexes = Record<never, never>,
  Attached extends string = never,
  Derived extends string = never,
  Counting extends string = never,
  Copied extends string = never,
  Parent extends DeclaredEntity = never,
  Clock extends keyof Shape & string = never,
  const Role extends string = string,
  Restricted extends string = never,
  Totals extends AnyTotals = Record<never, never>,
  const Lookup extends NameOf<Indexes> = never,
>(
  name: Name,
  given: UnionDeclaration<Shape, Partition, Row, Of, Indexes, Role, Restricted, NoInfer<Attached>> &
    NamedParts<
      (keyof Shape & string) | FieldOfKinds<Of>,
      never,
      Attached,
      Derived,
      Counting,
      Copied,
      Parent,
      Clock,
      never,
      never,
      CheckedParts<Totals, keyof Shape & string>,
      Lookup
    >,
): DeclaredEntity<Shape, Name, FieldsOf<Partition> | FieldsOf<Row>, Indexes, Role> & {
  readonly union: z.ZodType<KindOf<Shape, Of>>;
} & Typed<{
    readonly partition: Partition;
    readonly row: Row;
    readonly encrypted: never;
    readonly large: never;
    readonly attachments: Attached;
    readonly decided: Derived | Counting | Copied | Clock;
    readonly totals: Totals;
    readonly parent: Parent['name'];
    readonly groups: never;
    readonly apart: never;
    readonly lookup: Lookup;
  }> {
  rejectErrors(name, optionErrors(UnionOptions, given));
  const { kinds, schema, ...declaration } = given;
  const ofKinds = Object.entries(kinds).map(([kind, type]) => schemaError(`the kind "${kind}"`, type));
  const error = [schemaError('the schema', schema), ...ofKinds].find((each) => each !== undefined);
  if (error) throw new DeclarationError(`Entity "${name}": ${error}`);
  const own: Record<string, z.ZodType> = {};
  for (const [kind, { shape }] of Object.entries(kinds))
    for (const [field, type] of Object.entries<z.ZodType>(shape)) {
      const other = own[field];
      if (field === 'kind' || field in schema.shape || (other && !isDeepStrictEqual(jsonOf(other), jsonOf(type))))
        throw new DeclarationError(
          `Entity "${name}": the kind "${kind}" declares the field "${field}" differently; kinds share a field only with one type, and none may be "kind" or a field of the schema.`,
        );
      own[field] = type;
    }
  const [first, ...others] = Object.entries(kinds).map(([kind, { shape }]) =>
    z.strictObject({ ...schema.shape, ...shape, kind: z.literal(kind) }),
  );
  if (!first) throw new DeclarationError(`Entity "${name}": kinds is empty; at least one kind is accepted.`);
  const union = z.discriminatedUnion('kind', [first, ...others]);
  const optional = Object.fromEntries(Object.entries(own).map(([field, type]) => [field, type.optional()]));
  // The table has columns for the fields of all kinds.
  const whole = schema.extend({ ...optional, kind: z.enum(Object.keys(kinds)) }) as unknown as z.ZodObject<Shape>;
  const define = defineEntity<
    Shape,
    Partition,
    Row,
    never,
    Name,
    Indexes,
    never,
    Attached,
    Derived,
    Counting,
    Copied,
    Parent,
    Clock,
    Role,
    never,
    never,
    never,
    Totals,
    Lookup
  >;
  const entity = define(name, { ...declaration, schema: whole } as Parameters<typeof define>[1]);
  return frozenCopy({ ...entity, union: union as unknown as z.ZodType<KindOf<Shape, Of>> });
}

function jsonOf(type: z.ZodType): unknown {
  return z.toJSONSchema(type, { unrepresentable: 'any', metadata: schemaMetadata });
}
