import type { Properties, Row } from '../storage/rows.ts';
import type { Storage } from '../storage/storage.ts';
import type { Hold } from './engine.ts';
import type { KeyTemplate } from './keys/key-template.ts';
import type { Values } from './values.ts';

/**
 * Rows that an entity has in other partitions or tables. The engine keeps them in step with the entity by its eventual
 * transaction. Rows that only one entity writes are owned; rows that several entities compete for are contested.
 */
export interface RemoteIndex {
  /** Unique within the entity. An intent names its entries by it. */
  readonly name: string;
  readonly table: string;
  readonly partition: KeyTemplate;
  readonly row: KeyTemplate;
  /** A contested row is claimed before the entity group transaction and confirmed after it. */
  readonly isContested: boolean;
  /** The values to build keys from: once for each entry that an entity in this state has. */
  selections(values: Values): readonly Values[];
  /** What the row of an entry holds, unless the row is a list. */
  properties?(values: Values): Properties;
  readonly list?: ListForm;
}

/** Entries that are members of a list: one row for several entities. */
export interface ListForm {
  /** What the list holds of each entity. */
  readonly member: KeyTemplate;
  /** Makes the list hold a member or not. False if the list changed meanwhile. */
  settle(
    storage: Storage,
    entry: IndexEntry,
    wanted: { readonly wanted: boolean; readonly hold: Hold },
  ): Promise<boolean>;
  holds(row: Row | undefined, member: string): boolean;
  /** Before a repair: makes a list that can be read of one that cannot. False if the list changed meanwhile. */
  restore(storage: Storage, entry: IndexEntry): Promise<boolean>;
}

/** A row outside an entity's partition that has to agree with the entity: a copy of its own, a list, or a contested row. */
export interface IndexEntry {
  readonly index: string;
  readonly table: string;
  readonly partition: string;
  readonly row: string;
  /** Present for a list: what the list holds of this entity. */
  readonly member?: string | undefined;
}
