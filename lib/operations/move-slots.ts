import { RowkeyError } from '../base/errors.ts';
import { deleteFences } from '../storage/fence.ts';
import { isOfFormerRelease } from '../storage/fence-rows.ts';
import { changeSlots, isOwned } from '../storage/slot-row.ts';
import { slotAt } from '../storage/slots.ts';
import type { Storage } from '../storage/storage.ts';
import { findOwner, type Plan, severalAccounts, stateIn } from './placement.ts';
import { bringLeftRows, copyBlobsOf, deleteSlots } from './slot-contents.ts';
import {
  asMover,
  finishMoves,
  legsOf,
  type MoveOptions,
  type MoveReport,
  openAgain,
  startMoves,
} from './slot-mover.ts';

/** Moves slots. With `isClosed`, writes to them wait from the beginning to the end, or fail, and no partition is fenced. */
export async function moveSlots(
  storage: Storage,
  plans: readonly Plan[],
  { isClosed = false, ...options }: MoveOptions & { readonly isClosed?: boolean },
): Promise<MoveReport> {
  const names = severalAccounts(storage).list.map(({ name }) => name);
  const unknown = plans.find(({ to }) => !names.includes(to));
  // As a mover, it would let the next one wait.
  if (unknown)
    throw new RowkeyError('invalid-input', `Storage account "${unknown.to}" not found.`, {
      accepted: names.join(', '),
    });
  return asMover(storage, options, async (mover) => {
    await startMoves(mover, plans, isClosed);
    await finishMoves(mover);
  });
}

/** Continues the moves that a mover has left. */
export function resumeMoves(storage: Storage, options: MoveOptions): Promise<MoveReport> {
  return asMover(storage, options, finishMoves);
}

/**
 * Ends moves: slots that have not been let go stay where they are, and what was copied of them is deleted. What an abort that dies leaves there
 * is compared if the slots move again.
 */
export function abortMoves(storage: Storage, options: MoveOptions): Promise<MoveReport> {
  return asMover(storage, options, async (mover, placements) => {
    const legs = await legsOf(mover);
    // First of all, because writes wait for some of them.
    for (const leg of legs) {
      for (const slot of leg.slots) mover.report.left.push(slot);
      await openAgain(mover, leg);
    }
    for (const { target, slots, layers } of legs) {
      const placement = placements.find(({ account }) => account === target);
      // What slots have left there is for a move back, until it is cleaned up.
      const copied = slots.filter((slot) => placement && stateIn(placement, slot).phase === 'none');
      mover.report.deleted += (await deleteSlots(mover, { account: target, slots: copied, layers })).rows;
    }
  });
}

/** Moves the slots back that have left an account under a move, or under any one, unless the account is cleaned up. */
export function moveBack(storage: Storage, move: string | undefined, options: MoveOptions): Promise<MoveReport> {
  return asMover(storage, options, async (mover, placements) => {
    // A slot that has left several accounts goes back to the last one.
    const turns = new Map<number, number>();
    for (const { owned } of placements)
      for (const [index, { turn }] of owned.moves)
        if (!isOwned(owned, index)) turns.set(index, Math.max(turn, turns.get(index) ?? 0));
    const plans: Plan[] = [];
    for (const { account, owned } of placements) {
      const gone = [...owned.moves].filter(
        ([index, state]) =>
          !isOwned(owned, index) && (move === undefined ? state.turn === turns.get(index) : state.move === move),
      );
      const former = gone.filter(([, state]) => isOfFormerRelease(state.move)).map(([index]) => slotAt(index));
      if (former.length > 0) await bringLeftRows(mover, { source: account, slots: former, layers: owned.layers });
      plans.push({ slots: gone.map(([index]) => slotAt(index)), to: account.name });
    }
    await startMoves(mover, plans, false);
    await finishMoves(mover);
  });
}

interface CleanUpReport {
  readonly slots: number;
  readonly rows: number;
  readonly blobs: number;
  /** Slots that have left their account so recently that clients may still use it. */
  readonly kept: number;
}

/** Deletes the rows that slots have left at their former accounts. There is no way back from here. */
export async function cleanUp(storage: Storage, options: MoveOptions): Promise<CleanUpReport> {
  const report = { slots: 0, rows: 0, blobs: 0, kept: 0 };
  await asMover(storage, options, async (mover, placements) => {
    for (const { account, owned } of placements) {
      const left = [...owned.moves]
        .filter(([index]) => !isOwned(owned, index))
        .map(([index, { goneAt, move }]) => ({ slot: slotAt(index), goneAt, move }));
      const due = left.filter(
        ({ slot, goneAt }) => findOwner(placements, slot) && goneAt + mover.timing.keepMs <= owned.readAt,
      );
      report.kept += left.length - due.length;
      report.slots += due.length;
      // Requests of the other moves may still be under way: the mark keeps them from opening what was sealed.
      const over = new Set(due.map(({ slot }) => slot));
      const live = new Set([...owned.moves].filter(([index]) => !over.has(slotAt(index))).map(([, { move }]) => move));
      // Clients may have uploaded blobs with grants of the former account.
      for (const { account: target } of placements) {
        const slots = due.map(({ slot }) => slot).filter((slot) => findOwner(placements, slot)?.account === target);
        if (slots.length > 0) await copyBlobsOf(mover, { source: account, target, slots, layers: owned.layers });
      }
      const former = due.filter(({ move }) => isOfFormerRelease(move)).map(({ slot }) => slot);
      if (former.length > 0) await bringLeftRows(mover, { source: account, slots: former, layers: owned.layers });
      const slots = due.map(({ slot }) => slot);
      const deleted = await deleteSlots(mover, { account, slots, layers: owned.layers });
      report.rows += deleted.rows;
      report.blobs += deleted.blobs;
      if (slots.length > 0)
        await changeSlots(account, slots, (state) => {
          mover.mayWrite();
          return state.phase === 'gone' ? { phase: 'none' } : state;
        });
      mover.mayWrite();
      await deleteFences(account, {
        isLive: (move) => live.has(move),
        before: owned.readAt - mover.timing.keepMs,
      });
    }
  });
  return report;
}
