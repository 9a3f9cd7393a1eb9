import { entityError, type RowkeyError } from '../../base/errors.ts';
import type { Values } from '../../base/values.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import type { Live } from '../../define/declaration/snapshot.ts';
import type { Engine } from '../engine.ts';
import { type EntityRowOptions, readJoinedRow } from './entity-rows.ts';
import { type Judged, judgeRow } from './judge-row.ts';

/** Reads of one entity as it is stored. */

/** One transaction: see `readJoinedRow`. Undefined if there is no entity, or only a tombstone. */
export async function readLive(
  engine: Engine,
  entity: Entity,
  address: Parameters<typeof readJoinedRow>[2],
  options?: EntityRowOptions,
): Promise<Live | undefined> {
  const judged = await readJudged(engine, entity, address, options);
  return judged?.is === 'entity' ? judged.snapshot : undefined;
}

export async function readJudged(
  engine: Engine,
  entity: Entity,
  address: Parameters<typeof readJoinedRow>[2],
  options?: EntityRowOptions,
): Promise<Judged | undefined> {
  const row = await readJoinedRow(engine, entity, address, options);
  return row && judgeRow(entity, row);
}

/** The error for an absent entity, a tombstone and a row of another type. */
export function notFound(entity: Entity, given: Values): RowkeyError {
  return entityError('not-found', entity, given, 'not found.');
}
