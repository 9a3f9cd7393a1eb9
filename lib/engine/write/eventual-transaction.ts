import { randomUUID } from 'node:crypto';
import { busy, isOutcomeUnknown, RowkeyError, unavailable } from '../../base/errors.ts';
import { isSame } from '../../base/is-same.ts';
import { backOff } from '../../base/time.ts';
import { pick, type Stored } from '../../base/values.ts';
import { isReference, toValues } from '../../define/codec/entity-codec.ts';
import { type Change, liveValues, type Siblings } from '../../define/declaration/change.ts';
import type { EntityChange } from '../../define/declaration/entity.ts';
import { isTableGone, StorageConflict, unlessSlow } from '../../storage/errors.ts';
import { journalRows } from '../../storage/row-journal.ts';
import { type Action, isConditional, submit, transactionLimits } from '../../storage/rows.ts';
import { inPattern } from '../../telemetry/span.ts';
import type { Engine } from '../engine.ts';
import { keepEarly, noteChange } from '../note-change.ts';
import { withPeriodTable } from '../period-tables.ts';
import { requireWritable } from '../read/entity-rows.ts';
import { holdFor } from '../reconcile/hold.ts';
import type { Written } from '../reconcile/reconcile.ts';
import { runExclusive } from '../run-exclusive.ts';
import { isShared } from '../shared-tables.ts';
import {
  type Announced,
  announce,
  claimAll,
  endIntent,
  requireAnnounced,
  settle,
  Unannounced,
} from './announcement.ts';
import {
  atAction,
  conflictOf,
  duplicateKey,
  duplicateValue,
  EntityChanged,
  type Fresh,
  readChanged,
} from './conflict.ts';
import { actingOf, checkTransactionBytes, type Plan, planPartition, siblingRowsOf, type WriteMark } from './plan.ts';
import {
  dropStoredParts,
  forgetSiblings,
  planFirst,
  readRelated,
  readSiblings,
  rememberWritten,
  replan,
  toStoredActions,
} from './siblings.ts';
import { announceLeft, dropBlobs } from './stored-values.ts';

/**
 * Eventually consistent transactions pattern, the writer's side. In this order:
 *
 *   plan -> send the intent, hidden -> claim unique rows -> entity group transaction
 *        -> settle every index entry that the intent names (reconcile.ts) -> delete the intent
 *
 * If there are many entries, or settling fails, the work is sent to the queue (hold.ts) instead of the last two steps. Entries of
 * indexes with settle 'queue' are sent to the queue after the others are settled.
 * If the process dies, the intent becomes visible after its hiding time, and a queue function settles it. If the write is
 * rejected, the writer deletes the rows that it claimed and the intent. If a claimed row existed before, or changed, the work of
 * the intent is sent, so that the reconciler releases the claim. If the outcome is unknown, the intent stays hidden until its hiding time ends.
 * If a conflict leads to a plan that the intent and the claims do not cover, the write ends them and starts over.
 */

const BACK_OFF_MS = 25;
const LONGEST_BACK_OFF_MS = 250;
const MAX_ANNOUNCEMENTS = 8;

interface CommitOptions {
  /** Plans as if sibling rows that this process does not remember were absent. After a conflict they are read. */
  readonly assumeNew?: boolean;
  /** Earlier writes of the same caller that certainly failed: their claims may be taken over. `commit` adds to the set. */
  readonly abandoned?: Set<string>;
  /** True for a part of a bulk load, which claims contested rows before and writes the index entries afterwards: see lib/operations/bulk-load.ts. */
  readonly isBulk?: boolean;
  /** True if the changes may refer to entities that do not exist. */
  readonly leavesReferences?: boolean;
}

/**
 * Commits changes of one partition together. Returns the new state of each entity, in the same order. If it throws
 * `duplicate-key`, `duplicate-value` (naming the field), `referenced`, `partition-full`, `too-large`, `busy` or `EntityChanged`,
 * nothing changed. If it throws `storage-unavailable`, either all changes are committed or none, and index entries will agree in
 * either case.
 */
