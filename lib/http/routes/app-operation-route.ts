import { operationOf, parseInput } from '../../api/app-operation.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import type { DeclaredOperation } from '../../define/define-operation.ts';
import { bind, readRequestId } from '../bind.ts';
import type { Route } from '../route.ts';

/** An operation that the app declares. Its implementation may read and write each of the entities. */
export function appOperationRoute(declared: DeclaredOperation, entities: readonly Entity[]): Route {
  return bind(operationOf(declared), {
    method: 'POST',
    path: declared.name,
    explains: entities,
    success: { status: 200, description: 'Executed' },
    read: async (context) => ({
      given: parseInput(declared, await context.json()),
      id: await readRequestId(context),
      execute: context.app.execute,
    }),
  });
}
