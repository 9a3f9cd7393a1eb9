import type { Entity } from '../lib/define/declaration/entity.ts';
import type { Engine } from '../lib/engine/engine.ts';
import { collectOrphans } from '../lib/operations/collect-orphans.ts';
import { tryAction } from '../lib/storage/rows.ts';
import { SYSTEM_TABLE } from '../lib/storage/slot-row.ts';

/** Searches as after an operator has deleted the position: asks for the row of every blob that is a day old by the engine's clock. */
export async function collectAllOrphans(engine: Engine, entities: readonly Entity[]) {
  const position = { table: SYSTEM_TABLE, partition: 'orphans', row: 'position' };
  await tryAction(engine.storage, position, { kind: 'delete', row: position.row });
  return collectOrphans(engine, entities);
}
