import type { Entity } from './kit/define.ts';
import type { Engine } from './kit/engine.ts';
import { operationsCheck } from './kit/operations.ts';
import { storageRows, storageSlots } from './kit/storage.ts';

/** Searches as after an operator has deleted the position: asks for the row of every blob that is a day old by the engine's clock. */
export async function collectAllOrphans(engine: Engine, entities: readonly Entity[]) {
  const position = { table: storageSlots.SYSTEM_TABLE, partition: 'orphans', row: 'position' };
  await storageRows.tryAction(engine.storage, position, { kind: 'delete', row: position.row });
  return operationsCheck.collectOrphans(engine, entities);
}
