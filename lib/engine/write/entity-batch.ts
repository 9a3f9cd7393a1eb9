import { isDeepStrictEqual } from 'node:util';
import pMap from 'p-map';
import { busy, RowkeyError } from '../../base/errors.ts';
import { pick, type Values } from '../../base/values.ts';
import { toSnapshot } from '../../define/codec/entity-codec.ts';
import { withDefaultFields } from '../../define/codec/further-rows.ts';
import { keptFields } from '../../define/codec/kept-fields.ts';
import { validate, validateKey } from '../../define/codec/validation.ts';
import type { Change } from '../../define/declaration/change.ts';
import { checkConditions } from '../../define/declaration/conditions.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { liveValues, type Snapshot } from '../../define/declaration/snapshot.ts';
import { addressOf } from '../../define/places/index-entries.ts';
import { type Address, ANY_ETAG, MAX_TRANSACTION_ACTIONS, type Row } from '../../storage/rows.ts';
import type { Engine } from '../engine.ts';
import { readJoinedRow } from '../read/entity-rows.ts';
import { entityIn, type Judged, judgeRow } from '../read/judge-row.ts';
import { notFound } from '../read/read-live.ts';
import { EntityChanged } from './conflict.ts';
import { checkKeyKept, checkWritable, mergeable, patched, unreadFields, unreadState } from './entity-store.ts';
import { commit } from './eventual-transaction.ts';
import { splitAfter } from './plan.ts';
import { toStored } from './stored-values.ts';

/**
 * Writes many entities. The actions on one partition share entity group transactions, as few as their rows fit into, and take
 * effect in their order. Partitions are written concurrently.
 */

/** One action: exactly one of `put`, `create`, `patch` and `delete`. The entity, or at least its key, is the value. */
export type BatchAction =
  | { readonly create: unknown }
  | { readonly put: unknown; readonly ifMatch?: string | undefined }
  /** The key and the fields to change; null removes a field. */
  | { readonly patch: unknown; readonly ifMatch?: string | undefined }
  | { readonly delete: unknown; readonly ifMatch?: string | undefined };

export interface BatchDone {
  /** `stored`: replaced or patched, or put without a read, which does not tell whether the entity existed. */
  readonly outcome: 'created' | 'stored' | 'unchanged' | 'deleted';
  readonly etag?: string | undefined;
}

export type BatchOutcome = BatchDone | RowkeyError;

const PARTITIONS_CONCURRENCY = 4;
const READS_CONCURRENCY = 16;
const MAX_ATTEMPTS = 8;

/** A valid action. */
interface Item {
  readonly index: number;
  readonly kind: 'create' | 'put' | 'patch' | 'delete';
  readonly address: Address;
  readonly key: Values;
  /** The valid values of a create or a put, the input of a patch. */
  readonly input: Values;
  readonly ifMatch: string | undefined;
  /** The row of the entity, if it has been read already. */
  readonly found?: Row;
}

/**
 * Executes each action. Returns an outcome or error for each, in order; a failed action does not stop the others. Throws
 * `storage-unavailable` for the whole batch, of which a part may then be done.
 */
export async function writeBatch(
  engine: Engine,
  entity: Entity,
  actions: readonly BatchAction[],
): Promise<BatchOutcome[]> {
  const outcomes = new Map<number, BatchOutcome>();
  const partitions = new Map<string, Item[]>();
  for (const [index, action] of actions.entries()) {
    try {
      const item = toItem(engine, entity, action, index);
      const { table, partition } = item.address;
      const group = JSON.stringify([table, partition]);
      partitions.set(group, [...(partitions.get(group) ?? []), item]);
    } catch (error) {
      outcomes.set(index, asOutcome(error));
    }
  }
  await writeAll(engine, entity, partitions, outcomes);
  return actions.map((_, index) => outcomes.get(index) ?? { outcome: 'unchanged' });
}

/**
 * Deletes the entities in these rows, and skips rows that are not entities. With `ifUnchanged`, an entity that has changed since its
 * row was read is not deleted. Returns and throws as `writeBatch` does.
 */
