import pMap from 'p-map';
import { type ErrorCode, hasCode, isOutcomeUnknown } from '../../base/errors.ts';
import { onceFor } from '../../base/once.ts';
import { DAY_MS } from '../../base/time.ts';
import { pick, type Stored, type Values } from '../../base/values.ts';
import { withDefaultFields } from '../../define/codec/further-rows.ts';
import { validate, validateKey } from '../../define/codec/validation.ts';
import { type Conditions, checkConditions } from '../../define/declaration/conditions.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { addressOf } from '../../define/places/index-entries.ts';
import { hasConstantDefault } from '../../define/schema/field-schema.ts';
import { StorageConflict } from '../../storage/errors.ts';
import type { Engine } from '../engine.ts';
import { journalNamed } from '../journal-named.ts';
import { declarationOf, type EntityRowOptions, readLive } from '../read/entity-rows.ts';
import type { EntityWrite } from './checks.ts';
import { atAction } from './conflict.ts';
import {
  type BatchAction,
  type BatchDone,
  type BatchOutcome,
  type TransactionAction,
  type TransactionDone,
  transact,
  writeBatch,
  writeOne,
} from './entity-batch.ts';
import {
  prepareCreate,
  prepareDelete,
  prepareMerge,
  preparePatch,
  preparePut,
  prepareReplace,
  withSetFields,
} from './entity-write.ts';
import { findOperation, newOperationId, writeOperation } from './operation.ts';

/** Writes one entity. entity-batch.ts writes many. */

/** Errors of a create that an earlier attempt of the same request may have caused. */
const BY_ITSELF: readonly ErrorCode[] = ['duplicate-key', 'duplicate-value', 'partition-full', 'busy'];

/**
 * Creates an entity. `incarnation` identifies the request: if an earlier attempt of the request created the entity, its
 * current state is returned. Throws `invalid-input`, `duplicate-key`, `duplicate-value`, `partition-full`,
 * `too-large`, `busy`.
 */
export async function createEntity(
  engine: Engine,
  entity: Entity,
  input: unknown,
  incarnation?: string,
): Promise<Stored> {
  const there = await declarationOf(engine, entity);
  const write = prepareCreate(engine, there, input, { incarnation });
  try {
    return await writeStored(engine, write);
  } catch (error) {
    if (incarnation === undefined || !hasCode(error, ...BY_ITSELF)) throw error;
    const earlier = await readLive(engine, there, write.address);
    if (earlier?.system.Incarnation !== incarnation) throw error;
    await journalNamed(engine, [write.address]);
    return earlier;
  }
}

/**
 * Creates an entity once for a request that may be repeated; `id` identifies the request. If the body has the whole key, an
 * earlier attempt is recognized by the entity itself. If a part of the key is generated (an instant, an id), that part is
 * recorded first, so that a repetition within a day uses the same key. Throws as `createEntity` does.
 */
export async function createOnce(
  engine: Engine,
  entity: Entity,
  input: unknown,
  id: string | undefined,
): Promise<Stored> {
  if (id === undefined) return createEntity(engine, entity, input);
  return createEntity(engine, entity, await withRecordedKey(engine, entity, input, id), id);
}

/** The fields of the key whose default may be another one each time, such as an instant or an id. */
const generatedKeyFields = onceFor(({ keyFields, derived, defaults, schema }: Entity): readonly string[] =>
  keyFields.filter((field) => !(field in derived) && !(field in defaults) && !hasConstantDefault(schema, field)),
);

/** The input of a create or a put with the generated parts of its key, which are those of the first attempt. */
async function withRecordedKey(engine: Engine, entity: Entity, sent: unknown, id: string): Promise<unknown> {
  const input = withSetFields(engine, entity, sent);
  const given = Object(input);
  const madeUp = generatedKeyFields(entity).filter((field) => !(field in given));
  if (madeUp.length === 0) return input;
  const values = validate(entity, input);
  return { ...given, ...(await recordedKey(engine, entity, id, pick(values, madeUp))) };
}

/** The ids of the actions of a request that may be repeated. Undefined if it is not repeated. */
type RequestIds = readonly string[] | undefined;

/** The action with the key of the first attempt. */
async function identify(
  engine: Engine,
  { entity, action }: TransactionAction,
  id: string | undefined,
): Promise<TransactionAction> {
  if (id === undefined || !('create' in action || 'put' in action)) return { entity, action };
  if ('create' in action)
    return { entity, action: { create: await withRecordedKey(engine, entity, action.create, id) }, incarnation: id };
  return { entity, action: { ...action, put: await withRecordedKey(engine, entity, action.put, id) } };
}

