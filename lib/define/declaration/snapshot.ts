import type { Values } from '../../base/values.ts';
import type { Properties } from '../../storage/rows.ts';

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
  /** The further rows of the entity, each with the id of the write that last changed it: see further-rows.ts. */
  readonly FurtherRows?: string;
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

export function liveValues(snapshot: Snapshot | Unread): Values | undefined {
  return snapshot.state === 'live' ? snapshot.values : undefined;
}
