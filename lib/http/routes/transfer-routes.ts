import { archive, getTransfer, move } from '../../api/writes.ts';
import type { Values } from '../../base/values.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { bind, readKey, toEntityPath, toEntityTemplate } from '../bind.ts';
import { readRequestId } from '../idempotency.ts';
import type { RequestContext, Route, RouteResult } from '../route.ts';

/** Archive and move respond before they are done. The Location header leads to the status of the operation. */
export function transferRoutes(entity: Entity): Route[] {
  const request = (operation: 'archive' | 'move') =>
    ({
      method: 'POST',
      path: `${toEntityTemplate(entity)}/${operation}`,
      success: {
        status: 202,
        description: 'Accepted; the Location header leads to the status',
        headers: ['Location'],
      },
      present(body: { readonly operationId: string }, context: RequestContext, { key }: { key: Values }): RouteResult {
        const location = `${toEntityPath(context, entity, key)}/${operation}/${body.operationId}`;
        return { status: 202, headers: { location }, body };
      },
    }) as const;
  const read = async (context: RequestContext) => ({ key: readKey(entity, context), id: await readRequestId(context) });
  const archiveRoute = () => bind(archive(entity), { ...request('archive'), read });
  const moveRoute = () =>
    bind(move(entity), {
      ...request('move'),
      read: async (context) => ({ ...(await read(context)), to: await context.json() }),
    });
  const statusRoute = (operation: 'archive' | 'move') =>
    bind(getTransfer(entity, operation), {
      method: 'GET',
      path: `${request(operation).path}/{operationId}`,
      success: { status: 200, description: 'The status' },
      read: (context) => ({ key: readKey(entity, context), operationId: context.params.operationId ?? '' }),
    });
  return [
    ...(entity.archive ? [archiveRoute(), statusRoute('archive')] : []),
    ...(entity.movable.length > 0 ? [moveRoute(), statusRoute('move')] : []),
  ];
}
