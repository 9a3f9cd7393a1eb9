/** Rows, changes of rows and filters, as the code above storage has them. */

/** A stored row. Its properties have the types of the tables SDK. */
export interface Row extends Address {
  readonly etag: string;
  readonly properties: Properties;
  /** The further rows of an entity by name, if `properties` includes theirs: see further-rows.ts. */
  readonly further?: ReadonlyMap<string, Properties>;
}

export type Properties = Readonly<Record<string, unknown>>;

export interface Address {
  readonly table: string;
  readonly partition: string;
  readonly row: string;
}

/** A comparison of one property with values typed as stored; with `in`, one of the values must be equal. */
export interface RowComparison {
  readonly name: string;
  readonly operator: 'eq' | 'ne' | 'gt' | 'ge' | 'lt' | 'le' | 'in';
  readonly values: readonly unknown[];
}

/** A comparison, or alternatives of comparisons that all hold. */
export type RowCondition = RowComparison | { readonly anyOf: readonly (readonly RowComparison[])[] };

/** Which rows to return. */
export interface RowFilter {
  /** Only rows of this `EntityType`, or of one of these, with the comparisons of the type. */
  readonly type?: string | readonly (string | TypeFilter)[] | undefined;
  /**
   * Only rows for which all comparisons hold; storage reads every row of the range. Comparisons that storage cannot evaluate are
   * left out, so the caller compares the rows again.
   */
  readonly where?: readonly RowCondition[] | undefined;
  /** With `where`, also every row of an earlier `EntityVersion`. */
  readonly orVersionBefore?: number | undefined;
  /** The `EntityType` of the rows that count against `limit`; by default all count. */
  readonly counted?: string | undefined;
}

interface TypeFilter extends Pick<RowFilter, 'where' | 'orVersionBefore'> {
  readonly type: string;
}

/** One change of one row. `replace` and `merge` require that the row exists with `etag`. */
export type Action =
  | { readonly kind: 'insert'; readonly row: string; readonly properties: Properties }
  /** Replaces or merges into the row, or inserts it. */
  | { readonly kind: 'upsert'; readonly row: string; readonly properties: Properties }
  | { readonly kind: 'upsert-merge'; readonly row: string; readonly properties: Properties }
  | { readonly kind: 'replace' | 'merge'; readonly row: string; readonly properties: Properties; readonly etag: string }
  /** The ETag applies only to a single action, and with `deletesIf`: any other delete in a transaction is unconditional. */
  | { readonly kind: 'delete'; readonly row: string; readonly etag?: string };
