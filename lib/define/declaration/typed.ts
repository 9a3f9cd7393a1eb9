/**
 * Types that a declaration carries for the typed store and client. They exist only for the compiler; no value has this
 * property.
 */
declare const types: unique symbol;

export interface Typed<Types> {
  readonly [types]?: Types;
}

export type TypesOf<Declared> = Declared extends Typed<infer Types> ? NonNullable<Types> : never;

/** The types of an index besides its kind. */
export interface IndexTypes {
  /** The template of the index's own partition key; undefined for an index in the entity's partition. */
  readonly partition: string | undefined;
  readonly row: string;
  readonly unique: boolean;
  /** The fields of a partial copy; undefined if a read returns whole entities. */
  readonly copies: string | undefined;
}
