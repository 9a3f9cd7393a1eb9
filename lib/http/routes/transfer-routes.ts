import { perform } from '../../api/operation.ts';
import { archive, move } from '../../api/writes.ts';
import { RowkeyError } from '../../base/errors.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { moveSchema } from '../../engine/transfer/transfer.ts';
import { Operation, readOperation } from '../../engine/write/operation.ts';
import { readKey, toEntityPath } from '../entity-key.ts';
import { readRequestId } from '../idempotency.ts';
import { toView } from '../present.ts';
import { type RequestContext, type Route, type RouteResult, toPathTemplate } from '../route.ts';

/** Archive and move respond before they are done. The Location header leads to the status of the operation. */
export function transferRoutes(entity: Entity): Route[] {
  const routes: Route[] = [];
  if (entity.archive) routes.push(...operationRoutes(entity, 'archive'));
  if (entity.movable.length > 0) routes.push(...operationRoutes(entity, 'move'));
  return routes;
}

const Status = Operation.omit({ entity: true });

function operationRoutes(entity: Entity, operation: 'archive' | 'move'): Route[] {
  const path = `${entity.name}/${toPathTemplate(entity.keyFields)}/${operation}`;
  return [
    {
      name: `${entity.name}-${operation}`,
      method: 'POST',
      repeatable: true,
      path,
      roles: entity.access.write,
      summary:
        operation === 'archive'
          ? `Archive an entity of ${entity.name}`
          : `Move an entity of ${entity.name} to another ${entity.movable.join(', ')}`,
      ...(operation === 'move' ? { requestBody: () => moveSchema(entity) } : {}),
      success: {
        status: 202,
        description: 'Accepted; the Location header leads to the status',
        body: () => Status.pick({ operationId: true, operation: true, status: true }),
        headers: ['Location'],
      },
      handle: (context) => requestTransfer(entity, operation, context),
    },
    {
      name: `${entity.name}-status-${operation}`,
      method: 'GET',
      path: `${path}/{operationId}`,
      roles: entity.access.write,
      summary: `Get the status of ${operation === 'archive' ? 'an archive' : 'a move'} operation`,
      success: { status: 200, description: 'The status', body: () => Status },
      handle: (context) => getStatus(entity, operation, context),
    },
  ];
}

async function requestTransfer(
  entity: Entity,
  operation: 'archive' | 'move',
  context: RequestContext,
): Promise<RouteResult> {
  const key = readKey(entity, context);
  const readId = () => readRequestId(context, `${entity.name}-${operation}`);
  const view = toView(context);
  const operationId =
    operation === 'archive'
      ? await perform(archive(entity), view, async () => ({ key, id: await readId() }))
      : await perform(move(entity), view, async () => ({ key, id: await readId(), to: await context.json() }));
  const location = `${toEntityPath(context, entity, key)}/${operation}/${operationId}`;
  return { status: 202, headers: { location }, body: { operationId, operation, status: 'running' } };
}

async function getStatus(entity: Entity, operation: 'archive' | 'move', context: RequestContext): Promise<RouteResult> {
  const key = readKey(entity, context);
  const { entity: _, ...body } = await readOperation(context.app.engine, {
    entity: entity.name,
    operation,
    operationId: context.params.operationId ?? '',
  });
  if (entity.keyFields.some((field) => body.key[field] !== key[field]))
    throw new RowkeyError('not-found', 'Operation not found: the id belongs to an operation on another entity.');
  return { status: 200, body };
}
