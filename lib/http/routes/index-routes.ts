import { getThroughIndex } from '../../api/get.ts';
import { getTotal, listIndex, listTotals } from '../../api/reads.ts';
import { validateTexts } from '../../define/codec/validation.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import type { Index } from '../../define/declaration/indexes.ts';
import { type Total, toIndex } from '../../define/declaration/totals.ts';
import {
  copiedFields,
  type IndexBounds,
  incompleteError,
  indexFields,
  isOfMany,
  ORDERS,
  rangeStarts,
} from '../../define/places/index-range.ts';
import { checkGroup } from '../../features/totals/read-totals.ts';
import { bind, bindPage, describeList, publishedEntity, toEntityPath } from '../bind.ts';
import {
  filterParameters,
  LIST_QUERY,
  PAGE_QUERY,
  queryError,
  readListQuery,
  readSelect,
  SELECT_ONE,
} from '../query.ts';
import { type RequestContext, type Route, toPathTemplate } from '../route.ts';

/** The routes that read through indexes and totals. */
export function indexRoutes(entity: Entity): Route[] {
  return [...routesOfIndexes(entity), ...routesOfTotals(entity)];
}

/**
 * Routes of paths that are too short for an index or totals: without them, a request would reach no route, or that of an entity with
 * such a key. The response says which field comes first.
 */
export function incompleteIndexRoutes(entity: Entity): Route[] {
  const indexes = Object.entries(entity.indexes).flatMap(([name, index]) => {
    const { roles } = listIndex(entity, name);
    const query = { ...RANGE_QUERY, ...LIST_QUERY, ...PAGE_QUERY };
    return incompleteRoutes(entity, { name, index, fields: indexFields(entity, index) }, { roles, query });
  });
  const totals = Object.entries(entity.totals).flatMap(([name, declared]) => {
    const { roles } = getTotal(entity, name);
    const query = { ...RANGE_QUERY, ...PAGE_QUERY };
    const index = toIndex(declared);
    return incompleteRoutes(entity, { what: 'totals', name, index, fields: declared.groupFields }, { roles, query });
  });
  return [...indexes, ...totals];
}

function incompleteRoutes(
  entity: Entity,
  { index, fields, ...asked }: Parameters<typeof incompleteError>[2] & { readonly index: Index },
  { roles, query }: Pick<Route, 'roles' | 'query'>,
): Route[] {
  const shortest = Math.min(...[fields, ...rangeStarts(entity, index)].map(({ length }) => length));
  return Array.from({ length: shortest }, (_, count): Route => {
    const given = fields.slice(0, count);
    const section = asked.what === 'totals' ? 'totals' : 'by';
    const operation = {
      name: `${nameOf(entity, section, asked.name)}-incomplete-${count}`,
      summary: 'Reject a path that is too short',
      kind: 'read' as const,
      roles,
      run: async () => {
        throw incompleteError(entity, index, { ...asked, fields: given });
      },
    };
    return bind(operation, {
      ...addressOf(entity, section, asked.name, given),
      ...(query ? { query } : {}),
      isUndescribed: true,
      success: { status: 400, description: 'Never sent' },
      read: () => undefined,
    });
  });
}

function nameOf(entity: Entity, section: 'by' | 'totals', name: string): string {
  return `${entity.name}-by-${section === 'totals' ? 'totals-' : ''}${name}`;
}

/** The fields of one value, or the first ones of a range, are the end of the path. */
function addressOf(entity: Entity, section: 'by' | 'totals', name: string, fields: readonly string[]) {
  const path = toPathTemplate([entity.name, section, name], fields);
  return { method: 'GET', path } as const;
}

/**
 * The routes of each index: one for a single value, which returns an object if the index leads to one entity, and one for each
 * smaller number of fields with which a range may begin.
 */
function routesOfIndexes(entity: Entity): Route[] {
  return Object.entries(entity.indexes).flatMap(([name, index]) => {
    const fields = indexFields(entity, index);
    const starts = rangeStarts(entity, index);
    const isStart = starts.some(({ length }) => length === fields.length);
    const one = isOfMany(entity, index)
      ? listRoute(entity, name, { fields, isRange: isStart })
      : entityRoute(entity, name, fields);
    // With more fields than one value has, a path could be that of an entity with as many key fields.
    const ranges = starts
      .filter(({ length }) => length < fields.length)
      .map((start) => ({
        ...listRoute(entity, name, { fields: start, isRange: true }),
        name: `${one.name}-range-${start.length}`,
      }));
    return [one, ...ranges];
  });
}

