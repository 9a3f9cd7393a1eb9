import type { Values } from '../../base/values.ts';
import type { Action, Address, Properties, Row } from '../../storage/rows.ts';
import type { Guard } from './engine.ts';

export interface Change {
  readonly address: Address;
  readonly before: Snapshot | Unread;
  /** Undefined deletes the entity. */
  readonly after: Values | undefined;
  /** The position of its action in a transaction of several, which its errors name. */
  readonly position?: number | undefined;
  /** True if `after` has only the fields to change. `before` is then unread. */
  readonly isPartial?: boolean | undefined;
  /** True for a put: it replaces an entity that has been created meanwhile. */
  readonly mayExist?: boolean;
  /** True if `after` equals `before`, and the transaction must fail if the entity has changed. */
  readonly isUnchanged?: boolean;
  /** True for a repair or other work of the operator, which changes nothing that a caller has set. */
  readonly isUpkeep?: boolean | undefined;
  /** True if fields are copied from their sources again (fan-out), although the references stay. */
  readonly refreshesCopies?: boolean;
  /** An id by which the creator recognizes its own entity. */
  readonly incarnation?: string | undefined;
  /** For an entity that arrives from another partition. `moves` are the fields whose values its move changes. */
  readonly arrival?: {
    readonly incarnation: string;
    readonly movingFrom: string;
    readonly moves: readonly string[];
    /** True for a child, which arrives with its parent. */
    readonly isCarried?: boolean;
  };
  /** With `arrival`: the rows that arrive with the entity. */
  readonly carried?: CarriedRows;
  /** The id of the operation that moves the entity away. The tombstone keeps it. */
  readonly movedTo?: string;
  /** The id of the operation that has closed the entity with its children, and now deletes the last of them. */
  readonly leaving?: string;
  /** True if the entity only gets another key: it is counted once, and no relation is checked. */
  readonly isRekey?: boolean;
  /** With `movedTo`: true if the entity stays one of its declaration, under another key. */
  readonly isMove?: boolean;
}

/** Rows that move with an entity to another partition or table: the rows to write there, with their former values, and the rows to delete here. */
export interface CarriedRows {
  readonly put: readonly { readonly row: string; readonly properties: Properties; readonly before: Values }[];
  readonly drop: readonly string[];
}

/** Rows of the same partition that a plan must know, by row key. A row that is missing from the map counts as absent. */
export type Siblings = ReadonlyMap<string, Row>;

export interface PlannedAction {
  readonly action: Action;
  /** The meaning of a conflict on this action: the entity changed, another entity has the value, or a sibling row changed. */
  readonly part:
    | { readonly of: 'entity' }
    | { readonly of: 'further row' }
    | { readonly of: 'copy'; readonly fields: readonly string[] }
    | {
        readonly of: 'sibling';
        /** True for a row that goes where its entity goes: an operation of the queue can take it along in another transaction. */
        readonly isCarried?: true;
      };
}

export function relatedKey({ table, partition, row }: Address): string {
  return JSON.stringify([table, partition, row]);
}

/** An entity group transaction while it is planned. */
export interface PlanDraft {
  readonly writeId: string;
  /** Milliseconds. */
  readonly now: number;
  /** Set if the write follows the rules of a caller: a row that the caller cannot refer to counts as absent. */
  readonly guard?: Pick<Guard, 'canRefer'> | undefined;
  /** True if other programs write to the table, too. Then a new row is inserted, and never put. */
  readonly isShared?: boolean;
  /** True if the entities may refer to others that do not exist. */
  readonly leavesReferences?: boolean;
  readonly siblings: Siblings;
  /** The rows that are not siblings, by `relatedKey`, read after the write began. A missing row is absent. */
  readonly related: ReadonlyMap<string, Row>;
  /** The actions on the entities come first. A pattern appends its own actions. One transaction may change a row only once. */
  readonly actions: PlannedAction[];
  /** Entities of other declarations in the partition that the actions of a pattern change. Their index entries follow. */
  readonly dependents: DependentChange[];
}

interface DependentChange {
  /** The name of its declaration, which has copies of fields of the entities of the plan. */
  readonly entity: string;
  readonly row: string;
  readonly after: Values;
}

/** System properties begin with a capital letter; the fields of a schema cannot. */
export interface SystemProperties {
  /** The name of the row's entity and the version of its declaration (heterogeneous entity types pattern). */
  readonly EntityType: string;
  readonly EntityVersion: number;
  /** The last write of the row. A writer recognizes its own row by it when the reply is lost. */
  readonly WriteId: string;
  /** The id of one life of an entity, from its creation through moves, to tell it from a later entity under the same key. */
  readonly Incarnation: string;
  /** The row key, in this partition, of the entity that holds copies of this entity's fields. */
  readonly DenormalizedTo?: string;
  /** Set while an entity arrives from another partition: it can be read and not yet written. */
  readonly MovingFrom?: string;
  /** The id of the operation that deletes, archives or moves the entity with many children: it can be read and not written. */
  readonly Leaving?: string;
  /** The same id, from the first child that the operation has deleted here on: the entity must go. */
  readonly Left?: string;
  /** The further rows of the entity, each with the id of the write that last changed it: see further-rows.ts. */
  readonly FurtherRows?: string;
  /** The properties of a row of another program that no field names: see existing-rows.ts. */
  readonly Carried?: string;
}

/** The known state of an entity's row, from which a change is planned. */
export type Snapshot =
  | { readonly state: 'absent' }
  /** Keeps the fields that other entities have set in the row of an entity that does not exist. */
  | { readonly state: 'placeholder'; readonly etag: string; readonly writeId: string; readonly kept: Properties }
  /** `movedTo` is the id of the operation that moved the entity and still has to open it at its new address. */
  | { readonly state: 'tombstone'; readonly etag: string; readonly writeId: string; readonly movedTo: string }
  | {
      readonly state: 'live';
      readonly etag: string;
      /** Without the fields in further rows that were not read. */
      readonly values: Values;
      readonly system: SystemProperties;
      /** The further rows that were read, by name. */
      readonly further?: ReadonlyMap<string, Properties>;
    };
export type Live = Extract<Snapshot, { state: 'live' }>;

/**
 * The state of a row that is written without a read. With an ETag, the write applies only to the row with this ETag, with `*`
 * to any existing row, and otherwise also to an absent one.
 */
export interface Unread {
  readonly state: 'unread';
  readonly etag: string | undefined;
  /** The values of the key fields, for an error. */
  readonly key: Values;
}

/** Why nobody but an operation may write the entity, or a child of it. */
export function whyClosed({ MovingFrom, Leaving }: SystemProperties): string | undefined {
  if (MovingFrom) return 'The entity is being moved to this partition.';
  return Leaving && 'The entity is being deleted, archived or moved with its children.';
}

export function liveValues(snapshot: Snapshot | Unread): Values | undefined {
  return snapshot.state === 'live' ? snapshot.values : undefined;
}
