import type { Index } from '../define/declaration/indexes.ts';
import type { Attachment } from '../define/declaration/reference.ts';
import type {
  AnyStart,
  Asked,
  BatchAction,
  Bound,
  CheckedField,
  CheckedStart,
  ChildField,
  ChildName,
  Declared,
  Entities,
  FieldOfChild,
  FieldsOfEach,
  GroupFields,
  GroupTotal,
  IndexRangeOptions,
  Input,
  IsOfMany,
  Key,
  Listed,
  ListedBy,
  ListedByLookup,
  ListOptions,
  LookupIndex,
  Named,
  Output,
  PartitionKey,
  Patch,
  Plain,
  RangeOptions,
  RangeStart,
  Replacement,
  Selectable,
  Selected,
  SpanField,
  Stored,
  TotalStart,
  Types,
  Where,
  WhereBy,
} from '../store/store-types.ts';
import type { RowkeyClientError } from './errors.ts';

/** The types of the client, inferred from the declarations of a model like those of the store. */

export interface CallOptions {
  /** Ends the call, which then throws the reason of the signal. */
  readonly signal?: AbortSignal | undefined;
}

export interface WriteOptions extends CallOptions {
  /**
   * The write is made only if the entity has this ETag. Default: the last ETag that this client has seen of the entity, if
   * there is one. `'*'` accepts any state of an existing entity.
   */
  readonly ifMatch?: string;
  /** `'*'`: the write is made only if nothing exists under the key. */
  readonly ifNoneMatch?: string;
}

export interface CreateOptions extends CallOptions {
  /** 1 to 200 printable characters. Default: a random one for each call, which its retries share. */
  readonly idempotencyKey?: string;
}

export interface Page<Item> {
  readonly items: readonly Item[];
  /** Pass it as `after` to read the next page; undefined after the last one. */
  readonly next: string | undefined;
}

export interface PageOptions extends CallOptions {
  /** The most items of the page: 100 by default, at most 1000. */
  readonly top?: number;
  readonly after?: string | undefined;
}

/** A list that is read page by page while it is iterated, or one page at a time. */
export interface Listing<Item> extends AsyncIterable<Item> {
  page(options?: PageOptions): Promise<Page<Item>>;
}

/** The result of one action of a batch. */
export type BatchResult =
  | { readonly outcome: 'created' | 'stored' | 'unchanged' | 'deleted'; readonly error?: never }
  | { readonly outcome: 'failed'; readonly error: RowkeyClientError };

/** At least one inclusive bound of the first field of the row key, each a prefix, or `all`. */
export interface DeleteRange extends CallOptions {
  readonly from?: string;
  readonly to?: string;
  readonly all?: boolean;
  /** Called after each request with the number of entities deleted so far. */
  readonly onProgress?: (deleted: number) => void;
}

export interface DeletedRange {
  /** Without those of a request whose reply was lost. */
  readonly deleted: number;
  /** How many entities could not be deleted, and the first errors of each request. */
  readonly failed: number;
  readonly errors: readonly RowkeyClientError[];
}

export interface OperationStatus {
  readonly operationId: string;
  readonly status: 'running' | 'succeeded' | 'failed';
  readonly reason?: string;
}

/** An archive or a move, which the API accepts before it is done. */
export interface Operation {
  readonly operationId: string;
  status(options?: CallOptions): Promise<OperationStatus>;
  /** Waits until it has succeeded. Throws `operation-failed` with the reason. */
  done(options?: CallOptions): Promise<OperationStatus>;
}

export interface UploadOptions extends WriteOptions {
  /** The media type. Default: that of the Blob. */
  readonly type?: string;
  /** Called while the bytes are sent; only at the end where there is no `XMLHttpRequest`. */
  readonly onProgress?: (sent: number, total: number) => void;
}

export interface FileClient<Of extends Declared> {
  /** Undefined if there is no file. */
  get(key: Key<Of>, options?: CallOptions): Promise<{ readonly blob: Blob; readonly etag: string } | undefined>;
  /** Sends the bytes directly to storage, or through the API if storage cannot be reached or a precondition is given. */
  put(key: Key<Of>, file: Blob, options?: UploadOptions): Promise<Attachment | undefined>;
  delete(key: Key<Of>, options?: WriteOptions): Promise<void>;
}

/** A signature for the caller's own row, or for the partition of their own rows. */
export interface Grant<KeyFields = Readonly<Record<string, unknown>>> {
  /** The URL of the row or the table; the token is its query. */
  readonly url: string;
  readonly token: string;
  readonly partition: string;
  /** The values of the key fields: of the whole key for a row, else of the partition key. */
  readonly key: KeyFields;
  /** The fields that the API returns to this caller. */
  readonly fields: readonly string[];
  readonly permissions: string;
  readonly expiresAt: string;
}

/** An error whose `current` is the entity that was in the way of a write. */
export type Conflict<Values> = RowkeyClientError<Values> & { readonly code: 'etag-mismatch' | 'duplicate-key' };