export async function deleteRows(
  engine: Engine,
  entity: Entity,
  rows: readonly Row[],
  { ifUnchanged = false }: { readonly ifUnchanged?: boolean } = {},
): Promise<BatchOutcome[]> {
  const outcomes = new Map<number, BatchOutcome>();
  const items = rows.flatMap((found, index): Item[] => {
    const values = entityIn(entity, found)?.values;
    if (!values) return [];
    const key = pick(values, entity.keyFields);
    const ifMatch = ifUnchanged ? found.etag : undefined;
    return [{ index, kind: 'delete', address: addressOf(entity, key), key, input: key, ifMatch, found }];
  });
  const partitions = Map.groupBy(items, ({ address: { table, partition } }) => JSON.stringify([table, partition]));
  await writeAll(engine, entity, partitions, outcomes);
  return items.map(({ index }) => outcomes.get(index) ?? { outcome: 'unchanged' });
}

async function writeAll(
  engine: Engine,
  entity: Entity,
  partitions: ReadonlyMap<string, readonly Item[]>,
  outcomes: Map<number, BatchOutcome>,
): Promise<void> {
  let failure: unknown;
  // After a failure no transaction is started, and the running ones are awaited, because the audit log needs their changes.
  await pMap(
    [...partitions.values()],
    async (items) => {
      try {
        for (const group of groupsOf(entity, items))
          if (!failure) await writeTogether({ engine, entity, outcomes, abandoned: new Set() }, group);
      } catch (error) {
        failure ??= error;
      }
    },
    { concurrency: PARTITIONS_CONCURRENCY },
  );
  if (failure) throw failure;
}

/**
 * Executes all actions in one entity group transaction, or none. Throws the error of the first action that fails, and
 * `invalid-input` or `too-large` if the actions do not fit into one transaction.
 */
export async function writeAtomically(
  engine: Engine,
  entity: Entity,
  actions: readonly BatchAction[],
): Promise<BatchDone[]> {
  const items = actions.map((action, index) => {
    try {
      return toItem(engine, entity, action, index);
    } catch (error) {
      throw error instanceof RowkeyError ? atPosition(index, error) : error;
    }
  });
  const [first] = items;
  for (const [at, item] of items.entries()) {
    const { table, partition, row } = item.address;
    if (table !== first?.address.table || partition !== first.address.partition)
      throw refuse(at, 'is on another partition than the first one. An atomic batch changes one partition.');
    if (items.findIndex(({ address }) => address.row === row) < at)
      throw refuse(at, 'is the second one on its entity. An atomic batch changes an entity once.');
    if (needsOwnTransaction(entity, item))
      throw refuse(at, 'deletes under an ETag. Storage has no conditional delete in a transaction: leave out ifMatch.');
  }
  const abandoned = new Set<string>();
  for (let attempt = 1; ; attempt += 1) {
    const changes = await changesOf(engine, entity, items);
    const failed = changes.find(isFailed);
    if (failed) throw atPosition(failed.index, failed.error);
    try {
      const done = await commitAll({ engine, entity, abandoned }, changes.filter(isPlanned), { isAtomic: true });
      return changes.map(({ index }) => done.get(index) ?? { outcome: 'unchanged' });
    } catch (error) {
      if (!(error instanceof EntityChanged)) throw error;
      if (attempt === MAX_ATTEMPTS) throw asOutcome(error);
    }
  }
}

function refuse(index: number, why: string): RowkeyError {
  return new RowkeyError('invalid-input', `The action at ${index} ${why}`, { field: `actions.${index}` });
}

/** The error with the position of its action. */
function atPosition(index: number, error: RowkeyError): RowkeyError {
  const where = `The action at ${index}:`;
  const { detail } = error;
  // Without a detail, the code decides whether a caller may see the message.
  return new RowkeyError(error.code, `${where} ${error.message}`, {
    ...error,
    ...(detail === undefined ? {} : { detail: `${where} ${detail}` }),
    cause: error,
  });
}

/** Validates an action. Throws `invalid-input`. */
function toItem(engine: Engine, entity: Entity, action: BatchAction, index: number): Item {
  const ifMatch = 'ifMatch' in action ? action.ifMatch : undefined;
  const { kind, input } = inputOf(action);
  if (kind === 'create' || kind === 'put') {
    const values = validate(entity, input);
    checkWritable(entity, values, engine.now());
    const key = pick(values, entity.keyFields);
    return { index, kind, address: addressOf(entity, values), key, input: values, ifMatch };
  }
  const key = validateKey(entity, input);
  checkWritable(entity, key, engine.now());
  return { index, kind, address: addressOf(entity, key), key, input: input as Values, ifMatch };
}

