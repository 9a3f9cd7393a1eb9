import { z } from 'zod';
import type { Values } from '../../base/values.ts';
import type { Action, Address, Properties, Row } from '../../storage/rows.ts';
import type { Storage } from '../../storage/storage.ts';
import type { KeyTemplate } from '../keys/key-template.ts';
import type { Hold } from './engine.ts';

/**
 * Rows, or members of lists, that follow from one entity: copies, lists, contributions to totals, entries of expiry. `rows` is the one
 * source of them. The plan of a write, the reconciler, the consistency check in both directions and the builds of indexes compare stored
 * rows with it, each in one piece of code for all projections.
 *
 * Maintained counts and further rows are no projections: a count is a field of another entity, and only all counted entities tell it; a
 * further row has values that are stored nowhere else, so nothing can be built from the entity's own row.
 */
export interface Projection {
  /** Unique within the entity. Intents refer to it. */
  readonly name: string;
  readonly at: ProjectionKeys;
  /**
   * Who writes the rows. `transaction`: the entity group transaction, in the partition of the entity. The others are in other partitions or
   * tables: `inline` by the writer after its commit, `queue` by the queue function, `claim` like `inline`, but several entities compete for
   * a row, which is claimed before the commit and confirmed after it.
   */
  readonly settle: 'transaction' | 'inline' | 'queue' | 'claim';
  /** What the model guard remembers of a declared index. */
  readonly shape?: IndexShape;
  /** The rows of an entity with these values. Pure. */
  rows(values: Values): readonly IndexEntry[];
  /** The properties of each row, unless the row is a list. Pure. */
  properties?(values: Values): Properties;
  /** True if the rows lack fields of the entity. */
  readonly isPartial?: boolean;
  /** How the rows, or a row beside them, are shared with other entities. */
  readonly merge?: Merge;
}

/** The table of a projection and the keys of its rows. */
interface ProjectionKeys {
  readonly table: string;
  readonly partition: KeyTemplate;
  readonly row: KeyTemplate;
  /** For a list: the text that the list stores for each entity. */
  readonly member?: KeyTemplate;
}

/** How an entity changes its part of a row that several entities share. */
interface Merge {
  /** Writes the part of the entity in another partition. Returns false if a row changed concurrently. */
  settle(storage: Storage, entry: IndexEntry, part: SharedPart): Promise<boolean>;
  /** True if the row has the part of the entity. */
  holds(
    row: Row | undefined,
    part: Pick<IndexEntry, 'member'> & { readonly properties: Properties | undefined },
  ): boolean;
  /** Set if the row is a list, which has one member for each entity. */
  readonly list?: ListForm;
  /** The row beside that of an entry, which tells the sum of all entries. */
  sumOf?(entry: IndexEntry): Address;
}

interface SharedPart {
  readonly isWanted: boolean;
  /** Undefined if the entity does not have the entry, or the row is a list. */
  readonly properties: Properties | undefined;
  /** True for a row of this entity. Nothing else is deleted. */
  readonly isOwn: (row: Row) => boolean;
  readonly hold: Hold;
  /** True for a repair: the sum of all entries may not include the entry that is stored, so it is computed again. */
  readonly isRepair: boolean;
  /** True if the part is probably not stored yet: then it is not read before it is written. */
  readonly isNew?: boolean;
}

/** Storage of lists, which may be longer than a row. */
export interface ListForm {
  /** True for a row that is a list. The row does not name its entity. */
  has(row: Row): boolean;
  /** The action, under the row's ETag, that adds and removes members; undefined if nothing changes. Pure. */
  change(
    found: Row | undefined,
    row: string,
    members: { readonly add: readonly string[]; readonly remove: readonly string[] },
  ): Action | undefined;
  /** The members, so that a check can process them in parts. */
  members(row: Row): readonly string[];
  /** Reads a whole list. Throws `needs-repair` if a part is lost. */
  read(storage: Storage, address: Address): Promise<Row | undefined>;
  /** Reads a list for a check: the row is returned even if a part is lost. */
  readAny(storage: Storage, address: Address): Promise<Row | undefined>;
  /** Completes a row of a scan with the part of it that is stored in a blob. Reads nothing else. */
  complete(storage: Storage, row: Row): Promise<Row | undefined>;
  /** Converts an action to one that storage can hold. Announces that the blob of the `former` row is about to lose its reference. */
  write(
    storage: Storage,
    address: Address,
    change: { readonly action: Action; readonly former: Pick<Row, 'properties'> | undefined },
  ): Promise<Action>;
  /** Deletes the blob of a row that was replaced or never written. */
  drop(storage: Storage, row: Pick<Row, 'properties'>): Promise<void>;
  /** True for a list whose members cannot be read. */
  isLost(row: Row): boolean;
  /** Replaces a lost list by an empty one. Returns false if the list changed concurrently. */
  restore(storage: Storage, address: Address): Promise<boolean>;
}

/** A row, or a member of a list, that must agree with an entity. */
export interface IndexEntry {
  readonly index: string;
  readonly table: string;
  readonly partition: string;
  readonly row: string;
  /** For a list: the text that the list stores for this entity. */
  readonly member?: string | undefined;
}

/** What a deployment remembers of an index, to find the rows that it leaves when the declaration changes. */
export const IndexShape = z.object({
  kind: z.string(),
  table: z.string().optional(),
  partition: z.string().optional(),
  row: z.string(),
  holds: z.string().optional(),
  unique: z.boolean().optional(),
  copies: z.unknown().optional(),
});
export type IndexShape = z.infer<typeof IndexShape>;
