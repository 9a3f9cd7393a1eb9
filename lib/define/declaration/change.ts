import type { Values } from '../../base/values.ts';
import type { Action, Address, Properties, Row } from '../../storage/rows.ts';
import type { Snapshot, Unread } from './snapshot.ts';

export interface Change {
  readonly address: Address;
  readonly before: Snapshot | Unread;
  /** Undefined deletes the entity. */
  readonly after: Values | undefined;
  /** True if `after` has only the fields to change. `before` is then unread. */
  readonly isPartial?: boolean | undefined;
  /** True if `after` equals `before`, and the transaction must fail if the entity has changed. */
  readonly isUnchanged?: boolean;
  /** True for a repair or other work of the operator, which changes nothing that a caller has set. */
  readonly isUpkeep?: boolean | undefined;
  /** True if fields are copied from their sources again (fan-out), although the references stay. */
  readonly refreshesCopies?: boolean;
  /** An id by which the creator recognizes its own entity. */
  readonly incarnation?: string | undefined;
  /** For an entity that arrives from another partition. */
  readonly arrival?: { readonly incarnation: string; readonly movingFrom: string };
  /** With `arrival`: the rows that arrive with the entity. */
  readonly carried?: CarriedRows;
  /** The id of the operation that moves the entity away. The tombstone keeps it. */
  readonly movedTo?: string;
  /** With `movedTo`: true if the entity stays one of its declaration, under another key. */
  readonly isMove?: boolean;
}

/** Rows that move with an entity to another partition or table: the rows to write there, and the rows to delete here. */
export interface CarriedRows {
  readonly put: readonly { readonly row: string; readonly properties: Properties }[];
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
    | { readonly of: 'sibling' };
}

export function relatedKey({ table, partition, row }: Address): string {
  return JSON.stringify([table, partition, row]);
}

/** An entity group transaction while it is planned. */
export interface PlanDraft {
  readonly writeId: string;
  /** Milliseconds. */
  readonly now: number;
  readonly siblings: Siblings;
  /** The rows that are not siblings, by `relatedKey`, read after the write began. A missing row is absent. */
  readonly related: ReadonlyMap<string, Row>;
  /** The actions on the entities come first. A pattern appends its own actions. One transaction may change a row only once. */
  readonly actions: PlannedAction[];
  /** Entities of other declarations in the partition that the actions of a pattern change. Their index entries follow. */
  readonly dependents: DependentChange[];
}

export interface DependentChange {
  /** The name of its declaration, which has copies of fields of the entities of the plan. */
  readonly entity: string;
  readonly row: string;
  readonly after: Values;
}
