import type { Values } from '../../base/values.ts';
import type { KeyRing } from '../../storage/key-ring.ts';
import type { Address, Row } from '../../storage/rows.ts';
import type { Storage } from '../../storage/storage.ts';
import type { Limit, Transition } from './comparison.ts';

/** Storage, a clock and time limits for the engine and the patterns. Tests control the clock. */
export interface Engine {
  readonly storage: Storage;
  /** Encrypt and decrypt fields. */
  readonly keys: KeyRing;
  readonly now: () => number;
  readonly timing: Timing;
  /** A writer settles an intent itself if it names at most this many index entries. With 0, the queue settles every intent. */
  readonly settleInline: number;
  /** Seconds for which a process remembers what rules on rows have read. */
  readonly rulesMaxAge: number;
  /** How many parts each queue has. */
  readonly queueParts: number;
  /** The entities whose keys change; absent in a model without any. */
  readonly rekey?: Rekey | undefined;
  /** Reads the app as it was; absent without a backup. */
  readonly past?: Past | undefined;
  /** In an engine of the past, that of the present, whose rules hold. */
  readonly present?: Engine | undefined;
  /** Decides on the writes of a request; absent for the app itself, which may write everything. */
  readonly guard?: Guard | undefined;
}

/**
 * Where the entities of a changed key are. `former`: all are at the former key, where they are read and written. `waiting`: they can be
 * read and not written, because writes at the former key may be under way. `moving`: each is at one of the two keys. Undefined: none is at
 * the former key.
 */
export type RekeyPhase = 'former' | 'waiting' | 'moving' | undefined;

/** Entities are given by their names. */
export interface Rekey {
  /** True for an entity whose key changes. */
  has(entity: string): boolean;
  phaseOf(engine: Engine, entity: string): Promise<RekeyPhase>;
  /** Called when an address has no entity. Returns its row from the former key; while entities move, moves the entity first. */
  find(
    engine: Engine,
    entity: string,
    address: Address & { readonly select?: readonly string[] | undefined },
    options?: { readonly fields?: readonly string[] | undefined; readonly isWhole?: boolean | undefined },
  ): Promise<Row | undefined>;
}

/** What a backup lets read. */
export interface Past {
  /** The roles that may read the past, each of what it may read now. */
  readonly roles: readonly string[];
  /** The retention of the backup. */
  readonly days: number;
  /** An engine that reads what was stored at an instant. Throws `not-found` if the backup begins later. */
  open(present: Engine, at: string): Promise<Engine>;
}

/** The rules on rows, resolved for the caller of a request. Entities are given by their names. */
export interface Guard {
  /** True if the caller may not write every row, so that a write must read the row. */
  isLimited(entity: string): boolean;
  /** True if the caller can neither write nor read the row: a write must not tell that there is one. */
  isHidden(entity: string, write: 'update' | 'delete', before: Values): boolean;
  /** Checks the row that a write begins from. Throws `not-found` for a hidden row, and otherwise `forbidden`. */
  checkBefore(entity: string, key: Values, write: 'update' | 'delete', before: Values): void;
  /** Checks what a write stores, in place of the values `before`. Throws `forbidden`. */
  checkAfter(entity: string, after: Values, before?: Values): void;
  /** True if an update by the caller may have left the row so. */
  canHaveLeft(entity: string, values: Values): boolean;
  /** What the caller reaches by a write, for an operation that asks again when it runs; undefined for every row. */
  limitOf(entity: string, write: 'create' | 'delete'): Limit | undefined;
  /** The updates that the caller may make, for an operation that asks again when it runs; undefined for every one. */
  transitionsOf(entity: string): readonly Transition[] | undefined;
  /** The fields that a create takes from the caller; undefined if there are none. */
  setFields(entity: string): Values | undefined;
  /** The fields of an entity that decide whether the caller may refer to it; undefined if the caller may refer to every one. */
  fieldsToRefer(to: string): readonly string[] | undefined;
  /** True if the caller can read the entity with these values. */
  canRefer(to: string, values: Values): boolean;
}

/**
 * Storage may execute a request `late` milliseconds after the time limit of its sender. Then commitWithinMs + late must be at most
 * claimForMs and the hiding time, so that a reconciler never judges a transaction that may still commit; and settleWithinMs + late at
 * most the hiding time, so that two processes never write for one message. test/model/time.mjs shows what happens otherwise.
 */
export interface Timing {
  /** A writer gives up this long after it sent its intent. */
  readonly commitWithinMs: number;
  readonly claimForMs: number;
  /** An intent is hidden for this long unless its writer shows it earlier. Queues count whole seconds. */
  readonly hideIntentForSeconds: number;
  /** A process that works on a hidden message may write for this long after it last hid the message. */
  readonly settleWithinMs: number;
}

/** The right to do the work of a queue message. */
export interface Hold {
  /**
   * Call this right before each write. Renews the hold when due and returns the signal that aborts the write. Throws `busy`
   * when the hold is lost.
   */
  keep(): Promise<AbortSignal>;
}