function listRoute(
  entity: Entity,
  name: string,
  { fields, isRange }: { readonly fields: readonly string[]; readonly isRange: boolean },
): Route {
  const index = entity.indexes[name] as Index;
  const copied = copiedFields(entity, index);
  const query = { ...(isRange ? RANGE_QUERY : {}), ...LIST_QUERY, ...PAGE_QUERY };
  const filters = filterParameters(entity, { without: fields, available: copied, query });
  const bounded = isRange ? index.row.fields.find((field) => !fields.includes(field)) : undefined;
  return bindPage(listIndex(entity, name), {
    ...addressOf(entity, 'by', name, fields),
    query,
    filters,
    summary: `List ${entity.name}${withThis(fields)}${isRange ? `, in the order of ${bounded}` : ''}`,
    success: describeList(entity, entity.large.length > 0 ? [] : copied),
    read: (context) => ({
      given: validateTexts(entity, context.params, fields),
      ...readBounds(context.query),
      ...readListQuery(context, entity, filters),
    }),
  });
}

function withThis(fields: readonly string[]): string {
  return fields.length > 0 ? ` with this ${fields.join(', ')}` : '';
}

function entityRoute(entity: Entity, name: string, fields: readonly string[]): Route {
  return bind(getThroughIndex(entity, name), {
    ...addressOf(entity, 'by', name, fields),
    query: { select: SELECT_ONE },
    success: {
      status: 200,
      description: 'The entity; the Content-Location header is its path',
      published: () => publishedEntity(entity),
      headers: ['Content-Location'],
    },
    read: ({ params, query }) => ({ given: validateTexts(entity, params, fields), select: readSelect(query) }),
    // No ETag: that of a copy is not the ETag of the entity, which a write compares.
    present: ({ key, values }, context) => ({
      status: 200,
      headers: { 'content-location': toEntityPath(context, entity, key) },
      body: values,
    }),
  });
}

const RANGE_QUERY: Readonly<Record<string, string>> = {
  from: 'The first value of the field after those in the path; a prefix of a text is enough',
  to: 'The last value of that field; texts that begin with it are included',
  prefix: 'The first characters of that field, in place of from and to',
  order: `The expected order, ${ORDERS.join(' or ')}; the key decides which one is accepted`,
};

/** Throws `invalid-input`. */
function readBounds(query: URLSearchParams): IndexBounds {
  const [from, to, prefix, asked] = Object.keys(RANGE_QUERY).map((name) => query.get(name) || undefined);
  const order = ORDERS.find((one) => one === asked);
  if (asked !== undefined && !order) throw queryError('order', 'must be one of two', ORDERS.join(', '));
  return { from, to, prefix, order };
}

/** The routes of totals: one for a group, and one for each smaller number of fields with which a range may begin. */
function routesOfTotals(entity: Entity): Route[] {
  return Object.entries(entity.totals).flatMap(([name, declared]) => {
    const fields = declared.groupFields;
    const one = bind(getTotal(entity, name), {
      ...addressOf(entity, 'totals', name, fields),
      success: { status: 200, description: 'The totals; a group without entities has the count 0' },
      read: (context) => ({ group: readGroup(entity, declared, context, fields) }),
    });
    const ranges = rangeStarts(entity, toIndex(declared)).map((start) =>
      bindPage(listTotals(entity, name), {
        ...addressOf(entity, 'totals', name, start),
        name: `${one.name}-range-${start.length}`,
        query: { ...RANGE_QUERY, ...PAGE_QUERY },
        summary: `List the totals of ${entity.name}${withThis(start)}`,
        success: { status: 200, description: 'A page of totals' },
        read: (context) => ({ group: readGroup(entity, declared, context, start), ...readBounds(context.query) }),
      }),
    );
    return [one, ...ranges];
  });
}

function readGroup(entity: Entity, declared: Total, { params }: RequestContext, fields: readonly string[]) {
  return checkGroup(declared, params, fields, (inFull) => validateTexts(entity, params, inFull));
}
