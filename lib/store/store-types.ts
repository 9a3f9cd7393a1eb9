import type { z } from 'zod';
import type { RowkeyError } from '../base/errors.ts';
import type { Conditions } from '../define/declaration/conditions.ts';
import type { Options, Slots } from '../define/declaration/declaration.ts';
import type { NamedBy, TypesBy } from '../define/declaration/declared-types.ts';
import type { Index, IndexTypes, TypesOf } from '../define/declaration/indexes.ts';
import type { Attachment } from '../define/declaration/reference.ts';
import type { TotalTypes } from '../define/declaration/totals.ts';
import type { FieldsOf } from '../define/keys/key-template.ts';
import type { Order } from '../define/places/index-range.ts';
import type { Position } from '../engine/read/continuation.ts';
import type { BatchOutcome } from '../engine/write/entity-batch.ts';
import type { SeriesPoint, SpanBounds } from '../pattern-helpers/series-span.ts';

/** The types of the store, inferred from the declarations of a model. */

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
type PickEach<Of, Field extends PropertyKey> = Of extends unknown ? Plain<Pick<Of, Field & keyof Of>> : never;
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

type Whole<Of extends Declared> = z.output<Of['schema']>;
/** The type of a field's value, or of one element if the field is a list. */
type OneValue<Value> = NonNullable<Value> extends readonly (infer Element)[] ? Element : NonNullable<Value>;
type Given<Of extends Declared, Field> = Plain<{
  readonly [Name in Field & keyof Whole<Of>]: OneValue<Whole<Of>[Name]>;
}>;

export type Key<Of extends Declared> = Given<Of, KeyField<Of>>;
export type PartitionKey<Of extends Declared> = Given<Of, FieldsOf<Types<Of>['partition']>>;

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
export type IsOfMany<Of extends Declared, By extends Index> = By['kind'] extends 'index-entity'
  ? true
  : TypesOfIndex<By>['unique'] extends true
    ? false
    : LastOf<FieldList<TypesOfIndex<By>['row']>> extends KeyField<Of>
      ? true
      : false;

type RowFields<Of extends Declared, By extends Index> =
  IsOfMany<Of, By> extends true
    ? WithoutKey<FieldList<TypesOfIndex<By>['row']>, KeyField<Of>>
    : FieldList<TypesOfIndex<By>['row']>[number];
type PartitionOf<Of extends Declared, By extends Index> = TypesOfIndex<By>['partition'] extends string
  ? TypesOfIndex<By>['partition']
  : Types<Of>['partition'];

/** The values that a read through an index requires. */
export type Asked<Of extends Declared, By extends Index> = Given<
  Of,
  AskedFields<PartitionOf<Of, By>> | RowFields<Of, By>
>;

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
export type RangeStart<Of extends Declared, By extends Index> = Starts<
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
export type AnyStart<Start> = Plain<
  { readonly [Name in Always<Start>]: Start[Name] } & {
    readonly [Name in Exclude<keyof Start, Always<Start>>]?: Exclude<Start[Name], undefined>;
  }
>;
/** `Given` if it is a start; otherwise a sentence for the compiler to show. */
export type CheckedStart<Given, Start> =
  AnyStart<Start> extends Given
    ? Given
    : Given extends Start
      ? {
          readonly [Name in keyof Given]: Name extends keyof Start
            ? Given[Name]
            : `"${Name & string}" is not a field of the key`;
        }
      : 'A range gives the first fields of the row key, in its order';

export type Bound<Of extends Declared, By extends Index> = Extract<
  OneValue<Whole<Of>[FieldsOf<TypesOfIndex<By>['row']> & keyof Whole<Of>]>,
  string | number
>;

/** The range of the field after the given ones: inclusive, a text as a prefix. Without bounds: all, in the order of the index. */
export interface IndexRangeOptions<Value, Field extends string, Condition> extends ListOptions<Field, Condition> {
  readonly from?: Value;
  readonly to?: Value;
  /** The first characters, in place of `from` and `to`. */
  readonly prefix?: string;
  /** The order that the caller relies on. Throws `invalid-input` if the key stores the other one. */
  readonly order?: Order;
  /** The most entities of the whole listing. */
  readonly first?: number;
}