function inputOf(action: BatchAction): Pick<Item, 'kind'> & { readonly input: unknown } {
  if ('create' in action) return { kind: 'create', input: action.create };
  if ('put' in action) return { kind: 'put', input: action.put };
  if ('patch' in action) return { kind: 'patch', input: action.patch };
  return { kind: 'delete', input: action.delete };
}

/** Splits actions where the next one changes an entity again, or needs a transaction of its own. */
function groupsOf(entity: Entity, items: readonly Item[]): Item[][] {
  const groups: Item[][] = [];
  let rows = new Set<string>();
  let isClosed = true;
  for (const item of items) {
    const isAlone = needsOwnTransaction(entity, item);
    if (isClosed || isAlone || rows.has(item.address.row) || rows.size === MAX_TRANSACTION_ACTIONS) {
      groups.push([]);
      rows = new Set();
    }
    groups.at(-1)?.push(item);
    rows.add(item.address.row);
    isClosed = isAlone;
  }
  return groups;
}

/** A delete under an ETag is conditional as a single operation or by a tombstone, which an entity without further rows has not. */
function needsOwnTransaction(entity: Entity, { kind, ifMatch }: Item): boolean {
  const hasTombstone = entity.patterns.some(({ leavesTombstone }) => leavesTombstone);
  return kind === 'delete' && ifMatch !== undefined && ifMatch.trim() !== ANY_ETAG && !hasTombstone;
}

interface Batch {
  readonly engine: Engine;
  readonly entity: Entity;
  readonly outcomes: Map<number, BatchOutcome>;
  readonly abandoned: Set<string>;
}

/** Writes all in one transaction. If it fails, writes each half, until the action that fails is alone. */
async function writeTogether(batch: Batch, items: readonly Item[], attempt = 1): Promise<void> {
  const { engine, entity, outcomes } = batch;
  const changes = await changesOf(engine, entity, items);
  for (const change of changes) if (isFailed(change)) outcomes.set(change.index, change.error);
  const left = changes.filter(isPlanned);
  try {
    for (const [index, done] of await commitAll(batch, left)) outcomes.set(index, done);
  } catch (error) {
    const writable = items.filter(({ index }) => left.some((change) => change.index === index));
    if (error instanceof EntityChanged && attempt < MAX_ATTEMPTS) {
      const unread = writable.map(({ found: _, ...item }) => item);
      return writeTogether(batch, unread, attempt + 1);
    }
    const [only, ...others] = writable;
    const outcome = asOutcome(error);
    if (!only || others.length === 0) return void (only && outcomes.set(only.index, outcome));
    // The first ones take effect first, as if each action were alone.
    for (const part of splitAfter(error, writable)) await writeTogether(batch, part);
  }
}

interface Planned extends Change {
  readonly index: number;
  readonly outcome: BatchDone['outcome'];
}

interface Failed {
  readonly index: number;
  readonly error: RowkeyError;
}

const isFailed = (change: Planned | Failed): change is Failed => 'error' in change;
const isPlanned = (change: Planned | Failed): change is Planned => !isFailed(change);

/** Commits the changes that have an effect. With `isAtomic`, the transaction fails if an entity that it leaves unchanged has changed. */
async function commitAll(
  { engine, entity, abandoned }: Pick<Batch, 'engine' | 'entity' | 'abandoned'>,
  changes: readonly Planned[],
  { isAtomic = false } = {},
): Promise<Map<number, BatchDone>> {
  const acting = changes.filter(({ outcome }) => outcome !== 'unchanged');
  const others = isAtomic && acting.length > 0 ? changes.filter((change) => !acting.includes(change)) : [];
  const needed = [...acting, ...others.map((change) => ({ ...change, isUnchanged: true }))];
  const assumeNew = acting.every(({ outcome }) => outcome === 'created');
  const done = await commit(engine, entity, needed, { abandoned, assumeNew });
  return new Map(
    changes.map(({ index, outcome, before }) => {
      const stored = done[needed.findIndex((each) => each.index === index)]?.etag;
      const etag = stored ?? ('etag' in before ? before.etag : undefined);
      return [index, outcome === 'deleted' ? { outcome } : { outcome, etag }];
    }),
  );
}