/**
 * Executes the actions of a batch once for a request that may be repeated. An earlier attempt of a create is recognized by its entity, and
 * that of any other action has the same effect. Returns and throws as `writeBatch` does.
 */
export async function batchOnce(
  engine: Engine,
  entity: Entity,
  actions: readonly BatchAction[],
  ids: RequestIds,
): Promise<BatchOutcome[]> {
  if (!ids) return writeBatch(engine, entity, actions);
  const identified = await pMap(
    actions,
    async (action, position) => {
      // The batch has the same error for the action.
      const found = await identify(engine, { entity, action }, ids[position]).catch(unlessInvalid);
      return found ?? { entity, action };
    },
    { concurrency: RECORDS_CONCURRENCY },
  );
  const [keyed, incarnations] = [
    identified.map(({ action }) => action),
    identified.map(({ incarnation }) => incarnation),
  ];
  return pMap(
    await writeBatch(engine, entity, keyed, incarnations),
    async (outcome, position) => {
      const action = identified[position];
      if (action?.incarnation === undefined || !hasCode(outcome, ...BY_ITSELF)) return outcome;
      const [done] = (await findDone(engine, [action])) ?? [];
      return done ? { outcome: done.outcome, etag: done.etag } : outcome;
    },
    { concurrency: RECORDS_CONCURRENCY },
  );
}

const RECORDS_CONCURRENCY = 16;

/**
 * Executes a transaction once for a request that may be repeated. An earlier attempt is recognized by the entities that it has created.
 * Throws as `transact` does.
 */
export async function transactOnce(
  engine: Engine,
  actions: readonly TransactionAction[],
  ids: RequestIds,
): Promise<TransactionDone[]> {
  if (!ids) return transact(engine, actions);
  const identified = await Promise.all(
    actions.map((action, position) =>
      identify(engine, action, ids[position]).catch((error: unknown) => {
        throw atAction({ position }, error);
      }),
    ),
  );
  try {
    return await transact(engine, identified);
  } catch (error) {
    const earlier = isOutcomeUnknown(error) ? undefined : await findDone(engine, identified).catch(unlessInvalid);
    if (!earlier) throw error;
    return earlier;
  }
}

/** Executes all actions on entities of one declaration as `transactOnce` does. */
export async function writeAtomically(
  engine: Engine,
  entity: Entity,
  actions: readonly BatchAction[],
  ids?: RequestIds,
): Promise<BatchDone[]> {
  const all = actions.map((action) => ({ entity, action }));
  return (await transactOnce(engine, all, ids)).map(({ key: _, ...done }) => done);
}

/** No attempt has executed an action that is not valid. */
function unlessInvalid(error: unknown): undefined {
  if (!hasCode(error, 'invalid-input')) throw error;
}

/** The present state of the entities of an earlier attempt; undefined if there was none that succeeded. */
async function findDone(engine: Engine, actions: readonly TransactionAction[]): Promise<TransactionDone[] | undefined> {
  const states = await Promise.all(
    actions.map(async ({ entity, action, incarnation }) => {
      const given = withSetFields(engine, entity, Object.values(action)[0]);
      const isCreate = 'create' in action;
      const key = isCreate ? pick(validate(entity, given), entity.keyFields) : validateKey(entity, given);
      const address = addressOf(entity, key);
      const live = await readLive(engine, entity, address);
      const isOurs = incarnation !== undefined && live?.system.Incarnation === incarnation;
      const outcome = isOurs ? 'created' : 'delete' in action ? 'deleted' : 'stored';
      // Others may have written an entity since, or the caller may have lost the right to it.
      const isTold = live && outcome !== 'deleted' && !engine.guard?.isHidden(entity.name, 'update', live.values);
      return { isOurs, address, done: { outcome, key, ...(isTold ? { etag: live.etag } : {}) } as const };
    }),
  );
  if (!states.some(({ isOurs }) => isOurs)) return undefined;
  await journalNamed(
    engine,
    states.map(({ address }) => address),
  );
  return states.map(({ done }) => done);
}

/** The generated key of the first attempt. */
async function recordedKey(engine: Engine, entity: Entity, id: string, madeUp: Values): Promise<Values> {
  const now = engine.now();
  const operationId = newOperationId(now, id);
  const recorded = await keyOf(engine, entity, newOperationId(now - DAY_MS, id));
  if (recorded) return recorded;
  const record = { operationId, operation: 'create', entity: entity.name, status: 'succeeded' } as const;
  try {
    await writeOperation(engine, { ...record, key: madeUp }, 'insert');
    return madeUp;
  } catch (error) {
    // The record of an earlier attempt, or of this one after a lost reply.
    if (!(error instanceof StorageConflict) || error.reason !== 'exists') throw error;
    return (await keyOf(engine, entity, operationId)) ?? madeUp;
  }
}

