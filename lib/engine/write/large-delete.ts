import type { Engine } from '../engine.ts';
import { authorOfChanges } from '../note-change.ts';
import { MESSAGE_VERSION, type Transfer } from '../reconcile/intent.ts';
import type { PlannedWrite } from './entity-write.ts';
import { newOperationId, requesterOf, sendTransfer, writeOperation } from './operation.ts';
import { rulesToRecord } from './recorded-rules.ts';

/**
 * Requests the delete of an entity that has more children than fit into a transaction with it, and returns the id of the operation;
 * lib/engine/transfer/large-delete.ts executes it. Undefined for a write that is no such delete. Throws `referenced`.
 */
export async function requestLargeDelete(engine: Engine, planned: PlannedWrite): Promise<string | undefined> {
  const { write, entity, address, before, after } = planned;
  if (after || before.state !== 'live') return undefined;
  for (const { write: stage } of entity.features) await stage?.checkRelated?.(engine, entity, [planned], [planned]);
  const operationId = newOperationId(engine.now());
  const named = { operation: 'delete', operationId, entity: entity.name, key: write.key } as const;
  const { ifMatch = '*' } = write.conditions;
  // What the caller has compared must still hold when the operation begins. A write of a child changes the ETag only.
  const isConditional = ifMatch.trim() !== '*';
  const transfer: Transfer = {
    version: MESSAGE_VERSION,
    ...named,
    incarnation: before.system.Incarnation,
    ...(isConditional ? { writeId: before.system.WriteId } : {}),
  };
  const rules = rulesToRecord(engine, entity, { key: write.key });
  const by = requesterOf(authorOfChanges());
  await writeOperation(engine, { ...named, status: 'running', by, ...(rules ? { rules } : {}) });
  const change = { operation: 'delete', entity: entity.name, address, fields: [], etag: before.etag } as const;
  await sendTransfer(engine, transfer, change);
  return operationId;
}
