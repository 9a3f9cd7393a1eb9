import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import pMap from 'p-map';
import type { Change, PlannedAction, Siblings } from '../../define/change.ts';
import { toSnapshot, toValues } from '../../define/codec/entity-codec.ts';
import { liveValues } from '../../define/codec/snapshot.ts';
import type { Entity } from '../../define/entity.ts';
import type { Values } from '../../define/values.ts';
import { busy, entityError, RowkeyError } from '../../errors.ts';
import { isNotProvisioned, StorageConflict } from '../../storage/errors.ts';
import { deleteMessage, MAX_MESSAGE_BYTES, type SentMessage, sendMessage } from '../../storage/messages.ts';
import { type Action, type Row, readRow, submit } from '../../storage/rows.ts';
import { recordReconcileLag } from '../../telemetry/metrics.ts';
import { inPattern, traceContext } from '../../telemetry/span.ts';
import { backOff } from '../../time.ts';
import type { Engine } from '../engine.ts';
import { isUnknown, noteChange } from '../note-change.ts';
import { ENVELOPE_BYTES, holdFor, sendWorkOf, unlessUnavailable } from '../reconcile/hold.ts';
import { INDEX_CHANGES_QUEUE, MESSAGE_VERSION } from '../reconcile/intent.ts';
import { mayStillLand, type ReconcileOptions, reconcile, type Written } from '../reconcile/reconcile.ts';
import { runExclusive } from '../run-exclusive.ts';
import { type Plan, planPartition, siblingRowsOf, type WriteMark } from './plan.ts';
import { planFirst, readSiblings, rememberWritten, replan, siblingFormOf } from './siblings.ts';
import { claim } from './unique-claim.ts';

/**
 * Eventually consistent transactions pattern, the writer's side. In this order:
 *
 *   plan -> send the intent, hidden -> claim unique rows -> entity group transaction
 *        -> settle every index entry that the intent names (reconcile.ts) -> delete the intent
 *
 * If there are many entries, or settling fails, the work is sent to the queue (hold.ts) instead of the last two steps.
 * If the process dies, the intent becomes visible after its hiding time, and a queue function settles it. If the write is
 * rejected, the intent is deleted, or, if a claim was made, its work is sent so that the reconciler releases the claim. If the
 * outcome is unknown, the intent stays hidden until its hiding time ends.
 */

const CLAIMS_CONCURRENCY = 16;
const READS_CONCURRENCY = 16;
const BACK_OFF_MS = 25;
const LONGEST_BACK_OFF_MS = 250;

/** The entity has changed since the change was planned. */
export class EntityChanged extends Error {
  override readonly name = 'EntityChanged';
}

export interface Committed {
  readonly etag: string;
  readonly values: Values;
}

export interface CommitOptions {
  /** Plans as if sibling rows that this process does not remember were absent. After a conflict they are read. */
  readonly assumeNew?: boolean;
  /** Earlier writes of the same caller that certainly failed: their claims may be taken over. `commit` adds to the set. */
  readonly abandoned?: Set<string>;
}

/**
 * Commits changes of one partition together. Returns the new state of each changed entity by row key. If it throws
 * `duplicate-key`, `duplicate-value` (naming the field), `too-large`, `busy` or `EntityChanged`, nothing changed. If it throws
 * `storage-unavailable`, either all changes are committed or none, and index entries will agree in either case.
 */
export const commit = inPattern(
  'eventual transaction',
  async (
    engine: Engine,
    entity: Entity,
    changes: readonly Change[],
    { abandoned, ...options }: CommitOptions = {},
  ): Promise<Map<string, Committed>> => {
    const [first] = changes;
    if (!first) return new Map();
    const { table, partition } = first.address;
    const writeId = randomUUID();
    const sentAt = engine.now();
    const deadline = sentAt + engine.timing.commitWithinMs;
    const mark = { writeId, now: sentAt };
    const planned = await planFirst(engine, entity, changes, { mark, ...options });
    const intent = await announce(engine, entity, table, planned.plan, writeId);
    const common = { engine, entity, table, partition, writeId, mark, sentAt, deadline, intent, abandoned };
    const write: Write = { ...common, ...planned, changes, missing: new Set() };
    const claimed = await claimAll(write);
    const isShared = siblingRowsOf(entity, changes).length > 0;
    const untilDone = () => submitUntilDone(write);
    const done = await (isShared
      ? runExclusive(engine.storage, JSON.stringify([table, partition]), untilDone)
      : untilDone());
    if (intent) {
      const hold = holdFor(engine, sentAt + engine.timing.settleWithinMs - engine.now());
      await settle(write, intent, planned.plan.items, { hold, written: { entities: stateOf(changes, done), claimed } });
    }
    await dropStoredParts(write, replacedRows(write));
    return done;
  },
);

