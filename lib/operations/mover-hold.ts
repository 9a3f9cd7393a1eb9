import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { ROW_TYPES, SYSTEM_PARTITIONS, SYSTEM_ROWS } from '../base/engine-names.ts';
import { isOutcomeUnknown, RowkeyError } from '../base/errors.ts';
import { ofAccount } from '../storage/errors.ts';
import { type Action, readRow, tryAction } from '../storage/rows.ts';
import { SYSTEM_TABLE } from '../storage/slot-row.ts';
import type { Account } from '../storage/storage.ts';

/** There is one mover at a time. Its row, in the first account, changes while it lives. */
const HOLD = { table: SYSTEM_TABLE, partition: SYSTEM_PARTITIONS.slots, row: SYSTEM_ROWS.mover } as const;

export interface HoldTiming {
  /** How long a mover may write after the start of its last renewal. */
  readonly holdMs: number;
  /** How late storage may execute a request. */
  readonly lateMs: number;
}

interface MoverTells {
  readonly onWait?: (leftMs: number) => void;
  /** Called when the row is written, which is the only write that tells of the work. */
  readonly work?: () => Work | undefined;
}

interface Hold {
  /** Throws if another mover may have begun. Called before each write. */
  mayWrite(): void;
  /** Ends the hold, so that the next mover need not wait. Only copies of this one may be under way: the next one waits before it compares. */
  release(): Promise<void>;
  /** Stops to renew the hold. */
  stop(): void;
}

export type MoveProgress =
  | { readonly what: 'another mover'; readonly leftMs: number }
  | { readonly what: 'wait'; readonly leftMs: number }
  | { readonly what: 'copy'; readonly pass: number; readonly table: string; readonly rows: number }
  | { readonly what: 'switch'; readonly slots: number; readonly of: number };

/** What a mover says of its work, in its row. Instants and durations are in milliseconds. */
const Work = z.object({
  startedAt: z.number(),
  saidAt: z.number(),
  /** It waits for late requests before it copies, then copies, then hands slots over. */
  phase: z.enum(['waiting', 'copying', 'handing over']),
  /** The time that is left of the wait or the hand-over; 0 if it is not known. */
  leftMs: z.number(),
  /** The table or the container that it compares, and which comparison it is. */
  table: z.string().optional(),
  pass: z.number().optional(),
  rows: z.number(),
  rowsPerSecond: z.number(),
  written: z.number(),
  blobs: z.number(),
  slots: z.number(),
  /** How long writes to a slot have waited at most, also to closed ones that are not handed over yet. */
  pauseMs: z.number(),
});
export type Work = z.infer<typeof Work>;

interface Done extends Pick<Work, 'slots' | 'written' | 'blobs'> {
  readonly pauses: readonly number[];
}

/** Keeps what a mover tells of its work, until its row is written. `closed` has when slots were closed that are not handed over, by the move. */
export function followWork(done: Done, closed: ReadonlyMap<string, number>) {
  const startedAt = Date.now();
  let phase: Work['phase'] = 'waiting';
  let endsAt = 0;
  let at: Pick<Work, 'table' | 'pass'> = {};
  let rows = 0;
  let last = { at: startedAt, rows };
  let switchingSince = 0;
  return {
    tell(progress: MoveProgress): void {
      const now = Date.now();
      if (progress.what === 'wait') [phase, endsAt] = ['waiting', now + progress.leftMs];
      if (progress.what === 'copy') {
        const { table, pass } = progress;
        [phase, endsAt, at] = ['copying', 0, { table, pass }];
        rows += progress.rows;
      }
      if (progress.what === 'switch') {
        const { slots, of } = progress;
        if (slots === 0) switchingSince = now;
        [phase, at] = ['handing over', {}];
        endsAt = slots === 0 ? 0 : now + ((now - switchingSince) / slots) * (of - slots);
      }
    },
    work(): Work {
      const now = Date.now();
      const rowsPerSecond = Math.round(((rows - last.rows) * 1_000) / Math.max(1, now - last.at));
      last = { at: now, rows };
      const { slots, written, blobs } = done;
      const pauses = [...done.pauses, ...[...closed.values()].map((closedAt) => now - closedAt)];
      const counts = {
        rows,
        rowsPerSecond,
        written,
        blobs,
        slots,
        pauseMs: Math.round(pauses.reduce((one, other) => Math.max(one, other), 0)),
      };
      return { startedAt, saidAt: now, phase, leftMs: Math.round(Math.max(0, endsAt - now)), ...at, ...counts };
    },
  };
}

