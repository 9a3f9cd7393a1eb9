import { expect, test, vi } from 'vitest';
import { model as deployed } from '../../model/model.ts';
import { model as fixtures } from '../fixtures/model.ts';
import type { Operation } from '../kit/api.ts';
import { httpDoor, type RequestContext, type Route } from '../kit/http.ts';

/** An operation without `entity` is outside of the limits of requests of its entity, and nothing else would tell. */

vi.mock('../../lib/api/operation.ts', async (original) => ({
  ...(await original<object>()),
  perform: async (operation: Operation<unknown, unknown>) => {
    throw new Performed(operation);
  },
}));

class Performed extends Error {
  readonly operation: Operation<unknown, unknown>;
  constructor(operation: Operation<unknown, unknown>) {
    super(operation.name);
    this.operation = operation;
  }
}

/** The operation to which a route is bound; undefined if the route has none. */
async function operationOf(route: Route): Promise<Operation<unknown, unknown> | undefined> {
  try {
    await route.handle({ query: new URLSearchParams(), params: {} } as RequestContext);
  } catch (error) {
    if (error instanceof Performed) return error.operation;
  }
  return undefined;
}

/** Several entities, or none: each read and each action counts by itself, and `grants` are limited on their own. */
const OF_NO_ENTITY = /^(health|me|model|problems|query|transact|grants-create|operations-.*)$/;

test.each([
  ['the fixtures', fixtures],
  ['the packs', deployed],
])('every operation on an entity counts in the limits of that entity: %s', async (_, model) => {
  const routes = httpDoor.createRoutes(model).filter(({ isUndescribed, name }) => !isUndescribed && name !== 'openapi');
  expect(routes.length).toBeGreaterThan(0);
  const wrong: string[] = [];
  for (const route of routes) {
    const operation = await operationOf(route);
    const { entity } = route;
    const isCounted = operation?.entity !== undefined && [entity, entity?.archive].includes(operation.entity);
    if (!isCounted && !OF_NO_ENTITY.test(route.name)) wrong.push(`${route.method} ${route.path}`);
  }
  expect(wrong, 'these operations need `entity`').toEqual([]);
});
