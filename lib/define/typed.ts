/**
 * Types that a declaration carries for the typed store and client. They exist only for the compiler; no value has this
 * property.
 */
declare const types: unique symbol;

export interface Typed<Types> {
  readonly [types]?: Types;
}

export type TypesOf<Declared> = Declared extends Typed<infer Types> ? NonNullable<Types> : never;

/** The types of an entity besides its schema, name and indexes. */
export interface EntityTypes {
  /** The templates of its key. */
  readonly partition: string;
  readonly row: string;
  readonly encrypted: string;
  readonly large: string;
  readonly attachments: string;
  /** The fields that callers cannot write: derived fields, counts and copies. */
  readonly decided: string;
  /** The totals by name. */
  readonly totals: unknown;
  /** The name of the parent entity. */
  readonly parent: string;
  /** The groups of a vertical split, and their fields, which only some reads return. */
  readonly groups: string;
  readonly apart: string;
  /** The index of the lookup. */
  readonly lookup: string;
}

/** The types of an index besides its kind. */
export interface IndexTypes {
  /** The template of the index's own partition key; undefined for an index in the entity's partition. */
  readonly partition: string | undefined;
  readonly row: string;
  readonly unique: boolean;
  /** The fields of a partial copy; undefined if a read returns whole entities. */
  readonly copies: string | undefined;
}