export const commit = inPattern(
  'eventual transaction',
  async (
    engine: Engine,
    changes: readonly EntityChange[],
    { abandoned = new Set(), assumeNew = false, ...more }: CommitOptions = {},
  ): Promise<readonly Stored[]> => {
    for (let attempt = 1; attempt <= MAX_ANNOUNCEMENTS; attempt += 1) {
      try {
        return await commitAnnounced(engine, changes, {
          ...more,
          abandoned,
          assumeNew: assumeNew && attempt === 1,
        });
      } catch (error) {
        if (!(error instanceof Unannounced)) throw error;
      }
      forgetSiblings(engine, changes);
      await backOff(attempt, BACK_OFF_MS, LONGEST_BACK_OFF_MS);
    }
    throw busy('Other requests keep changing the same rows.');
  },
);

/** Commits as `commit` does. Returns undefined if an entity has changed since it was read. */
export async function tryCommit(...args: Parameters<typeof commit>): Promise<readonly Stored[] | undefined> {
  try {
    return await commit(...args);
  } catch (error) {
    if (error instanceof EntityChanged) return undefined;
    throw error;
  }
}

/** Commits the changes under one intent. Throws `Unannounced`, with nothing changed, if they need another one. */
async function commitAnnounced(
  engine: Engine,
  changes: readonly EntityChange[],
  {
    abandoned,
    assumeNew,
    isBulk = false,
    leavesReferences = false,
  }: CommitOptions & Required<Pick<CommitOptions, 'abandoned' | 'assumeNew'>>,
): Promise<readonly Stored[]> {
  const [first] = changes;
  if (!first) return [];
  const { table, partition } = first.address;
  const writeId = randomUUID();
  const sentAt = engine.now();
  const deadline = sentAt + engine.timing.commitWithinMs;
  // Each attempt looks again: what the process knows of the phase when the time of its transaction begins limits both.
  for (const { entity } of changes) await requireWritable(engine, entity);
  const isSharedTable = changes.some(({ entity }) => isShared(engine, entity));
  const rows = siblingRowsOf(changes, isSharedTable);
  const mark = {
    writeId,
    now: sentAt,
    guard: engine.guard,
    isShared: isSharedTable,
    related: await readRelated(engine, changes, rows),
    ...transactionLimits(engine.storage, partition),
    isBulk,
    leavesReferences,
  };
  const planned = await planFirst(engine, changes, { rows, mark, assumeNew });
  if (!leavesReferences) await checkRelated(engine, actingOf(changes));
  const intent = await announce(engine, table, planned.plan, writeId);
  const common = { engine, table, partition, writeId, mark, sentAt, deadline, intent, abandoned };
  const write: Write = {
    ...common,
    ...planned,
    announced: planned.plan,
    changes,
    missing: new Set(),
    claimed: [],
  };
  const claimed = await claimAll(write);
  const untilDone = () => submitUntilDone(write);
  const done = await (rows.length > 0
    ? runExclusive(engine.storage, JSON.stringify([table, partition]), untilDone)
    : untilDone());
  if (intent) {
    // The index entries cannot undo the commit, so its record is appended while they are written.
    keepEarly();
    const hold = holdFor(engine, sentAt + engine.timing.settleWithinMs - engine.now());
    const settling = settle(write, intent, { hold, written: { entities: stateOf(changes, done), claimed } });
    // The queue settles what an account does not in time. With one account, its other requests would be as slow.
    await (engine.storage.accounts ? unlessSlow(settling) : settling);
  }
  const { plan, siblings } = write;
  const replaced = new Set(plan.actions.flatMap(({ action }) => (action.kind === 'merge' ? [] : [action.row])));
  const former = [...siblings.values()].filter(({ row }) => replaced.has(row));
  await dropStoredParts(engine, changes, former);
  // Blobs of a failed commit are left to the orphan timer: the commit may have succeeded with a lost reply, and another writer may
  // have continued from it.
  for (const { entity, before, after } of changes)
    await dropBlobs(engine.storage, entity, { of: liveValues(before), but: after });
  return done;
}

