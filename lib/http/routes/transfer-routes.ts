import { archive, getTransfer, move, type TransferInput } from '../../api/writes.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { moveSchema } from '../../engine/transfer/transfer.ts';
import { Operation } from '../../engine/write/operation.ts';
import { bind, readKey, toEntityPath, toEntityTemplate } from '../bind.ts';
import { readRequestId } from '../idempotency.ts';
import type { RequestContext, Route, RouteResult } from '../route.ts';

/** Archive and move respond before they are done. The Location header leads to the status of the operation. */
export function transferRoutes(entity: Entity): Route[] {
  const routes: Route[] = [];
  if (entity.archive) routes.push(...operationRoutes(entity, 'archive'));
  if (entity.movable.length > 0) routes.push(...operationRoutes(entity, 'move'));
  return routes;
}

const Status = Operation.omit({ entity: true });

function operationRoutes(entity: Entity, operation: 'archive' | 'move'): Route[] {
  const path = `${toEntityTemplate(entity)}/${operation}`;
  const isArchive = operation === 'archive';
  const common = {
    name: `${entity.name}-${operation}`,
    method: 'POST',
    repeatable: true,
    path,
    summary: isArchive
      ? `Archive an entity of ${entity.name}`
      : `Move an entity of ${entity.name} to another ${entity.movable.join(', ')}`,
    success: {
      status: 202,
      description: 'Accepted; the Location header leads to the status',
      body: () => Status.pick({ operationId: true, operation: true, status: true }),
      headers: ['Location'],
    },
    present(operationId: string, context: RequestContext, { key }: TransferInput): RouteResult {
      const location = `${toEntityPath(context, entity, key)}/${operation}/${operationId}`;
      return { status: 202, headers: { location }, body: { operationId, operation, status: 'running' } };
    },
  } as const;
  const read = async (context: RequestContext) => ({
    key: readKey(entity, context),
    id: await readRequestId(context, `${entity.name}-${operation}`),
  });
  return [
    isArchive
      ? bind(archive(entity), { ...common, read })
      : bind(move(entity), {
          ...common,
          requestBody: () => moveSchema(entity),
          read: async (context) => ({ ...(await read(context)), to: await context.json() }),
        }),
    bind(getTransfer(entity), {
      name: `${entity.name}-status-${operation}`,
      method: 'GET',
      path: `${path}/{operationId}`,
      summary: `Get the status of ${isArchive ? 'an archive' : 'a move'} operation`,
      success: { status: 200, description: 'The status', body: () => Status },
      read: (context) => ({
        key: readKey(entity, context),
        operation,
        operationId: context.params.operationId ?? '',
      }),
    }),
  ];
}
