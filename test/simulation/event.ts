import type { Values } from '../../lib/index.ts';
import type { Step } from '../../local/walk/steps.ts';
import type { AccountWork } from './operators.ts';
import type { Trap } from './world/network.ts';

/** Clients, each with the ETags that it has seen. */
export const CLIENTS = 4;
/** The client whose reads are in the audit log. */
export const STEWARD_CLIENT = CLIENTS;

/** What happens in a world. Each event has a time of its own, so that one that is left out moves no other one. */
export type Event =
  | {
      readonly do: 'write';
      readonly client: number;
      readonly step: Step;
      /** Milliseconds after the next request of an operator to the table, instead of the planned time. */
      readonly afterOperatorMs?: number;
      readonly after?: AfterTrap;
      /** Set when the write begins. */
      readonly traps?: readonly Trap[];
    }
  | {
      readonly do: 'read';
      readonly client: number;
      readonly of: string;
      readonly key: Values;
      readonly afterOperatorMs?: number;
      readonly after?: AfterTrap;
      readonly traps?: readonly Trap[];
    }
  /** A client asks for a grant of its own row. */
  | {
      readonly do: 'grant';
      readonly client: number;
      readonly of: string;
      readonly after?: AfterTrap;
      readonly traps?: readonly Trap[];
    }
  /** A client lists a partition, by pages. */
  | {
      readonly do: 'list';
      readonly client: number;
      readonly of: string;
      readonly key: Values;
      readonly after?: AfterTrap;
    }
  /** A client creates entities of one partition in one transaction. */
  | {
      readonly do: 'transact';
      readonly client: number;
      readonly actions: readonly Readonly<Record<string, { readonly create: Values }>>[];
    }
  /** The second client asks for the second page of a list of the first one. */
  | {
      readonly do: 'continue';
      readonly clients: readonly [number, number];
      readonly of: string;
      readonly key: Values;
    }
  | { readonly do: 'kill'; readonly process: number }
  | { readonly do: 'pause'; readonly process: number; readonly forMs: number }
  | { readonly do: 'away'; readonly account: number; readonly forMs: number }
  /**
   * An operator loads an entity that has no rows, before clients write. The processes that load die at one of their requests, each. The one after
   * them may stand still.
   */
  | {
      readonly do: 'import';
      readonly of: string;
      readonly rows: readonly Values[];
      readonly diesAt: readonly number[];
      readonly standsAfterMs?: number;
      readonly standsForMs?: number;
    }
  /** The processes are replaced by others that know one account more. */
  | { readonly do: 'grow' }
  /** The processes are replaced, one after another, by those of the next release, whose new indexes are then built. */
  | { readonly do: 'deploy'; readonly apartMs: number }
  /** An operator, whose process may die. */
  | {
      readonly do: 'operate';
      readonly work: AccountWork;
      readonly to: number;
      readonly diesAfterMs: number | undefined;
    }
  /** The next snapshot of a backup. The processes that write it die at one of their requests, each, and end in between if they take long. */
  | { readonly do: 'snapshot'; readonly diesAt: readonly number[]; readonly forMs: number }
  /** The lines that wait for the account of a backup are brought there. */
  | { readonly do: 'carry'; readonly diesAt: readonly number[] }
  | { readonly do: 'verify'; readonly of: string; readonly after?: AfterTrap; readonly traps?: readonly Trap[] }
  /** An operator has an index built, or copies, or the data keys of all entities wrapped with the current key. */
  | {
      readonly do: 'upkeep';
      readonly work: 'reindex' | 'rewrap';
      readonly of: string;
      readonly index?: string;
      readonly traps?: readonly Trap[];
    }
  /** The key-encryption key is rotated. */
  | { readonly do: 'rotate' }
  /** The processes that had the next message of an index have died each time: it is recorded as one that cannot succeed. */
  | { readonly do: 'spoil' }
  /** An operator sends all such messages again. */
  | { readonly do: 'replay' };

/** The time after the first trap of a scene has closed. */
interface AfterTrap {
  readonly scene: number;
  readonly ms: number;
}

/** What an event waits for, and where operations stop then. */
export type Stops = Pick<Extract<Event, { do: 'write' }>, 'afterOperatorMs' | 'after' | 'traps'>;
