import type { Entity } from '../define/entity.ts';
import { operations, readOperation } from '../engine/transfer/operation.ts';
import { moveSchema, requestArchive, requestMove } from '../engine/transfer/transfer.ts';
import { RowkeyError } from '../errors.ts';
import { entityPath, keyOf } from './entity-routes.ts';
import { requestId } from './idempotency.ts';
import { parametersOf, type RequestContext, type Route, type RouteResult } from './route.ts';

/** Archive and move answer at once with the address at which their outcome can be asked for. */
export function transferRoutes(entity: Entity): Route[] {
  const routes: Route[] = [];
  if (entity.archive) routes.push(...routesOf(entity, 'archive'));
  if (entity.movable.length > 0) routes.push(...routesOf(entity, 'move'));
  return routes;
}

const Status = operations.schema.omit({ entity: true });

function routesOf(entity: Entity, operation: 'archive' | 'move'): Route[] {
  const path = `${entity.name}/${parametersOf(entity.keyFields)}/${operation}`;
  return [
    {
      name: `${entity.name}-${operation}`,
      method: 'POST',
      repeatable: true,
      path,
      roles: entity.access.write,
      summary:
        operation === 'archive'
          ? `Put one of ${entity.name} into the archive`
          : `Move one of ${entity.name} to another ${entity.movable.join(', ')}`,
      ...(operation === 'move' ? { requestBody: moveSchema(entity) } : {}),
      success: {
        status: 202,
        description: 'Will be done; Location says where to ask',
        body: Status.pick({ operationId: true, operation: true, status: true }),
        headers: ['Location'],
      },
      handle: (call) => request(entity, operation, call),
    },
    {
      // The host tries routes in the order of their names: after those of indexes (-by-…), as a value may be "archive".
      name: `${entity.name}-status-${operation}`,
      method: 'GET',
      path: `${path}/{operationId}`,
      roles: entity.access.write,
      summary: `What became of such a request`,
      success: { status: 200, description: 'Where it stands', body: Status },
      handle: (call) => status(entity, operation, call),
    },
  ];
}

async function request(entity: Entity, operation: 'archive' | 'move', call: RequestContext): Promise<RouteResult> {
  const key = keyOf(entity, call);
  const { engine } = call.app;
  const id = await requestId(call, `${entity.name}-${operation}`);
  const operationId =
    operation === 'archive'
      ? await requestArchive(engine, entity, key, id)
      : await requestMove(engine, entity, key, await call.json(), id);
  const location = `${entityPath(entity, key)}/${operation}/${operationId}`;
  return { status: 202, headers: { location }, body: { operationId, operation, status: 'running' } };
}

async function status(entity: Entity, operation: 'archive' | 'move', call: RequestContext): Promise<RouteResult> {
  const key = keyOf(entity, call);
  const found = await readOperation(call.app.engine, {
    entity: entity.name,
    operation,
    operationId: call.params.operationId ?? '',
  });
  const { entity: _, ...body } = operations.schema.parse(found);
  if (entity.keyFields.some((field) => body.key[field] !== key[field]))
    throw new RowkeyError('not-found', 'There is no such operation of this one.');
  return { status: 200, body };
}
