import { perform } from '../../api/operation.ts';
import { getThroughIndex, listIndex } from '../../api/reads.ts';
import { partialSchema, readableSchema, validateTexts } from '../../define/codec/validation.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import type { Index } from '../../define/declaration/indexes.ts';
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
import { toEntityPath } from '../entity-key.ts';
import { describeList, presentPage, readSelect, SELECT, SELECT_ONE } from '../entity-list.ts';
import { filterParameters, readFilter } from '../filter.ts';
import { PAGE_QUERY, readPageQuery } from '../paging.ts';
import { toView } from '../present.ts';
import { queryError } from '../query.ts';
import { pathTo, type Route, toPathTemplate } from '../route.ts';

type NamedIndex = readonly [name: string, index: Index];

/**
 * The routes of each index: one for a single value, which returns an object if the index leads to one entity, and one for each
 * smaller number of fields with which a range may begin.
 */
export function indexRoutes(entity: Entity): Route[] {
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

/**
 * Routes of paths that are too short for an index: without them, a request would reach no route, or that of an entity with
 * such a key. The response says which field comes first.
 */
export function incompleteIndexRoutes(entity: Entity): Route[] {
  return Object.entries(entity.indexes).flatMap(([name, index]) => {
    const fields = indexFields(entity, index);
    const shortest = Math.min(...[fields, ...rangeStarts(entity, index)].map(({ length }) => length));
    return Array.from({ length: shortest }, (_, count): Route => {
      const common = commonOf(entity, [name, index], fields.slice(0, count));
      return {
        ...common,
        name: `${common.name}-incomplete-${count}`,
        isUndescribed: true,
        query: { ...RANGE_QUERY, select: SELECT, ...PAGE_QUERY },
        summary: 'Reject a path that is too short',
        success: { status: 400, description: 'Never sent' },
        handle: async () => {
          throw incompleteError(entity, index, { name, fields: fields.slice(0, count) });
        },
      };
    });
  });
}

function commonOf(entity: Entity, [indexName, index]: NamedIndex, fields: readonly string[]) {
  return {
    name: `${entity.name}-by-${indexName}`,
    method: 'GET',
    path: [entity.name, 'by', indexName, ...(fields.length > 0 ? [toPathTemplate(fields)] : [])].join('/'),
    roles: rolesToReadIndex(entity, index),
  } as const;
}

function listRoute(
  entity: Entity,
  [indexName, index]: NamedIndex,
  { fields, isRange }: { readonly fields: readonly string[]; readonly isRange: boolean },
): Route {
  const copied = copiedFields(entity, index);
  const list = listIndex(entity, index);
  const query = { ...(isRange ? RANGE_QUERY : {}), select: SELECT, ...PAGE_QUERY };
  const filters = filterParameters(entity, { without: fields, available: copied, query });
  const bounded = isRange ? index.row.fields.find((field) => !fields.includes(field)) : undefined;
  return {
    ...commonOf(entity, [indexName, index], fields),
    query,
    filters,
    summary: `List ${entity.name}${fields.length > 0 ? ` with this ${fields.join(', ')}` : ''}${isRange ? `, in the order of ${bounded}` : ''}`,
    success: describeList(entity, entity.large.length > 0 ? [] : copied),
    handle: async (context) => {
      const given = validateTexts(entity, context.params, fields);
      const path = pathTo(context.root, entity.name, 'by', indexName, ...fields.map((field) => given[field]));
      const bounds = readBounds(context.query);
      const select = readSelect(context.query);
      const where = readFilter(context, entity, filters);
      const bound = JSON.stringify([path, bounds, select, where]);
      const options = { ...(await readPageQuery(context, bound)), ...bounds, given, select, where };
      return presentPage(context, await perform(list, toView(context), () => options), { bound, path });
    },
  };
}

function entityRoute(entity: Entity, [indexName, index]: NamedIndex, fields: readonly string[]): Route {
  const getOne = getThroughIndex(entity, index);
  return {
    ...commonOf(entity, [indexName, index], fields),
    query: { select: SELECT_ONE },
    summary: `Get the entity of ${entity.name} with this ${fields.join(', ')}`,
    success: {
      status: 200,
      description: 'The entity; the Content-Location header is its path',
      body: () => readableSchema(entity),
      selected: () => partialSchema(entity, []),
      headers: ['Content-Location'],
    },
    handle: async (context) => {
      const given = validateTexts(entity, context.params, fields);
      const { key, values } = await perform(getOne, toView(context), () => ({
        given,
        select: readSelect(context.query),
      }));
      // No ETag: that of a copy is not the ETag of the entity, which a write compares.
      return { status: 200, headers: { 'content-location': toEntityPath(context, entity, key) }, body: values };
    },
  };
}

export const RANGE_QUERY: Readonly<Record<string, string>> = {
  from: 'The first value of the field after those in the path; a prefix of a text is enough',
  to: 'The last value of that field; texts that begin with it are included',
  prefix: 'The first characters of that field, in place of from and to',
  order: `The expected order, ${ORDERS.join(' or ')}; the key decides which one is accepted`,
};

/** Throws `invalid-input`. */
export function readBounds(query: URLSearchParams): IndexBounds {
  const [from, to, prefix, asked] = Object.keys(RANGE_QUERY).map((name) => query.get(name) || undefined);
  const order = ORDERS.find((one) => one === asked);
  if (asked !== undefined && !order) throw queryError('order', 'must be one of two', ORDERS.join(', '));
  return { from, to, prefix, order };
}
