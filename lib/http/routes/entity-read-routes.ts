import { perform } from '../../api/operation.ts';
import { type Found, type GetInput, getEntity, listRange as listRangeOf } from '../../api/reads.ts';
import { onceFor } from '../../base/once.ts';
import type { AskedFilter } from '../../define/codec/filter.ts';
import { partialSchema, readableSchema, validateTexts } from '../../define/codec/validation.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { readKey, toEntityTemplate } from '../entity-key.ts';
import { describeList, presentPage, readSelect, SELECT, SELECT_ONE } from '../entity-list.ts';
import { filterParameters, readFilter } from '../filter.ts';
import { PAGE_QUERY, readPageQuery } from '../paging.ts';
import { toView } from '../present.ts';
import { queryError, readList } from '../query.ts';
import {
  type FilterParameter,
  pathTo,
  type RequestContext,
  type Route,
  type RouteResult,
  toPathTemplate,
} from '../route.ts';
import { isNotModified, toEntityHeaders } from '../view-etag.ts';

export function entityReadRoutes(entity: Entity): Route[] {
  const { name, access } = entity;
  const path = toEntityTemplate(entity);
  const partition = `${name}/${toPathTemplate(entity.partition.fields)}`;
  const getRoute: Route = {
    name: `${name}-get`,
    method: 'GET',
    path,
    roles: access.read,
    query: getQuery(entity),
    filters: Object.assign({}, ...Object.values(childFilters(entity))),
    summary: `Get an entity of ${name}`,
    cacheable: true,
    success: {
      status: 200,
      description: 'The entity, with the included children',
      body: () => readableSchema(entity),
      selected: () => partialSchema(entity, []),
      headers: ['ETag'],
    },
    handle: (context) => get(entity, context),
  };
  if (path === partition) return [getRoute];
  const filters = filterParameters(entity, { without: entity.partition.fields, query: RANGE_QUERY });
  const range: Route = {
    name: `${name}-range`,
    method: 'GET',
    path: partition,
    roles: access.read,
    query: RANGE_QUERY,
    filters,
    summary: `List ${name} of one ${entity.partition.fields.join(', ')}`,
    success: describeList(entity, entity.large.length > 0 ? [] : undefined),
    handle: (context) => listRange(entity, context, filters),
  };
  return [getRoute, range];
}

function getQuery({ children, split }: Entity): Record<string, string> {
  const groups = Object.entries(split).map(([group, fields]) => `${group} (${fields.join(', ')})`);
  const ofGroups = `groups of fields: ${groups.join('; ')}`;
  if (children.length === 0)
    return {
      ...(groups.length > 0 ? { include: `To return, separated by commas, ${ofGroups}` } : {}),
      select: SELECT_ONE,
    };
  const [child] = children.filter(({ large }) => large.length > 0).concat(children);
  const example = `${child?.name}.${child?.large[0] ?? Object.keys(child?.columns ?? {}).at(-1)}`;
  return {
    include: `Children to return with the entity, separated by commas: ${children.map(({ name }) => name).join(', ')}${groups.length > 0 ? `; and ${ofGroups}` : ''}`,
    select: `${SELECT_ONE}; ${example} is a field of included children, whose large fields are returned only if selected`,
  };
}

/** The filters of each child by the name of the child, such as `reviews.rating`. */
const childFilters = onceFor(
  ({ children }: Entity): Readonly<Record<string, Filters>> =>
    Object.fromEntries(children.map((child) => [child.name, filterParameters(child, { prefix: `${child.name}.` })])),
);

type Filters = Readonly<Record<string, FilterParameter>>;

async function get(entity: Entity, context: RequestContext): Promise<RouteResult> {
  const { caller, query } = context;
  const key = readKey(entity, context);
  const headersOf = ({ etag, fields }: Pick<Found, 'etag' | 'fields'>) =>
    toEntityHeaders(entity, caller, { etag, select: fields });
  const isKnown = (found: Pick<Found, 'etag' | 'fields'>) => isNotModified(context, String(headersOf(found).etag));
  // Most requests have no query, of which nothing has to be read.
  const asked = query.size === 0 ? {} : readGetQuery(entity, context);
  const found = await perform(getEntity(entity), toView(context), () => ({ key, isKnown, ...asked }));
  const headers = headersOf(found);
  if (!found.values) return { status: 304, headers };
  // The children may change without the entity, so a client may not reuse them.
  const hasChildren = asked.include?.some((name) => entity.children.some((child) => child.name === name));
  return { status: 200, headers: hasChildren ? { etag: String(headers.etag) } : headers, body: found.values };
}

function readGetQuery(entity: Entity, context: RequestContext): Omit<GetInput, 'key'> {
  const include = readList(context.query, 'include');
  return { include, select: readSelect(context.query), where: readChildFilters(entity, include ?? [], context) };
}

/** The filter of each included child, by the name of the child. Throws `invalid-input`. */
function readChildFilters(
  entity: Entity,
  included: readonly string[],
  context: RequestContext,
): Record<string, AskedFilter> {
  const read = (child: Entity) => {
    const prefix = `${child.name}.`;
    const filters = childFilters(entity)[child.name] ?? {};
    const [name] = [...context.query.keys()].filter((each) => Object.hasOwn(filters, each));
    if (name === undefined) return [];
    if (!included.includes(child.name))
      throw queryError(name, 'filters children that are not included', `the parameter include=${child.name} too`);
    return [[child.name, readFilter(context, child, filters, prefix)] as const];
  };
  return Object.fromEntries(entity.children.flatMap(read));
}

const RANGE_QUERY: Readonly<Record<string, string>> = {
  from: 'The first value of the first field of the row key; a prefix is enough',
  to: 'The last value of the first field of the row key; values that begin with it are included',
  select: SELECT,
  ...PAGE_QUERY,
};

async function listRange(
  entity: Entity,
  context: RequestContext,
  filters: Readonly<Record<string, FilterParameter>>,
): Promise<RouteResult> {
  const { query, params, root } = context;
  const { fields } = entity.partition;
  const key = validateTexts(entity, params, fields);
  const from = query.get('from') || undefined;
  const to = query.get('to') || undefined;
  const path = pathTo(root, entity.name, ...fields.map((field) => key[field]));
  const where = readFilter(context, entity, filters);
  const bound = JSON.stringify([path, from, to, query.get('select') || undefined, where]);
  const input = {
    partition: key,
    from,
    to,
    where,
    select: readSelect(query),
    ...(await readPageQuery(context, bound)),
  };
  return presentPage(context, await perform(listRangeOf(entity), toView(context), () => input), { bound, path });
}