/**
 * What the mover says of its work, at most four seconds ago if it lives. Undefined without a mover. One point query. The row of a mover that
 * has died stays until another one takes over.
 */
export async function readMover(
  first: Account,
  now: number,
): Promise<(Work & { readonly isAlive: boolean }) | undefined> {
  const row = await readHold(first);
  if (!row) return undefined;
  const work = Work.safeParse(JSON.parse(String(row.properties.Work ?? '{}'))).data;
  return work && { ...work, isAlive: now - work.saidAt <= SILENT_MS };
}

const readHold = (first: Account) => ofAccount(first, readRow(first, HOLD));

/** A mover that has not written its row for so long may write no more. Clocks of machines differ by less. */
const SILENT_MS = 30_000;

/**
 * Becomes the mover. If there is one, waits until its row has not changed for so long that it writes no more and that nothing it sent is
 * under way. No clock is compared with another one.
 */
export async function becomeMover(
  first: Account,
  { holdMs, lateMs }: HoldTiming,
  { onWait = () => {}, work = () => undefined }: MoverTells = {},
): Promise<Hold> {
  const holder = randomUUID();
  let etag = '';
  let since = 0;
  /** When the first write since then began: it may be the one that changed the row, whatever its reply. */
  let begun: number | undefined;
  let isLost = false;

  /** Writes the row under the ETag that was seen, or inserts it. */
  const write = async (seen: string | undefined): Promise<void> => {
    const startedAt = begun ?? performance.now();
    begun = startedAt;
    const { row } = HOLD;
    const properties = { EntityType: ROW_TYPES.mover, Holder: holder, Work: JSON.stringify(work() ?? {}) };
    const action: Action =
      seen === undefined ? { kind: 'insert', row, properties } : { kind: 'replace', row, properties, etag: seen };
    await tryAction(first, HOLD, action).catch(unlessUnknown);
    // A reply may be lost, and the row changed all the same.
    const found = await readHold(first);
    isLost = found?.properties.Holder !== holder;
    if (isLost) begun = undefined;
    if (isLost || !found || found.etag === seen) return;
    etag = found.etag;
    since = startedAt;
    begun = undefined;
  };

  for (let seen = await readHold(first), unchangedSince = performance.now(); ; ) {
    const leftMs = seen ? unchangedSince + holdMs + lateMs - performance.now() : 0;
    if (leftMs <= 0) {
      await write(seen?.etag);
      if (!isLost && etag) break;
    } else {
      onWait(leftMs);
      await sleep(Math.min(leftMs, holdMs / WATCHES));
    }
    const now = await readHold(first);
    if (now?.etag !== seen?.etag) unchangedSince = performance.now();
    seen = now;
  }

  let renewing: Promise<void> | undefined;
  const timer = setInterval(() => {
    if (isLost) return;
    renewing ??= write(etag)
      .catch(() => {})
      .finally(() => {
        renewing = undefined;
      });
  }, holdMs / WATCHES);
  timer.unref();
  const stop = () => clearInterval(timer);
  return {
    mayWrite() {
      if (isLost || performance.now() - since > holdMs)
        throw new RowkeyError(
          'busy',
          'Another mover of slots has taken over, or storage did not renew the hold of this one.',
        );
    },
    stop,
    async release() {
      stop();
      await renewing;
      await tryAction(first, HOLD, { kind: 'delete', row: HOLD.row, etag });
    },
  };
}

const WATCHES = 5;

function unlessUnknown(error: unknown): undefined {
  if (!isOutcomeUnknown(error)) throw error;
  return undefined;
}
