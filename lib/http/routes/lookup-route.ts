import { hiddenFields } from '../../access/rule.ts';
import type { Entity } from '../../define/entity.ts';
import type { Filter } from '../../define/filter.ts';
import { rolesToReadIndex } from '../../define/readers.ts';
import { lookupFields, lookupIndex, MAX_LOOKUP_ENTITIES, readLookup } from '../../pattern-helpers/read-lookup.ts';
import { openLookup, readIndexPage } from '../../store/read.ts';
import { describeList, presentPage, readSelect, SELECT } from '../entity-list.ts';
import { filterParameters, readFilter } from '../filter.ts';
import { PAGE_QUERY, readContinuation } from '../paging.ts';
import { toView } from '../present.ts';
import { pathTo, type RequestContext, type Route, type RouteResult } from '../route.ts';
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
      roles: rolesToReadIndex(entity, lookupIndex(entity)),
      query: QUERY,
      filters,
      summary: `List all of ${entity.name}`,
      cacheable: true,
      success: { ...success, headers: [...headers, 'ETag'] },
      handle: (context) => handle(entity, context, { fields, where: readFilter(context, entity, filters) }),
    },
  ];
}

async function handle(
  entity: Entity,
  context: RequestContext,
  { fields, where }: { readonly fields: readonly string[]; readonly where: Filter },
): Promise<RouteResult> {
  const { app, caller, root } = context;
  const select = readSelect(entity, context.query, fields);
  const path = pathTo(root, entity.name);
  const bound = JSON.stringify([path, select, where]);
  const after = await readContinuation(context, bound);
  const view = toView(context);
  if (after) {
    const options = { given: {}, select: select ?? fields, where, top: MAX_LOOKUP_ENTITIES, after };
    return presentPage(context, await readIndexPage(view, entity, lookupIndex(entity), options), { bound, path });
  }
  const list = await readLookup(app.engine, entity);
  if (!list.isWhole)
    return presentPage(context, await openLookup(view, entity, list, { select, where }), { bound, path });
  const headers = toEntityHeaders(entity, caller, { etag: list.etagWithout(hiddenFields(entity, caller)), select });
  if (isNotModified(context, String(headers.etag))) return { status: 304, headers };
  const { items } = await openLookup(view, entity, list, { select, where });
  return { status: 200, headers, body: { items } };
}
