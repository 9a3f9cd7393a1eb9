import type { Index } from '../define/declaration/indexes.ts';
import type {
  AnyStart,
  Asked,
  Bound,
  CheckedStart,
  Declared,
  Entities,
  FieldsOfEach,
  IndexRangeOptions,
  IsOfMany,
  Key,
  Listed,
  ListedBy,
  ListedByLookup,
  ListOptions,
  LookupIndex,
  PartitionKey,
  RangeOptions,
  RangeStart,
  Selectable,
  Selected,
  Stored,
  Types,
  WhereBy,
} from '../store/store-types.ts';
import type { CallOptions, Explanation, GetOptions, GotWith, Included, Page, SelectableWith } from './client-types.ts';
import type { RowkeyClientError } from './errors.ts';

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

type QueryList<Options> = Omit<Options, 'first'> & QueryPage;

/** The reads of an entity in a query: the parameters of the calls of its client. Large texts are not returned. */
export type EntityReads<Of extends Declared, All extends Entities> = ReadsOfEntity<Of, All> &
  ([Types<Of>['lookup']] extends [never]
    ? unknown
    : {
        /** All entities of a lookup table. */
        list<const Field extends FieldsOfEach<ListedByLookup<Of>> = never>(
          options?: ListOptions<Field, WhereBy<Of, LookupIndex<Of>>>,
        ): QueryRead<Page<Selected<ListedByLookup<Of>, Field>>>;
      });

interface ReadsOfEntity<Of extends Declared, All extends Entities> {
  get<const Name extends Included<Of, All> = never, const Field extends SelectableWith<Of, Name> = never>(
    key: Key<Of>,
    options?: GetOptions<Of, All, Name, Field>,
  ): QueryRead<Stored<GotWith<Of, All, Listed<Of>, Name, Field>> | undefined>;
  range<const Field extends Selectable<Of> = never>(
    partition: PartitionKey<Of>,
    options?: QueryList<RangeOptions<Of, Field>>,
  ): QueryRead<Page<Selected<Listed<Of>, Field>>>;
  readonly by: { readonly [Name in keyof Of['indexes'] & string]: ReadsThrough<Of, Of['indexes'][Name]> };
}

type ReadsThrough<Of extends Declared, By extends Index> = ReadByValue<Of, By> &
  ([RangeStart<Of, By>] extends [never]
    ? unknown
    : {
        range<
          const Given extends AnyStart<RangeStart<Of, By>>,
          const Field extends FieldsOfEach<ListedBy<Of, By>> = never,
        >(
          given: CheckedStart<Given, RangeStart<Of, By>>,
          options?: QueryList<IndexRangeOptions<Bound<Of, By>, Field, WhereBy<Of, By>>>,
        ): QueryRead<Page<Selected<ListedBy<Of, By>, Field>>>;
      });

type ReadByValue<Of extends Declared, By extends Index> =
  IsOfMany<Of, By> extends true
    ? <const Field extends FieldsOfEach<ListedBy<Of, By>> = never>(
        given: Asked<Of, By>,
        options?: QueryList<ListOptions<Field, WhereBy<Of, By>>>,
      ) => QueryRead<Page<Selected<ListedBy<Of, By>, Field>>>
    : <const Field extends Selectable<Of> = never>(
        given: Asked<Of, By>,
        options?: { readonly select?: readonly Field[] },
      ) => QueryRead<Selected<Listed<Of>, Field> | undefined>;

/** The reads of all entities by name. A data series has no reads in a query. */
export type Reads<All extends Entities> = {
  readonly [Name in keyof All & string as All[Name]['series'] extends object ? never : Name]: EntityReads<
    All[Name],
    All
  >;
};

/**
 * Executes 1 to 16 reads in one request. `build` returns the reads by names of its choice:
 * `query(({ employees }) => ({ me: employees.get(key) }))`.
 */
export type Query<All extends Entities, IsExplained> = <
  const Built extends Readonly<Record<string, QueryRead<unknown>>>,
>(
  build: (reads: Reads<All>) => Built,
  options?: CallOptions,
) => Promise<IsExplained extends true ? Explanation : QueryResults<Built>>;
