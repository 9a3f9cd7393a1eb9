import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Values } from '../../base/values.ts';
import type { Hold } from '../../define/declaration/engine.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { indexEntriesOf, isContested } from '../../define/places/index-entries.ts';
import { type Address, deleteSame, readRow, tryAction } from '../../storage/rows.ts';
import { traceContext } from '../../telemetry/span.ts';
import type { Engine } from '../engine.ts';
import { readLive } from '../read/entity-rows.ts';
import { sendWork } from '../reconcile/hold.ts';
import { INDEX_CHANGES_QUEUE, type Intent, MESSAGE_VERSION, type Transfer } from '../reconcile/intent.ts';
import { partFor } from '../reconcile/queues.ts';
import { confirmedRow } from '../reconcile/reconcile.ts';
import { claimFree, hasLiveClaim, isOwnedBy } from '../reconcile/unique-claim.ts';
import { duplicateEntry } from '../write/conflict.ts';
import type { RecordedRules } from '../write/recorded-rules.ts';

/** The rows of unique indexes in a move. */

/** A transfer that is in work. */
export interface Work {
  readonly engine: Engine;
  readonly entity: Entity;
  readonly destination: Entity;
  readonly transfer: Transfer;
  readonly from: Address;
  readonly to: Address;
  readonly hold: Hold;
  /** What the rules on rows let the caller of a request do; undefined for every row. */
  readonly rules?: RecordedRules | undefined;
}

/** The pause before a row is read again on which a writer has a live claim. */
const CLAIM_WAIT_MS = 250;
interface HandOver {
  /** The declaration of the giver. */
  readonly giver: Entity;
  /** The declaration of the taker: another one if the entity gets another key. */
  readonly taker: Entity;
  readonly from: Address;
  /** The incarnation of the giver. */
  readonly incarnation: string;
  readonly to: Address;
  /** The giver's ETag when it was copied. Without it, rows are handed back as far as possible. */
  readonly etag?: string;
}

/**
 * Hands the rows of unique indexes from the giver to the taker, which is committed. Each row changes under its ETag, and not
 * while a writer has a live claim on it. The giver is read after the row, so that a later entity with the giver's key keeps its
 * rows. Returns false if the giver is deleted or has changed. A missing row (a new index, or a key with a part that moves) is
 * claimed for the taker. Throws `duplicate-value` if the row belongs to another entity.
 */
export async function handOver(
  { engine, transfer, hold }: Pick<Work, 'engine' | 'transfer' | 'hold'>,
  values: Values,
  { giver: given, taker: entity, from, incarnation, to, etag }: HandOver,
): Promise<boolean> {
  const intent = transfer.operationId;
  for (const indexEntry of indexEntriesOf(entity, values).filter((each) => isContested(entity, each))) {
    for (;;) {
      await hold.keep();
      const row = await readRow(engine.storage, indexEntry);
      const isClaimed = row?.properties.Claim === intent;
      if (row && isOwnedBy(row, to) && !isClaimed) break;
      const giver = await readLive(engine, given, from);
      if (giver?.system.Incarnation !== incarnation) {
        // A duplicate of this message handed it over, to a taker that has changed since.
        if (row && isClaimed) await deleteSame(engine.storage, row, ({ properties }) => properties.Claim === intent);
        return false;
      }
      if (!row || !(isOwnedBy(row, from) || isOwnedBy(row, to))) {
        if (etag !== undefined && giver.etag !== etag) return false;
        if (row && etag === undefined) break;
        if (row) throw duplicateEntry(entity, indexEntry);
        await claimFree(engine, indexEntry, to, intent);
        continue;
      }
      if (hasLiveClaim(row, { intent }, engine)) {
        await sleep(CLAIM_WAIT_MS);
        continue;
      }
      const properties = confirmedRow(entity, values, indexEntry);
      if (
        await tryAction(engine.storage, indexEntry, {
          kind: 'replace',
          row: indexEntry.row,
          properties,
          etag: row.etag,
        })
      )
        break;
    }
  }
  return true;
}

/** Undoes a move that cannot be completed: returns the rows that the source needs. `incarnation` is that at the destination. */
export async function handBack(work: Work, values: Values, incarnation: string): Promise<void> {
  const { engine, entity, destination, from, to } = work;
  const back = { giver: destination, taker: entity, from: to, to: from };
  await handOver(work, values, { ...back, incarnation });
  // The source may have given up values meanwhile, so its indexes are reconciled.
  const { table, partition, row } = from;
  const items = [{ partition, row, indexEntries: indexEntriesOf(entity, values) }];
  const intent: Intent = { version: MESSAGE_VERSION, intent: randomUUID(), entity: entity.name, table, items };
  await sendWork(engine, await partFor(engine, INDEX_CHANGES_QUEUE, from), { ...intent, ...traceContext() });
}
