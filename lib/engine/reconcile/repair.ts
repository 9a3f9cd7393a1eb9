import { toSnapshot } from '../../define/codec/entity-codec.ts';
import { type Live, liveValues } from '../../define/codec/snapshot.ts';
import type { Entity } from '../../define/entity.ts';
import type { IndexEntry } from '../../define/remote-index.ts';
import type { Values } from '../../define/values.ts';
import { RowkeyError } from '../../errors.ts';
import { type Action, type Address, readRow, trySubmit } from '../../storage/rows.ts';
import type { Engine } from '../engine.ts';
import { holdFor, UNHELD_MS } from './hold.ts';
import { reconcile } from './reconcile.ts';

/** How a consistency check repairs what it finds, beside any writer. */

/**
 * The id under which a check works on an entity and claims rows of unique indexes. All checks use the same id: a claim of a
 * check that died does not block the next one, and no check ever writes the entity.
 */
export function repairIntent({ partition, row }: Pick<Address, 'partition' | 'row'>): string {
  return JSON.stringify(['audit', partition, row]);
}

/** Makes an index entry agree with its entity, as after a change. False if a list that the entity is in is lost. */
export async function repairEntry(
  engine: Engine,
  entity: Entity,
  { table, partition, row }: Address,
  indexEntry: IndexEntry,
): Promise<boolean> {
  const intent = repairIntent({ partition, row });
  const items = [{ partition, row, indexEntries: [indexEntry] }];
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

/** The entity that a row of an index belongs to, as it is now. */
export async function readValues({ storage }: Engine, entity: Entity, address: Address): Promise<Values | undefined> {
  const row = await readRow(storage, address);
  return liveValues(toSnapshot(entity, row?.properties.EntityType === entity.name ? row : undefined));
}