/** An entity as an index lists it: whole, or only the fields of a partial copy. */
export type ListedBy<Of extends Declared, By extends Index> = TypesOfIndex<By>['copies'] extends infer Copy extends
  string
  ? PickEach<Listed<Of>, KeyField<Of> | Copy>
  : Listed<Of>;

/** An entity in its current state. Pass `etag` as `ifMatch` of a write. */
export interface Stored<Fields> {
  readonly etag: string;
  readonly values: Fields;
}

export interface Page<Item> {
  readonly items: readonly Item[];
  /** Pass it as `after` to read the next page; undefined after the last one. */
  readonly next: Position | undefined;
}

export interface PageOptions {
  /** The most items of the page. A page may have fewer, because its bytes are limited too. */
  readonly top?: number;
  readonly after?: Position | undefined;
}

/** A list that is read page by page while it is iterated, or one page at a time. */
export interface Listing<Item> extends AsyncIterable<Item> {
  page(options?: PageOptions): Promise<Page<Item>>;
}

/** Preconditions of a write (an ETag, a list of ETags or `*`), and its author. */
export interface WriteOptions extends Conditions {
  /** The subject in the audit log. Default: `app`. */
  readonly by?: string;
}

/** One action of a batch. */
export type BatchAction<Of extends Declared> =
  | { readonly create: Input<Of> }
  | { readonly put: Input<Of>; readonly ifMatch?: string }
  /** The key and the fields to change. */
  | { readonly patch: Plain<Key<Of> & Patch<Of>>; readonly ifMatch?: string }
  | { readonly delete: Key<Of>; readonly ifMatch?: string };

/** A range to delete: at least one inclusive bound of the first field of the row key, each a prefix, or `all`. */
export interface DeleteRange {
  readonly from?: string;
  readonly to?: string;
  readonly all?: boolean;
}

export interface BatchOptions {
  /** The subject in the audit log. Default: `app`. */
  readonly by?: string;
  /** All actions in one transaction, or none. */
  readonly atomic?: boolean;
}

export interface CreateOptions {
  readonly by?: string;
  /** An id of the request: up to 64 letters, digits, `-` and `_`. A repeated create returns the entity of the first attempt. */
  readonly requestId?: string;
}

export interface ListOptions<Field extends string, Condition> {
  readonly select?: readonly Field[];
  /** Only entities that match. Storage reads all of the range. */
  readonly where?: Condition;
}

type Scalar = string | number | boolean;

