import { z } from 'zod';
import { getThroughIndex, getTotal, listIndex, listTotals } from '../../api/reads.ts';
import { maskOf, partialSchema, readableSchema, validateTexts } from '../../define/codec/validation.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import type { Index } from '../../define/declaration/indexes.ts';
import { groupFields, periodFields, type Total, toIndex } from '../../define/declaration/totals.ts';
import {
  copiedFields,
  type IndexBounds,
  incompleteError,
  indexFields,
  isOfMany,
  ORDERS,
  rangeStarts,
} from '../../define/places/index-range.ts';
import { rolesToReadIndex } from '../../define/places/readers.ts';
import { checkGroup } from '../../features/totals/read-totals.ts';
import { bind, bindPage, describeList, toEntityPath } from '../bind.ts';
import {
  filterParameters,
  LIST_QUERY,
  PAGE_QUERY,
  queryError,
  readListQuery,
  readSelect,
  SELECT_ONE,
} from '../query.ts';
import { pathTo, type RequestContext, type Route, toPathTemplate } from '../route.ts';

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
    const common = { roles: rolesToReadIndex(entity, index), query: { ...RANGE_QUERY, ...LIST_QUERY } };
    return incompleteRoutes(entity, { name, index, fields: indexFields(entity, index) }, common);
  });
  const totals = Object.entries(entity.totals).flatMap(([name, declared]) => {
    const common = { roles: getTotal(entity, declared).roles, query: { ...RANGE_QUERY, ...PAGE_QUERY } };
    const index = toIndex(declared);
    return incompleteRoutes(entity, { what: 'totals', name, index, fields: groupFields(declared) }, common);
  });
  return [...indexes, ...totals];
}

function incompleteRoutes(
  entity: Entity,
  { index, fields, ...asked }: Parameters<typeof incompleteError>[2] & { readonly index: Index },
  common: Pick<Route, 'roles' | 'query'>,
): Route[] {
  const shortest = Math.min(...[fields, ...rangeStarts(entity, index)].map(({ length }) => length));
  return Array.from({ length: shortest }, (_, count): Route => {
    const given = fields.slice(0, count);
    const route = commonOf(entity, asked.what === 'totals' ? 'totals' : 'by', asked.name, given);
    return {
      ...common,
      ...route,
      name: `${route.name}-incomplete-${count}`,
      isUndescribed: true,
      summary: 'Reject a path that is too short',
      success: { status: 400, description: 'Never sent' },
      handle: async () => {
        throw incompleteError(entity, index, { ...asked, fields: given });
      },
    };
  });
}

/** The fields of one value, or the first ones of a range, are the end of the path. */
function commonOf(entity: Entity, section: 'by' | 'totals', name: string, fields: readonly string[]) {
  return {
    name: `${entity.name}-by-${section === 'totals' ? 'totals-' : ''}${name}`,
    method: 'GET',
    path: [entity.name, section, name, ...(fields.length > 0 ? [toPathTemplate(fields)] : [])].join('/'),
  } as const;
}

type NamedIndex = readonly [name: string, index: Index];

/**
 * The routes of each index: one for a single value, which returns an object if the index leads to one entity, and one for each
 * smaller number of fields with which a range may begin.
 */
function routesOfIndexes(entity: Entity): Route[] {
  return Object.entries(entity.indexes).flatMap((named) => {
    const [, index] = named;
    const fields = indexFields(entity, index);
    const starts = rangeStarts(entity, index);
    const isStart = starts.some(({ length }) => length === fields.length);
    const one = isOfMany(entity, index)
      ? listRoute(entity, named, { fields, isRange: isStart })
      : entityRoute(entity, named, fields);
    // With more fields than one value has, a path could be that of an entity with as many key fields.
    const ranges = starts
      .filter(({ length }) => length < fields.length)
      .map((start) => ({
        ...listRoute(entity, named, { fields: start, isRange: true }),
        name: `${one.name}-range-${start.length}`,
      }));
    return [one, ...ranges];
  });
}

