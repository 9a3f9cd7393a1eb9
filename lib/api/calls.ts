import type { Stored } from '../base/values.ts';
import type { Attachment } from '../define/declaration/attachment.ts';
import type { Slots } from '../define/declaration/declaration.ts';
import type { TypesOf } from '../define/declaration/indexes.ts';
import type { SeriesPoint, SpanBounds } from '../features/data-series/series-span.ts';
import type {
  BatchAction,
  Binding,
  Closed,
  Declared,
  Entities,
  Input,
  Key,
  ListCall,
  Listed,
  Named,
  One,
  PartitionKey,
  Patch,
  Plain,
  Read,
  ReadBy,
  Replacement,
  Selectable,
  Selected,
  ServesMine,
  TotalCalls,
  Types,
  Where,
} from './entity-types.ts';
import type { ListInput, RangeInput } from './reads.ts';
import type { DeleteRangeInput } from './writes.ts';

/** The calls of an entity or a series, inferred from its declaration: the store and the client bind them. */

/** `reviews.year`: a field of an included child. The compiler checks its name when it is given, and not for all entities of a model. */
type ChildField<Name> = `${Name & string}.${string}`;
type CheckedField<All extends Entities, Field> = Field extends `${infer Child}.${infer Name}`
  ? Child extends keyof All & string
    ? Name extends Selectable<All[Child]>
      ? Field
      : `"${Name}" is not a field of ${Child}`
    : Field
  : Field;
type FieldOfChild<Field, Child extends string> = Field extends `${Child}.${infer Name}` ? Name : never;

/** The names of the children by the name of their parent: computed once for a model, not again for each of its entities. */
type ChildrenBy<All extends Entities> = {
  readonly [Name in keyof All & string as Types<All[Name]>['parent']]: Name;
};
type ChildName<Of extends Declared, All extends Entities> =
  ChildrenBy<All> extends Readonly<Record<Of['name'], infer Child extends keyof All & string>> ? Child : never;

export type RangeOptions<Of extends Declared, Field extends string> = Pick<RangeInput, 'from' | 'to' | 'at'> &
  ListInput<Field, Where<Of>>;

interface AsOf {
  /**
   * Reads what was stored at this ISO instant, such as `2026-11-29T12:00:00Z`, by the rules of now: for the roles of the backup that the model
   * declares. The ETag is of no use for a write. Throws `forbidden`, `not-found` for what is before the backup.
   */
  readonly at?: string | undefined;
}

