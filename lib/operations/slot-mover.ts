import { setTimeout as sleep } from 'node:timers/promises';
import pMap from 'p-map';
import { RowkeyError } from '../base/errors.ts';
import { MINUTE_MS } from '../base/time.ts';
import { isTableGone } from '../storage/errors.ts';
import { listRegistered, sealPartition } from '../storage/fence.ts';
import { newMoveId } from '../storage/fence-rows.ts';
import { timeOf } from '../storage/row-journal.ts';
import { LEASE_MS } from '../storage/slot-map.ts';
import {
  changeSlots,
  heirOf,
  newestLayers,
  numbersOf,
  type Phase,
  readOwned,
  requireRoom,
  type SlotState,
  stateOf,
} from '../storage/slot-row.ts';
import { layerOf, SLOTS, slotAt, slotIndex } from '../storage/slots.ts';
import type { Account, Accounts, Storage } from '../storage/storage.ts';
import { becomeMover, followWork, type HoldTiming, type MoveProgress } from './mover-hold.ts';
import {
  completeLayers,
  findOwner,
  type Placement,
  type Plan,
  readPlacement,
  severalAccounts,
  stateIn,
} from './placement.ts';
import type { AppResources } from './resources.ts';
import { type CopyWork, copyLeg, copyTable, hasBackup, type Leg } from './slot-contents.ts';

/**
 * Moves slots between the storage accounts of an app while it serves. docs/internals/moves.md explains the phases, and test/model/move.ts visits
 * their interleavings: change a rule there before you change it here. Everything that a mover must know is in the rows of the accounts, so
 * another one continues where a mover has died.
 */

export interface MoveTiming extends HoldTiming {
  /** How long a process uses what it read of an account's row. */
  readonly leaseMs: number;
  /** A slot whose writes would wait longer is opened again, and moves another time. */
  readonly pauseWithinMs: number;
  /** Slots are let go together as long as no more partitions of them are open at first. Writes wait for about five requests for each. */
  readonly openedPerSwitch: number;
  /** If writes have waited longer, fewer are let go together the next time, else more. */
  readonly pauseMs: number;
  /** How long the source keeps its rows at least. */
  readonly keepMs: number;
}

/** Grants to write directly to the former account are valid for fifteen minutes. */
export const MOVE_TIMING: MoveTiming = {
  leaseMs: LEASE_MS,
  lateMs: 35_000,
  holdMs: 20_000,
  pauseWithinMs: 5_000,
  openedPerSwitch: 100,
  pauseMs: 250,
  keepMs: 20 * MINUTE_MS,
};

export interface MoveOptions {
  /**
   * The tables and containers of the app: others may be in the same accounts. Tables of periods end with digits. Those of former declarations
   * move with them. Rows of other programs in these tables stay where they are.
   */
  readonly resources: Pick<AppResources, 'tables' | 'containers' | 'clientTables' | 'isOwnRow'>;
  /** How long clients may write rows with a grant, without a fence. By default no client may. */
  readonly grantedForMs?: number;
  readonly timing?: MoveTiming;
  readonly onProgress?: (progress: MoveProgress) => void;
  readonly signal?: AbortSignal;
}

export interface MoveReport {
  readonly slots: number;
  /** Rows that were compared, and those that were written and deleted at the new accounts. */
  readonly rows: number;
  readonly written: number;
  readonly deleted: number;
  /** Blobs that were copied. */
  readonly blobs: number;
  /** How long writes to each slot had to wait, in milliseconds: to closed ones since their closing. Each fails after `WAIT_MS`. */
  readonly pauses: readonly number[];
  /** Slots that stay where they are: aborted ones, and those whose last rows could not be copied in time. */
  readonly left: readonly string[];
}

interface Mover extends CopyWork {
  readonly accounts: Accounts;
  readonly grantedForMs: number;
  readonly timing: MoveTiming;
  readonly report: { -readonly [Name in keyof MoveReport]: MoveReport[Name] } & { pauses: number[]; left: string[] };
  /** When slots were closed that are not handed over, by the move. */
  readonly closed: Map<string, number>;
  /** How many open partitions are let go together now. */
  openedPerSwitch: number;
}

const ATTEMPTS = 3;
/** Writes to these slots wait together, for some requests. */
const SLOTS_PER_SWITCH = 16;
const OPENED_CONCURRENCY = 32;
const CONCURRENCY = 8;