/**
 * Reconciles the writer's own intent. The writer alone holds the intent while it is hidden. The caller waits, because a
 * serverless host may freeze the process after the response. Never throws: unfinished work goes to the queue.
 */
async function settle(
  { engine, entity, table, writeId, sentAt }: Write,
  intent: SentMessage,
  items: Plan['items'],
  options: ReconcileOptions,
): Promise<void> {
  const entries = items.reduce((sum, { indexEntries }) => sum + Math.max(1, indexEntries.length), 0);
  try {
    if (entries > engine.settleInline) return await unlessUnavailable(sendWorkOf(engine, intent));
    await reconcile(engine, entity, { intent: writeId, table, items }, options);
    recordReconcileLag(engine.now() - sentAt);
    await deleteMessage(engine.storage, intent);
  } catch (error) {
    // A write without a reply may still land, so the intent stays hidden until that is impossible.
    if (mayStillLand(error)) return;
    await sendWorkOf(engine, intent).catch(() => undefined);
  }
}

function stateOf(changes: readonly Change[], done: ReadonlyMap<string, Committed>): Written['entities'] {
  return new Map(
    changes.map(({ address: { row }, after }) => {
      const { etag = '', values } = done.get(row) ?? {};
      return [row, { etag, values: after && values }];
    }),
  );
}

/** A running commit. */
interface Write {
  readonly engine: Engine;
  readonly entity: Entity;
  readonly table: string;
  readonly partition: string;
  readonly writeId: string;
  readonly mark: WriteMark;
  /** Milliseconds: when the intent was sent, and the latest time to send the transaction. */
  readonly sentAt: number;
  readonly deadline: number;
  readonly intent: SentMessage | undefined;
  readonly abandoned: Set<string> | undefined;
  /** Planned from the state that was read last. */
  changes: readonly Change[];
  siblings: Siblings;
  plan: Plan;
  /** Rows whose delete failed because they are missing. Later plans omit these deletes. */
  readonly missing: Set<string>;
}

/** Submits the plan, and replans while sibling rows keep changing. */
async function submitUntilDone(write: Write): Promise<Map<string, Committed>> {
  Object.assign(write, replan(write.engine, write.entity, write.changes, write));
  for (let attempt = 1; ; attempt += 1) {
    const done = await submitOnce(write);
    if (done) return done;
    if (attempt > 1) await backOff(attempt, BACK_OFF_MS, LONGEST_BACK_OFF_MS);
  }
}

/** Returns undefined after a conflict for which `write` has a new plan. */
async function submitOnce(write: Write): Promise<Map<string, Committed> | undefined> {
  const { engine, entity, table, partition, changes, siblings, plan } = write;
  const actions = await toStoredActions(write);
  const left = write.deadline - engine.now();
  if (left <= 0) throw await endIntent(write, busy('Other requests keep changing the same rows.'));
  try {
    const etags = await submit(engine.storage, { table, partition, actions, signal: AbortSignal.timeout(left) });
    rememberWritten(engine, { table, partition }, { plan, siblings }, { actions, etags });
    const done = results(entity, changes, plan, etags);
    noteChanges(write, done);
    return done;
  } catch (error) {
    if (isNotProvisioned(error)) throw await endIntent(write, error);
    if (!(error instanceof StorageConflict)) throw noteUnknownOutcome(write, error);
    return handleConflict(write, error, actions);
  }
}

