import type { Declared, Listed, Output } from './entity-types.ts';

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
