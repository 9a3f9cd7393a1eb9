import { perform } from '../../api/operation.ts';
import { listLookup } from '../../api/reads.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { lookupFields } from '../../pattern-helpers/read-lookup.ts';
import { describeList, presentPage, readSelect, SELECT } from '../entity-list.ts';
import { filterParameters, readFilter } from '../filter.ts';
import { PAGE_QUERY, readContinuation } from '../paging.ts';
import { toView } from '../present.ts';
import { type FilterParameter, pathTo, type RequestContext, type Route, type RouteResult } from '../route.ts';
import { isNotModified, toEntityHeaders } from '../view-etag.ts';

const QUERY = { select: SELECT, continuation: PAGE_QUERY.continuation };

/** The route that lists an entity as a whole, if the entity is a lookup table. */
export function lookupRoutes(entity: Entity): Route[] {
  if (!entity.lookup) return [];
  const fields = lookupFields(entity);
  const filters = filterParameters(entity, { available: fields, query: QUERY });
  const { headers = [], ...success } = describeList(
    entity,
    fields.length < Object.keys(entity.columns).length ? [] : undefined,
  );
  return [
    {
      name: `${entity.name}-list`,
      method: 'GET',
      path: entity.name,
      roles: listLookup(entity).roles,
      query: QUERY,
      filters,
      summary: `List all of ${entity.name}`,
      cacheable: true,
      success: { ...success, headers: [...headers, 'ETag'] },
      handle: (context) => handle(entity, context, filters),
    },
  ];
}

async function handle(
  entity: Entity,
  context: RequestContext,
  filters: Readonly<Record<string, FilterParameter>>,
): Promise<RouteResult> {
  const { caller, root } = context;
  const select = readSelect(context.query);
  const where = readFilter(context, entity, filters);
  const path = pathTo(root, entity.name);
  const bound = JSON.stringify([path, select, where]);
  const after = await readContinuation(context, bound);
  const headersOf = (etag: string) => toEntityHeaders(entity, caller, { etag, select });
  const isKnown = (etag: string) => isNotModified(context, String(headersOf(etag).etag));
  const { etag, ...page } = await perform(listLookup(entity), toView(context), () => ({
    select,
    where,
    after,
    isKnown,
  }));
  if (etag === undefined) return presentPage(context, page, { bound, path });
  const headers = headersOf(etag);
  if (isKnown(etag)) return { status: 304, headers };
  return { status: 200, headers, body: { items: page.items } };
}