/** What a read of one entity may include: children and groups of fields. */
export type Included<Of extends Declared, All extends Entities> = ChildName<Of, All> | Named<Of, 'split'>;
export type SelectableWith<Of extends Declared, Name> = Selectable<Of> | ChildField<Name>;

export interface GetOptions<Of extends Declared, All extends Entities, Name extends string, Field> {
  readonly include?: readonly Name[];
  /** Only children that match, by the name of the children. */
  readonly where?: { readonly [Child in NoInfer<Name> & ChildName<Of, All>]?: Where<All[Child]> };
  /** Fields of the entity, such as `email`, and of the included children, such as `reviews.year`. */
  readonly select?: readonly CheckedField<All, Field>[];
}

/** The fields of an entity, and lists of its included children. */
export type GotWith<Of extends Declared, All extends Entities, Whole, Name extends string, Field> = Plain<
  Selected<Whole, Extract<Field, Selectable<Of>>> & {
    [Child in Name & ChildName<Of, All>]: readonly Selected<Listed<All[Child]>, FieldOfChild<Field, Child>>[];
  }
>;

/** An archived entity can be read and deleted, under its original key. */
export type ArchiveClient<Of extends Declared, All extends Entities> = Pick<
  ClientOfEntity<Of, All>,
  'get' | 'range' | 'delete'
>;

export interface TotalClient<Of extends Declared, By> {
  /** The total of one group. A group without entities has the count 0. */
  get(group: GroupFields<Of, By>, options?: CallOptions): Promise<GroupTotal<Of, By>>;
  /** The totals of a range of groups in the order of their row keys. Throws `invalid-input`, which lists the accepted fields. */
  range<const Given extends AnyStart<TotalStart<Of, By>>>(
    given: CheckedStart<Given, TotalStart<Of, By>>,
    options?: Omit<IndexRangeOptions<string | number, never, never>, 'select' | 'where'> & CallOptions,
  ): Listing<GroupTotal<Of, By>>;
}

export type EntityClient<Of extends Declared, All extends Entities> = ClientOfEntity<Of, All> &
  ([Types<Of>['lookup']] extends [never]
    ? unknown
    : {
        /** All entities of a lookup table, which the app lists from its memory. */
        list<const Field extends FieldsOfEach<ListedByLookup<Of>> = never>(
          options?: ListOptions<Field, WhereBy<Of, LookupIndex<Of>>> & CallOptions,
        ): Listing<Selected<ListedByLookup<Of>, Field>>;
      });

interface ClientOfEntity<Of extends Declared, All extends Entities> {
  /** Reads one entity, with the children and groups of fields named in `include`. Undefined if it does not exist. */
  get<const Name extends Included<Of, All> = never, const Field extends SelectableWith<Of, Name> = never>(
    key: Key<Of>,
    options?: GetOptions<Of, All, Name, Field> & CallOptions,
  ): Promise<Stored<GotWith<Of, All, Output<Of>, Name, Field>> | undefined>;
  /** Throws `invalid-input`, `duplicate-key`, `duplicate-value`, `too-large`. */
  create(values: Input<Of>, options?: CreateOptions): Promise<Stored<Listed<Of>>>;
  /** Replaces a whole entity, or creates it under this key. Throws `etag-mismatch`, and as `create` does. */
  put(key: Key<Of>, values: Replacement<Of>, options?: WriteOptions): Promise<Stored<Listed<Of>>>;
  /** Replaces a whole entity and never creates one. Throws `etag-mismatch`, and as `create` does. */
  replace(key: Key<Of>, values: Replacement<Of>, options?: WriteOptions): Promise<Stored<Listed<Of>>>;
  /** Returns only the new ETag, so that the app may merge the fields in one transaction, without a read. */
  update(
    key: Key<Of>,
    patch: Patch<Of>,
    options: WriteOptions & { readonly return: 'minimal' },
  ): Promise<{ readonly etag: string }>;
  /** Changes some fields; null removes a field. Throws `not-found`, `etag-mismatch`, and as `create` does. */
  update(key: Key<Of>, patch: Patch<Of>, options?: WriteOptions): Promise<Stored<Listed<Of>>>;
  /** Throws `not-found`, `etag-mismatch`. */
  delete(key: Key<Of>, options?: WriteOptions): Promise<void>;
  /**
   * Executes up to 100 actions and returns a result for each; with `atomic` all or none, and throws the first error. An action
   * without `ifMatch` applies to whatever there is. A batch whose reply is lost is not repeated: it throws `network`.
   */
  batch(
    actions: readonly BatchAction<Of>[],
    options?: { readonly atomic?: boolean } & CallOptions,
  ): Promise<readonly BatchResult[]>;
  /**
   * Deletes the entities of a range of a partition, or with `all` the whole partition, by as many requests as it takes. An entity
   * that cannot be deleted does not stop the others.
   */
  deleteRange(partition: PartitionKey<Of>, range: DeleteRange): Promise<DeletedRange>;
  /** The entities of a partition, in the order of their row keys. */
  range<const Field extends Selectable<Of> = never>(
    partition: PartitionKey<Of>,
    options?: RangeOptions<Of, Field> & CallOptions,
  ): Listing<Selected<Listed<Of>, Field>>;
  /** Reads through an index. Returns the values of one entity if at most one can match, otherwise a listing. */
  readonly by: { readonly [Name in keyof Of['indexes'] & string]: ReadThrough<Of, Of['indexes'][Name]> };
  /** The totals of groups of entities. */
  readonly totals: {
    readonly [Name in keyof Types<Of>['totals'] & string]: TotalClient<Of, Types<Of>['totals'][Name]>;
  };
  /** The archived entities. Its calls throw `invalid-input` if the entity has no archive. */
  readonly archived: ArchiveClient<Of, All>;
  /** Moves the entity to its archive. Throws `not-found` if the entity, or an archive of it, does not exist. */
  archive(key: Key<Of>, options?: CreateOptions): Promise<Operation>;
  /** Moves the entity to other values of the fields that the model declares as movable. */
  move(key: Key<Of>, to: Partial<PartitionKey<Of>>, options?: CreateOptions): Promise<Operation>;
  readonly files: { readonly [Name in Named<Of, 'attachments'>]: FileClient<Of> };
  /** A signature for the caller's own rows, kept and renewed before it expires. Throws `forbidden`, `not-found`. */
  grant(options?: { readonly permissions?: string } & CallOptions): Promise<Grant<Partial<Key<Of>>>>;
  /** True for an error of a write to this entity whose `current` is the state of the entity. */
  isConflict(error: unknown): error is Conflict<Output<Of>>;
}