/** Runs work as the only mover, after what another one has left between two accounts is completed. The hold of work that fails ends by itself, because a request of it may be under way. */
export async function asMover(
  storage: Storage,
  { timing = MOVE_TIMING, onProgress = () => {}, resources, grantedForMs = 0, signal }: MoveOptions,
  work: (mover: Mover, placements: readonly Placement[]) => Promise<void>,
): Promise<MoveReport> {
  const accounts = severalAccounts(storage);
  const report: Mover['report'] = { slots: 0, rows: 0, written: 0, deleted: 0, blobs: 0, pauses: [], left: [] };
  const closed: Mover['closed'] = new Map();
  const followed = followWork(report, closed);
  const tell = (progress: MoveProgress) => {
    followed.tell(progress);
    onProgress(progress);
  };
  const onWait = (leftMs: number) => tell({ what: 'another mover', leftMs });
  const hold = await becomeMover(accounts.list[0], timing, { onWait, work: followed.work });
  const mayWrite = () => {
    signal?.throwIfAborted();
    hold.mayWrite();
  };
  // The model places the others as a whole.
  const containers = resources.containers.filter((container) => !accounts.containers.has(container));
  const mover: Mover = {
    accounts,
    grantedForMs,
    timing,
    mayWrite,
    tell,
    storage,
    resources: { ...resources, containers },
    report,
    closed,
    unknownAt: Number.NEGATIVE_INFINITY,
    aheadMs: new Map(),
    openedPerSwitch: timing.openedPerSwitch,
  };
  try {
    await completeLayers(mover);
    await acceptAll(mover);
    await work(mover, await readPlacement(accounts));
    await hold.release();
    return report;
  } finally {
    hold.stop();
  }
}

/** Begins to fence the slots of all plans, or closes them, at their owners. Changes nothing if a plan is rejected. */
export async function startMoves(mover: Mover, plans: readonly Plan[], isClosed: boolean): Promise<void> {
  const placements = await readPlacement(mover.accounts);
  // Too many for the arguments of one call, if several layers have moved.
  const turns = placements.flatMap(({ owned }) => [...owned.moves.values()].map((move) => move.turn));
  const turn = 1 + turns.reduce((one, other) => Math.max(one, other), 0);
  const closing = isClosed ? { isClosed, closedAt: Date.now() } : { isClosed };
  const starts = plans.flatMap(({ slots, to }, at) =>
    placements.flatMap((placement) => {
      const owned = slots.filter((slot) => findOwner(placements, slot) === placement);
      if (placement.account.name === to || owned.length === 0) return [];
      const busy = owned.find((slot) => stateIn(placement, slot).phase !== 'at rest');
      if (busy) throw new RowkeyError('busy', `The slot ${busy} is moving. Resume or abort its move first.`);
      return [
        { account: placement.account, slots: owned, begun: { move: newMoveId(), to, turn: turn + at, ...closing } },
      ];
    }),
  );
  for (const { account, owned } of placements) {
    const added = starts
      .filter((start) => start.account === account)
      .flatMap(({ slots, begun }) => slots.map((slot) => [slotIndex(slot), { ...begun, goneAt: 0 }] as const));
    if (added.length > 0) requireRoom(account, { ...owned, moves: new Map([...owned.moves, ...added]) });
  }
  const phase = isClosed ? 'draining' : 'fencing';
  for (const { account, slots, begun } of starts)
    await change(mover, account, slots, (now) =>
      now.phase === 'at rest' || now.move === begun.move ? { phase, ...begun } : undefined,
    );
}

/** Changes slots in the row of an account, and returns its new ETag. */
async function change(
  { mayWrite }: Mover,
  account: Account,
  slots: readonly string[],
  next: (state: SlotState, readAt: number) => SlotState | undefined,
): Promise<string> {
  const changed = await changeSlots(account, slots, (state, _, readAt) => {
    mayWrite();
    return next(state, readAt);
  });
  if (!changed) throw new RowkeyError('busy', `Something else has changed the slots of the account ${account.name}.`);
  return changed;
}

/** The parts of moves whose slots the source still owns. */
export async function legsOf(mover: Mover, phases: readonly Phase[] = ['fencing', 'draining']): Promise<Leg[]> {
  const legs = new Map<string, Omit<Leg, 'slots'> & { readonly slots: string[] }>();
  for (const { account, owned } of await readPlacement(mover.accounts))
    for (const [index, { move, to, isClosed, closedAt }] of owned.moves) {
      const target = mover.accounts.list.find(({ name }) => name === to);
      if (!target || !phases.includes(stateOf(owned, index).phase)) continue;
      const leg = legs.get(move) ?? {
        source: account,
        target,
        id: move,
        slots: [] as string[],
        layers: owned.layers,
        isClosed,
        closedAt,
      };
      leg.slots.push(slotAt(index));
      legs.set(move, leg);
    }
  return [...legs.values()];
}

