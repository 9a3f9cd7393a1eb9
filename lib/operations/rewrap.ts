import pMap from 'p-map';
import { RowkeyError } from '../base/errors.ts';
import { pick, type Values } from '../base/values.ts';
import { isSealed } from '../define/codec/entity-codec.ts';
import type { Entity } from '../define/declaration/entity.ts';
import type { Engine } from '../engine/engine.ts';
import type { Position } from '../engine/read/continuation.ts';
import { type PageOptions, scanEntities } from '../engine/read/retrieve.ts';
import { changeEntity } from '../engine/write/entity-store.ts';
import { rewrap, SealBroken } from '../features/encrypted-properties/encrypted-properties.ts';
import { inPattern } from '../telemetry/span.ts';

/**
 * Wraps data keys with the current key-encryption key after a rotation, page by page, beside normal traffic. Ciphertexts do not
 * change, and data keys wrapped by an earlier key stay readable while that key exists. A value that cannot be decrypted is
 * skipped and counted.
 */

const CONCURRENCY = 8;

interface Rewrapped {
  readonly checked: number;
  readonly rewrapped: number;
  /** Entities with a value that cannot be decrypted, or with a lost row. */
  readonly failed: number;
  readonly next: Position | undefined;
}

/** Rewraps one page of the table. An entity that is being written is left for the next run. */
export const rewrapEntities = inPattern(
  'encrypted properties',
  async (engine: Engine, entity: Entity, page: PageOptions): Promise<Rewrapped> => {
    const { items, next } = await scanEntities(engine, entity, { ...page, mayLackRows: true });
    // Fails here if the current key is unavailable, so that no entity is counted as failed.
    await engine.keys.currentKeyId();
    const outcomes = await pMap(items, (found) => rewrapOne(engine, entity, found), { concurrency: CONCURRENCY });
    return {
      checked: items.length,
      rewrapped: outcomes.filter((outcome) => outcome === 'rewrapped').length,
      failed: outcomes.filter((outcome) => outcome === 'failed').length,
      next,
    };
  },
);

async function rewrapOne(engine: Engine, entity: Entity, found: Values): Promise<'rewrapped' | 'failed' | 'left'> {
  const isCurrent = async (values: Values) => {
    const after = await rewrapFields(engine, entity, values);
    return entity.encrypted.every((field) => after[field] === values[field]);
  };
  try {
    if (await isCurrent(found)) return 'left';
    const upkeep = { isUpkeep: true, fields: entity.encrypted, isWhole: true };
    await changeEntity(engine, entity, pick(found, entity.keyFields), upkeep, async (current) => ({
      ...current,
      ...(await rewrapFields(engine, entity, current)),
    }));
    return 'rewrapped';
  } catch (error) {
    const code = error instanceof RowkeyError ? error.code : undefined;
    if (code === 'not-found' || code === 'busy') return 'left';
    if (code === 'wrong-setting' || code === 'needs-repair' || error instanceof SealBroken) return 'failed';
    throw error;
  }
}

async function rewrapFields(engine: Engine, entity: Entity, values: Values): Promise<Values> {
  const fields = entity.encrypted.filter((field) => isSealed(values[field]));
  const sealed = await pMap(fields, async (field) => {
    const value = values[field];
    return [field, isSealed(value) ? await rewrap(engine, value) : value] as const;
  });
  return Object.fromEntries(sealed);
}