type ReadThrough<Of extends Declared, By extends Index> = ReadByValue<Of, By> &
  ([RangeStart<Of, By>] extends [never]
    ? unknown
    : {
        /** Lists a range of the index in the order of its row keys. */
        range<
          const Given extends AnyStart<RangeStart<Of, By>>,
          const Field extends FieldsOfEach<ListedBy<Of, By>> = never,
        >(
          given: CheckedStart<Given, RangeStart<Of, By>>,
          options?: IndexRangeOptions<Bound<Of, By>, Field, WhereBy<Of, By>> & CallOptions,
        ): Listing<Selected<ListedBy<Of, By>, Field>>;
      });

type ReadByValue<Of extends Declared, By extends Index> =
  IsOfMany<Of, By> extends true
    ? <const Field extends FieldsOfEach<ListedBy<Of, By>> = never>(
        given: Asked<Of, By>,
        options?: ListOptions<Field, WhereBy<Of, By>> & CallOptions,
      ) => Listing<Selected<ListedBy<Of, By>, Field>>
    : <const Field extends Selectable<Of> = never>(
        given: Asked<Of, By>,
        options?: { readonly select?: readonly Field[] } & CallOptions,
      ) => Promise<Selected<Output<Of>, Field> | undefined>;

export interface SpanPoint {
  readonly at: string;
  readonly count: number;
}

export type SeriesClient<Of extends Declared> = {
  /** The counts in the order of the slots. Undefined if nothing was counted. */
  get(
    key: Key<Of>,
    options?: CallOptions,
  ): Promise<(Stored<Key<Of>> & { readonly counts: readonly number[] }) | undefined>;
  /** Sets counts by slot, all in one transaction. Without `ifMatch`, whatever they are now. Throws `etag-mismatch`. */
  set(key: Key<Of>, counts: Readonly<Record<number, number>>, options?: WriteOptions): Promise<void>;
  /** Adds to the count of a slot and returns the new count; undefined if the caller may not read it. */
  increment(key: Key<Of>, slot: number, by: number, options?: CreateOptions): Promise<number | undefined>;
  /** Throws `not-found`, `etag-mismatch`. */
  delete(key: Key<Of>, options?: WriteOptions): Promise<void>;
} & ([SpanField<Of>] extends [never]
  ? unknown
  : {
      /** The counts from one instant to another, both included. Each bound is in UTC, in full or a prefix: `2026-11-20T09`. */
      span(
        key: Omit<Key<Of>, SpanField<Of>>,
        bounds: { readonly from: string; readonly to: string },
        options?: CallOptions,
      ): Promise<readonly SpanPoint[]>;
    });

export type EntityClients<All extends Entities> = {
  readonly [Name in keyof All & string]: All[Name]['series'] extends object
    ? SeriesClient<All[Name]>
    : EntityClient<All[Name], All>;
};

/** What a request would read, write and send: the response to `?explain=true`. */
export interface Explanation {
  readonly steps: readonly Readonly<Record<string, unknown>>[];
  readonly transactions: number;
}

/** Calls that explain instead of executing. */
export type Explained<Calls> = {
  readonly [Name in keyof Calls]: Calls[Name] extends (...parameters: infer Parameters) => unknown
    ? ((...parameters: Parameters) => Promise<Explanation>) &
        (Calls[Name] extends { readonly range: infer Range } ? Explained<{ readonly range: Range }> : unknown)
    : Explained<Calls[Name]>;
};
