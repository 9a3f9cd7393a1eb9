import type { Action, Address, Properties, Row } from '../storage/rows.ts';
import type { Snapshot } from './codec/snapshot.ts';
import type { Values } from './values.ts';

/** A change of one entity, and what a plan makes of the changes of one partition. */

export interface Change {
  readonly address: Address;
  readonly before: Snapshot;
  /** Undefined deletes. */
  readonly after: Values | undefined;
  /** An id that the creator of the entity recognises it by. */
  readonly incarnation?: string | undefined;
  /** Kept by an entity that arrives from another partition. */
  readonly arrival?: { readonly incarnation: string; readonly movingFrom: string };
  /** With an arrival: the rows that arrive with the entity. */
  readonly carried?: CarriedRows;
  /** Kept by the tombstone of an entity that departs: the id of the operation. */
  readonly movedTo?: string;
}

/** Rows that go with an entity to another partition or table: those to write there, and those to delete there. */
export interface CarriedRows {
  readonly put: readonly { readonly row: string; readonly properties: Properties }[];
  readonly drop: readonly string[];
}

/** Rows of the same partition that a plan must know, by row key. A row that is not in the map counts as absent. */
export type Siblings = ReadonlyMap<string, Row>;

export interface PlannedAction {
  readonly action: Action;
  /** What a conflict on this action means: the entity changed, another entity has the value, or a sibling row changed. */
  readonly part:
    | { readonly of: 'entity' }
    | { readonly of: 'copy'; readonly index: string }
    | { readonly of: 'sibling' };
}

/** An entity group transaction while it is planned. */
export interface PlanDraft {
  readonly writeId: string;
  /** Milliseconds. */
  readonly now: number;
  readonly siblings: Siblings;
  /** The actions on the entities come first. A pattern appends its own; one transaction changes a row once. */
  readonly actions: PlannedAction[];
}