function listRoute(
  entity: Entity,
  [indexName, index]: NamedIndex,
  { fields, isRange }: { readonly fields: readonly string[]; readonly isRange: boolean },
): Route {
  const copied = copiedFields(entity, index);
  const query = { ...(isRange ? RANGE_QUERY : {}), ...LIST_QUERY };
  const filters = filterParameters(entity, { without: fields, available: copied, query });
  const bounded = isRange ? index.row.fields.find((field) => !fields.includes(field)) : undefined;
  return bindPage(listIndex(entity, index), {
    ...commonOf(entity, 'by', indexName, fields),
    query,
    filters,
    summary: `List ${entity.name}${fields.length > 0 ? ` with this ${fields.join(', ')}` : ''}${isRange ? `, in the order of ${bounded}` : ''}`,
    success: describeList(entity, entity.large.length > 0 ? [] : copied),
    read(context) {
      const given = validateTexts(entity, context.params, fields);
      const path = pathTo(context.root, entity.name, 'by', indexName, ...fields.map((field) => given[field]));
      return { input: { given, ...readBounds(context.query), ...readListQuery(context, entity, filters) }, path };
    },
  });
}

function entityRoute(entity: Entity, [indexName, index]: NamedIndex, fields: readonly string[]): Route {
  return bind(getThroughIndex(entity, index), {
    ...commonOf(entity, 'by', indexName, fields),
    query: { select: SELECT_ONE },
    summary: `Get the entity of ${entity.name} with this ${fields.join(', ')}`,
    success: {
      status: 200,
      description: 'The entity; the Content-Location header is its path',
      body: () => readableSchema(entity),
      selected: () => partialSchema(entity, []),
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
    const fields = groupFields(declared);
    const starts = rangeStarts(entity, toIndex(declared));
    return [
      totalRoute(entity, name, declared, fields),
      ...starts.map((start) => totalRangeRoute(entity, name, declared, start)),
    ];
  });
}

function totalRoute(entity: Entity, name: string, declared: Total, fields: readonly string[]): Route {
  return bind(getTotal(entity, declared), {
    ...commonOf(entity, 'totals', name, fields),
    summary: `Get the totals of ${entity.name}${fields.length > 0 ? ` with this ${fields.join(', ')}` : ''}`,
    success: {
      status: 200,
      description: 'The totals; a group without entities has the count 0',
      body: () => totalSchema(entity, declared),
    },
    read: (context) => ({ group: readGroup(entity, declared, context, fields) }),
  });
}

function totalRangeRoute(entity: Entity, name: string, declared: Total, fields: readonly string[]): Route {
  const common = commonOf(entity, 'totals', name, fields);
  return bindPage(listTotals(entity, declared), {
    ...common,
    name: `${common.name}-range-${fields.length}`,
    query: { ...RANGE_QUERY, ...PAGE_QUERY },
    summary: `List the totals of ${entity.name}${fields.length > 0 ? ` with this ${fields.join(', ')}` : ''}`,
    success: {
      status: 200,
      description: 'A page of totals',
      body: () => z.object({ items: z.array(totalSchema(entity, declared)) }),
      headers: ['Link'],
    },
    read(context) {
      const group = readGroup(entity, declared, context, fields);
      const path = pathTo(context.root, entity.name, 'totals', name, ...fields.map((field) => group[field]));
      return { input: { group, ...readBounds(context.query) }, path };
    },
  });
}

function readGroup(entity: Entity, declared: Total, { params }: RequestContext, fields: readonly string[]) {
  return checkGroup(declared, params, fields, (inFull) => validateTexts(entity, params, inFull));
}

function totalSchema(entity: Entity, declared: Total): z.ZodType {
  const periods = periodFields(declared);
  const lists = Object.keys(entity.columns).filter((field) => entity.columns[field] === 'Json');
  const fields = groupFields(declared);
  const inFull = fields.filter((field) => !periods.has(field) && !lists.includes(field));
  const asText = fields.filter((field) => !inFull.includes(field)).map((field) => [field, z.string()]);
  const group = entity.schema.pick(maskOf(inFull)).required().extend(Object.fromEntries(asText));
  const isText = (field: string) => entity.columns[field] === 'String';
  const extremes = (of: readonly string[]) =>
    z.object(Object.fromEntries(of.map((field) => [field, (isText(field) ? z.string() : z.number()).optional()])));
  const sum = z.object(Object.fromEntries(declared.sum.map((field) => [field, z.number()])));
  return z.object({ group, count: z.int(), sum, min: extremes(declared.min), max: extremes(declared.max) });
}