export interface EntityCalls<Of extends Declared, All extends Entities, As extends Binding> {
  /**
   * Reads one entity, with the children and groups of fields named in `include`, in one query. Undefined if it does not exist.
   *
   * @example
   * const found = await store.vehicles.get({ depot: 'north', vehicleId: '1' }, { select: ['plate'] });
   * console.log(found?.values.plate, found?.etag);
   */
  get<
    const Name extends ChildName<Of, All> | Named<Of, 'split'> = never,
    const Field extends Selectable<Of> | ChildField<Name> = never,
  >(
    key: Key<Of>,
    options?: {
      readonly include?: readonly Name[] | undefined;
      /** Only children that match, by the name of the children. */
      readonly where?: { readonly [Child in NoInfer<Name> & ChildName<Of, All>]?: Where<All[Child]> } | undefined;
      /** Fields of the entity, such as `email`, and of the included children, such as `reviews.year`. Others are not read. */
      readonly select?: readonly CheckedField<All, Field>[] | undefined;
    } & AsOf &
      As['read'],
  ): One<
    As,
    | Stored<
        Plain<
          Selected<Read<As, Of>, Extract<Field, Selectable<Of>>> & {
            [Child in Name & ChildName<Of, All>]: readonly Selected<Listed<All[Child]>, FieldOfChild<Field, Child>>[];
          }
        >
      >
    | undefined
  >;
  /**
   * Throws `invalid-input`, `duplicate-key`, `duplicate-value`, `partition-full`, `too-large`.
   *
   * @example
   * const { values, etag } = await store.vehicles.create({ depot: 'north', vehicleId: '1', plate: 'AB 12345' });
   */
  create(values: Input<Of>, options?: As['create']): One<As, Stored<Listed<Of>>>;
  /**
   * Replaces a whole entity, or creates it under this key. Throws `etag-mismatch`, `referenced`, and as `create` does.
   *
   * @example
   * await store.vehicles.put({ depot: 'north', vehicleId: '1' }, { plate: 'AB 12345' });
   */
  put(key: Key<Of>, values: Replacement<Of>, options?: As['write']): One<As, Stored<Listed<Of>>>;
  /**
   * Replaces a whole entity. Throws `not-found`, `etag-mismatch`, `referenced`, and as `create` does.
   *
   * @example
   * await store.vehicles.replace({ depot: 'north', vehicleId: '1' }, { plate: 'AB 12345' });
   */
  replace(key: Key<Of>, values: Replacement<Of>, options?: As['write']): One<As, Stored<Listed<Of>>>;
  /** Returns only the new ETag, so that fields may be merged in one transaction, without a read, unless one of them is an object. */
  update(
    key: Key<Of>,
    patch: Patch<Of>,
    options: As['write'] & { readonly return: 'minimal' },
  ): One<As, { readonly etag: string }>;
  /**
   * Changes some fields by a merge patch (RFC 7396): null removes a field or a member of an object, objects are merged, lists are replaced.
   * Throws as `replace` does.
   *
   * @example
   * const key = { depot: 'north', vehicleId: '1' };
   * const before = await store.vehicles.get(key);
   * if (before) await store.vehicles.update(key, { model: 'Van' }, { ifMatch: before.etag });
   */
  update(key: Key<Of>, patch: Patch<Of>, options?: As['write']): One<As, Stored<Listed<Of>>>;
  /**
   * Throws `not-found`, `etag-mismatch`, `referenced`. Returns an operation if one transaction has no room for all children (100 rows with the
   * entity and its rows of indexes): it is accepted, and not done.
   *
   * @example
   * await store.vehicles.delete({ depot: 'north', vehicleId: '1' });
   */
  delete(key: Key<Of>, options?: As['write']): One<As, As['removed']>;
  /**
   * Executes many actions, those on one partition in their order and in as few transactions as possible. Returns an outcome or
   * an error for each; one that fails does not stop the others. With `atomic`, the actions are on one partition and execute in
   * one transaction or not at all: then throws the error of the first that fails, or `too-large`.
   *
   * @example
   * const outcomes = await store.vehicles.batch([
   *   { create: { depot: 'north', vehicleId: '2', plate: 'CD 67890' } },
   *   { patch: { depot: 'north', vehicleId: '1', model: null } },
   *   { delete: { depot: 'south', vehicleId: '7' } },
   * ]);
   */
  batch(actions: readonly BatchAction<Of>[], options?: As['batch']): One<As, readonly As['outcome'][]>;
  /**
   * Deletes the entities of a range of a partition, or with `all` the whole partition. An entity that cannot be deleted does not
   * stop the others.
   *
   * @example
   * const { deleted, failed } = await store.vehicles.deleteRange({ depot: 'north' }, { from: '1', to: '4' });
   */
  deleteRange(
    partition: PartitionKey<Of>,
    range: Pick<DeleteRangeInput, 'from' | 'to' | 'all'> & As['deleteRange'],
  ): One<As, As['deleted']>;
  /**
   * The entities of a partition, in the order of their row keys.
   *
   * @example
   * for await (const { plate } of store.vehicles.range({ depot: 'north' }, { where: { model: 'Van' } }))
   *   console.log(plate);
   */
  readonly range: ListCall<
    Of,
    As,
    Listed<Of>,
    [partition: PartitionKey<Of>],
    Pick<RangeInput, 'from' | 'to'> & AsOf & As['list']
  >;
  /**
   * The entities that the rules on rows let the caller read, of all partitions. For an entity whose rules fix its partition key, or that
   * of an index with whole copies. Throws `forbidden` for a caller who may read all.
   *
   * @example
   * for await (const { plate } of store.vehicles.mine()) console.log(plate);
   */
  readonly mine: ServesMine<Of, As> extends true
    ? ListCall<Of, As, Listed<Of>, [], As['list']>
    : Closed<`No list has all ${Of['name']} of a caller: no partition key is compared by every rule to read`>;
  /**
   * The totals of groups of entities.
   *
   * @example
   * const { count } = await store.vehicles.totals.perModel.get({ depot: 'north', model: 'Van' });
   */
  readonly totals: {
    readonly [Name in keyof Types<Of>['totals'] & string]: TotalCalls<Of, Types<Of>['totals'][Name], As>;
  };
  /**
   * Reads through an index. Returns the values of one entity if at most one can match, otherwise a listing: an index may return a copy,
   * whose ETag is not that of the entity.
   *
   * @example
   * const vehicle = await store.vehicles.by.plate({ plate: 'AB 12345' });
   * const vans = await store.vehicles.by.model({ depot: 'north', model: 'Van' }).page({ top: 10 });
   */
  readonly by: { readonly [Name in keyof Of['indexes'] & string]: ReadBy<Of, Name, As> };
}

