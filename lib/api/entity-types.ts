import type { z } from 'zod';
import type { Attachment } from '../define/declaration/attachment.ts';
import type { Options, Slots } from '../define/declaration/declaration.ts';
import type { NamedBy, TypesBy } from '../define/declaration/declared-types.ts';
import type { Index, IndexTypes, TypesOf } from '../define/declaration/indexes.ts';
import type { TotalTypes } from '../define/declaration/totals.ts';
import type { FieldsOf } from '../define/keys/key-template.ts';
import type { IndexBounds } from '../define/places/index-range.ts';
import type { ListInput } from './reads.ts';

/**
 * Types inferred from the declaration of an entity: its fields, keys and filters, and the calls that read through its indexes, its totals
 * and its whole list.
 */

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
type KeyField<Of extends Declared> = Of['keyFields'][number];
/** Applies to each member of a union separately, for an entity of several kinds. */
type OmitEach<Of, Field extends PropertyKey> = Of extends unknown ? Plain<Omit<Of, Field>> : never;
type OptionalEach<Of, Field extends PropertyKey> = Of extends unknown
  ? Plain<Omit<Of, Field> & Partial<Pick<Of, Field & keyof Of>>>
  : never;
type PickEach<Of, Field extends PropertyKey> = Of extends unknown ? Plain<Pick<Of, Field & keyof Of>> : never;
type FieldsOfEach<Of> = Of extends unknown ? keyof Of & string : never;

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

/** The entity without the fields that its archive leaves out. */
export type Archived<Of extends Declared> = [Types<Of>['unarchived']] extends [never]
  ? Of
  : Omit<Of, 'schema'> & { readonly schema: z.ZodObject<Omit<Of['schema']['shape'], Types<Of>['unarchived']>> };

/** The fields that a caller writes. Fields with a default, and those set from the caller, are optional; computed fields are excluded. */
export type Input<Of extends Declared> = [Types<Of>['filled']] extends [never]
  ? Written<Of>
  : OptionalEach<Written<Of>, Types<Of>['filled']>;
type Written<Of extends Declared> = Of['union'] extends z.ZodType
  ? OmitEach<z.output<Of['union']>, Types<Of>['decided']>
  : Plain<Omit<z.input<Of['schema']>, Types<Of>['decided']>>;

/** The fields that a caller writes of an existing entity, whose key is given separately. */
export type Replacement<Of extends Declared> = OmitEach<Input<Of>, KeyField<Of>>;

/**
 * Fields to change; null removes a field or a member of an object, and objects are merged at every level. An encrypted field can only be
 * replaced with its entity.
 */
export type Patch<Of extends Declared> =
  Replacement<Of> extends infer Each
    ? Each extends unknown
      ? { readonly [Field in Exclude<keyof Each, Named<Of, 'encrypted'>>]?: Merge<Each[Field]> | null }
      : never
    : never;

/** A value in a patch: lists are replaced as a whole. */
type Merge<Value> = unknown extends Value
  ? Value
  : Value extends Scalar | null | undefined | readonly unknown[]
    ? Value
    : { readonly [Member in keyof Value]?: Merge<Value[Member]> | null };

type Whole<Of extends Declared> = z.output<Of['schema']>;
/** The type of a field's value, or of one element if the field is a list. */
type OneValue<Value> = NonNullable<Value> extends readonly (infer Element)[] ? Element : NonNullable<Value>;
type Given<Of extends Declared, Field> = Plain<{
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
  /** True if it is always bound to a caller with a token, whom rules limit. */
  readonly isOfCaller?: true;
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
  /** What a file is written from. */
  readonly file: unknown;
  readonly upload: unknown;
  readonly download: unknown;
  /** The result of an action of a batch. */
  readonly outcome: unknown;
  readonly removed: unknown;
  readonly deleted: unknown;
  /** The count that an increment returns. */
  readonly count: unknown;
}

export type One<As extends Binding, Value> = undefined extends As['one']
  ? Promise<Value>
  : (As & { readonly item: Value })['one'];
type Many<As extends Binding, Item> = (As & { readonly item: Item })['many'];
export type Read<As extends Binding, Of extends Declared> = As['isWhole'] extends true ? Output<Of> : Listed<Of>;

/** Filters by the fields that a list has. */
type WhereOf<Of extends Declared, Item> = Pick<Where<Of>, Extract<keyof Where<Of>, FieldsOfEach<Item>>>;

/** The call of a list, after the parameters `Given`. The binding decides the form of what it returns. */
export type ListCall<
  Of extends Declared,
  As extends Binding,
  Item,
  Given extends readonly unknown[],
  Options,
  Form extends 'many' | 'all' = 'many',
> = <const Field extends FieldsOfEach<Item> = never>(
  ...given: [...Given, options?: ListInput<Field, WhereOf<Of, Item>> & Options]
) => (As & { readonly item: Selected<Item, Field> })[Form];

export interface RangeLimit {
  /** The most entities of the whole listing. */
  readonly first?: number | undefined;
}

