import { z } from 'zod';
import { perform } from '../../api/operation.ts';
import { getTotal, listTotals } from '../../api/reads.ts';
import { maskOf, validateTexts } from '../../define/codec/validation.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { groupFields, periodFields, type Total, toIndex } from '../../define/declaration/totals.ts';
import { incompleteError, rangeStarts } from '../../define/places/index-range.ts';
import { checkGroup } from '../../pattern-helpers/read-totals.ts';
import { presentPage } from '../entity-list.ts';
import { PAGE_QUERY, readPageQuery } from '../paging.ts';
import { toView } from '../present.ts';
import { pathTo, type RequestContext, type Route, toPathTemplate } from '../route.ts';
import { RANGE_QUERY, readBounds } from './index-routes.ts';

/** The routes of totals: one for a group, and one for each smaller number of fields with which a range may begin. */
export function totalRoutes(entity: Entity): Route[] {
  return Object.entries(entity.totals).flatMap(([name, declared]) => {
    const fields = groupFields(declared);
    const starts = rangeStarts(entity, toIndex(declared));
    return [
      oneRoute(entity, name, declared, fields),
      ...starts.map((start) => rangeRoute(entity, name, declared, start)),
    ];
  });
}

/** Routes of paths that are too short, as for indexes. */
export function incompleteTotalRoutes(entity: Entity): Route[] {
  return Object.entries(entity.totals).flatMap(([name, declared]) => {
    const fields = groupFields(declared);
    const index = toIndex(declared);
    const shortest = Math.min(...[fields, ...rangeStarts(entity, index)].map(({ length }) => length));
    return Array.from({ length: shortest }, (_, count): Route => {
      const common = commonOf(entity, name, declared, fields.slice(0, count));
      return {
        ...common,
        name: `${common.name}-incomplete-${count}`,
        isUndescribed: true,
        query: { ...RANGE_QUERY, ...PAGE_QUERY },
        summary: 'Reject a path that is too short',
        success: { status: 400, description: 'Never sent' },
        handle: async () => {
          throw incompleteError(entity, index, { what: 'totals', name, fields: fields.slice(0, count) });
        },
      };
    });
  });
}

function commonOf(entity: Entity, name: string, declared: Total, fields: readonly string[]) {
  return {
    name: `${entity.name}-by-totals-${name}`,
    method: 'GET',
    path: [entity.name, 'totals', name, ...(fields.length > 0 ? [toPathTemplate(fields)] : [])].join('/'),
    roles: getTotal(entity, declared).roles,
  } as const;
}

function oneRoute(entity: Entity, name: string, declared: Total, fields: readonly string[]): Route {
  const common = commonOf(entity, name, declared, fields);
  return {
    ...common,
    summary: `Get the totals of ${entity.name}${fields.length > 0 ? ` with this ${fields.join(', ')}` : ''}`,
    success: {
      status: 200,
      description: 'The totals; a group without entities has the count 0',
      body: () => totalSchema(entity, declared),
    },
    handle: async (context) => {
      const group = readGroup(entity, declared, context, fields);
      return { status: 200, body: await perform(getTotal(entity, declared), toView(context), () => ({ group })) };
    },
  };
}

function rangeRoute(entity: Entity, name: string, declared: Total, fields: readonly string[]): Route {
  const common = commonOf(entity, name, declared, fields);
  return {
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
    handle: async (context) => {
      const given = readGroup(entity, declared, context, fields);
      const path = pathTo(context.root, entity.name, 'totals', name, ...fields.map((field) => given[field]));
      const bounds = readBounds(context.query);
      const bound = JSON.stringify([path, bounds]);
      const input = { group: given, ...(await readPageQuery(context, bound)), ...bounds };
      return presentPage(context, await perform(listTotals(entity, declared), toView(context), () => input), {
        bound,
        path,
      });
    },
  };
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