/** Handles a conflict: returns the result of an earlier attempt, throws if the write cannot succeed, or replans and returns undefined. */
async function handleConflict(
  write: Write,
  storageConflict: StorageConflict,
  actions: readonly Action[],
): Promise<Map<string, Committed> | undefined> {
  const { engine, entity, writeId, changes } = write;
  const { reason } = storageConflict;
  if (reason === 'table-being-deleted') throw await endIntent(write, storageConflict);
  const { part, action } = write.plan.actions[storageConflict.action] ?? {};
  if (reason === 'missing' && action?.kind === 'delete') write.missing.add(action.row);
  // The actions on entities come first. A conflict of a later action means that the transaction was not committed, so parts of
  // rows that were stored for it are deleted.
  if (part?.of === 'sibling') await dropStoredParts(write, actions);
  else {
    // The conflict may come from the SDK's retry of a transaction that was committed.
    const fresh = await readChanged(engine, entity, changes).catch((error: unknown) => {
      throw noteUnknownOutcome(write, error);
    });
    const ours = findOwnWrite(fresh, writeId);
    if (ours) {
      noteChanges(write, ours);
      return ours;
    }
    const conflict = conflictOf(entity, changes, fresh);
    if (conflict) throw await endIntent(write, conflict);
    if (part?.of === 'copy' && reason === 'exists') throw await endIntent(write, duplicateValue(entity, part.index));
    write.changes = fresh;
  }
  try {
    write.siblings = await readSiblings(engine, entity, write.changes, 'all');
    write.plan = withoutDeletes(planPartition(entity, write.changes, write.siblings, write.mark), write.missing);
  } catch (error) {
    throw await endIntent(write, error);
  }
  return undefined;
}

/** Deletes the intent of a write that certainly failed, or sends its work to release claims. Returns `why`, to be thrown. */
async function endIntent<Reason>({ engine, writeId, intent, plan, abandoned }: Write, why: Reason): Promise<Reason> {
  abandoned?.add(writeId);
  // An intent that cannot be deleted now becomes visible later. The reason of the failure matters more to the caller.
  if (intent)
    await unlessUnavailable(
      plan.claims.length > 0 ? sendWorkOf(engine, intent) : deleteMessage(engine.storage, intent),
    );
  return why;
}

/** Notes the changes if their outcome is unknown. Returns `why`, to be thrown. */
function noteUnknownOutcome<Reason>(write: Write, why: Reason): Reason {
  if (isUnknown(why)) noteChanges(write, undefined);
  return why;
}

/** The previous states of the sibling rows that the plan replaced. */
function replacedRows({ plan, siblings }: Write): Row[] {
  const replaced = new Set(plan.actions.flatMap(({ action }) => (action.kind === 'merge' ? [] : [action.row])));
  return [...siblings.values()].filter(({ row }) => replaced.has(row));
}

/** The actions of the plan. A part of a sibling row that does not fit into the row is stored in a blob first. */
async function toStoredActions({ engine, entity, table, partition, plan }: Write): Promise<Action[]> {
  const form = siblingFormOf(entity);
  if (!form) return plan.actions.map(({ action }) => action);
  const store = ({ action }: PlannedAction) =>
    form.write(engine.storage, { table, partition, row: action.row }, action);
  return pMap(plan.actions, store, { concurrency: READS_CONCURRENCY });
}

/** Deletes the parts of these rows that are stored in blobs. */
async function dropStoredParts({ engine, entity }: Write, rows: readonly (Action | Row)[]): Promise<void> {
  const form = siblingFormOf(entity);
  if (!form) return;
  const drop = async (row: Action | Row) => 'properties' in row && form.drop(engine.storage, row);
  await pMap(rows, drop, { concurrency: READS_CONCURRENCY });
}

async function announce(
  engine: Engine,
  entity: Entity,
  table: string,
  plan: Plan,
  writeId: string,
): Promise<SentMessage | undefined> {
  if (plan.items.length === 0) return undefined;
  const text = JSON.stringify({
    version: MESSAGE_VERSION,
    intent: writeId,
    entity: entity.name,
    table,
    items: plan.items,
    ...traceContext(),
  });
  if (Buffer.byteLength(text) > MAX_MESSAGE_BYTES - ENVELOPE_BYTES)
    throw new RowkeyError('too-large', 'The change affects more index entries than one message can list.', {
      accepted: 'fewer entities or index entries at once',
    });
  return sendMessage(engine.storage, INDEX_CHANGES_QUEUE, text, engine.timing.hideIntentForSeconds);
}

