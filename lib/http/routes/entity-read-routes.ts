import { type GetInput, getEntity } from '../../api/get.ts';
import { listMine } from '../../api/mine.ts';
import { listRange, listWhole, scan, scanAllSeries, type WholeInput, wholeListOf } from '../../api/reads.ts';
import { onceFor } from '../../base/once.ts';
import type { AskedFilter } from '../../define/codec/query.ts';
import { validateTexts } from '../../define/codec/validation.ts';
import { type Entity, nameOfKind } from '../../define/declaration/entity.ts';
import {
  bind,
  bindPage,
  describeList,
  isNotModified,
  publishedEntity,
  readKey,
  toEntityHeaders,
  toEntityTemplate,
} from '../bind.ts';
import {
  filterParameters,
  LIST_QUERY,
  PAGE_QUERY,
  queryError,
  readAt,
  readContinuation,
  readFilter,
  readList,
  readListQuery,
  readSelect,
  SELECT_ONE,
  toNextLink,
} from '../query.ts';
import { type FilterParameter, pathTo, type RequestContext, type Route, toPathTemplate } from '../route.ts';

/**
 * The routes that read entities by their own key: one, those of a partition, and all of them or all of the caller's. With a backup, the first two
 * accept `at`.
 */
export function entityReadRoutes(
  entity: Entity,
  { hasBackup = false }: { readonly hasBackup?: boolean } = {},
): Route[] {
  const past = hasBackup ? AT_QUERY : {};
  const path = toEntityTemplate(entity);
  const partition = toPathTemplate([entity.name], entity.partition.fields);
  const ofAll = [...wholeListRoutes(entity), ...mineRoutes(entity)];
  // An entity with one partition for all rows may have another list at its own path.
  const isTaken = path === partition || ofAll.some((route) => route.path === partition);
  return [getRoute(entity, path, past), ...(isTaken ? [] : [rangeRoute(entity, partition, past)]), ...ofAll];
}

/** The route of what the caller reaches of all partitions, if the rules name them. */
function mineRoutes(entity: Entity): Route[] {
  const operation = listMine(entity);
  if (!operation || wholeListOf(entity)) return [];
  const query = { ...LIST_QUERY, ...PAGE_QUERY };
  const filters = filterParameters(entity, { query });
  return [
    bindPage(operation, {
      path: entity.name,
      query,
      filters,
      success: describeList(entity, entity.large.length > 0 ? [] : undefined),
      read: (context) => readListQuery(context, entity, filters),
    }),
  ];
}

function getRoute(entity: Entity, path: string, past: typeof AT_QUERY | object): Route {
  const childNames = entity.children.map(({ name }) => name);
  return bind(getEntity(entity), {
    method: 'GET',
    path,
    query: { ...getQuery(entity), ...past },
    filters: Object.assign({}, ...Object.values(childFilters(entity))),
    cacheable: true,
    success: {
      status: 200,
      description: 'The entity, with the included children',
      published: () => publishedEntity(entity),
      headers: ['ETag'],
    },
    read(context) {
      const key = readKey(entity, context);
      const isKnown: GetInput['isKnown'] =
        context.headers.get('if-none-match') === null
          ? undefined
          : ({ etag, fields: select, hidden }) =>
              isNotModified(context, toEntityHeaders(entity, context.caller, { etag, select, hidden }).etag);
      // Most requests have no query, of which nothing has to be read.
      return context.query.size === 0
        ? { key, isKnown }
        : { key, isKnown, ...readGetQuery(entity, context), ...('at' in past ? { at: readAt(context.query) } : {}) };
    },
    present({ etag, fields: select, hidden, values }, { caller }, { include }) {
      const headers = toEntityHeaders(entity, caller, { etag, select, hidden });
      if (!values) return { status: 304, headers };
      // The children may change without the entity, so a client may not reuse them.
      const hasChildren = include?.some((name) => childNames.includes(name));
      return { status: 200, headers: hasChildren ? { etag: headers.etag } : headers, body: values };
    },
  });
}

function rangeRoute(entity: Entity, path: string, past: typeof AT_QUERY | object): Route {
  const { fields } = entity.partition;
  const query = { ...RANGE_QUERY, ...past };
  const filters = filterParameters(entity, { without: fields, query });
  return bindPage(listRange(entity), {
    path,
    query,
    filters,
    success: describeList(entity, entity.large.length > 0 ? [] : undefined),
    read: (context) => ({
      partition: validateTexts(entity, context.params, fields),
      from: context.query.get('from') || undefined,
      to: context.query.get('to') || undefined,
      // Without a backup, it may be a filter of a field.
      ...('at' in past ? { at: readAt(context.query) } : {}),
      ...readListQuery(context, entity, filters),
    }),
  });
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

const AT_QUERY = {
  at: 'Reads what was stored at this instant, such as 2026-11-29T12:00:00Z: for the roles of the backup',
};

const RANGE_QUERY = {
  from: 'The first value of the first field of the row key; a prefix is enough',
  to: 'The last value of the first field of the row key; values that begin with it are included',
  ...LIST_QUERY,
  ...PAGE_QUERY,
};

const WHOLE_LIST_QUERY = { ...LIST_QUERY, continuation: PAGE_QUERY.continuation };

/** The route that lists all entities in one response, if the entity is listed so. */
function wholeListRoutes(entity: Entity): Route[] {
  const list = wholeListOf(entity);
  if (!list) return [];
  const fields = list.fields(entity);
  const filters = filterParameters(entity, { available: fields, query: WHOLE_LIST_QUERY });
  const copied = fields.length < Object.keys(entity.columns).length ? [] : undefined;
  return [
    bind(listWhole(entity), {
      method: 'GET',
      path: entity.name,
      query: WHOLE_LIST_QUERY,
      filters,
      cacheable: true,
      success: { ...describeList(entity, copied), headers: ['Link', 'ETag'] },
      async read(context) {
        const list = readListQuery(context, entity, filters);
        const path = pathTo(context.root, entity.name);
        const bound = JSON.stringify([path, list]);
        const after = await readContinuation(context, bound);
        const isKnown: WholeInput['isKnown'] = ({ etag, fields: select }) =>
          isNotModified(context, toEntityHeaders(entity, context.caller, { etag, select }).etag);
        return { ...list, after, isKnown, link: { path, bound } };
      },
      async present({ etag, fields: select, items, next }, context, { link }) {
        if (etag === undefined) return { status: 200, body: { items }, headers: await toNextLink(context, next, link) };
        const headers = toEntityHeaders(entity, context.caller, { etag, select });
        if (isNotModified(context, headers.etag)) return { status: 304, headers };
        return { status: 200, headers, body: { items } };
      },
    }),
  ];
}

/** The only route that reads a whole table, for operators who may read the entity. */
export function scanRoute(entity: Entity, operatorRole: string): Route {
  const path = `operations/scan/${nameOfKind(entity)}`;
  if (entity.series)
    return bindPage(scanAllSeries(entity, operatorRole), {
      path,
      query: PAGE_QUERY,
      success: { status: 200, description: 'A page of series, each with a count for each slot' },
    });
  const query = { ...LIST_QUERY, ...PAGE_QUERY };
  const filters = filterParameters(entity, { query });
  return bindPage(scan(entity, operatorRole), {
    path,
    query,
    filters,
    success: describeList(entity),
    read: (context) => readListQuery(context, entity, filters),
  });
}
