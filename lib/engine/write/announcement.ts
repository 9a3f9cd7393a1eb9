import pMap from 'p-map';
import { busy, isOutcomeUnknown } from '../../base/errors.ts';
import { isSame } from '../../base/is-same.ts';
import { abortIn } from '../../base/time.ts';
import type { Entity, EntityChange } from '../../define/declaration/entity.ts';
import { remoteIndexOf } from '../../define/places/index-entries.ts';
import { deleteMessage, MAX_MESSAGE_BYTES, type SentMessage, sendMessage } from '../../storage/messages.ts';
import type { Row } from '../../storage/rows.ts';
import { record } from '../../telemetry/metrics.ts';
import { traceContext } from '../../telemetry/span.ts';
import type { Engine } from '../engine.ts';
import { ENVELOPE_BYTES, sendWorkOf, unlessUnavailable } from '../reconcile/hold.ts';
import { INDEX_CHANGES_QUEUE, type IntentItem, MESSAGE_VERSION } from '../reconcile/intent.ts';
import { partFor } from '../reconcile/queues.ts';
import { type ReconcileOptions, reconcile } from '../reconcile/reconcile.ts';
import { type ClaimedRow, claim, releaseClaims } from '../reconcile/unique-claim.ts';
import { conflictOf, readChanged } from './conflict.ts';
import { duplicateClaim, type FollowUp, hasWork } from './follow-up.ts';
import { type Plan, PlanTooLarge } from './plan.ts';

/**
 * What a write announces before its transaction: its intent, which names the rows of other partitions, and its claims of unique rows. After
 * the transaction, the writer settles what the intent names.
 */

const CLAIMS_CONCURRENCY = 16;

/** A write that has announced a plan. */
export interface Announced {
  readonly engine: Engine;
  readonly table: string;
  readonly writeId: string;
  /** Milliseconds: when the intent was sent. */
  readonly sentAt: number;
  readonly intent: SentMessage | undefined;
  /** The plan of the intent and of the claims. */
  readonly announced: Plan;
  /** Earlier writes of the same caller that certainly failed. */
  readonly abandoned: Set<string>;
  /** Milliseconds: the latest time to send the transaction. */
  readonly deadline: number;
  claimed: readonly ClaimedRow[];
  /** Planned from the state that was read last. */
  changes: readonly EntityChange[];
  plan: Plan;
}

/** The write changed nothing, and needs another intent: its plan changes other rows of other partitions, or it could not claim all of them. */
export class Unannounced extends Error {
  override readonly name = 'Unannounced';
}

/** Sends the intent of a plan, hidden. Undefined if the plan changes nothing in other partitions. */
export async function announce(
  engine: Engine,
  table: string,
  { isNew, followUps }: Plan,
  writeId: string,
): Promise<SentMessage | undefined> {
  const [main, ...dependents] = followUps;
  if (!main || !followUps.some(hasWork)) return undefined;
  const text = JSON.stringify({
    version: MESSAGE_VERSION,
    intent: writeId,
    entity: main.entity.name,
    table,
    items: main.items,
    ...(isNew ? { isNew } : {}),
    ...toFanOut(main.fanOut),
    ...toDependents(dependents),
    ...traceContext(),
  });
  const limit = MAX_MESSAGE_BYTES - ENVELOPE_BYTES;
  if (Buffer.byteLength(text) > limit)
    throw new PlanTooLarge('The change affects more index entries than one message can list.', {
      needed: Buffer.byteLength(text),
      limit,
    });
  const [{ partition } = { partition: '' }] = followUps.flatMap(({ items, fanOut }) => [...items, ...fanOut]);
  const part = await partFor(engine, INDEX_CHANGES_QUEUE, { table, partition });
  return sendMessage(engine.storage, part, text, engine.timing.hideIntentForSeconds);
}

function toFanOut(sources: FollowUp['fanOut']) {
  return sources.length > 0 ? { fanOut: { sources } } : {};
}

/** The work of further declarations in the form that an intent has. */
function toDependents(dependents: readonly FollowUp[]) {
  if (dependents.length === 0) return {};
  return {
    dependents: dependents.map(({ entity, items, fanOut }) => ({ entity: entity.name, items, ...toFanOut(fanOut) })),
  };
}

/**
 * Claims the unique rows of a plan. Throws `duplicate-value`, `busy`, `Unannounced` or the conflict of the entity, after it has
 * ended the intent.
 */
