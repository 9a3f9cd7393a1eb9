import type { Values } from '../../base/values.ts';
import type { Properties, Row } from '../../storage/rows.ts';
import type { Storage } from '../../storage/storage.ts';
import type { KeyTemplate } from '../keys/key-template.ts';
import type { Hold } from './engine.ts';

/**
 * Rows that an entity has in other partitions or tables. The engine keeps them consistent by its eventual transaction. Only
 * one entity writes an owned row; several entities compete for a contested row.
 */
export interface RemoteIndex {
  /** Unique within the entity. Intents refer to it. */
  readonly name: string;
  readonly table: string;
  readonly partition: KeyTemplate;
  readonly row: KeyTemplate;
  /** A contested row is claimed before the entity group transaction and confirmed after it. */
  readonly isContested: boolean;
  /** The writer leaves the entries to the queue function. */
  readonly isLeftToQueue?: boolean;
  /** The values from which the keys are built, once for each entry that such an entity has. */
  selections(values: Values): readonly Values[];
  /** The properties of an entry's row, unless the row is a list. */
  properties?(values: Values): Properties;
  /** True if the rows lack fields of the entity. */
  readonly isPartial?: boolean;
  readonly list?: ListForm;
  readonly shared?: SharedForm;
}

/** Entries that are members of a list. A list is one row for several entities. */
export interface ListForm {
  /** The text that the list stores for each entity. */
  readonly member: KeyTemplate;
  /** Adds or removes a member. Returns false if the list changed concurrently. */
  settle(
    storage: Storage,
    entry: IndexEntry,
    options: { readonly isWanted: boolean; readonly hold: Hold },
  ): Promise<boolean>;
  holds(row: Row | undefined, member: string): boolean;
  /** Called before a repair. Replaces a list that cannot be read. Returns false if the list changed concurrently. */
  restore(storage: Storage, entry: IndexEntry): Promise<boolean>;
}

/** Entries whose rows change together with a row that several entities share. */
export interface SharedForm {
  /** Writes the entry's row and the shared one. Returns false if one of them changed concurrently. */
  settle(
    storage: Storage,
    entry: IndexEntry,
    options: {
      /** Undefined if the entity does not have the entry. */
      readonly properties: Properties | undefined;
      /** True for a row of this entity. Nothing else is deleted. */
      readonly isOwn: (row: Row) => boolean;
      readonly hold: Hold;
    },
  ): Promise<boolean>;
  /** True if the row has the expected properties. */
  isCurrent(row: Row, expected: Properties): boolean;
}

/** A row outside an entity's partition that must agree with the entity: a copy, a list or a contested row. */
export interface IndexEntry {
  readonly index: string;
  readonly table: string;
  readonly partition: string;
  readonly row: string;
  /** For a list: the text that the list stores for this entity. */
  readonly member?: string | undefined;
}
