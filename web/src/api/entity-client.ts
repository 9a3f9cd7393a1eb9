import type {
  CallOptions,
  CreateOptions,
  Explanation,
  Listing,
  Operation,
  Stored as StoredAs,
  UploadOptions,
  WriteOptions,
} from '../../../lib/client/index.ts';
import type { Values } from './model.ts';

export type Stored = StoredAs<Values>;

interface ListOptions extends CallOptions {
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  /** Reads the rows of a partition as they were at this instant. */
  readonly at?: string | undefined;
  readonly prefix?: string | undefined;
  readonly select?: readonly string[] | undefined;
  /** By field: a value, or comparisons such as `{ ge: 3, lt: 9 }`. */
  readonly where?: Values | undefined;
}

interface FileClient {
  get(key: Values, options?: CallOptions): Promise<{ readonly blob: Blob; readonly etag: string } | undefined>;
  put(key: Values, file: Blob, options?: UploadOptions): Promise<Values | undefined>;
  delete(key: Values, options?: WriteOptions): Promise<void>;
}

/** The client of an entity of any model: `rowkey/client` without the types of a declaration. */
export interface EntityClient {
  get(
    key: Values,
    options?: CallOptions & {
      readonly include?: readonly string[];
      readonly select?: readonly string[];
      readonly at?: string | undefined;
    },
  ): Promise<(Stored & { readonly counts?: readonly number[] }) | undefined>;
  create(values: Values, options?: CreateOptions): Promise<Stored>;
  update(key: Values, patch: Values, options?: WriteOptions): Promise<Stored>;
  replace(key: Values, values: Values, options?: WriteOptions): Promise<Stored>;
  delete(key: Values, options?: WriteOptions): Promise<void>;
  range(partition: Values, options?: ListOptions): Listing<Values>;
  /** All rows of a lookup table. */
  list(options?: ListOptions): Listing<Values>;
  /** All rows that the rules let the caller read. */
  mine(options?: ListOptions): Listing<Values>;
  readonly by: Readonly<Record<string, IndexClient>>;
  archive(key: Values, options?: CreateOptions): Promise<Operation>;
  move(key: Values, to: Values, options?: CreateOptions): Promise<Operation>;
  readonly files: Readonly<Record<string, FileClient>>;
  batch(
    actions: readonly Values[],
    options?: CreateOptions & { readonly atomic?: boolean },
  ): Promise<readonly Values[]>;
  /** Sets the counts of slots. Only entities with a data series have `set`, `increment` and `span`. */
  set(key: Values, counts: Readonly<Record<number, number>>, options?: WriteOptions): Promise<void>;
  increment(key: Values, slot: number, by: number, options?: CreateOptions): Promise<number | undefined>;
  span(
    key: Values,
    bounds: { readonly from: string; readonly to: string },
    options?: CallOptions,
  ): Promise<readonly { readonly at: string; readonly count: number }[]>;
}

interface IndexClient {
  /** An index that leads to one entity is awaited, any other is read page by page. */
  (values: Values, options?: ListOptions): Listing<Values> & PromiseLike<Values | undefined>;
  range(given: Values, options?: ListOptions): Listing<Values>;
}

export type { Explanation, Listing };

/** The calls of a client, which explain instead of executing. */
export type Explained = {
  readonly [Name in 'get' | 'create' | 'update' | 'replace' | 'delete' | 'archive' | 'move' | 'range']: (
    ...parameters: Parameters<EntityClient[Name]>
  ) => Promise<Explanation>;
} & { readonly by: Readonly<Record<string, ExplainedIndex>> };

interface ExplainedIndex {
  (values: Values, options?: CallOptions): Promise<Explanation>;
  range(values: Values, options?: ListOptions & { readonly first?: number }): Promise<Explanation>;
}

/** The clients by the names of entities. The names come from the model that the API describes. */
export function toClients(client: object) {
  const { explain } = client as { readonly explain: Readonly<Record<string, Explained>> };
  return {
    clients: (name: string) => find(client as Readonly<Record<string, EntityClient>>, name),
    explained: (name: string) => find(explain, name),
  };
}

function find<Kind>(clients: Readonly<Record<string, Kind>>, name: string): Kind {
  const found = clients[name];
  if (!found) throw new Error(`No entity "${name}".`);
  return found;
}