async function checkRelated(engine: Engine, changes: readonly EntityChange[]): Promise<void> {
  for (const [entity, some] of Map.groupBy(changes, (change) => change.entity)) {
    if (some[0]?.isRekey) continue;
    for (const { write } of entity.features) await write?.checkRelated?.(engine, entity, some, changes);
  }
}

function stateOf(changes: readonly EntityChange[], done: readonly Stored[]): Written['entities'] {
  return new Map(
    changes.map(({ address: { row }, before, after }, index) => {
      const { etag = '', values } = done[index] ?? {};
      return [row, { etag, values: after && values, isNew: before.state === 'absent' }];
    }),
  );
}

/** A running commit. */
interface Write extends Announced {
  readonly partition: string;
  readonly mark: WriteMark;
  /** The keys of the sibling rows, and those that exist. */
  rows: readonly string[];
  siblings: Siblings;
  /** Rows whose delete failed because they are missing. Later plans omit these deletes. */
  readonly missing: Set<string>;
}

/** Submits the plan, and replans while sibling rows keep changing. */
async function submitUntilDone(write: Write): Promise<readonly Stored[]> {
  Object.assign(write, replan(write.engine, write.changes, write));
  await requireAnnounced(write);
  for (let attempt = 1; ; attempt += 1) {
    const done = await submitOnce(write);
    if (done) return done;
    if (attempt > 1) await backOff(attempt, BACK_OFF_MS, LONGEST_BACK_OFF_MS);
  }
}

/** Returns undefined after a conflict for which `write` has a new plan. */
async function submitOnce(write: Write): Promise<readonly Stored[] | undefined> {
  const { engine, table, partition, changes, siblings, plan, mark } = write;
  const where = { table, partition };
  await announceLeft(engine, changes, write);
  const actions = await toStoredActions(engine, changes, where, write);
  try {
    checkTransactionBytes(partition, actions, { ...mark, planned: plan.actions });
  } catch (error) {
    await dropStoredParts(engine, changes, actions);
    throw await endIntent(write, error);
  }
  const left = write.deadline - engine.now();
  if (left <= 0) throw await endIntent(write, busy('Other requests keep changing the same rows.'));
  // Another program may have replaced a copy since it was read. A backup orders a delete by the version that it deletes.
  const isExact = mark.isShared || engine.storage.journal !== undefined;
  const deletesIf = isExact && actions.some((action) => action.kind === 'delete' && action.etag !== undefined);
  try {
    const transaction = {
      ...{ ...where, actions, signal: AbortSignal.timeout(left) },
      ...(deletesIf && { deletesIf }),
      // Nobody deletes the rows meanwhile.
      ...(mark.isBulk && { isRepeatable: true }),
    };
    const period = changes[0]?.entity.period;
    const etags = await withPeriodTable(
      engine,
      { period },
      { table, write: () => submit(engine.storage, transaction) },
    );
    rememberWritten(engine, where, { plan, siblings }, { actions, etags });
    const done = results(changes, plan, etags);
    noteChanges(write, done);
    return done;
  } catch (error) {
    // Nothing was written.
    if (isTableGone(error) || (error instanceof RowkeyError && isTableGone(error.cause)))
      throw await endIntent(write, error);
    if (error instanceof StorageConflict) return handleConflict(write, error, actions);
    const done = isOutcomeUnknown(error) && !isConditional(actions) ? await findOwnWrite(write, actions) : undefined;
    if (done) return done;
    throw noteUnknownOutcome(write, error);
  }
}

