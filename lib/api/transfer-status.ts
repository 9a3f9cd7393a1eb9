import { hideAbsent, limitOf } from '../access/limit.ts';
import { canRead } from '../access/rule.ts';
import { type Caller, isVisitor } from '../access/token.ts';
import { hasCode, RowkeyError } from '../base/errors.ts';
import type { Values } from '../base/values.ts';
import { isWithin, narrow } from '../define/codec/limit.ts';
import type { Limit } from '../define/declaration/comparison.ts';
import type { Entity } from '../define/declaration/entity.ts';
import { rolesTo } from '../define/places/reach.ts';
import type { Engine } from '../engine/engine.ts';
import { readEntity } from '../engine/read/retrieve.ts';
import { readOperation, requesterOf } from '../engine/write/operation.ts';
import type { Operation } from './operation.ts';
import { type Kind, Status } from './writes.ts';

interface TransferStatusInput extends Pick<Status, 'operationId'> {
  readonly key: Values;
}

/**
 * The status of an archive, a move, or the delete of an entity with many children: for the caller who requested it, and for those who may read
 * the row. Throws `not-found`, also for an operation on another entity.
 */
export function getTransfer(entity: Entity, operation: Kind): Operation<TransferStatusInput, Status> {
  const gone = () =>
    new RowkeyError('not-found', 'Operation not found: the id is wrong, or the operation ended too long ago.');
  return {
    name: `${entity.name}-status-${operation}`,
    summary: `Get the status of ${operation === 'archive' ? 'an archive' : `a ${operation}`} operation`,
    kind: 'read',
    entity,
    roles: operation === 'delete' ? rolesTo(entity, 'delete') : entity.access.write,
    output: () => Status,
    async run(view, { key, operationId }) {
      const { engine, caller } = view;
      // The id of a request with an Idempotency-Key can be computed, so the id alone shows nothing.
      const limit = canReadRows(entity, caller) ? await limitOf(view, entity, 'read') : [];
      return hideAbsent(limit, async () => {
        const named = { operationId, operation, entity: entity.name };
        const { entity: _, rules: _rules, by, ...status } = await readOperation(engine, named);
        if (entity.keyFields.some((field) => status.key[field] !== key[field])) throw gone();
        const isRequester = caller && !isVisitor(caller) && by !== undefined && by === requesterOf(caller.subject);
        if (isRequester || (await isReadable(engine, entity, limit, status))) return status;
        throw gone();
      });
    },
  };
}

function canReadRows(entity: Entity, caller: Caller | undefined): boolean {
  return caller === undefined || canRead(entity, caller);
}

/** True if the row of an operation is within the limit, where it was or where the operation takes it. */
async function isReadable(
  engine: Engine,
  entity: Entity,
  limit: Limit | undefined,
  { key, to }: Status,
): Promise<boolean> {
  const left = narrow(limit, key);
  if (!left || left.length === 0) return left === undefined;
  const select = [...new Set(left.flat().map(({ field }) => field))];
  const places = [
    { of: entity, at: key },
    ...(to ? [{ of: entity, at: { ...key, ...to } }] : []),
    ...(entity.archive ? [{ of: entity.archive, at: key }] : []),
  ];
  for (const { of, at } of places) {
    const found = await readEntity(engine, of, at, { select }).catch((error: unknown) => {
      if (hasCode(error, 'not-found')) return undefined;
      throw error;
    });
    if (found) return isWithin(limit, { ...at, ...found.values });
  }
  return false;
}
