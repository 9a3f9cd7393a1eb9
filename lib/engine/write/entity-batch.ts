import pMap from 'p-map';
import { busy, hasCode, RowkeyError } from '../../base/errors.ts';
import { backOff } from '../../base/time.ts';
import { pick, type Stored, type Values } from '../../base/values.ts';
import { validate, validateKey } from '../../define/codec/validation.ts';
import { type Entity, isOneRow } from '../../define/declaration/entity.ts';
import { addressIfAny } from '../../define/places/index-entries.ts';
import { mostActions, type Row } from '../../storage/rows.ts';
import { inPattern } from '../../telemetry/span.ts';
import type { Engine } from '../engine.ts';
import { journalNamed } from '../journal-named.ts';
import type { Position } from '../read/continuation.ts';
import { beingRekeyed, declarationOf, entityIn, judgeRow } from '../read/entity-rows.ts';
import { readEntityRows, toPosition } from '../read/retrieve.ts';
import { unreachableRow } from '../read/unreadable-field.ts';
import { runExclusive } from '../run-exclusive.ts';
import type { EntityWrite } from './checks.ts';
import { atAction, EntityChanged } from './conflict.ts';
import {
  type PlannedWrite,
  planWrite,
  prepareCreate,
  prepareDelete,
  prepareMerge,
  preparePut,
  prepareValidPut,
  unlessInvalid,
  withSetFields,
} from './entity-write.ts';
import { commit } from './eventual-transaction.ts';
import { findExpired } from './expired.ts';
import { requestLargeDelete } from './large-delete.ts';
import { splitAfter, TooManyCarried } from './plan.ts';

/**
 * Writes entities: read -> check -> plan -> announce -> claim -> commit -> settle, for the writes of one partition. A single write is a
 * batch of one. The steps from the plan on are those of eventual-transaction.ts. The writes on one partition share entity group
 * transactions, as few as their rows fit into, and take effect in their order. Partitions are written concurrently.
 */

/** One action: exactly one of `put`, `create`, `patch` and `delete`. The entity, or at least its key, is the value. */
export type BatchAction =
  | { readonly create: unknown }
  | { readonly put: unknown; readonly ifMatch?: string | undefined; readonly ifNoneMatch?: string | undefined }
  /** The key and the fields to change; null removes a field. */
  | { readonly patch: unknown; readonly ifMatch?: string | undefined }
  | { readonly delete: unknown; readonly ifMatch?: string | undefined };

export interface BatchDone extends Pick<Done, 'outcome' | 'operationId'> {
  readonly etag?: string | undefined;
}
export type BatchOutcome = BatchDone | RowkeyError;

const PARTITIONS_CONCURRENCY = 4;
/** As many requests as an account takes. */
const BULK_CONCURRENCY = 32;
const READS_CONCURRENCY = 16;
/** The longest time to retry one write while other requests change the same entity. */
const PATIENCE_MS = 10_000;
/** Then each half of a batch is written by itself. An atomic batch fails. */
const MAX_ATTEMPTS = 8;
const BACK_OFF_MS = 40;
const LONGEST_BACK_OFF_MS = 500;

/**
 * Executes each action. Returns an outcome or error for each, in order; a failed action does not stop the others. Throws
 * `storage-unavailable` for the whole batch, of which a part may then be done.
 */
export async function writeBatch(
  engine: Engine,
  entity: Entity,
  actions: readonly BatchAction[],
  incarnations: readonly (string | undefined)[] = [],
): Promise<BatchOutcome[]> {
  const there = await declarationOf(engine, entity);
  const writes = actions.map((action, position) => {
    try {
      return { ...toWrite(engine, there, action), incarnation: incarnations[position] };
    } catch (error) {
      return asOutcome(error);
    }
  });
  const valid = writes.flatMap((write) => (write instanceof RowkeyError ? [] : [write]));
  const outcomes = await writePartitions(engine, valid);
  return writes.map((write) => (write instanceof RowkeyError ? write : toBatchOutcome(outcomes.get(write))));
}