/** The calls of one file of an entity. The entity itself describes its files: their media type, size and hash. */
export interface FileCalls<Of extends Declared, As extends Binding> {
  /**
   * Undefined if there is no file.
   *
   * @example
   * const photo = await store.vehicles.files.photo.get({ depot: 'north', vehicleId: '1' });
   * console.log(photo?.blob.type, photo?.blob.size, photo?.etag);
   */
  get(key: Key<Of>, options?: As['download']): One<As, { readonly blob: Blob; readonly etag: string } | undefined>;
  /**
   * Stores the file, and replaces the current one. Returns its description, or undefined to a caller who may not read the entity. The
   * conditions apply to the file. Throws `not-found`, `etag-mismatch`, `too-large`, `unsupported-media-type`.
   *
   * @example
   * const photo = new Blob([await (await fetch('https://fleet.example/1.jpg')).arrayBuffer()]);
   * const stored = await store.vehicles.files.photo.put({ depot: 'north', vehicleId: '1' }, photo);
   */
  put(key: Key<Of>, file: As['file'], options?: As['upload']): One<As, Attachment | undefined>;
  /**
   * No file is no error. The conditions apply to the file. Throws `not-found` if there is no entity, `etag-mismatch`.
   *
   * @example
   * await store.vehicles.files.photo.delete({ depot: 'north', vehicleId: '1' });
   */
  delete(key: Key<Of>, options?: As['write']): One<As, void>;
}

/** One action of a transaction: that of one entity, by its name, such as `{ vehicles: { create: { … } } }`. */
type TransactAction<All extends Entities> = {
  readonly [Name in keyof All & string]: All[Name]['series'] extends Slots
    ? never
    : { readonly [Of in Name]: BatchAction<All[Name]> };
}[keyof All & string];

/** What an action of a transaction has done. */
interface TransactResult {
  readonly outcome: 'created' | 'stored' | 'unchanged' | 'deleted';
  readonly etag?: string | undefined;
  /** The fields of the key, also those that the app generates. */
  readonly key: Readonly<Record<string, unknown>>;
}

/** The calls over all entities of a model. */
export interface ModelCalls<All extends Entities, As extends Binding> {
  /**
   * Executes up to 100 actions on entities of one table and partition in one transaction, or none of them. Each takes effect after
   * those before it: create a parent before its children. Throws the error of the first action that fails, whose message begins with
   * the position of the action, and `too-large` if the actions do not fit into one transaction.
   *
   * @example
   * await store.transact([
   *   { vehicles: { create: { depot: 'north', vehicleId: '9', plate: 'EF 11111' } } },
   *   { vehicles: { patch: { depot: 'north', vehicleId: '1', model: 'Van' } } },
   * ]);
   */
  transact(actions: readonly TransactAction<All>[], options?: As['create']): One<As, readonly TransactResult[]>;
}

interface CallsOfSeries<Of extends Declared, As extends Binding> {
  /**
   * The counts in the order of the slots. Undefined if nothing was counted.
   *
   * @example
   * const found = await store.trips.get({ vehicleId: '1', day: '2026-11-20' });
   */
  get(
    key: Key<Of>,
    ...options: As['options']
  ): One<As, (Stored<Key<Of>> & { readonly counts: readonly number[] }) | undefined>;
  /**
   * Sets counts by slot, all in one transaction. Throws `etag-mismatch`.
   *
   * @example
   * await store.trips.set({ vehicleId: '1', day: '2026-11-20' }, { 9: 3, 10: 1 });
   */
  set(key: Key<Of>, counts: Readonly<Record<number, number>>, options?: As['write']): One<As, void>;
  /**
   * Adds to the count of a slot and returns the new count; concurrent increments are all counted.
   *
   * @example
   * const count = await store.trips.increment({ vehicleId: '1', day: '2026-11-20' }, 9, 1);
   */
  increment(key: Key<Of>, slot: number, by: number, options?: As['create']): One<As, As['count']>;
  /** Throws `not-found`, `etag-mismatch`. */
  delete(key: Key<Of>, options?: As['write']): One<As, void>;
}

type SpanField<Of extends Declared> =
  TypesOf<Of['series']> extends { readonly spanField: infer Field extends string } ? Field : never;

export type SeriesCalls<Of extends Declared, As extends Binding> = CallsOfSeries<Of, As> &
  ([SpanField<Of>] extends [never]
    ? unknown
    : {
        /**
         * The counts from one instant to another, both included, over all keys that this takes. Each bound is in UTC, in full or a
         * prefix: `2026-11-20T09`. Slots without a count are 0. Throws `invalid-input`.
         *
         * @example
         * const bounds = { from: '2026-11-19T10', to: '2026-11-20T09' };
         * for (const { at, count } of await store.trips.span({ vehicleId: '1' }, bounds)) console.log(at, count);
         */
        span(
          key: Omit<Key<Of>, SpanField<Of>>,
          bounds: SpanBounds,
          ...options: As['options']
        ): One<As, readonly SeriesPoint[]>;
      });
