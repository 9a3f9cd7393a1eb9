import { DAY_MS } from '../../base/time.ts';
import { pick, type Stored, type Values } from '../../base/values.ts';
import { validate } from '../../define/codec/validation.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { StorageConflict } from '../../storage/errors.ts';
import type { Engine } from '../engine.ts';
import { createEntity } from './entity-store.ts';
import { findOperation, newOperationId, writeOperation } from './operation.ts';

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
  const values = validate(entity, input);
  const given = typeof input === 'object' && input !== null ? input : {};
  const madeUp = entity.keyFields.filter((field) => !(field in given) && !(field in entity.derived));
  if (madeUp.length === 0) return createEntity(engine, entity, input, id);
  const key = await recordedKey(engine, entity, id, pick(values, madeUp));
  return createEntity(engine, entity, { ...given, ...key }, id);
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
