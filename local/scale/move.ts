import { MOVE_TIMING } from '../../lib/operations/slot-mover.ts';
import { MAX_TRANSACTION_ACTIONS } from '../../lib/storage/rows.ts';
import { SLOTS } from '../../lib/storage/slots.ts';

/** What a move of slots to another account takes, as lib/operations/slot-mover.ts does it: its time, its transactions, and the pause of writes. */

interface Move {
  /** Rows of the account that slots leave, in one table, and of the one that they go to. */
  readonly rows: number;
  readonly rowsOfTarget: number;
  /** Rows of a partition. */
  readonly rowsOfPartition: number;
  /** The slots that move, of those that the account owns. */
  readonly slots: number;
  readonly ownedSlots: number;
  /** The slots that are fenced together. */
  readonly together: number;
  /** Writes a second to the slots that the account owns. */
  readonly writes: number;
  /** Seconds of a call, and of a query that returns a page of rows. */
  readonly delay: number;
  readonly pageDelay: number;
}

export interface MoveCost {
  readonly seconds: number;
  /** The longest time for which writes to a slot wait. */
  readonly pause: number;
  readonly transactions: Readonly<Record<'copy' | 'compare' | 'open' | 'drain' | 'cleanUp', number>>;
  /** Partitions that are written during the move. */
  readonly opened: number;
}

const ROWS_OF_PAGE = 1_000;
const CONCURRENCY = 8;
const OPENED_CONCURRENCY = 32;
/** Slots whose writes wait together, unless more partitions of them are open than `openedPerSwitch`. */
const SLOTS_OF_SWITCH = 16;
/** The rows are compared until only opened partitions differ. */
const PASSES = 2;
const WAIT_S = (MOVE_TIMING.leaseMs + MOVE_TIMING.lateMs) / 1_000;
/** A write that opens its partition: it finds no fence, then the registry, the account's row, and the fence with its mark. */
const OPENING_CALLS = 4;
/** The mark, and the fence. */
const SEALING_CALLS = 2;
/** To read and to change the row of an account; a switch does so three times. */
const CHANGE_CALLS = 2;
const CHANGES = 3;

/** One group of slots moves after another. */
export function costOfMove({ slots, together, ...move }: Move): MoveCost {
  const groups = Math.ceil(slots / Math.min(slots, together));
  const { seconds, pause, opened, transactions } = costOfGroup({ ...move, slots: slots / groups });
  const all = Object.entries(transactions).map(([what, count]) => [what, Math.round(count * groups)]);
  return { seconds: seconds * groups, pause, opened: opened * groups, transactions: Object.fromEntries(all) };
}

function costOfGroup(move: Omit<Move, 'together'>): MoveCost {
  const { rows, rowsOfTarget, rowsOfPartition, slots, ownedSlots, writes, delay, pageDelay } = move;
  const moved = (rows * slots) / ownedSlots;
  const partitions = moved / rowsOfPartition;
  const pages = (count: number) => Math.ceil(count / ROWS_OF_PAGE);
  const copy = partitions * Math.ceil(rowsOfPartition / MAX_TRANSACTION_ACTIONS);
  // A hash cannot be a filter: each pass reads all rows of both accounts, side by side.
  const compare = PASSES * (pages(rows) + pages(rowsOfTarget)) + pages(moved);
  const scan = Math.max(pages(rows), pages(rowsOfTarget + moved)) * pageDelay;
  const atOnce = (calls: number, concurrency: number) => (calls * delay) / concurrency;
  // A first write opens its partition; writes are spread evenly.
  const rate = writes / ownedSlots / (partitions / slots);
  const copyOne = 2 * pages(rowsOfPartition) + 1;
  let seconds = WAIT_S + Math.max(scan, atOnce(copy, CONCURRENCY)) + (PASSES - 1) * scan;
  let [opened, drain, pause] = [0, 0, 0];
  let openedPerSwitch = MOVE_TIMING.openedPerSwitch;
  for (let done = 0; done < slots; ) {
    const ofSlot = (partitions / slots) * -Math.expm1(-rate * seconds);
    const most = Math.max(1, Math.min(SLOTS_OF_SWITCH, Math.floor(openedPerSwitch / ofSlot)));
    const size = Math.min(most, slots - done);
    const found = ofSlot * size;
    // The registries are listed to choose the slots, before the pause and within it.
    const before = found * copyOne;
    const within = found * (copyOne + SEALING_CALLS);
    const waited = atOnce(within, OPENED_CONCURRENCY) + atOnce(size, CONCURRENCY) + CHANGES * CHANGE_CALLS * delay;
    seconds += atOnce(before, OPENED_CONCURRENCY) + atOnce(SLOTS_OF_SWITCH + size, CONCURRENCY) + waited;
    pause = Math.max(pause, waited);
    if (waited > MOVE_TIMING.pauseMs / 1_000) openedPerSwitch = Math.floor(found / 2);
    else if (waited < MOVE_TIMING.pauseMs / 2_000)
      openedPerSwitch = Math.min(MOVE_TIMING.openedPerSwitch, 1 + 2 * openedPerSwitch);
    opened += found;
    drain += before + within + SLOTS_OF_SWITCH + 2 * size + CHANGES * CHANGE_CALLS;
    done += size;
  }
  const cleanUp = pages(rows) + copy;
  return { seconds, pause, opened, transactions: { copy, compare, open: opened * OPENING_CALLS, drain, cleanUp } };
}

/** The slots that go to a further account, so that all have the same number. */
export const slotsToMove = (accounts: number): number => Math.round(SLOTS / (accounts + 1));