async function claimAll(write: Write): Promise<Row[]> {
  const { engine, entity, plan, writeId, abandoned, deadline } = write;
  // No reconciler would release a claim that lands after the intent became visible.
  const signal = AbortSignal.timeout(Math.max(0, deadline - engine.now()));
  const outcomes = await pMap(
    plan.claims,
    async ({ indexEntry, owner }) => ({
      index: indexEntry.index,
      outcome: await claim(engine, indexEntry, owner, { intent: writeId, abandoned, signal }),
    }),
    { concurrency: CLAIMS_CONCURRENCY },
  );
  const another = outcomes.find(({ outcome }) => outcome === 'held-by-another');
  if (another) throw await endIntent(write, duplicateValue(entity, another.index));
  if (outcomes.some(({ outcome }) => outcome === 'being-claimed')) {
    // If an entity of the same key exists, the claim may be its own, and waiting would not help.
    const fresh = await readChanged(engine, entity, write.changes);
    throw await endIntent(
      write,
      conflictOf(entity, write.changes, fresh) ?? busy('Another request is writing the same entity.'),
    );
  }
  return outcomes.map(({ outcome }) => outcome).filter((outcome) => typeof outcome === 'object');
}

export function duplicateValue(entity: Entity, index: string): RowkeyError {
  const uses = entity.indexes[index]?.uses ?? [];
  const field = uses.find((name) => !entity.keyFields.includes(name)) ?? uses[0] ?? index;
  return new RowkeyError('duplicate-value', `"${field}" is taken: another entity of ${entity.name} has this value.`, {
    field,
    accepted: 'a value that no other entity has',
  });
}

/** The same changes, planned from the current state. */
async function readChanged(engine: Engine, entity: Entity, changes: readonly Change[]): Promise<Change[]> {
  return pMap(
    changes,
    async (change) => ({ ...change, before: toSnapshot(entity, await readRow(engine.storage, change.address)) }),
    {
      concurrency: READS_CONCURRENCY,
    },
  );
}

/** The results, if the rows carry the id of this write: its reply was lost, and the SDK's retry was a conflict. */
function findOwnWrite(fresh: readonly Change[], writeId: string): Map<string, Committed> | undefined {
  const done = new Map<string, Committed>();
  for (const { address, before, after } of fresh) {
    if (before.state === 'live' && before.system.WriteId === writeId)
      done.set(address.row, { etag: before.etag, values: before.values });
    else if ((before.state === 'tombstone' || before.state === 'placeholder') && before.writeId === writeId)
      done.set(address.row, { etag: before.etag, values: {} });
    else if (before.state === 'absent' && !after) done.set(address.row, { etag: '', values: {} });
    else return undefined;
  }
  return done;
}

/**
 * The error of a create over a live entity, or of an update of an entity that changed. Undefined for a create over a
 * tombstone.
 */
function conflictOf(entity: Entity, planned: readonly Change[], fresh: readonly Change[]): Error | undefined {
  for (const [index, { before: now }] of fresh.entries()) {
    const then = planned[index]?.before;
    if (then?.state === 'live') {
      if (now.state !== 'live' || now.etag !== then.etag) return new EntityChanged();
    } else if (now.state === 'live') {
      const field = entity.keyFields.at(-1) ?? 'key';
      return entityError('duplicate-key', entity, planned[index]?.after ?? {}, 'already exists.', {
        field,
        accepted: 'a value that no other entity has',
      });
    }
  }
  return undefined;
}

function withoutDeletes(plan: Plan, rows: ReadonlySet<string>): Plan {
  return { ...plan, actions: plan.actions.filter(({ action: { kind, row } }) => kind !== 'delete' || !rows.has(row)) };
}

/** Notes each change for the audit log. Without `done` the outcome is unknown. */
function noteChanges({ engine, entity, changes }: Write, done: ReadonlyMap<string, Committed> | undefined): void {
  for (const { address, before, after } of changes) {
    const then = liveValues(before) ?? {};
    const { values: now, etag } = done?.get(address.row) ?? { values: after ?? {}, etag: undefined };
    const fields = Object.keys({ ...then, ...now }).filter((field) => !isDeepStrictEqual(then[field], now[field]));
    const operation = !after ? 'delete' : before.state === 'live' ? 'replace' : 'create';
    const outcome = done ? undefined : 'unknown';
    noteChange(engine, { operation, entity: entity.name, address, fields, etag, outcome });
  }
}

function results(
  entity: Entity,
  changes: readonly Change[],
  plan: Plan,
  etags: ReadonlyMap<string, string>,
): Map<string, Committed> {
  const properties = new Map(
    plan.actions.flatMap(({ action }) => (action.kind === 'delete' ? [] : [[action.row, action.properties] as const])),
  );
  return new Map(
    changes.map(({ address: { row }, after }) => [
      row,
      { etag: etags.get(row) ?? '', values: after ? toValues(entity, properties.get(row) ?? {}) : {} },
    ]),
  );
}