/** Brings all moves to their end, from what the accounts say. */
export async function finishMoves(mover: Mover): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    const startedAt = performance.now();
    // A mover has died between the seal and the switch. Nothing that it sent is under way.
    const sealed = (await legsOf(mover, ['draining'])).filter(({ isClosed }) => !isClosed);
    for (const leg of sealed) await switchAll(mover, leg);
    const legs = await legsOf(mover);
    for (const { id, closedAt } of legs) if (closedAt !== undefined) mover.closed.set(id, closedAt);
    if (legs.length > 0) {
      // Nobody uses a lease from before, or a grant that was signed under one, and nothing that was sent under either is under way,
      // whether unfenced or with another fence.
      const { leaseMs, lateMs } = mover.timing;
      await waitUntil(mover, startedAt + leaseMs + mover.grantedForMs + lateMs);
      for (const leg of legs) await copyLeg(mover, leg);
      for (const leg of legs) await switchAll(mover, leg);
    }
    const again = mover.report.left.splice(0);
    if (again.length === 0 || attempt === ATTEMPTS) {
      mover.report.left = again;
      return;
    }
    const repeated = new Set(again);
    const plans = [...sealed, ...legs].map(({ target, slots }) => ({
      slots: slots.filter((slot) => repeated.has(slot)),
      to: target.name,
    }));
    await startMoves(mover, plans, false);
  }
}

async function waitUntil({ tell, mayWrite }: Mover, end: number): Promise<void> {
  for (let leftMs = end - performance.now(); leftMs > 0; leftMs = end - performance.now()) {
    mayWrite();
    tell({ what: 'wait', leftMs });
    await sleep(Math.min(leftMs, 1_000));
  }
}

/** Waits until no copy is under way whose outcome is unknown. */
function settle(mover: Mover): Promise<void> {
  return waitUntil(mover, mover.unknownAt + mover.timing.lateMs);
}

async function switchAll(mover: Mover, leg: Leg): Promise<void> {
  const { pauseMs, openedPerSwitch } = mover.timing;
  mover.tell({ what: 'switch', slots: 0, of: leg.slots.length });
  for (let done = 0; done < leg.slots.length; ) {
    // Most slots of a layer have no partition.
    const most = layerOf(slotIndex(leg.slots[done] ?? '')) > 0 ? SLOTS : SLOTS_PER_SWITCH;
    const { slots, opened } = await nextToSwitch(mover, { ...leg, slots: leg.slots.slice(done, done + most) });
    const pause = await switchSlots(mover, { ...leg, slots });
    if (pause > pauseMs) mover.openedPerSwitch = Math.floor(opened / 2);
    else if (pause < pauseMs / 2) mover.openedPerSwitch = Math.min(openedPerSwitch, 1 + 2 * mover.openedPerSwitch);
    done += slots.length;
    mover.tell({ what: 'switch', slots: done, of: leg.slots.length });
  }
  mover.closed.delete(leg.id);
}

/** The first of the slots, and those after it with which few partitions are open. */
async function nextToSwitch(
  { openedPerSwitch }: Mover,
  { source, id, slots, isClosed }: Leg,
): Promise<{ readonly slots: readonly string[]; readonly opened: number }> {
  if (isClosed) return { slots, opened: 0 };
  const registries = Map.groupBy(await openedIn(source, id, slots), ({ slot }) => slot);
  const openedOf = (slot: string | undefined) => registries.get(slot ?? '')?.length ?? 0;
  let opened = openedOf(slots[0]);
  let count = 1;
  for (; count < slots.length; count += 1) {
    if (opened + openedOf(slots[count]) > openedPerSwitch) break;
    opened += openedOf(slots[count]);
  }
  return { slots: slots.slice(0, count), opened };
}

/**
 * Hands slots over. It changes the source's row, then the target's, and returns the milliseconds in between: for so long writes wait that are
 * not closed since the beginning.
 */