function changesOf(engine: Engine, entity: Entity, items: readonly Item[]): Promise<(Planned | Failed)[]> {
  return pMap(
    items,
    async (item) => {
      try {
        return { index: item.index, address: item.address, ...(await changeOf(engine, entity, item)) };
      } catch (error) {
        return { index: item.index, error: asOutcome(error) };
      }
    },
    { concurrency: READS_CONCURRENCY },
  );
}

type Effect = Pick<Planned, 'before' | 'after' | 'isPartial' | 'outcome'>;

/** Reads the entity only if the change depends on it. */
async function changeOf(engine: Engine, entity: Entity, item: Item): Promise<Effect> {
  const { kind, key, input, ifMatch, found } = item;
  const unread = kind === 'create' ? undefined : unreadState(entity, key, { ifMatch });
  if (unread && kind === 'put') return { before: unread, after: input, outcome: 'stored' };
  if (unread && kind === 'delete') return { before: unread, after: undefined, outcome: 'deleted' };
  const merged = unread && kind === 'patch' ? mergeable(entity, key, input) : undefined;
  if (unread && merged) return { before: unread, after: merged, isPartial: true, outcome: 'stored' };
  const isRead = kind !== 'create' || entity.patterns.some((pattern) => pattern.hasPlaceholder?.(entity));
  // The table of a period may not exist yet: the write creates it.
  const fields = kind === 'patch' ? withDefaultFields(entity, Object.keys(input)) : Object.keys(entity.columns);
  const options = { fields, isWhole: kind === 'patch' };
  const row = found ?? (isRead ? await readJoinedRow(engine, entity, item.address, options) : undefined);
  const judged = row && judgeRow(entity, row);
  return kind === 'create' || kind === 'put'
    ? storing(engine, entity, item, { row, judged })
    : changing(engine, entity, item, judged);
}

/** A create or a put. */
async function storing(
  engine: Engine,
  entity: Entity,
  { kind, input, ifMatch }: Item,
  { row, judged }: { readonly row: Row | undefined; readonly judged: Judged | undefined },
): Promise<Effect> {
  const live = judged && judged.is !== 'other' ? judged.snapshot : undefined;
  const found = toSnapshot(entity, row);
  // An insert conflicts with an entity, and with a copy, a list or another entity type under the same key.
  const absent: Snapshot = found.state === 'live' ? { state: 'absent' } : found;
  if (kind === 'create') return { before: absent, after: await toStored(engine, entity, input), outcome: 'created' };
  checkConditions({ ifMatch }, live?.etag);
  const current = live?.values;
  const after = await toStored(engine, entity, { ...pick(current ?? {}, keptFields(entity)), ...input }, current);
  const outcome = !current ? 'created' : isDeepStrictEqual(current, after) ? 'unchanged' : 'stored';
  return { before: live ?? absent, after, outcome };
}

/** A patch or a delete. */
async function changing(
  engine: Engine,
  entity: Entity,
  { kind, key, input, ifMatch }: Item,
  judged: Judged | undefined,
): Promise<Effect> {
  if (!judged || judged.is === 'other') throw notFound(entity, key);
  const before = judged.snapshot;
  checkConditions({ ifMatch }, before.etag);
  if (kind === 'delete') return { before, after: undefined, outcome: 'deleted' };
  if (judged.is === 'invalid') throw notFound(entity, key);
  const unread = unreadFields(entity, before);
  const after = await patched(engine, entity, { key, input, current: before.values, unread });
  checkKeyKept(entity, key, after);
  return { before, after, outcome: isDeepStrictEqual(liveValues(before), after) ? 'unchanged' : 'stored' };
}

/** Errors of one entity are its outcome; errors of storage are thrown. */
function asOutcome(error: unknown): RowkeyError {
  if (error instanceof EntityChanged) return busy('Other requests keep changing the same entity.');
  if (error instanceof RowkeyError && error.code !== 'storage-unavailable') return error;
  throw error;
}
