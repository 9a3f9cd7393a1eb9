import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { isOutcomeUnknown, RowkeyError } from '../base/errors.ts';
import { type Action, readRow, tryAction } from '../storage/rows.ts';
import { SYSTEM_TABLE } from '../storage/slot-row.ts';
import type { Account } from '../storage/storage.ts';

/** There is one mover at a time. Its row, in the first account, changes while it lives. */
const HOLD = { table: SYSTEM_TABLE, partition: 'slots', row: 'mover' } as const;

export interface HoldTiming {
  /** How long a mover may write after the start of its last renewal. */
  readonly holdMs: number;
  /** How late storage may execute a request. */
  readonly lateMs: number;
}

export interface Hold {
  /** Throws if another mover may have begun. Called before each write. */
  mayWrite(): void;
  /** Ends the hold, so that the next mover need not wait. Only copies of this one may be under way: the next one waits before it compares. */
  release(): Promise<void>;
  /** Stops to renew the hold. */
  stop(): void;
}

/**
 * Becomes the mover. If there is one, waits until its row has not changed for so long that it writes no more and that nothing it sent is
 * under way. No clock is compared with another one.
 */
export async function becomeMover(
  first: Account,
  { holdMs, lateMs }: HoldTiming,
  onWait: (leftMs: number) => void = () => {},
): Promise<Hold> {
  const holder = randomUUID();
  const properties = { EntityType: 'mover', Holder: holder };
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
    const action: Action =
      seen === undefined ? { kind: 'insert', row, properties } : { kind: 'replace', row, properties, etag: seen };
    await tryAction(first, HOLD, action).catch(unlessUnknown);
    // A reply may be lost, and the row changed all the same.
    const found = await readRow(first, HOLD);
    isLost = found?.properties.Holder !== holder;
    if (isLost) begun = undefined;
    if (isLost || !found || found.etag === seen) return;
    etag = found.etag;
    since = startedAt;
    begun = undefined;
  };

  for (let seen = await readRow(first, HOLD), unchangedSince = performance.now(); ; ) {
    const leftMs = seen ? unchangedSince + holdMs + lateMs - performance.now() : 0;
    if (leftMs <= 0) {
      await write(seen?.etag);
      if (!isLost && etag) break;
    } else {
      onWait(leftMs);
      await sleep(Math.min(leftMs, holdMs / WATCHES));
    }
    const now = await readRow(first, HOLD);
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
