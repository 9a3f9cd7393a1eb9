import { perform } from '../../api/operation.ts';
import { scan } from '../../api/reads.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { describeList, presentPage, readSelect, SELECT } from '../entity-list.ts';
import { filterParameters, readFilter } from '../filter.ts';
import { PAGE_QUERY, readPageQuery } from '../paging.ts';
import { toView } from '../present.ts';
import { type OperatorRoute, pathTo } from '../route.ts';

/** The only route that reads a whole table, for operators who may read the entity. */
export function scanRoute(entity: Entity): OperatorRoute {
  const path = `operations/scan/${entity.name}`;
  const query = { select: SELECT, ...PAGE_QUERY };
  const filters = filterParameters(entity, { query });
  return {
    name: `operations-scan-${entity.name}`,
    method: 'GET',
    path,
    query,
    filters,
    summary: `List all of ${entity.name} by reading the whole table; requires one of these roles too: ${entity.access.read.join(', ')}`,
    success: describeList(entity),
    handle: async (context) => {
      const select = readSelect(context.query);
      const where = readFilter(context, entity, filters);
      const bound = JSON.stringify([path, select, where]);
      const input = { select, where, ...(await readPageQuery(context, bound)) };
      const page = await perform(scan(entity), toView(context), () => input);
      return presentPage(context, page, { path: pathTo(context.root, 'operations', 'scan', entity.name), bound });
    },
  };
}
