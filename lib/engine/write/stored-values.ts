import pMap from 'p-map';
import type { Entity, Values } from '../../define/entity.ts';
import { addressOf } from '../../define/index-entries.ts';
import { referenceFields } from '../../define/kept-fields.ts';
import { ReferenceBroken } from '../../define/reference.ts';
import type { Engine } from '../engine.ts';

/**
 * Between the values that callers write and read and those that a row holds. A pattern may store a reference in place of a
 * value. The engine passes references on as they are.
 */

const FIELDS_CONCURRENCY = 8;

/** The values as a row holds them. A value that is as in `current`, as it was stored, stays the same. */
export async function toStored(engine: Engine, entity: Entity, values: Values, current: Values = {}): Promise<Values> {
  let stored = values;
  for (const pattern of entity.patterns) stored = (await pattern.store?.(engine, entity, stored, current)) ?? stored;
  return stored;
}

/**
 * The values as callers read them. `lost` returns what to put in place of a broken reference; undefined keeps the reference.
 * Without `lost` throws `ReferenceBroken`.
 */
export async function toPlain(
  engine: Engine,
  entity: Entity,
  values: Values,
  lost: (field: string, error: Error) => null | undefined = rethrow,
): Promise<Values> {
  const plain = await pMap(
    referenceFields(entity),
    async (field) => {
      try {
        return [field, await loadField(engine, entity, values, field)] as const;
      } catch (error) {
        if (error instanceof ReferenceBroken) return [field, lost(field, error)] as const;
        throw error;
      }
    },
    { concurrency: FIELDS_CONCURRENCY },
  );
  return { ...values, ...Object.fromEntries(plain.filter(([, text]) => text !== undefined)) };
}

function rethrow(_field: string, error: Error): never {
  throw error;
}

/** Undefined where the value is no reference. */
async function loadField(engine: Engine, entity: Entity, values: Values, field: string): Promise<string | undefined> {
  for (const pattern of entity.patterns) {
    const text = await pattern.load?.(engine, entity, values, field);
    if (text !== undefined) return text;
  }
  return undefined;
}

/**
 * The same entity for another address, with references of its own there. A broken reference goes along as it is, so that it
 * is found there; if it was only replaced meanwhile, the entity has changed since it was read, and is copied again.
 */
export async function toPlaced(
  engine: Engine,
  entity: Entity,
  values: Values,
  there: { readonly entity: Entity; readonly to: Values },
): Promise<Values> {
  let placed: Values = { ...(await toPlain(engine, entity, values, () => undefined)), ...there.to };
  const address = addressOf(there.entity, placed);
  for (const pattern of entity.patterns)
    placed = { ...placed, ...(await pattern.copy?.(engine, entity, values, address)) };
  return toStored(engine, there.entity, placed);
}
