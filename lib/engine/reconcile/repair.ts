import { RowkeyError } from '../../base/errors.ts';
import type { Values } from '../../base/values.ts';
import { toSnapshot } from '../../define/codec/entity-codec.ts';
import { type Live, liveValues } from '../../define/declaration/change.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import type { IndexEntry } from '../../define/declaration/projection.ts';
import { type Action, type Address, trySubmit } from '../../storage/rows.ts';
import type { Engine } from '../engine.ts';
import { readJoinedRow } from '../read/entity-rows.ts';
import { holdFor, UNHELD_MS } from './hold.ts';
import { reconcile } from './reconcile.ts';

/** Repairs of the consistency check. They are safe beside concurrent writers. */

/**
 * The id under which a check works on an entity and claims rows of unique indexes. All checks share it, so the claim of a
 * check that died does not block the next one. No check writes an entity, so sharing is safe.
 */
export function repairIntent({ partition, row }: Pick<Address, 'partition' | 'row'>): string {
  return JSON.stringify(['audit', partition, row]);
}

/** Makes index entries agree with their entity. False if a list that contains the entity is lost. */
export async function repairEntries(
  engine: Engine,
  entity: Entity,
  { table, partition, row }: Address,
  ...indexEntries: readonly IndexEntry[]
): Promise<boolean> {
  const intent = repairIntent({ partition, row });
  const items = [{ partition, row, indexEntries }];
  try {
    await reconcile(engine, entity, { intent, table, items }, { hold: holdFor(engine, UNHELD_MS) });
    return true;
  } catch (error) {
    if (error instanceof RowkeyError && error.code === 'needs-repair') return false;
    throw error;
  }
}

/** Changes a sibling row if neither the row nor its entity has changed since they were read. */
export async function repairSibling(
  { storage }: Engine,
  { table, partition, row }: Address,
  { etag }: Live,
  action: Action,
): Promise<boolean> {
  const touch: Action = { kind: 'merge', row, properties: { TouchedBy: 'audit' }, etag };
  return (await trySubmit(storage, { table, partition, actions: [touch, action] })) !== undefined;
}

/** The current values of the entity to which a row of an index belongs. */
export async function readValues(engine: Engine, entity: Entity, address: Address): Promise<Values | undefined> {
  const row = await readJoinedRow(engine, entity, address);
  return liveValues(toSnapshot(entity, row?.properties.EntityType === entity.name ? row : undefined));
}