/** Deletes the entities in these rows, and skips rows that are not entities. Returns and throws as `writeBatch` does. */
async function deleteRows(engine: Engine, entity: Entity, rows: readonly Row[]): Promise<BatchOutcome[]> {
  const there = await declarationOf(engine, entity);
  const prepared = rows.map((found) => prepareDeleteOf(engine, there, found));
  const writes = prepared.flatMap((one) => (one === undefined || one instanceof RowkeyError ? [] : one));
  const outcomes = await writePartitions(engine, writes);
  return [
    ...writes.map((write) => toBatchOutcome(outcomes.get(write))),
    ...prepared.filter((one) => one instanceof RowkeyError),
  ];
}

/** The delete of the entity in a row, or why there is none. Undefined for a row that is no entity. */
function prepareDeleteOf(engine: Engine, entity: Entity, found: Row): EntityWrite | RowkeyError | undefined {
  try {
    const values = entityIn(entity, found)?.values;
    if (!values) return undefined;
    const { partition, row } = addressIfAny(entity, values) ?? {};
    // The delete would be that of another entity.
    if (partition !== found.partition || row !== found.row) return unreachableRow(entity, found);
    return prepareDelete(engine, entity, pick(values, entity.keyFields), found, {});
  } catch (error) {
    if (hasCode(error, 'needs-repair')) return unreachableRow(entity, found);
    throw error;
  }
}

function toBatchOutcome(outcome: Outcome | undefined): BatchOutcome {
  return outcome instanceof RowkeyError ? outcome : toBatchDone(outcome);
}

function toBatchDone(
  { outcome, etag, operationId }: Omit<Done, 'values'> = { outcome: 'unchanged', etag: '' },
): BatchDone {
  if (outcome === 'accepted') return { outcome, operationId };
  return outcome === 'deleted' ? { outcome } : { outcome, etag };
}

/** Executes writes on any entities. A write that fails does not stop the others. Throws `storage-unavailable`. */
export async function writePartitions(
  engine: Engine,
  writes: readonly EntityWrite[],
  { isBulk = false, leavesReferences = false }: Pick<Writing, 'isBulk' | 'leavesReferences'> = {},
): Promise<ReadonlyMap<EntityWrite, Outcome>> {
  const writing = { ...start(engine), isBulk, leavesReferences };
  const partitions = Map.groupBy(writes, ({ address: { table, partition } }) => JSON.stringify([table, partition]));
  let failure: unknown;
  // After a failure no transaction is started, and the running ones are awaited, because the audit log needs their changes.
  await pMap(
    partitions.values(),
    async (some) => {
      try {
        for (const group of groupsOf(some, mostActions(engine.storage)))
          if (!failure) await writeTogether(writing, group);
      } catch (error) {
        failure ??= error;
      }
    },
    { concurrency: isBulk ? BULK_CONCURRENCY : PARTITIONS_CONCURRENCY },
  );
  if (failure) throw failure;
  return writing.outcomes;
}

/** An action on an entity of this declaration. */
export interface TransactionAction extends Pick<EntityWrite, 'incarnation'> {
  readonly entity: Entity;
  readonly action: BatchAction;
}

export interface TransactionDone extends BatchDone {
  readonly key: Values;
}

/**
 * Executes all actions in one entity group transaction, or none. Each takes effect after those before it. Throws the error of the first
 * action that fails, and `invalid-input` or `too-large` if the actions do not fit into one transaction.
 */
export async function transact(engine: Engine, actions: readonly TransactionAction[]): Promise<TransactionDone[]> {
  const declared = new Map<Entity, Entity>();
  for (const { entity } of actions)
    if (!declared.has(entity)) declared.set(entity, await declarationOf(engine, entity));
  const writes = actions.map(({ entity, action, incarnation }, position) => {
    try {
      return { ...toWrite(engine, declared.get(entity) ?? entity, action), position, incarnation };
    } catch (error) {
      throw atAction({ position }, error);
    }
  });
  const [first] = writes;
  for (const [at, write] of writes.entries()) {
    const { table, partition, row } = write.address;
    if (table !== first?.address.table || partition !== first.address.partition) {
      // They may be on one partition under their new key.
      for (const [entity, there] of declared) if (entity !== there) throw beingRekeyed(entity);
      throw refuse(at, 'is on another partition than the first one. A transaction changes one partition of one table.');
    }
    if (writes.findIndex(({ address }) => address.row === row) < at)
      throw refuse(at, 'is the second one on its entity. A transaction changes an entity once.');
    if (write.isAlone)
      throw refuse(at, 'deletes under an ETag. Storage has no conditional delete in a transaction: leave out ifMatch.');
  }
  const writing = start(engine, true);
  await writeTogether(writing, writes);
  return writes.map((write) => ({ ...toBatchDone(writing.outcomes.get(write) as Done), key: write.key }));
}