async function switchSlots(mover: Mover, leg: Leg): Promise<number> {
  const { source, target, id, slots, isClosed, closedAt } = leg;
  const { timing, report } = mover;
  const ofMove = (phases: readonly Phase[], phase: Phase) => (state: SlotState, goneAt: number) =>
    state.move === id && phases.includes(state.phase)
      ? { ...state, phase, ...(phase === 'gone' && { goneAt }) }
      : undefined;
  // What is copied now need not be copied while writes wait.
  if (!isClosed) await copyOpened(mover, leg, false);
  await settle(mover);
  const since = performance.now();
  await change(mover, source, slots, ofMove(['fencing', 'draining'], 'draining'));
  const isCopied = isClosed || (await copyOpened(mover, leg, true));
  if (!isCopied || (!isClosed && performance.now() - since > timing.pauseWithinMs)) {
    for (const slot of slots) report.left.push(slot);
    await openAgain(mover, leg);
    return performance.now() - since;
  }
  const goneTag = await change(mover, source, slots, ofMove(['draining', 'gone'], 'gone'));
  await accept(mover, target, slots, [goneTag]);
  const pause = performance.now() - since;
  report.slots += slots.length;
  const waited = closedAt === undefined ? pause : Date.now() - closedAt;
  for (const _ of slots) report.pauses.push(waited);
  return pause;
}

/** The partitions of the slots that were opened. For many slots, one query of all that the move has opened. */
async function openedIn(source: Account, id: string, slots: readonly string[]) {
  if (slots.length > SLOTS_PER_SWITCH) {
    const wanted = new Set(slots);
    return (await listRegistered(source, id)).filter(({ slot }) => wanted.has(slot));
  }
  const lists = await pMap(slots, (slot) => listRegistered(source, id, slot), { concurrency: CONCURRENCY });
  return lists.flat();
}

/** Copies the partitions that were opened; with `isLast`, seals them before. False if a copy may still be under way, or a row cannot be copied. */
async function copyOpened(mover: Mover, leg: Leg, isLast: boolean): Promise<boolean> {
  const { source, id, slots } = leg;
  const before = mover.unknownAt;
  let isBlocked = false;
  await pMap(
    await openedIn(source, id, slots),
    async (opened) => {
      try {
        mover.mayWrite();
        if (isLast) await sealPartition(source, id, opened);
      } catch (error) {
        // The table was dropped.
        if (!isTableGone(error)) throw error;
      }
      const { blocked } = await copyTable(mover, leg, opened);
      isBlocked ||= blocked.length > 0;
    },
    { concurrency: OPENED_CONCURRENCY },
  );
  return mover.unknownAt === before && !isBlocked;
}

/**
 * Waits until the clock of the target has passed the last write at the source, so that what is written at the target is later: a backup orders the
 * versions of a row by their times. A copy tells how far the clock is, else the last whole second.
 */
async function passClock({ aheadMs }: Mover, target: Account, etag: string): Promise<void> {
  const end = Date.parse(timeOf(etag) ?? '') + 1;
  const known = aheadMs.get(target.name);
  const now = known === undefined ? (await readOwned(target))?.readAt : known + performance.now();
  if (now !== undefined && now < end) await sleep(end - now);
}

/** The target owns the slots. Only after the sources have let them go, whose rows have these ETags. */
async function accept(
  mover: Mover,
  target: Account,
  slots: readonly string[],
  etags: readonly string[],
): Promise<void> {
  if (hasBackup(mover)) for (const etag of etags) await passClock(mover, target, etag);
  await change(mover, target, slots, ({ phase }) =>
    phase === 'none' || phase === 'gone' || phase === 'at rest' ? { phase: 'at rest' } : undefined,
  );
}

/** Gives the slots that no account owns to the one that their last owner has let them go to: a mover has died in between. */
async function acceptAll(mover: Mover): Promise<void> {
  const all = (await readPlacement(mover.accounts)).map(({ owned }) => owned);
  const heirs = numbersOf(newestLayers(all)).flatMap((layer) =>
    Array.from(
      { length: SLOTS },
      (_, slot) => [slotAt(layer * SLOTS + slot), heirOf(all, layer * SLOTS + slot)] as const,
    ),
  );
  for (const target of mover.accounts.list) {
    const slots = heirs.filter(([, heir]) => heir === target.name).map(([slot]) => slot);
    const etags = all.map(({ etag }) => etag);
    if (slots.length > 0) await accept(mover, target, slots, etags);
    mover.report.slots += slots.length;
  }
}

/** The source serves the slots as before the move. */
export async function openAgain(mover: Mover, { source, slots, id }: Leg): Promise<void> {
  await change(mover, source, slots, ({ phase, move }) =>
    phase === 'at rest' || (move === id && phase !== 'gone') ? { phase: 'at rest' } : undefined,
  );
}
