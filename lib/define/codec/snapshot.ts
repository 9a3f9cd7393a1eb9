import type { Properties } from '../../storage/rows.ts';
import type { Values } from '../values.ts';

/** Properties of ours begin with a capital; a schema's fields cannot. */
export interface SystemProperties {
  /** Which entity a row is, and of which version of its declaration (heterogeneous entity types pattern). */
  readonly EntityType: string;
  readonly EntityVersion: number;
  /** The write that made the row what it is: how a writer recognises its own after a lost reply. */
  readonly WriteId: string;
  /** One life of an entity from its creation on, through moves, to tell it from a later one of the same key. */
  readonly Incarnation: string;
  /** The row key, in this partition, of the entity that holds copies of this one's fields. */
  readonly DenormalizedTo?: string;
  /** Set while an entity arrives from another partition: readers see it, writers wait. */
  readonly MovingFrom?: string;
}

/** What is known of an entity's row: the state a change is planned from. */
export type Snapshot =
  | { readonly state: 'absent' }
  /** Keeps what other entities have set in the row of an entity that does not exist. */
  | { readonly state: 'placeholder'; readonly etag: string; readonly writeId: string; readonly kept: Properties }
  /** With `movedTo`, the id of the operation that moved the entity and still has to open it where it arrived. */
  | { readonly state: 'tombstone'; readonly etag: string; readonly writeId: string; readonly movedTo: string }
  | { readonly state: 'live'; readonly etag: string; readonly values: Values; readonly system: SystemProperties };
export type Live = Extract<Snapshot, { state: 'live' }>;

/** The fields of an entity that is there. */
export function liveValues(snapshot: Snapshot): Values | undefined {
  return snapshot.state === 'live' ? snapshot.values : undefined;
}