function refuse(index: number, why: string): RowkeyError {
  return new RowkeyError('invalid-input', `The action at ${index} ${why}`, { field: `actions.${index}` });
}

/** Throws `invalid-input` for an action without a valid key, and for a create that is not valid. */
function toWrite(engine: Engine, entity: Entity, action: BatchAction): EntityWrite {
  if ('create' in action) return prepareCreate(engine, entity, action.create);
  const { ifMatch } = action;
  const conditions = { ifMatch, ...('ifNoneMatch' in action ? { ifNoneMatch: action.ifNoneMatch } : {}) };
  if ('patch' in action)
    return prepareMerge(engine, entity, validateKey(entity, action.patch), action.patch, { ifMatch });
  if ('delete' in action)
    return prepareDelete(engine, entity, validateKey(entity, action.delete), undefined, { ifMatch });
  try {
    const values = validate(entity, withSetFields(engine, entity, action.put));
    const key = pick(values, entity.keyFields);
    // Only the stored entity tells the values of fields that another caller has set.
    if (engine.guard?.setFields(entity.name)) return preparePut(engine, entity, key, action.put, conditions);
    return prepareValidPut(engine, entity, key, values, conditions);
  } catch (error) {
    const key = hasCode(error, 'invalid-input') && unlessInvalid(() => validateKey(entity, action.put));
    if (!key) throw error;
    // The write is refused in the order of the checks.
    return preparePut(engine, entity, key, action.put, conditions);
  }
}

/** Splits writes where the next one changes an entity again, or needs a transaction of its own. */
function groupsOf(writes: readonly EntityWrite[], most: number): EntityWrite[][] {
  const groups: EntityWrite[][] = [];
  let rows = new Set<string>();
  let isClosed = true;
  for (const write of writes) {
    const { isAlone = false } = write;
    if (isClosed || isAlone || rows.has(write.address.row) || rows.size === most) {
      groups.push([]);
      rows = new Set();
    }
    groups.at(-1)?.push(write);
    rows.add(write.address.row);
    isClosed = isAlone;
  }
  return groups;
}

/** A write that succeeded, with the state of the entity after it. */
interface Done extends Stored {
  /** `accepted`: an operation of the queue deletes the entity, which has many children. */
  readonly outcome: PlannedWrite['outcome'] | 'accepted';
  readonly operationId?: string | undefined;
}
type Outcome = Done | RowkeyError;

const NOTHING: Stored = { etag: '', values: {} };

/** The writes that are in work. */
interface Writing {
  readonly engine: Engine;
  /** All in one transaction or none: throws the error of the first write that fails. */
  readonly isAtomic: boolean;
  /** See `commit`. */
  readonly isBulk?: boolean;
  readonly leavesReferences?: boolean;
  readonly outcomes: Map<EntityWrite, Outcome>;
  /** Attempts that certainly failed: their claims may be taken over. */
  readonly abandoned: Set<string>;
}

function start(engine: Engine, isAtomic = false): Writing {
  return { engine, isAtomic, outcomes: new Map(), abandoned: new Set() };
}

/** Executes one write. Throws its error. */
export async function writeOne(engine: Engine, write: EntityWrite): Promise<Done> {
  const writing = start(engine);
  await writeTogether(writing, [write]);
  const outcome = writing.outcomes.get(write);
  if (outcome instanceof RowkeyError) throw outcome;
  return outcome ?? { outcome: 'unchanged', ...NOTHING };
}

/**
 * Executes writes of different entities of one partition, in one transaction if possible. A write that fails does not stop the others.
 * Throws `storage-unavailable`.
 */
