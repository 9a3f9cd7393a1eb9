import pMap from 'p-map';
import { RowkeyError } from '../errors.ts';
import { scanTable } from '../storage/rows.ts';
import { inPattern } from '../telemetry/span.ts';
import type { Position } from './continuation.ts';
import { rewrap } from './encrypted-properties.ts';
import type { Engine } from './engine.ts';
import { type Entity, pick, type Values } from './entity.ts';
import { toValues } from './entity-codec.ts';
import { changeEntity } from './entity-store.ts';
import { isSealed } from './reference.ts';
import type { PageOptions } from './retrieve.ts';

/**
 * After the key-encryption key was rotated: wraps data keys with the current one, page by page, while everything goes on.
 * What an earlier key wrapped stays readable as long as that key is there; the ciphertexts do not change.
 */

const AT_ONCE = 8;

export interface Rewrapped {
  readonly looked: number;
  readonly rewrapped: number;
  readonly next: Position | undefined;
}

/** Looks at `top` entities of the table. One that is being written at that moment is left for the next run. */
export const rewrapEntities = inPattern(
  'encrypted properties',
  async (engine: Engine, entity: Entity, { top, after }: PageOptions): Promise<Rewrapped> => {
    const from = after?.partition === undefined ? undefined : { partition: after.partition, row: after.row };
    const scan = { table: entity.table, type: entity.name, after: from, limit: top };
    const { rows, more } = await scanTable(engine.storage, scan);
    const own = rows.filter(({ properties }) => properties.SourceRow === undefined);
    const changed = await pMap(own, ({ properties }) => rewrapOne(engine, entity, toValues(entity, properties)), {
      concurrency: AT_ONCE,
    });
    const last = rows.at(-1);
    return {
      looked: own.length,
      rewrapped: changed.filter(Boolean).length,
      next: more && last ? { partition: last.partition, row: last.row } : undefined,
    };
  },
);

async function rewrapOne(engine: Engine, entity: Entity, found: Values): Promise<boolean> {
  const isCurrent = async (values: Values) => {
    const after = await rewrapped(engine, entity, values);
    return entity.encrypted.every((field) => after[field] === values[field]);
  };
  if (await isCurrent(found)) return false;
  try {
    await changeEntity(engine, entity, pick(found, entity.keyFields), undefined, async (current) => ({
      ...current,
      ...(await rewrapped(engine, entity, current)),
    }));
    return true;
  } catch (error) {
    if (error instanceof RowkeyError && (error.code === 'not-found' || error.code === 'busy')) return false;
    throw error;
  }
}

async function rewrapped(engine: Engine, entity: Entity, values: Values): Promise<Values> {
  const fields = entity.encrypted.filter((field) => isSealed(values[field]));
  const sealed = await pMap(fields, async (field) => {
    const value = values[field];
    return [field, isSealed(value) ? await rewrap(engine, value) : value] as const;
  });
  return Object.fromEntries(sealed);
}
