import { hiddenFields, requireReader } from '../../access/rule.ts';
import type { Entity } from '../../define/entity.ts';
import type { Filter } from '../../define/filter.ts';
import { onceFor } from '../../define/once-for.ts';
import type { Selection } from '../../define/select.ts';
import { partialSchema, readableSchema, validateTexts } from '../../define/validate/validation.ts';
import { readEntity } from '../../engine/read/retrieve.ts';
import { openSelected, readOne, readRangePage } from '../../store/read.ts';
import { readKey, toEntityTemplate } from '../entity-key.ts';
import { describeList, presentPage, readSelect, readSelection, SELECT, SELECT_ONE } from '../entity-list.ts';
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
import { isNotModified, toEntityHeaders, toViewEtag } from '../view-etag.ts';

export function entityReadRoutes(entity: Entity): Route[] {
  const { name, access } = entity;
  const path = toEntityTemplate(entity);
  const partition = `${name}/${toPathTemplate(entity.partition.fields)}`;
  const get: Route = {
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
    handle: (context) => getEntity(entity, context),
  };
  if (path === partition) return [get];
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
  return [get, range];
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

/** One point query; with children one range query (compound key pattern). */
async function getEntity(entity: Entity, context: RequestContext): Promise<RouteResult> {
  const { app, caller, query } = context;
  const key = readKey(entity, context);
  // Most requests have no query, of which nothing has to be read.
  const { kinds, selection, where } = query.size === 0 ? WHOLE : readGetQuery(entity, context);
  const select = selection[entity.name];
  if (kinds.length === 0) {
    const stored = await readEntity(app.engine, entity, key, { select });
    // Table storage ignores If-None-Match, so the row is read and compared here.
    const headers = toEntityHeaders(entity, caller, { ...stored, select });
    if (isNotModified(context, String(headers.etag))) return { status: 304, headers };
    return { status: 200, headers, body: await openSelected(toView(context), entity, stored.values, select) };
  }
  const { etag, values } = await readOne(toView(context), entity, key, { kinds, select: selection, where });
  return { status: 200, headers: { etag: toViewEtag(etag, hiddenFields(entity, caller), select) }, body: values };
}

interface GetQuery {
  readonly kinds: readonly Entity[];
  readonly selection: Selection;
  /** The filter of each included child, by the name of the child. */
  readonly where: Readonly<Record<string, Filter>>;
}

const WHOLE: GetQuery = { kinds: [], selection: {}, where: {} };

function readGetQuery(entity: Entity, context: RequestContext): GetQuery {
  const { kinds, groups } = readInclude(entity, context);
  const selection = readSelection(entity, context.query, { kinds, groups });
  return { kinds, selection, where: readChildFilters(entity, kinds, context) };
}

/** The children and groups to include. Throws `invalid-input`, and `forbidden` if the caller may not read one of the children. */
function readInclude(
  { name: entity, children, split }: Entity,
  { caller, query }: RequestContext,
): { readonly kinds: readonly Entity[]; readonly groups: readonly string[] } {
  const names = readList(query, 'include') ?? [];
  const known = [...children.map(({ name }) => name), ...Object.keys(split)];
  const unknown = names.find((name) => !known.includes(name));
  if (unknown !== undefined) {
    const what = [...(children.length > 0 ? ['child'] : []), ...(Object.keys(split).length > 0 ? ['group'] : [])];
    throw queryError(
      'include',
      `names "${unknown}", which is not a ${what.join(' or ')} of ${entity}`,
      known.join(', '),
    );
  }
  const kinds = children.filter(({ name }) => names.includes(name));
  for (const child of kinds) requireReader(child, caller);
  return { kinds, groups: names.filter((name) => Object.hasOwn(split, name)) };
}

/** The filter of each included child, by the name of the child. Throws `invalid-input`, `forbidden`. */
function readChildFilters(
  entity: Entity,
  included: readonly Entity[],
  context: RequestContext,
): Record<string, Filter> {
  const read = (child: Entity) => {
    const prefix = `${child.name}.`;
    const filters = childFilters(entity)[child.name] ?? {};
    const [name] = [...context.query.keys()].filter((each) => Object.hasOwn(filters, each));
    if (name !== undefined && !included.includes(child))
      throw queryError(name, 'filters children that are not included', `the parameter include=${child.name} too`);
    return [child.name, readFilter(context, child, filters, prefix)] as const;
  };
  return Object.fromEntries(entity.children.map(read));
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
  const options = { from, to, where, select: readSelect(entity, query), ...(await readPageQuery(context, bound)) };
  return presentPage(context, await readRangePage(toView(context), entity, key, options), { bound, path });
}