async function keyOf(engine: Engine, { name }: Entity, operationId: string): Promise<Values | undefined> {
  const found = await findOperation(engine, { entity: name, operation: 'create', operationId });
  return found?.key as Values | undefined;
}

type Change<Result> = (
  engine: Engine,
  entity: Entity,
  key: Values,
  input: unknown,
  conditions?: Conditions,
) => Promise<Result>;

/** Replaces all fields of an entity. Throws as `changeEntity` does. */
export const replaceEntity: Change<Stored> = async (engine, entity, key, input, conditions = {}) =>
  writeStored(engine, prepareReplace(engine, await declarationOf(engine, entity), key, input, conditions));

/**
 * Changes some fields of an entity; null removes a field (RFC 7396). Throws as `changeEntity` does, and `invalid-input` for an
 * encrypted field, which can only be replaced with the whole entity.
 */
export const patchEntity: Change<Stored> = async (engine, entity, key, patch, conditions = {}) =>
  writeStored(engine, preparePatch(engine, await declarationOf(engine, entity), key, patch, conditions));

/** Changes the given fields of an entity. Returns only the new ETag, so that a merge without a read is possible. */
export const mergeEntity: Change<Pick<Stored, 'etag'>> = async (engine, entity, key, patch, conditions = {}) =>
  writeStored(engine, prepareMerge(engine, await declarationOf(engine, entity), key, patch, conditions));

/** An entity that a put has stored. */
export interface Put extends Stored {
  readonly isCreated: boolean;
}

/**
 * Replaces an entity, or creates it if it does not exist. An entity that is one row is stored without a read, and
 * `isCreated` is then false. With `If-None-Match: *` creates it without a read. Throws as `replaceEntity` and `createEntity`
 * do, but for `not-found`: `etag-mismatch` if the conditions do not hold.
 */
export const putEntity: Change<Put> = async (engine, entity, key, input, conditions = {}) => {
  const mustBeNew = conditions.ifNoneMatch?.trim() === '*';
  const there = await declarationOf(engine, entity);
  const write = mustBeNew
    ? prepareCreate(engine, there, input, { key, conditions })
    : preparePut(engine, there, key, input, conditions);
  try {
    const { outcome, ...stored } = await writeOne(engine, write);
    return { ...stored, isCreated: outcome === 'created' };
  } catch (error) {
    if (!mustBeNew || !hasCode(error, 'duplicate-key', 'duplicate-value', 'partition-full')) throw error;
    // The row may be of another kind.
    const found = await readLive(engine, there, write.address);
    // The ETag of a hidden row is not told: it is a conflict, as for a create.
    const isHidden = found && engine.guard?.isHidden(there.name, 'update', found.values);
    if (found && !isHidden) checkConditions(conditions, found.etag);
    throw error;
  }
};

/**
 * Deletes an entity. Returns the id of the operation that does it, if the entity has more children than a transaction has rows. Throws as
 * `changeEntity` does.
 */
export async function deleteEntity(
  engine: Engine,
  entity: Entity,
  key: Values,
  conditions: Conditions = {},
): Promise<string | undefined> {
  const there = await declarationOf(engine, entity);
  return (await writeOne(engine, prepareDelete(engine, there, key, undefined, conditions))).operationId;
}

/**
 * Reads an entity, calls `change`, and writes under the ETag that was read. Retries after concurrent changes while `conditions`
 * hold; changes of one process run one after the other. An unchanged entity is not written. Throws `not-found`, `etag-mismatch`,
 * `busy`, and the errors of `change` and of the write.
 */
export async function changeEntity(
  engine: Engine,
  entity: Entity,
  key: Values,
  { fields, isWhole, isUpkeep, ...conditions }: Conditions & Pick<EntityWrite, 'isUpkeep'> & EntityRowOptions,
  change: (current: Values) => Promise<Values | undefined>,
): Promise<Stored> {
  const there = await declarationOf(engine, entity);
  return writeStored(engine, {
    entity: there,
    address: addressOf(there, key),
    key,
    expects: 'one',
    conditions,
    read: { fields: fields && withDefaultFields(entity, fields), isWhole },
    isUpkeep,
    next: (current) => change(current?.values ?? {}),
  });
}

async function writeStored(engine: Engine, write: EntityWrite): Promise<Stored> {
  const { outcome: _, ...stored } = await writeOne(engine, write);
  return stored;
}
