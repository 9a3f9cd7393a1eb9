import type { OperationCalls } from '../api/app-operation.ts';
import type { EntityCalls, FileCalls, ModelCalls, SeriesCalls } from '../api/calls.ts';
import type {
  Archived,
  Binding,
  Declared,
  Entities,
  Key,
  Named,
  One,
  Output,
  PartitionKey,
  RangeLimit,
  TotalCalls,
  WholeListCalls,
} from '../api/entity-types.ts';
import type { Me } from '../api/me.ts';
import type { DeleteRangeInput } from '../api/writes.ts';
import type { Conditions } from '../define/declaration/conditions.ts';
import type { Operations } from '../define/define-operation.ts';
import type { Page as PageOf, PageOptions as PageRange } from '../engine/read/retrieve.ts';
import type { BatchDone } from '../engine/write/entity-batch.ts';
import type { RowkeyClientError } from './errors.ts';

/** The calls of the client: those of the store, bound over fetch, and those that only a client needs. */

export interface CallOptions {
  /** Ends the call, which then throws the reason of the signal. */
  readonly signal?: AbortSignal | undefined;
}

export interface WriteOptions extends CallOptions, Conditions {
  /**
   * The write is made only if the entity has this ETag. Default: the last ETag that this client has seen of the entity, if
   * there is one. `'*'` accepts any state of an existing entity.
   */
  readonly ifMatch?: string | undefined;
  /** `'*'`: the write is made only if nothing exists under the key. */
  readonly ifNoneMatch?: string | undefined;
}

export interface CreateOptions extends CallOptions {
  /** 1 to 200 printable characters. Default: a random one for each call, which its retries share. */
  readonly idempotencyKey?: string;
}

export interface Page<Item> extends PageOf<Item, string> {}
export interface PageOptions extends CallOptions, Partial<PageRange<string>> {}
/** A list that is read page by page while it is iterated, or one page at a time. */
export interface Listing<Item> extends AsyncIterable<Item> {
  page(options?: PageOptions): Promise<Page<Item>>;
}

/** The result of one action of a batch. */
export type BatchResult =
  | { readonly outcome: BatchDone['outcome']; readonly error?: never }
  | { readonly outcome: 'failed'; readonly error: RowkeyClientError };

export interface BatchOptions extends CreateOptions {
  /** All actions in one transaction, or none. If a reply is lost, a batch with a delete or `ifMatch` is not repeated: it throws `network`. */
  readonly atomic?: boolean;
}