/** The calls that read through indexes and totals, and of whole lists, typed by their key templates. */

/** The fields of a template, in order. */
type FieldList<Template> = Template extends `${string}{${infer Inner}}${infer Rest}`
  ? [FieldsOf<`{${Inner}}`>, ...FieldList<Rest>]
  : [];
/** The fields of a partition key that a read requires. Buckets are excluded, because all are read. */
type AskedFields<Template> = Template extends `${string}{${infer Inner}}${infer Rest}`
  ? (Inner extends `${string}%${number}` ? never : FieldsOf<`{${Inner}}`>) | AskedFields<Rest>
  : never;
/** Omits the key fields at the end, which only distinguish entities of the same value. */
type WithoutKey<Fields extends readonly unknown[], KeyFields> = Fields extends readonly [...infer Rest, infer Last]
  ? Last extends KeyFields
    ? WithoutKey<Rest, KeyFields>
    : Fields[number]
  : never;
type LastOf<Fields extends readonly unknown[]> = Fields extends readonly [...unknown[], infer Last] ? Last : never;

type TypesOfIndex<By> = TypesOf<By> extends infer Known extends IndexTypes ? Known : never;

/** True if several entities may share a value of the index. */
type IsOfMany<Of extends Declared, By extends Index> = By['kind'] extends 'index-entity'
  ? true
  : TypesOfIndex<By>['unique'] extends true
    ? false
    : LastOf<FieldList<TypesOfIndex<By>['row']>> extends KeyField<Of>
      ? [Exclude<KeyField<Of>, FieldsOf<TypesOfIndex<By>['row']> | AskedFields<PartitionOf<Of, By>>>] extends [never]
        ? true
        : false
      : false;

type RowFields<Of extends Declared, By extends Index> =
  IsOfMany<Of, By> extends true
    ? WithoutKey<FieldList<TypesOfIndex<By>['row']>, KeyField<Of>>
    : FieldList<TypesOfIndex<By>['row']>[number];
type PartitionOf<Of extends Declared, By extends Index> = TypesOfIndex<By>['partition'] extends string
  ? TypesOfIndex<By>['partition']
  : Types<Of>['partition'];

/** The values that a read through an index requires. */
type Asked<Of extends Declared, By extends Index> = Given<Of, AskedFields<PartitionOf<Of, By>> | RowFields<Of, By>>;

/** The text of each field of a template, with its marks, in order. */
type PartList<Template> = Template extends `${string}{${infer Inner}}${infer Rest}` ? [Inner, ...PartList<Rest>] : [];
type HasOrder<Inner> = Inner extends `${string}#` | `${string}%${number}` ? false : true;
type FieldsIn<Parts extends readonly unknown[]> = {
  [At in keyof Parts]: Parts[At] extends string ? FieldsOf<`{${Parts[At]}}`> : never;
}[number];

/** The fields of a range: the fields `Before` it, none of those after, and the same with each further field of the row key. */
type Starts<Of extends Declared, Before, Parts extends readonly unknown[]> = Parts extends readonly [
  infer First extends string,
  ...infer Rest,
]
  ?
      | ([FieldsIn<[First]>] extends [Before]
          ? never
          : HasOrder<First> extends true
            ? Plain<Given<Of, Before> & { readonly [Name in Exclude<FieldsIn<Parts>, Before>]?: never }>
            : never)
      | Starts<Of, Before | FieldsIn<[First]>, Rest>
  : never;

/** The fields that a range over an index begins with: those of its partition key, and the first ones of its row key. */
type RangeStart<Of extends Declared, By extends Index> = Starts<
  Of,
  AskedFields<PartitionOf<Of, By>>,
  PartList<TypesOfIndex<By>['row']>
>;

type Always<Start, Name extends keyof Start = keyof Start> = Name extends unknown
  ? undefined extends Start[Name]
    ? never
    : Name
  : never;
/** The fields of every start, and those of some as optional ones. In an error, a union of the starts hides which field is missing. */
type AnyStart<Start> = Plain<
  { readonly [Name in Always<Start>]: Start[Name] } & {
    readonly [Name in Exclude<keyof Start, Always<Start>>]?: Exclude<Start[Name], undefined>;
  }
>;
/** `Given` if it is a start; otherwise a sentence for the compiler to show. */
type CheckedStart<Given, Start> =
  AnyStart<Start> extends Given
    ? Given
    : Given extends Start
      ? {
          readonly [Name in keyof Given]: Name extends keyof Start
            ? Given[Name]
            : `"${Name & string}" is not a field of the key`;
        }
      : 'A range gives the first fields of the row key, in its order';

type Bound<Of extends Declared, By extends Index> = Extract<
  OneValue<Whole<Of>[FieldsOf<TypesOfIndex<By>['row']> & keyof Whole<Of>]>,
  string | number
>;

/** True for an entity of a model whose steward reads all rows. */
type HasSteward<Of> = Of extends { readonly access: { readonly steward: string } } ? true : false;
/** True if rules may serve a list of all that is the caller's. */
export type ServesMine<Of extends Declared, As extends Binding> = As['isOfCaller'] extends true
  ? Types<Of>['mine']
  : true;