export async function claimAll(write: Announced): Promise<Row[]> {
  const { engine, plan, writeId, abandoned, deadline } = write;
  // No reconciler would release a claim that lands after the intent became visible.
  const signal = abortIn(deadline - engine.now());
  let unclaimed: { readonly why: unknown } | undefined;
  const outcomes = await pMap(
    plan.claims,
    async (wanted) => {
      const claiming = claim(engine, wanted.indexEntry, wanted.owner, { intent: writeId, abandoned, signal });
      const outcome = await claiming.catch((why: unknown) => {
        unclaimed ??= { why };
      });
      return { wanted, outcome };
    },
    { concurrency: CLAIMS_CONCURRENCY },
  );
  const claimed = outcomes.map(({ outcome }) => outcome).filter((outcome) => typeof outcome === 'object');
  if (unclaimed) {
    // The intent stays for the claim that may still arrive. The others would block a repetition of the request until they expire.
    await unlessUnavailable(releaseClaims(engine, claimed, signal));
    throw unclaimed.why;
  }
  write.claimed = claimed;
  const another = outcomes.find(({ outcome }) => outcome === 'held-by-another');
  if (another) throw await endIntent(write, duplicateClaim(another.wanted));
  if (outcomes.some(({ outcome }) => outcome === 'being-claimed')) {
    // If an entity of the same key exists, the claim may be its own, and waiting would not help.
    const fresh = await readChanged(engine, write.changes);
    const conflict = conflictOf(write.changes, fresh);
    // Concurrent writers that have one claim each would all fail.
    const why = claimed.length > 0 ? new Unannounced() : busy('Another request is writing the same entity.');
    throw await endIntent(write, conflict ?? why);
  }
  return claimed;
}

/** Throws `Unannounced` if the plan needs another intent or other claims than the write has. */
export async function requireAnnounced(write: Announced): Promise<void> {
  const outside = ({ claims, followUps }: Plan) => ({ claims, ...toDependents(followUps) });
  if (!isSame(outside(write.plan), outside(write.announced))) throw await endIntent(write, new Unannounced());
}

/** Releases the claims of a write that certainly failed, and deletes its intent or sends its work. Returns `why`, to be thrown. */
export async function endIntent<Reason>(
  { engine, writeId, intent, claimed, abandoned }: Announced,
  why: Reason,
): Promise<Reason> {
  abandoned.add(writeId);
  // An intent that cannot be deleted now becomes visible later. The reason of the failure matters more to the caller.
  const end = async (sent: SentMessage) =>
    (await releaseClaims(engine, claimed)) ? deleteMessage(engine.storage, sent) : sendWorkOf(engine, sent);
  if (intent) await unlessUnavailable(end(intent));
  return why;
}

/**
 * Reconciles the writer's own intent. The writer alone holds the intent while it is hidden. The caller waits, because a
 * serverless host may freeze the process after the response. Never throws: unfinished work goes to the queue.
 */
export async function settle(
  { engine, table, writeId, sentAt, announced }: Announced,
  intent: SentMessage,
  options: ReconcileOptions,
): Promise<void> {
  const parts = announced.followUps.map((part) => ({ ...part, ...divide(part.entity, part.items) }));
  const left = parts.map((part) => ({ ...part, items: part.queued }));
  const entries = parts
    .flatMap(({ inline }) => inline)
    .reduce((sum, { indexEntries }) => sum + Math.max(1, indexEntries.length), 0);
  try {
    if (entries > engine.settleInline) return await unlessUnavailable(sendWorkOf(engine, intent));
    for (const { entity, inline, queued } of parts) {
      const leftRows = new Set(queued.map(({ row }) => row));
      await reconcile(engine, entity, { intent: writeId, table, items: inline }, { ...options, leftRows });
    }
    if (left.every(({ items }) => items.length === 0)) record.reconcileLag(engine.now() - sentAt);
    // The intent stays hidden as the reminder of the work that is left.
    if (left.some(hasWork)) await sendWorkOf(engine, withWork(intent, left));
    else await deleteMessage(engine.storage, intent);
  } catch (error) {
    // A write without a reply may still land, so the intent stays hidden until that is impossible.
    if (isOutcomeUnknown(error)) return;
    await sendWorkOf(engine, intent).catch(() => undefined);
  }
}

/** The items with the entries that the writer settles, and those with the entries that it leaves to the queue. */
function divide(entity: Entity, items: FollowUp['items']): Readonly<Record<'inline' | 'queued', FollowUp['items']>> {
  const divided: Record<'inline' | 'queued', IntentItem[]> = { inline: [], queued: [] };
  for (const item of items) {
    const { queued = [], inline = [] } = Object.groupBy(item.indexEntries, (indexEntry) =>
      remoteIndexOf(entity, indexEntry)?.settle === 'queue' ? 'queued' : 'inline',
    );
    if (queued.length > 0) divided.queued.push({ ...item, indexEntries: queued });
    // An item without entries is that of a tombstone.
    if (inline.length > 0 || queued.length === 0) divided.inline.push({ ...item, indexEntries: inline });
  }
  return divided;
}

function withWork(intent: SentMessage, [main, ...others]: readonly FollowUp[]): SentMessage {
  const { dependents: _, ...rest } = JSON.parse(intent.text);
  return {
    ...intent,
    text: JSON.stringify({ ...rest, items: main?.items ?? [], ...toDependents(others.filter(hasWork)) }),
  };
}