/** At least one inclusive bound of the first field of the row key, each a prefix, or `all`. */
export interface DeleteRange extends CallOptions, Pick<DeleteRangeInput, 'from' | 'to' | 'all'> {
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

interface OverFetch extends Binding {
  readonly isOfCaller: true;
  readonly many: Listing<this['item']>;
  readonly all: Listing<this['item']>;
  readonly isWhole: true;
  readonly read: CallOptions;
  readonly options: [options?: CallOptions];
  readonly list: CallOptions;
  readonly range: RangeLimit & CallOptions;
  readonly write: WriteOptions;
  readonly create: CreateOptions;
  readonly batch: BatchOptions;
  readonly deleteRange: DeleteRange;
  readonly file: Blob;
  readonly upload: UploadOptions;
  readonly download: DownloadOptions;
  readonly outcome: BatchResult;
  readonly removed: Operation | undefined;
  readonly deleted: DeletedRange;
  /** Undefined if the caller may not read it. */
  readonly count: number | undefined;
}

/** What a request would read, write and send: the response to `?explain=true`. */
export interface Explanation {
  readonly steps: readonly Readonly<Record<string, unknown>>[];
  readonly transactions: number;
  /** For operators: the rules on rows that decided what the request reaches. */
  readonly rules?: readonly Readonly<Record<string, unknown>>[];
}

/** Calls that explain instead of executing. */
interface Explaining extends Omit<OverFetch, 'many' | 'all'> {
  readonly one: Promise<Explanation>;
  readonly many: Promise<Explanation>;
  readonly all: Promise<Explanation>;
}

export interface OperationStatus {
  readonly operationId: string;
  readonly status: 'running' | 'succeeded' | 'failed';
  readonly reason?: string;
}

/** An archive, a move, or the delete of an entity with many children, which the API accepts before it is done. */
export interface Operation {
  readonly operationId: string;
  status(options?: CallOptions): Promise<OperationStatus>;
  /** Waits until it has succeeded. Throws `operation-failed` with the reason. */
  done(options?: CallOptions): Promise<OperationStatus>;
}

export interface DownloadOptions extends CallOptions {
  /** Reads the file in ranges of so many bytes, each of which is read again if it fails. By default it is read as a whole. */
  readonly rangeBytes?: number;
  /** Called after each range, or at the end. */
  readonly onProgress?: (received: number, total: number) => void;
}

export interface UploadOptions extends WriteOptions {
  /** The media type. Default: that of the Blob. Without one, the file is sent through the API, which detects it. */
  readonly type?: string;
  /** Called while the bytes are sent; without `XMLHttpRequest` after each block, and of a smaller file at the end. */
  readonly onProgress?: (sent: number, total: number) => void;
  /** A larger file is sent in blocks of so many bytes, four of them concurrently. Default: 8 MiB. Storage is faster with more than 4 MiB. */
  readonly blockBytes?: number;
}

/** A signature for the caller's own row, or for the partition of their own rows. */
export interface Grant<KeyFields = Readonly<Record<string, unknown>>> {
  /** The URL of the row or the table; the token is its query. */
  readonly url: string;
  /** The table service, as the SDKs of storage take it with the table and the token. */
  readonly endpoint: string;
  readonly table: string;
  readonly token: string;
  readonly partition: string;
  /** Undefined for a grant of all rows of the partition. */
  readonly row?: string;
  /** The values of the key fields: of the whole key for a row, else of the partition key. */
  readonly key: KeyFields;
  /** The fields that the API returns to this caller. */
  readonly fields: readonly string[];
  readonly permissions: string;
  readonly expiresAt: string;
}

/** An error whose `current` is the entity that was in the way of a write. */
export type Conflict<Values> = RowkeyClientError<Values> & { readonly code: 'etag-mismatch' | 'duplicate-key' };

export interface FileClient<Of extends Declared> extends FileCalls<Of, OverFetch> {}
export interface TotalClient<Of extends Declared, By> extends TotalCalls<Of, By, OverFetch> {}
export type SeriesClient<Of extends Declared> = SeriesCalls<Of, OverFetch>;

/** An archived entity can be read and deleted, under its original key. */
export type ArchiveClient<Of extends Declared, All extends Entities, As extends Binding = OverFetch> = Pick<
  EntityCalls<Archived<Of>, All, As>,
  'get' | 'range' | 'delete'
>;

/** The calls of the client alone. */
interface Transfers<Of extends Declared, All extends Entities, As extends Binding> {
  /** The archived entities. Its calls throw `invalid-input` if the entity has no archive. */
  readonly archived: ArchiveClient<Of, All, As>;
  /** Moves the entity to its archive. Throws `not-found` if the entity, or an archive of it, does not exist. */
  archive(key: Key<Of>, options?: CreateOptions): One<As, Operation>;
  /** Moves the entity to other values of the fields that the model declares as movable. */
  move(key: Key<Of>, to: Partial<PartitionKey<Of>>, options?: CreateOptions): One<As, Operation>;
}

interface OwnCalls<Of extends Declared> {
  /** A file is sent directly to storage, or through the API if storage cannot be reached or a precondition is given. */
  readonly files: { readonly [Name in Named<Of, 'attachments'>]: FileClient<Of> };
  /** A signature for the caller's own rows, kept and renewed before it expires. Throws `forbidden`, `not-found`. */
  grant(options?: { readonly permissions?: string } & CallOptions): Promise<Grant<Partial<Key<Of>>>>;
  /** True for an error of a write to this entity whose `current` is the state of the entity. */
  isConflict(error: unknown): error is Conflict<Output<Of>>;
}

type Calls<Of extends Declared, All extends Entities, As extends Binding> = EntityCalls<Of, All, As> &
  WholeListCalls<Of, As> &
  Transfers<Of, All, As>;

export type EntityClient<Of extends Declared, All extends Entities> = Calls<Of, All, OverFetch> & OwnCalls<Of>;

/** The types of several reads in one request. */

declare const value: unique symbol;

/** One read of a query. `Value` is what it returns. */
export interface QueryRead<Value> {
  readonly [value]?: Value;
}

/** The result of one read of a query. A read that fails does not stop the others. */
export type QueryResult<Value> = { readonly transactions: number } & (
  | { readonly value: Value; readonly error?: undefined }
  | { readonly value?: undefined; readonly error: RowkeyClientError }
);

export type QueryResults<Reads> = {
  readonly [Name in keyof Reads]: Reads[Name] extends QueryRead<infer Value> ? QueryResult<Value> : never;
};

/** A page of a query. */
interface QueryPage {
  /** The most items: 50 by default, at most 1,000 in all reads of a query. */
  readonly top?: number;
  /** `next` of the previous page of the same read. */
  readonly continuation?: string | undefined;
}

interface InQuery extends Binding {
  readonly isOfCaller: true;
  readonly one: QueryRead<this['item']>;
  readonly many: QueryRead<Page<this['item']>>;
  readonly all: QueryRead<Page<this['item']>>;
  readonly isWhole: false;
  readonly list: QueryPage;
  readonly range: QueryPage;
}

/** The reads of all entities by name: the parameters of the calls of their clients. A data series has no reads in a query. */
type Reads<All extends Entities> = {
  readonly [Name in keyof All & string as All[Name]['series'] extends object ? never : Name]: Pick<
    EntityCalls<All[Name], All, InQuery>,
    'get' | 'range' | 'by'
  > &
    WholeListCalls<All[Name], InQuery>;
};

/**
 * Executes 1 to 16 reads in one request. `build` returns the reads by names of its choice:
 * `query(({ employees }) => ({ me: employees.get(key) }))`. Large texts are not returned.
 */
type Query<All extends Entities, IsExplained> = <const Built extends Readonly<Record<string, QueryRead<unknown>>>>(
  build: (reads: Reads<All>) => Built,
  options?: CallOptions,
) => Promise<IsExplained extends true ? Explanation : QueryResults<Built>>;

/** A row of the caller. */
export interface OwnRow<Name extends string = string> {
  /** That of an archive is the name of its table. */
  readonly entity: Name | (string & {});
  /** The field with the subject of the caller. */
  readonly field: string;
  /** What becomes of the row when the caller erases it. */
  readonly erasing: 'delete' | 'change' | 'keep';
  readonly values: Readonly<Record<string, unknown>>;
}

/** What became of the rows of the caller. */
export interface Erased {
  readonly deleted: number;
  readonly changed: number;
  readonly failed: number;
  /** The errors of the first rows of each request that failed. */
  readonly errors: readonly RowkeyClientError[];
}

/** A client for each entity of a model, by name. */
export type Client<All extends Entities, Own extends Operations = Operations> = {
  readonly [Name in keyof All & string]: All[Name]['series'] extends object
    ? SeriesClient<All[Name]>
    : EntityClient<All[Name], All>;
} & ModelCalls<All, OverFetch> &
  OperationCalls<Own, OverFetch> & {
    readonly query: Query<All, false>;
    /**
     * Who the caller is: the subject and the roles of the token, and the claims that the model compares, if they are verified.
     *
     * @example
     * const { subject } = await client.me();
     */
    readonly me: (options?: CallOptions) => Promise<Me>;
    /** All rows that the model says to be of the caller (`ofUser`), without the fields that the caller may not see. */
    readonly listOwnData: (options?: CallOptions) => Promise<readonly OwnRow<keyof All & string>[]>;
    /**
     * Erases these rows as the model says, by as many requests as it takes. A repeated call erases what is left, such as rows that another
     * request was changing.
     */
    readonly eraseOwnData: (options?: CallOptions) => Promise<Erased>;
    /** Explains a call: `client.explain.employees.get(key)`. Writes need a role that may read the whole entity. */
    readonly explain: {
      readonly [Name in keyof All & string]: All[Name]['series'] extends object
        ? SeriesCalls<All[Name], Explaining>
        : Calls<All[Name], All, Explaining>;
    } & ModelCalls<All, Explaining> &
      OperationCalls<Own, Explaining> & { readonly query: Query<All, true> };
  };
