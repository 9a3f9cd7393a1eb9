import pMap from 'p-map';
import { RowkeyError } from '../../base/errors.ts';
import { pick } from '../../base/values.ts';
import { validate, validateKey } from '../../define/codec/validation.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { MAX_TRANSACTION_ACTIONS, type Row } from '../../storage/rows.ts';
import type { Engine } from '../engine.ts';
import { entityIn } from '../read/judge-row.ts';
import { creating, deleting, type EntityWrite, patching, storing } from './entity-write.ts';
import { asOutcome, atPosition, type Done, type Outcome, writeTogether } from './write-together.ts';

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

export interface BatchDone extends Pick<Done, 'outcome'> {
  readonly etag?: string | undefined;
}
export type BatchOutcome = BatchDone | RowkeyError;

const PARTITIONS_CONCURRENCY = 4;

/**
 * Executes each action. Returns an outcome or error for each, in order; a failed action does not stop the others. Throws
 * `storage-unavailable` for the whole batch, of which a part may then be done.
 */
export async function writeBatch(
  engine: Engine,
  entity: Entity,
  actions: readonly BatchAction[],
): Promise<BatchOutcome[]> {
  const writes = actions.map((action) => {
    try {
      return toWrite(engine, entity, action);
    } catch (error) {
      return asOutcome(error);
    }
  });
  const valid = writes.flatMap((write) => (write instanceof RowkeyError ? [] : [write]));
  const outcomes = await writePartitions(engine, entity, valid);
  return writes.map((write) => (write instanceof RowkeyError ? write : toBatchOutcome(outcomes.get(write))));
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
  const writes = rows.flatMap((found): EntityWrite[] => {
    const values = entityIn(entity, found)?.values;
    const ifMatch = ifUnchanged ? found.etag : undefined;
    return values ? [deleting(entity, pick(values, entity.keyFields), { ifMatch, found })] : [];
  });
  const outcomes = await writePartitions(engine, entity, writes);
  return writes.map((write) => toBatchOutcome(outcomes.get(write)));
}

function toBatchOutcome(outcome: Outcome | undefined): BatchOutcome {
  return outcome instanceof RowkeyError ? outcome : toBatchDone(outcome);
}

function toBatchDone({ outcome, etag }: Omit<Done, 'values'> = { outcome: 'unchanged', etag: '' }): BatchDone {
  return outcome === 'deleted' ? { outcome } : { outcome, etag };
}

async function writePartitions(
  engine: Engine,
  entity: Entity,
  writes: readonly EntityWrite[],
): Promise<ReadonlyMap<EntityWrite, Outcome>> {
  const outcomes = new Map<EntityWrite, Outcome>();
  const partitions = Map.groupBy(writes, ({ address: { table, partition } }) => JSON.stringify([table, partition]));
  let failure: unknown;
  // After a failure no transaction is started, and the running ones are awaited, because the audit log needs their changes.
  await pMap(
    partitions.values(),
    async (some) => {
      try {
        for (const group of groupsOf(some)) {
          if (failure) return;
          for (const [write, outcome] of await writeTogether(engine, entity, group)) outcomes.set(write, outcome);
        }
      } catch (error) {
        failure ??= error;
      }
    },
    { concurrency: PARTITIONS_CONCURRENCY },
  );
  if (failure) throw failure;
  return outcomes;
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
  const writes = actions.map((action, index) => {
    try {
      return toWrite(engine, entity, action);
    } catch (error) {
      throw error instanceof RowkeyError ? atPosition(index, error) : error;
    }
  });
  const [first] = writes;
  for (const [at, write] of writes.entries()) {
    const { table, partition, row } = write.address;
    if (table !== first?.address.table || partition !== first.address.partition)
      throw refuse(at, 'is on another partition than the first one. An atomic batch changes one partition.');
    if (writes.findIndex(({ address }) => address.row === row) < at)
      throw refuse(at, 'is the second one on its entity. An atomic batch changes an entity once.');
    if (write.isAlone)
      throw refuse(at, 'deletes under an ETag. Storage has no conditional delete in a transaction: leave out ifMatch.');
  }
  const outcomes = await writeTogether(engine, entity, writes, { isAtomic: true });
  return writes.map((write) => toBatchDone(outcomes.get(write) as Done));
}

function refuse(index: number, why: string): RowkeyError {
  return new RowkeyError('invalid-input', `The action at ${index} ${why}`, { field: `actions.${index}` });
}

/** Validates an action. Throws `invalid-input`. */
function toWrite(engine: Engine, entity: Entity, action: BatchAction): EntityWrite {
  if ('create' in action) return creating(engine, entity, action.create);
  const { ifMatch } = action;
  if ('patch' in action)
    return patching(engine, entity, validateKey(entity, action.patch), action.patch, { ifMatch, mayMerge: true });
  if ('delete' in action) return deleting(entity, validateKey(entity, action.delete), { ifMatch });
  const values = validate(entity, action.put);
  return storing(engine, entity, pick(values, entity.keyFields), () => values, { ifMatch });
}

/** Splits writes where the next one changes an entity again, or needs a transaction of its own. */
function groupsOf(writes: readonly EntityWrite[]): EntityWrite[][] {
  const groups: EntityWrite[][] = [];
  let rows = new Set<string>();
  let isClosed = true;
  for (const write of writes) {
    const { isAlone = false } = write;
    if (isClosed || isAlone || rows.has(write.address.row) || rows.size === MAX_TRANSACTION_ACTIONS) {
      groups.push([]);
      rows = new Set();
    }
    groups.at(-1)?.push(write);
    rows.add(write.address.row);
    isClosed = isAlone;
  }
  return groups;
}
