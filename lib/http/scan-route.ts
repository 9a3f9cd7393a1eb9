import { requireReader } from '../access/rule.ts';
import type { Entity } from '../define/entity.ts';
import { scanEntities } from '../engine/read/retrieve.ts';
import { listSuccess, pageAnswer } from './entity-routes.ts';
import { PAGE_QUERY, pageOf } from './paging.ts';
import type { Route } from './route.ts';

/** The one way to read a whole table, for operators who may read the entity. */
export function scanRoute(entity: Entity): Route {
  const path = `operations/scan/${entity.name}`;
  return {
    name: `operations-scan-${entity.name}`,
    method: 'GET',
    path,
    roles: ['operator'],
    query: PAGE_QUERY,
    summary: `All of ${entity.name}, by reading the whole table; one of these roles is needed as well: ${entity.access.read.join(', ')}`,
    success: listSuccess(entity),
    handle: async (call) => {
      requireReader(entity, call.caller);
      const page = await scanEntities(call.app.engine, entity, await pageOf(call, path));
      return pageAnswer(call, entity, page, { path: `/api/${path}`, bound: path });
    },
  };
}