/**
 * Returns the result of a transaction that was sent once and got no reply, if the rows that it wrote are found. Otherwise it may
 * not have been executed, or another writer has changed its rows since, and sending it again could undo that change.
 */
async function findOwnWrite(write: Write, actions: readonly Action[]): Promise<readonly Stored[] | undefined> {
  const { engine, changes } = write;
  // A row that is missing does not tell who deleted it.
  if (engine.now() >= write.deadline || changes.every(({ after }) => !after)) return undefined;
  const fresh = await readChanged(engine, changes).catch(() => undefined);
  if (!fresh || !isOwnWrite(write, fresh)) return undefined;
  const { table, partition } = write;
  await journalRows(engine.storage.journal, { table, partition, actions }, { etags: etagsOf(fresh) });
  return resultsOf(write, fresh);
}

function etagsOf(fresh: readonly Fresh[]): ReadonlyMap<string, string> {
  return new Map(fresh.map(({ address, before }) => [address.row, 'etag' in before ? (before.etag ?? '') : '']));
}

/** The result of a committed transaction whose reply was lost, from the rows that it wrote. Notes the changes. */
function resultsOf(write: Write, fresh: readonly Fresh[]): readonly Stored[] {
  const ours = results(write.changes, write.plan, etagsOf(fresh));
  noteChanges(write, ours);
  return ours;
}

/** Handles a conflict: returns the result of an earlier attempt, throws if the write cannot succeed, or replans and returns undefined. */
async function handleConflict(
  write: Write,
  storageConflict: StorageConflict,
  actions: readonly Action[],
): Promise<readonly Stored[] | undefined> {
  const { engine, writeId, changes } = write;
  const { reason } = storageConflict;
  const { part, action, by } = write.plan.actions[storageConflict.action] ?? {};
  if (reason === 'missing' && action?.kind === 'delete' && part?.of !== 'entity') write.missing.add(action.row);
  // The actions on entities come first. A conflict of a later action means that the transaction was not committed, so parts of
  // rows that were stored for it are deleted.
  if (part?.of === 'sibling') await dropStoredParts(engine, changes, actions);
  else {
    // The conflict may come from the SDK's retry of a transaction that was committed.
    const fresh = await readChanged(engine, changes).catch((error: unknown) => {
      throw noteUnknownOutcome(write, error);
    });
    if (storageConflict.isRepeated && isOwnWrite(write, fresh)) return resultsOf(write, fresh);
    // An earlier attempt may have been committed, and another writer may have changed what it wrote. So the intent stays.
    if (storageConflict.isRepeated && !areUnchanged(changes, fresh, writeId))
      throw noteUnknownOutcome(
        write,
        unavailable('Storage did not reply to a write that may have been executed.', storageConflict),
      );
    const conflict = conflictOf(changes, fresh);
    if (conflict) throw await endIntent(write, conflict);
    if (by && part?.of === 'copy' && reason === 'exists')
      throw await endIntent(write, atAction(by, duplicateValue(by.entity, part.fields)));
    if (by && part?.of === 'further row' && reason === 'exists')
      throw await endIntent(write, atAction(by, duplicateKey(by.entity, by.after ?? {})));
    write.changes = changes.map((change, index) => planAgain(change, fresh[index]));
  }
  try {
    write.rows = siblingRowsOf(write.changes, write.mark.isShared ?? false);
    write.siblings = await readSiblings(engine, write.changes, write.rows, 'all');
    write.plan = withoutDeletes(planPartition(write.changes, write.siblings, write.mark), write.missing);
  } catch (error) {
    throw await endIntent(write, error);
  }
  await requireAnnounced(write);
  return undefined;
}

/** Notes the changes if their outcome is unknown. Returns `why`, to be thrown. */
function noteUnknownOutcome<Reason>(write: Write, why: Reason): Reason {
  if (isOutcomeUnknown(why)) noteChanges(write, undefined);
  return why;
}