async function writeTogether(writing: Writing, writes: readonly EntityWrite[]): Promise<void> {
  const { storage, now } = writing.engine;
  const [first, ...others] = writes;
  const until = now() + PATIENCE_MS;
  const untilDone = () => commitTogether(writing, writes, until);
  // Changes of one entity by this process run one after the other. Writes of several do not wait: two batches could wait for each other.
  const isExclusive = first && others.length === 0 && first.expects !== 'none' && !first.unread;
  const parts = await (isExclusive ? runExclusive(storage, JSON.stringify(first.address), untilDone) : untilDone());
  // The first ones take effect first, as if each write were alone.
  for (const part of parts) await writeTogether(writing, part);
}

/** Plans and commits the writes, again while other requests change the entities. Returns the parts to write by themselves instead. */
async function commitTogether(
  writing: Writing,
  writes: readonly EntityWrite[],
  until: number,
): Promise<readonly EntityWrite[][]> {
  const { engine, isAtomic, outcomes } = writing;
  let left = writes;
  let planned: PlannedWrite[] = [];
  let failure: unknown = new EntityChanged();
  const mayTry = (attempt: number) => (left.length > 1 ? attempt <= MAX_ATTEMPTS : engine.now() < until);
  for (let attempt = 1; mayTry(attempt); attempt += 1) {
    planned = [];
    for (const [write, plan] of await planAll(writing, left))
      if (!(plan instanceof RowkeyError)) planned.push(plan);
      else if (isAtomic) throw atAction(write, plan);
      else outcomes.set(write, plan);
    left = planned.map(({ write }) => write);
    try {
      for (const [write, done] of await commitPlanned(writing, planned)) outcomes.set(write, done);
      return [];
    } catch (error) {
      failure = error;
      const freed = error instanceof EntityChanged ? 'now' : await deleteExpired(engine, planned, error);
      if (freed === 'later') failure = busy('An expired entity with this key is being deleted.');
      if (freed !== 'now') break;
      for (const write of left) write.found = undefined;
      await backOff(attempt, BACK_OFF_MS, LONGEST_BACK_OFF_MS);
    }
  }
  const error = asOutcome(failure);
  if (isAtomic) throw error;
  const [only, ...others] = left;
  if (others.length > 0) return splitAfter(failure, left);
  if (only) outcomes.set(only, (await deleteLater(engine, planned, failure).catch(asOutcome)) ?? error);
  return [];
}

/** Leaves the delete of an entity with many children to the queue. */
async function deleteLater(
  engine: Engine,
  [only]: readonly PlannedWrite[],
  failure: unknown,
): Promise<Done | undefined> {
  const operationId = only && failure instanceof TooManyCarried ? await requestLargeDelete(engine, only) : undefined;
  return operationId === undefined ? undefined : { ...NOTHING, outcome: 'accepted', operationId };
}

/**
 * Deletes the expired entities that are in the way of the writes, whatever the caller may delete. Says when they are gone; undefined if there
 * are none.
 */
async function deleteExpired(
  engine: Engine,
  planned: readonly PlannedWrite[],
  failure: unknown,
): Promise<'now' | 'later' | undefined> {
  const writing = start({ ...engine, guard: undefined });
  const { deletes, isFree } = await findExpired(writing.engine, planned, failure);
  // Not through `writeTogether`, which would wait for the write that is in work.
  for (const write of deletes) await commitTogether(writing, [write], engine.now() + PATIENCE_MS);
  const outcomes = [...writing.outcomes.values()];
  const isLater = (outcome: Outcome) =>
    outcome instanceof RowkeyError ? hasCode(outcome, 'busy') : outcome.outcome === 'accepted';
  const isGone = (outcome: Outcome) =>
    outcome instanceof RowkeyError ? hasCode(outcome, 'etag-mismatch', 'not-found') : outcome.outcome !== 'accepted';
  if (isFree || outcomes.some(isGone)) return 'now';
  return outcomes.some(isLater) ? 'later' : undefined;
}

function planAll({ engine }: Writing, writes: readonly EntityWrite[]) {
  const planOne = async (write: EntityWrite) => [write, await planWrite(engine, write).catch(asOutcome)] as const;
  return pMap(writes, planOne, { concurrency: READS_CONCURRENCY });
}