/** In place of a list that no rule opens. The compiler shows the reason: a text alone would be `String` in its error of a call. */
export interface Closed<Reason extends string> {
  readonly reason: Reason;
}

/** The reads through an index; a reason for the compiler to show, if no rule lets a caller list it. */
export type ReadBy<
  Of extends Declared,
  Name extends keyof Of['indexes'],
  As extends Binding,
> = As['isOfCaller'] extends true
  ? Name extends Types<Of>['closed']
    ? [IsOfMany<Of, Of['indexes'][Name]>, HasSteward<Of>] extends [true, false]
      ? Closed<`No role may list ${Of['name']} by "${Name & string}"`>
      : ReadThrough<Of, Of['indexes'][Name], As>
    : ReadThrough<Of, Of['indexes'][Name], As>
  : ReadThrough<Of, Of['indexes'][Name], As>;

/** An entity as an index lists it: whole, or only the fields of a partial copy. */
type ListedBy<Of extends Declared, By extends Index> = TypesOfIndex<By>['copies'] extends infer Copy extends string
  ? PickEach<Listed<Of>, KeyField<Of> | Copy>
  : Listed<Of>;

type ReadThrough<Of extends Declared, By extends Index, As extends Binding> = ReadByValue<Of, By, As> &
  ([RangeStart<Of, By>] extends [never]
    ? unknown
    : {
        /** Lists a range of the index in the order of its row keys. Throws `invalid-input`, which lists the accepted leading fields. */
        range<
          const Given extends AnyStart<RangeStart<Of, By>>,
          const Field extends FieldsOfEach<ListedBy<Of, By>> = never,
        >(
          given: CheckedStart<Given, RangeStart<Of, By>>,
          options?: ListInput<Field, WhereOf<Of, ListedBy<Of, By>>> & IndexBounds<Bound<Of, By>> & As['range'],
        ): Many<As, Selected<ListedBy<Of, By>, Field>>;
      });

type ReadByValue<Of extends Declared, By extends Index, As extends Binding> =
  IsOfMany<Of, By> extends true
    ? ListCall<Of, As, ListedBy<Of, By>, [given: Asked<Of, By>], As['list']>
    : <const Field extends Selectable<Of> = never>(
        given: Asked<Of, By>,
        options?: Pick<ListInput<Field>, 'select'> & As['read'],
      ) => One<As, Selected<Read<As, Of>, Field> | undefined>;

type ListingIndex<Of extends Declared> = Of['indexes'][Types<Of>['listedBy'] & keyof Of['indexes']];

/** For an entity that is listed as a whole. */
export type WholeListCalls<Of extends Declared, As extends Binding> = [Types<Of>['listedBy']] extends [never]
  ? unknown
  : {
      /**
       * All entities, in the order of an index, from the memory of a process. Another process may have changed them up to
       * `maxAge` seconds ago. The store throws `too-large` if there are too many for the memory.
       *
       * @example
       * const depots = await store.depots.list();
       */
      readonly list: ListCall<Of, As, ListedBy<Of, ListingIndex<Of>>, [], As['read'], 'all'>;
    };

type TypesOfTotal<By> = TypesOf<By> extends infer Known extends TotalTypes ? Known : never;
/** The fields of a group. A field of which the key has only a period, such as `{orderDate.month}`, is the text of that period. */
type GroupFields<Of extends Declared, By> = Given<
  Of,
  AskedFields<TypesOfTotal<By>['partition']> | FieldsOf<TypesOfTotal<By>['row']>
>;
/** The fields that a range of groups begins with. */
type TotalStart<Of extends Declared, By> = Starts<
  Of,
  AskedFields<TypesOfTotal<By>['partition']>,
  PartList<TypesOfTotal<By>['row']>
>;

/** The entities of a group: how many, and the sums and extremes of their fields. */
export interface GroupTotal<Of extends Declared, By> {
  readonly group: GroupFields<Of, By>;
  readonly count: number;
  readonly sum: { readonly [Field in TypesOfTotal<By>['sum']]: number };
  /** Without the fields that no entity of the group has. */
  readonly min: Partial<Given<Of, TypesOfTotal<By>['min']>>;
  readonly max: Partial<Given<Of, TypesOfTotal<By>['max']>>;
}

export interface TotalCalls<Of extends Declared, By, As extends Binding> {
  /** The total of one group. A group without entities has the count 0. */
  get(group: GroupFields<Of, By>, ...options: As['options']): One<As, GroupTotal<Of, By>>;
  /** The totals of a range of groups in the order of their row keys. Throws `invalid-input`, which lists the accepted fields. */
  range<const Given extends AnyStart<TotalStart<Of, By>>>(
    given: CheckedStart<Given, TotalStart<Of, By>>,
    options?: IndexBounds & As['range'],
  ): Many<As, GroupTotal<Of, By>>;
}
