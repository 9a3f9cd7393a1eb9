import type { z } from 'zod';
import type { Options, Slots } from '../define/declaration/declaration.ts';
import type { NamedBy, TypesBy } from '../define/declaration/declared-types.ts';
import type { Index, TypesOf } from '../define/declaration/indexes.ts';
import type { Attachment } from '../define/declaration/reference.ts';
import type { FieldsOf } from '../define/keys/key-template.ts';

/** The types of an entity's fields, keys and filters, inferred from its declaration. */

/** A declaration or an entity of a model. */
export interface Declared {
  readonly name: string;
  readonly schema: z.ZodObject;
  readonly union: z.ZodType | undefined;
  readonly keyFields: readonly string[];
  readonly indexes: Readonly<Record<string, Index>>;
  readonly series: Slots | undefined;
}

export type Entities = Readonly<Record<string, Declared>>;

/** Makes an editor show the fields instead of the types they are inferred from. */
export type Plain<Of> = { [Field in keyof Of]: Of[Field] } & {};

export type Types<Of> = TypesBy<TypesOf<Of>>;
/** The names that an option of an entity lists or has. */
export type Named<Of, Option extends keyof Options> = NamedBy<TypesOf<Of>, Option>;
export type KeyField<Of extends Declared> = Of['keyFields'][number];
/** Applies to each member of a union separately, for an entity of several kinds. */
type OmitEach<Of, Field extends PropertyKey> = Of extends unknown ? Plain<Omit<Of, Field>> : never;
export type PickEach<Of, Field extends PropertyKey> = Of extends unknown ? Plain<Pick<Of, Field & keyof Of>> : never;
export type FieldsOfEach<Of> = Of extends unknown ? keyof Of & string : never;

/** All parsed fields of an entity. */
type Every<Of extends Declared> = Of['union'] extends z.ZodType
  ? z.output<Of['union']>
  : Plain<z.output<Of['schema']> & { [Field in Named<Of, 'attachments'>]?: Attachment }>;

/** The parsed fields of an entity. Not every read includes those of a group. */
export type Output<Of extends Declared> = [Types<Of>['apart']] extends [never]
  ? Every<Of>
  : Plain<
      Omit<Every<Of>, Types<Of>['apart']> & {
        [Field in Types<Of>['apart'] & keyof Every<Of>]?: Every<Of>[Field];
      }
    >;

/**
 * An entity as a list or a write returns it. Large fields are omitted unless selected. A field that cannot be decrypted or
 * loaded is null, so that it hides neither the other fields nor the success of a write.
 */
export type Listed<Of extends Declared> = [Named<Of, 'large'> | Named<Of, 'encrypted'>] extends [never]
  ? Output<Of>
  : Plain<
      Omit<Output<Of>, Named<Of, 'large'> | Named<Of, 'encrypted'>> & {
        [Field in (Named<Of, 'large'> | Named<Of, 'encrypted'>) & keyof Output<Of>]?: Output<Of>[Field] | null;
      }
    >;

/** The fields that a caller writes. Fields with a default are optional; computed fields are excluded. */
export type Input<Of extends Declared> = Of['union'] extends z.ZodType
  ? OmitEach<z.output<Of['union']>, Types<Of>['decided']>
  : Plain<Omit<z.input<Of['schema']>, Types<Of>['decided']>>;

/** The fields that a caller writes of an existing entity, whose key is given separately. */
export type Replacement<Of extends Declared> = OmitEach<Input<Of>, KeyField<Of>>;

/** Fields to change; null removes a field. An encrypted field can only be replaced with its entity. */
export type Patch<Of extends Declared> =
  Replacement<Of> extends infer Each
    ? Each extends unknown
      ? { readonly [Field in Exclude<keyof Each, Named<Of, 'encrypted'>>]?: Each[Field] | null }
      : never
    : never;

export type Whole<Of extends Declared> = z.output<Of['schema']>;
/** The type of a field's value, or of one element if the field is a list. */
export type OneValue<Value> = NonNullable<Value> extends readonly (infer Element)[] ? Element : NonNullable<Value>;
export type Given<Of extends Declared, Field> = Plain<{
  readonly [Name in Field & keyof Whole<Of>]: OneValue<Whole<Of>[Name]>;
}>;

export type Key<Of extends Declared> = Given<Of, KeyField<Of>>;
export type PartitionKey<Of extends Declared> = Given<Of, FieldsOf<Types<Of>['partition']>>;

type Scalar = string | number | boolean;

/** Comparisons of one field, which must all hold. None holds for an entity without a value of the field. */
type Comparisons<Value> = {
  readonly eq?: Value;
  readonly ne?: Value;
  /** At most 100 values. */
  readonly in?: readonly Value[];
} & ([Value] extends [boolean]
  ? unknown
  : { readonly [Operator in 'gt' | 'ge' | 'lt' | 'le']?: Value extends string ? string : Value });

/** A filter: for each field a value, or comparisons. Texts, numbers and Booleans can be compared. */
export type Where<Of extends Declared> = {
  readonly [Field in keyof Whole<Of> as Field extends Named<Of, 'large'> | Named<Of, 'encrypted'> | Types<Of>['apart']
    ? never
    : NonNullable<Whole<Of>[Field]> extends Scalar
      ? Field
      : never]?: NonNullable<Whole<Of>[Field]> | Comparisons<NonNullable<Whole<Of>[Field]>>;
};

export type Selected<Item, Field extends string> = [Field] extends [never] ? Item : PickEach<Item, Field>;
export type Selectable<Of extends Declared> = FieldsOfEach<Output<Of>>;

/** One action of a batch. */
export type BatchAction<Of extends Declared> =
  | { readonly create: Input<Of> }
  | { readonly put: Input<Of>; readonly ifMatch?: string }
  /** The key and the fields to change. */
  | { readonly patch: Plain<Key<Of> & Patch<Of>>; readonly ifMatch?: string }
  | { readonly delete: Key<Of>; readonly ifMatch?: string };

/**
 * What a binding of the calls decides: the options that it adds to them, and the form of what they return. The store binds them in
 * process, the client over fetch, and a query as the reads of one request.
 */
export interface Binding {
  /** Stands for the type that `one`, `many` and `all` contain: no type can have a generic type as its parameter. */
  readonly item: unknown;
  /** Left out for a promise, because the compiler takes fewer steps to a promise than to a form with `item`. */
  readonly one?: unknown;
  readonly many: unknown;
  /** A list of all entities. */
  readonly all: unknown;
  /** True if a read of one entity returns its large fields too. */
  readonly isWhole: boolean;
  /** The options of a read with options of its own. */
  readonly read: unknown;
  /** The last parameter of any other read. */
  readonly options: readonly unknown[];
  readonly list: unknown;
  /** The options of a range of an index or of totals. */
  readonly range: unknown;
  readonly write: unknown;
  readonly create: unknown;
  readonly batch: unknown;
  readonly deleteRange: unknown;
  /** The result of an action of a batch. */
  readonly outcome: unknown;
  readonly deleted: unknown;
  /** The count that an increment returns. */
  readonly count: unknown;
}

export type One<As extends Binding, Value> = undefined extends As['one']
  ? Promise<Value>
  : (As & { readonly item: Value })['one'];
export type Many<As extends Binding, Item> = (As & { readonly item: Item })['many'];
export type All<As extends Binding, Item> = (As & { readonly item: Item })['all'];
export type Read<As extends Binding, Of extends Declared> = As['isWhole'] extends true ? Output<Of> : Listed<Of>;

export interface RangeLimit {
  /** The most entities of the whole listing. */
  readonly first?: number | undefined;
}