function withoutDeletes(plan: Plan, rows: ReadonlySet<string>): Plan {
  return { ...plan, actions: plan.actions.filter(({ action: { kind, row } }) => kind !== 'delete' || !rows.has(row)) };
}

/** Notes each change for the audit log. Without `done` the outcome is unknown. */
function noteChanges({ engine, changes }: Write, done: readonly Stored[] | undefined): void {
  for (const [index, { entity, address, before, after, isUnchanged, isRekey }] of changes.entries()) {
    if (isUnchanged || isRekey) continue;
    const then = liveValues(before) ?? {};
    const { values: now, etag } = done?.[index] ?? { values: after ?? {}, etag: undefined };
    const fields = Object.keys({ ...then, ...now }).filter((field) => !isSame(then[field], now[field]));
    const operation = after ? operationOf(before) : 'delete';
    const outcome = done ? undefined : 'unknown';
    noteChange(engine, { operation, entity: entity.name, address, fields, etag, outcome });
  }
}

function operationOf(before: Change['before']): 'put' | 'create' | 'replace' {
  if (before.state === 'unread') return before.etag === undefined ? 'put' : 'replace';
  return before.state === 'live' ? 'replace' : 'create';
}

/** The entities as a read would return them. References are resolved from the change, whose values are still in memory. */
function results(
  changes: readonly EntityChange[],
  { actions, further }: Plan,
  etags: ReadonlyMap<string, string>,
): Stored[] {
  return changes.map(({ entity, address: { row }, after, isUnchanged }) => {
    const action = actions.find((planned) => planned.action.row === row)?.action;
    // Another change of the transaction may have replaced it.
    if (isUnchanged && action?.kind === 'merge') return { etag: etags.get(row) ?? '', values: after ?? {} };
    const properties = action && 'properties' in action ? { ...further.get(row), ...action.properties } : undefined;
    const values = after && properties ? toValues(entity, properties) : {};
    const isHeld = (field: string) => isReference(after?.[field]) && isSame(after?.[field], values[field]);
    const held = pick(after ?? {}, entity.referenceFields.filter(isHeld));
    return { etag: etags.get(row) ?? '', values: { ...values, ...held } };
  });
}

/** True if the rows carry the id of this write: its reply was lost, and the SDK's retry was a conflict. */
function isOwnWrite({ writeId, changes, plan }: Write, fresh: readonly Fresh[]): boolean {
  const written = results(changes, plan, new Map());
  return fresh.every(({ entity, before, after }, index) => {
    if (before.state === 'absent') return !after;
    if (before.state !== 'live') return before.writeId === writeId;
    if (before.system.WriteId !== writeId) return false;
    // A merge of the program that fills the table keeps the id: the ETag is then that of values which this write has not seen.
    return !entity.existing || isSame(before.values, written[index]?.values);
  });
}

/** True if no attempt of the write was committed: every entity is as it was read, or another one was created in its place. */
function areUnchanged(changes: readonly EntityChange[], fresh: readonly Fresh[], writeId: string): boolean {
  return changes.every(({ before: then, incarnation, arrival }, index) => {
    const now = fresh[index]?.before;
    if (then.state === 'absent' && now?.state === 'live')
      return now.system.Incarnation !== (arrival?.incarnation ?? incarnation ?? writeId);
    if (then.state === 'absent' || then.state === 'unread' || now === undefined || now.state === 'absent')
      return then.state === now?.state;
    return then.etag === now.etag;
  });
}

/** The change to plan again: with the fresh state, or with what was read before if the entity has not changed since. */
function planAgain(change: EntityChange, fresh: Fresh | undefined): EntityChange {
  const [then, now] = [change.before, fresh?.before];
  const isSame = then.state === 'live' && now?.state === 'live' && then.etag === now.etag;
  return then.state === 'unread' || isSame ? change : (fresh ?? change);
}