/** Commits the changes that have an effect. With `isAtomic`, the transaction fails if an entity that it leaves unchanged has changed. */
async function commitPlanned(
  { engine, isAtomic, isBulk = false, leavesReferences = false, abandoned }: Writing,
  planned: readonly PlannedWrite[],
): Promise<ReadonlyMap<EntityWrite, Done>> {
  const acting = planned.filter(({ outcome }) => outcome !== 'unchanged');
  const others = isAtomic && acting.length > 0 ? planned.filter(({ outcome }) => outcome === 'unchanged') : [];
  const needed = [...acting, ...others.map((change) => ({ ...change, isUnchanged: true }))];
  const assumeNew = acting.every(({ outcome }) => outcome === 'created');
  const stored = await commit(engine, needed, { abandoned, assumeNew, isBulk, leavesReferences });
  // An earlier attempt may have died before the journal had it.
  const found = planned.filter(({ outcome }) => outcome === 'unchanged').map(({ address }) => address);
  await journalNamed(engine, found);
  const committed = new Map(needed.map(({ write }, index) => [write, stored[index]]));
  return new Map(
    planned.map(({ write, outcome, before }) => {
      const { etag, values } = committed.get(write) ?? (before.state === 'live' ? before : NOTHING);
      return [write, { outcome, etag, values }];
    }),
  );
}

/** Errors of one entity are its outcome; errors of storage are thrown. */
function asOutcome(error: unknown): RowkeyError {
  if (error instanceof EntityChanged) return busy('Other requests keep changing the same entity.');
  if (error instanceof RowkeyError && error.code !== 'storage-unavailable') return error;
  throw error;
}

/** The most entities that one call deletes. */
const MAX_DELETED = 1_000;

interface DeleteRangeOptions {
  /** Inclusive bounds of the first field of the row key; each is a prefix. */
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  /** True to delete the whole partition, in place of bounds. */
  readonly all?: boolean | undefined;
  readonly after?: Position | undefined;
  /** No transaction is started after this time, in milliseconds, but for the first one. */
  readonly until?: number;
}

export interface DeletedRange {
  readonly deleted: number;
  /** The errors of entities that were not deleted. */
  readonly failed: readonly RowkeyError[];
  /** How many rows in the range are not valid entities, because a client wrote them. They are still there. */
  readonly skipped: number;
  /** Where the next call continues; undefined at the end of the range. */
  readonly next: Position | undefined;
}

/**
 * Deletes the entities of a range of a partition, with everything that a single delete removes, in batches. The query that
 * finds them also reads what their deletes need. Throws `invalid-input` without bounds unless `all`.
 */
export const deleteRange = inPattern(
  'range query',
  async (engine: Engine, entity: Entity, key: Values, options: DeleteRangeOptions): Promise<DeletedRange> => {
    const { all = false, after, until = Number.POSITIVE_INFINITY } = options;
    const [from, to] = [options.from || undefined, options.to || undefined];
    const isBounded = from !== undefined || to !== undefined;
    if (isBounded === all)
      throw new RowkeyError('invalid-input', 'The range to delete must be either bounded or the whole partition.', {
        field: 'from',
        accepted: '"from", "to" or both, or all=true for every entity of the partition',
      });
    // A rule may compare any field.
    const hasKeyOnly = isOneRow(entity) && !engine.guard?.isLimited(entity.name);
    const read = hasKeyOnly ? { select: entity.keyFields } : { isWhole: true, mayLackRows: true };
    const page = { from, to, after, top: MAX_DELETED, ...read };
    const { rows, next } = await readEntityRows(engine, entity, key, page);
    const failed: RowkeyError[] = [];
    let deleted = 0;
    let skipped = 0;
    const most = mostActions(engine.storage);
    for (let at = 0; at < rows.length; at += most) {
      const last = rows[at - 1];
      if (last && engine.now() >= until) {
        const there = await declarationOf(engine, entity);
        return { deleted, failed, skipped, next: toPosition(there, last) };
      }
      const some = rows.slice(at, at + most);
      if (entity.isWrittenByClients) skipped += some.filter((row) => judgeRow(entity, row).is === 'invalid').length;
      const outcomes = await deleteRows(engine, entity, some);
      for (const outcome of outcomes)
        if (!(outcome instanceof RowkeyError)) deleted += 1;
        // Another request has deleted it.
        else if (outcome.code !== 'not-found') failed.push(outcome);
    }
    return { deleted, failed, skipped, next };
  },
);
