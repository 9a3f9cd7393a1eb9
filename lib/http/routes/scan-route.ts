import { requireReader } from '../../access/rule.ts';
import type { Entity } from '../../define/entity.ts';
import { scanEntities } from '../../engine/read/retrieve.ts';
import { openPage } from '../../store/read.ts';
import { describeList, presentPage } from '../entity-list.ts';
import { PAGE_QUERY, readPageQuery } from '../paging.ts';
import { toView } from '../present.ts';
import type { OperatorRoute } from '../route.ts';

/** The only route that reads a whole table, for operators who may read the entity. */
export function scanRoute(entity: Entity): OperatorRoute {
  const path = `operations/scan/${entity.name}`;
  return {
    name: `operations-scan-${entity.name}`,
    method: 'GET',
    path,
    query: PAGE_QUERY,
    summary: `List all of ${entity.name} by reading the whole table; requires one of these roles too: ${entity.access.read.join(', ')}`,
    success: describeList(entity),
    handle: async (context) => {
      requireReader(entity, context.caller);
      const page = await scanEntities(context.app.engine, entity, await readPageQuery(context, path));
      return presentPage(context, await openPage(toView(context), entity, page), { path: `/api/${path}`, bound: path });
    },
  };
}
