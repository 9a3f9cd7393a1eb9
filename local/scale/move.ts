import { SLOTS } from '../../lib/storage/slots.ts';

/** What a move of slots to another account takes: its time, its transactions, and the pause of writes. */

export interface Move {
  /** Rows of the account that slots leave, and of the one that they go to. */
  readonly rows: number;
  readonly rowsOfTarget: number;
  /** Rows of a partition. */
  readonly rowsOfPartition: number;
  /** The slots that move, of those that the account owns. */
  readonly slots: number;
  readonly ownedSlots: number;
  /** The slots that are fenced, copied and drained together. */
  readonly together: number;
  /** Writes a second to the slots that the account owns. */
  readonly writes: number;
  /** Calls of the mover at a time, and seconds of one. */
  readonly concurrency: number;
  readonly delay: number;
}

export interface MoveCost {
  readonly seconds: number;
  /** Seconds for which writers wait in a slot, from its draining to its switch. */
  readonly pause: number;
  readonly transactions: Readonly<Record<'scan' | 'copy' | 'compare' | 'open' | 'drain' | 'cleanUp', number>>;
  /** Partitions that are written during the move. */
  readonly opened: number;
}

const ROWS_OF_QUERY = 1_000;
const ACTIONS_OF_TRANSACTION = 99;
/** The lease of what a process has read of an account's row, and how late storage may execute a request. */
const WAIT_S = 5 + 35;
/** A write that opens its partition: the registry, the mark, the account's row, and the fence with the mark. */
const OPENING_CALLS = 4;
/** To seal a partition: delete the fence, mark it. */
const SEALING_CALLS = 2;
/** The rows of the two accounts, and reading them after they are written. */
const SWITCH_CALLS = 4;

/** The groups of slots move one after another. */
export function costOfMove({ slots, ...move }: Move): MoveCost {
  const groups = Math.ceil(slots / Math.min(slots, move.together));
  const { seconds, pause, opened, transactions } = costOfGroup({ ...move, slots: slots / groups });
  const all = Object.entries(transactions).map(([what, count]) => [what, Math.round(count * groups)]);
  return { seconds: seconds * groups, pause, opened: opened * groups, transactions: Object.fromEntries(all) };
}

function costOfGroup(move: Omit<Move, 'together'>): MoveCost {
  const { rows, rowsOfTarget, rowsOfPartition, slots, ownedSlots, writes, concurrency, delay } = move;
  const moved = (rows * slots) / ownedSlots;
  const partitions = moved / rowsOfPartition;
  const queries = (count: number) => Math.ceil(count / ROWS_OF_QUERY);
  // A hash cannot be a filter, so each pass reads all rows of both accounts.
  const scan = queries(rows) + queries(rowsOfTarget);
  const copy = partitions * Math.ceil(rowsOfPartition / ACTIONS_OF_TRANSACTION);
  const compare = queries(rows) + queries(rowsOfTarget + moved);
  const secondsOf = (calls: number) => (calls * delay) / concurrency;
  const bulk = WAIT_S + secondsOf(scan + copy + compare);
  // The first write of the time opens its partition; writes are spread evenly.
  const rate = ((writes / ownedSlots) * slots) / partitions;
  const opened = partitions * -Math.expm1(-rate * bulk);
  const again = SEALING_CALLS + 2 * queries(rowsOfPartition) + 1;
  const drain = opened * again + slots * SWITCH_CALLS;
  // One slot after another is drained.
  const pause = secondsOf((opened / slots) * again) + SWITCH_CALLS * delay;
  const cleanUp = queries(rows) + copy;
  return {
    seconds: bulk + slots * pause,
    pause,
    transactions: { scan, copy, compare, open: opened * OPENING_CALLS, drain, cleanUp },
    opened,
  };
}

/** The slots that go to a further account, so that all have the same number. */
export const slotsToMove = (accounts: number): number => Math.round(SLOTS / (accounts + 1));