/** Comparisons of one field, which must all hold. None holds for an entity without a value of the field. */
export type Comparisons<Value> = {
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

/** Filters of the entities that an index lists. */
export type WhereBy<Of extends Declared, By extends Index> = Pick<
  Where<Of>,
  Extract<keyof Where<Of>, FieldsOfEach<ListedBy<Of, By>>>
>;

export interface RangeOptions<Of extends Declared, Field extends string> extends ListOptions<Field, Where<Of>> {
  /** The first value of the first field of the row key, or a prefix. */
  readonly from?: string;
  /** The last value. All values that begin with it are included. */
  readonly to?: string;
}

export type Selected<Item, Field extends string> = [Field] extends [never] ? Item : PickEach<Item, Field>;
export type Selectable<Of extends Declared> = FieldsOfEach<Output<Of>>;

/** `reviews.year`: a field of an included child. The compiler checks its name when it is given, and not for all entities of a model. */
export type ChildField<Name> = `${Name & string}.${string}`;
export type CheckedField<All extends Entities, Field> = Field extends `${infer Child}.${infer Name}`
  ? Child extends keyof All & string
    ? Name extends Selectable<All[Child]>
      ? Field
      : `"${Name}" is not a field of ${Child}`
    : Field
  : Field;
export type FieldOfChild<Field, Child extends string> = Field extends `${Child}.${infer Name}` ? Name : never;

/** The names of the children by the name of their parent: computed once for a model, not again for each of its entities. */
type ChildrenBy<All extends Entities> = {
  readonly [Name in keyof All & string as Types<All[Name]>['parent']]: Name;
};
export type ChildName<Of extends Declared, All extends Entities> =
  ChildrenBy<All> extends Readonly<Record<Of['name'], infer Child extends keyof All & string>> ? Child : never;

export type EntityStore<Of extends Declared, All extends Entities> = StoreOfEntity<Of, All> &
  ([Types<Of>['lookup']] extends [never]
    ? unknown
    : {
        /**
         * All entities, in the order of the lookup's index, from the memory of the process. Another process may have changed them up
         * to `maxAge` seconds ago. Throws `too-large` if there are too many for a lookup.
         *
         * @example
         * const depots = await rowkey.store.depots.list();
         */
        list<const Field extends FieldsOfEach<ListedByLookup<Of>> = never>(
          options?: ListOptions<Field, WhereBy<Of, LookupIndex<Of>>>,
        ): Promise<readonly Selected<ListedByLookup<Of>, Field>[]>;
      });

export type LookupIndex<Of extends Declared> = Of['indexes'][Types<Of>['lookup'] & keyof Of['indexes']];
/** An entity as its lookup lists it. */
export type ListedByLookup<Of extends Declared> = ListedBy<Of, LookupIndex<Of>>;

interface StoreOfEntity<Of extends Declared, All extends Entities> {
  /**
   * Reads one entity, with the children and groups of fields named in `include`, in one query. Undefined if it does not exist.
   *
   * @example
   * const found = await rowkey.store.vehicles.get({ depot: 'north', vehicleId: '1' }, { select: ['plate'] });
   * console.log(found?.values.plate, found?.etag);
   */
  get<
    const Name extends ChildName<Of, All> | Named<Of, 'split'> = never,
    const Field extends Selectable<Of> | ChildField<Name> = never,
  >(
    key: Key<Of>,
    options?: {
      readonly include?: readonly Name[];
      /** Only children that match, by the name of the children. */
      readonly where?: { readonly [Child in NoInfer<Name> & ChildName<Of, All>]?: Where<All[Child]> };
      /** Fields of the entity, such as `email`, and of the included children, such as `reviews.year`. Others are not read. */
      readonly select?: readonly CheckedField<All, Field>[];
    },
  ): Promise<
    | Stored<
        Plain<
          Selected<Output<Of>, Extract<Field, Selectable<Of>>> & {
            [Child in Name & ChildName<Of, All>]: readonly Selected<Listed<All[Child]>, FieldOfChild<Field, Child>>[];
          }
        >
      >
    | undefined
  >;
  /**
   * Throws `invalid-input`, `duplicate-key`, `duplicate-value`, `too-large`.
   *
   * @example
   * const vehicle = { depot: 'north', vehicleId: '1', plate: 'AB 12345' };
   * const { values, etag } = await rowkey.store.vehicles.create(vehicle, { requestId: 'order-4711' });
   */
  create(values: Input<Of>, options?: CreateOptions): Promise<Stored<Listed<Of>>>;
  /**
   * Replaces a whole entity, or creates it under this key. Throws `etag-mismatch`, `referenced`, and as `create` does.
   *
   * @example
   * await rowkey.store.vehicles.put({ depot: 'north', vehicleId: '1' }, { plate: 'AB 12345' });
   */
  put(key: Key<Of>, values: Replacement<Of>, options?: WriteOptions): Promise<Stored<Listed<Of>>>;
  /**
   * Replaces a whole entity. Throws `not-found`, `etag-mismatch`, `referenced`, and as `create` does.
   *
   * @example
   * await rowkey.store.vehicles.replace({ depot: 'north', vehicleId: '1' }, { plate: 'AB 12345' });
   */
  replace(key: Key<Of>, values: Replacement<Of>, options?: WriteOptions): Promise<Stored<Listed<Of>>>;
  /**
   * Changes some fields. Throws as `replace` does.
   *
   * @example
   * const key = { depot: 'north', vehicleId: '1' };
   * const before = await rowkey.store.vehicles.get(key);
   * if (before) await rowkey.store.vehicles.update(key, { model: 'Van' }, { ifMatch: before.etag });
   */
  update(key: Key<Of>, patch: Patch<Of>, options?: WriteOptions): Promise<Stored<Listed<Of>>>;
  /** Returns only the new ETag, so that fields may be merged in one transaction, without a read. */
  update(
    key: Key<Of>,
    patch: Patch<Of>,
    options: WriteOptions & { readonly return: 'minimal' },
  ): Promise<{ readonly etag: string }>;
  /**
   * Throws `not-found`, `etag-mismatch`, `referenced`.
   *
   * @example
   * await rowkey.store.vehicles.delete({ depot: 'north', vehicleId: '1' }, { by: 'mary' });
   */
  delete(key: Key<Of>, options?: WriteOptions): Promise<void>;
  /**
   * Executes many actions, those on one partition in their order and in as few transactions as possible. Returns an outcome or
   * an error for each; one that fails does not stop the others. With `atomic`, the actions are on one partition and execute in
   * one transaction or not at all: then throws the error of the first that fails, or `too-large`.
   *
   * @example
   * const outcomes = await rowkey.store.vehicles.batch([
   *   { create: { depot: 'north', vehicleId: '2', plate: 'CD 67890' } },
   *   { patch: { depot: 'north', vehicleId: '1', model: null } },
   *   { delete: { depot: 'south', vehicleId: '7' } },
   * ]);
   */
  batch(actions: readonly BatchAction<Of>[], options?: BatchOptions): Promise<readonly BatchOutcome[]>;
  /**
   * Deletes the entities of a range of a partition, or with `all` the whole partition. An entity that cannot be deleted does not
   * stop the others. `skipped` is the number of rows that clients wrote and that are not valid entities.
   *
   * @example
   * const { deleted, failed } = await rowkey.store.vehicles.deleteRange({ depot: 'north' }, { from: '1', to: '4' });
   */
  deleteRange(
    partition: PartitionKey<Of>,
    range: DeleteRange & { readonly by?: string },
  ): Promise<{ readonly deleted: number; readonly failed: readonly RowkeyError[]; readonly skipped: number }>;
  /**
   * The entities of a partition, in the order of their row keys.
   *
   * @example
   * for await (const { plate } of rowkey.store.vehicles.range({ depot: 'north' }, { where: { model: 'Van' } }))
   *   console.log(plate);
   */
  range<const Field extends Selectable<Of> = never>(
    partition: PartitionKey<Of>,
    options?: RangeOptions<Of, Field>,
  ): Listing<Selected<Listed<Of>, Field>>;
  /**
   * The totals of groups of entities.
   *
   * @example
   * const { count } = await rowkey.store.vehicles.totals.perModel.get({ depot: 'north', model: 'Van' });
   */
  readonly totals: {
    readonly [Name in keyof Types<Of>['totals'] & string]: TotalReader<Of, Types<Of>['totals'][Name]>;
  };
  /**
   * Reads through an index. Returns the values of one entity if at most one can match, otherwise a listing: an index may return a copy,
   * whose ETag is not that of the entity.
   *
   * @example
   * const vehicle = await rowkey.store.vehicles.by.plate({ plate: 'AB 12345' });
   * const vans = await rowkey.store.vehicles.by.model({ depot: 'north', model: 'Van' }).page({ top: 10 });
   */
  readonly by: { readonly [Name in keyof Of['indexes'] & string]: ReadThrough<Of, Of['indexes'][Name]> };
}

type TypesOfTotal<By> = TypesOf<By> extends infer Known extends TotalTypes ? Known : never;
/** The fields of a group. A field of which the key has only a period, such as `{orderDate.month}`, is the text of that period. */
export type GroupFields<Of extends Declared, By> = Given<
  Of,
  AskedFields<TypesOfTotal<By>['partition']> | FieldsOf<TypesOfTotal<By>['row']>
>;
/** The fields that a range of groups begins with. */
export type TotalStart<Of extends Declared, By> = Starts<
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

export interface TotalReader<Of extends Declared, By> {
  /** The total of one group. A group without entities has the count 0. */
  get(group: GroupFields<Of, By>): Promise<GroupTotal<Of, By>>;
  /** The totals of a range of groups in the order of their row keys. Throws `invalid-input`, which names the required fields. */
  range<const Given extends AnyStart<TotalStart<Of, By>>>(
    given: CheckedStart<Given, TotalStart<Of, By>>,
    options?: Omit<IndexRangeOptions<string | number, never, never>, 'select' | 'where'>,
  ): Listing<GroupTotal<Of, By>>;
}

type ReadThrough<Of extends Declared, By extends Index> = ReadByValue<Of, By> &
  ([RangeStart<Of, By>] extends [never]
    ? unknown
    : {
        /** Lists a range of the index in the order of its row keys. Throws `invalid-input`, which names the required leading fields. */
        range<
          const Given extends AnyStart<RangeStart<Of, By>>,
          const Field extends FieldsOfEach<ListedBy<Of, By>> = never,
        >(
          given: CheckedStart<Given, RangeStart<Of, By>>,
          options?: IndexRangeOptions<Bound<Of, By>, Field, WhereBy<Of, By>>,
        ): Listing<Selected<ListedBy<Of, By>, Field>>;
      });

type ReadByValue<Of extends Declared, By extends Index> =
  IsOfMany<Of, By> extends true
    ? <const Field extends FieldsOfEach<ListedBy<Of, By>> = never>(
        given: Asked<Of, By>,
        options?: ListOptions<Field, WhereBy<Of, By>>,
      ) => Listing<Selected<ListedBy<Of, By>, Field>>
    : <const Field extends Selectable<Of> = never>(
        given: Asked<Of, By>,
        options?: { readonly select?: readonly Field[] },
      ) => Promise<Selected<Output<Of>, Field> | undefined>;

export type SeriesStore<Of extends Declared> = SeriesOfKey<Of> &
  ([SpanField<Of>] extends [never]
    ? unknown
    : {
        /**
         * The counts from one instant to another, both included, over all keys that this takes. Each bound is in UTC, in full or a
         * prefix: `2026-11-20T09`. Slots without a count are 0. Throws `invalid-input`.
         *
         * @example
         * const bounds = { from: '2026-11-19T10', to: '2026-11-20T09' };
         * for (const { at, count } of await rowkey.store.trips.span({ vehicleId: '1' }, bounds)) console.log(at, count);
         */
        span(key: Omit<Key<Of>, SpanField<Of>>, bounds: SpanBounds): Promise<readonly SeriesPoint[]>;
      });

export type SpanField<Of extends Declared> =
  TypesOf<Of['series']> extends { readonly spanField: infer Field extends string } ? Field : never;

interface SeriesOfKey<Of extends Declared> {
  /**
   * The counts in the order of the slots. Undefined if nothing was counted.
   *
   * @example
   * const found = await rowkey.store.trips.get({ vehicleId: '1', day: '2026-11-20' });
   */
  get(key: Key<Of>): Promise<(Stored<Key<Of>> & { readonly counts: readonly number[] }) | undefined>;
  /**
   * Sets counts by slot, all in one transaction. Throws `etag-mismatch`.
   *
   * @example
   * await rowkey.store.trips.set({ vehicleId: '1', day: '2026-11-20' }, { 9: 3, 10: 1 });
   */
  set(key: Key<Of>, counts: Readonly<Record<number, number>>, options?: WriteOptions): Promise<void>;
  /**
   * Adds to the count of a slot and returns the new count; concurrent increments are all counted.
   *
   * @example
   * const count = await rowkey.store.trips.increment({ vehicleId: '1', day: '2026-11-20' }, 9, 1);
   */
  increment(key: Key<Of>, slot: number, by: number, options?: CreateOptions): Promise<number>;
  /** Throws `not-found`, `etag-mismatch`. */
  delete(key: Key<Of>, options?: WriteOptions): Promise<void>;
}

/** A store for each entity of a model, by name. */
export type Store<All extends Entities> = {
  readonly [Name in keyof All & string]: All[Name]['series'] extends Slots
    ? SeriesStore<All[Name]>
    : EntityStore<All[Name], All>;
};
