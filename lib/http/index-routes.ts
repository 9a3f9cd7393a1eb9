import { rolesToReadBy } from '../access/rule.ts';
import type { Entity } from '../define/entity.ts';
import type { Index } from '../define/indexes.ts';
import { readableSchema, validateTexts } from '../define/validation.ts';
import { indexFields, isOfMany, readByCopies, readByCopy, readByList } from '../engine/read/read-through-index.ts';
import { smallFields } from '../engine/read/retrieve.ts';
import { entityPath, listSuccess, pageAnswer, SELECT, selected } from './entity-routes.ts';
import { PAGE_QUERY, pageOf } from './paging.ts';
import { parametersOf, pathTo, type Route } from './route.ts';
import { shown } from './visible.ts';

/** A route for each index: of one entity an object, of several a list. */
export function indexRoutes(entity: Entity): Route[] {
  return Object.entries(entity.indexes).map(([name, index]) => indexRoute(entity, name, index));
}

function indexRoute(entity: Entity, indexName: string, index: Index): Route {
  const fields = indexFields(entity, index);
  const common = {
    name: `${entity.name}-by-${indexName}`,
    method: 'GET',
    path: `${entity.name}/by/${indexName}/${parametersOf(fields)}`,
    roles: rolesToReadBy(entity, fields),
  } as const;
  const copied = copiedFields(entity, index);
  const hasLarge = entity.large.some((field) => copied?.includes(field) ?? true);
  if (index.kind === 'index-entity' || isOfMany(entity, index))
    return {
      ...common,
      query: hasLarge ? { select: SELECT, ...PAGE_QUERY } : PAGE_QUERY,
      summary: `Those of ${entity.name} with this ${fields.join(', ')}`,
      success: listSuccess(entity, hasLarge ? [] : copied),
      handle: async (call) => {
        const given = validateTexts(entity, call.params, fields);
        const path = pathTo(entity.name, 'by', indexName, ...fields.map((field) => given[field]));
        const asked = hasLarge ? selected(entity, call.query.get('select') || undefined) : undefined;
        const select = asked ?? smallFields(entity);
        const bound = asked ? JSON.stringify([path, asked]) : path;
        const options = { ...(await pageOf(call, bound)), select };
        const page =
          index.kind === 'index-entity'
            ? await readByList(call.app.engine, entity, index, given, options)
            : await readByCopies(call.app.engine, entity, index, given, options);
        return pageAnswer(call, entity, page, { bound, path, select });
      },
    };
  return {
    ...common,
    summary: `The one of ${entity.name} with this ${fields.join(', ')}`,
    success: {
      status: 200,
      description: 'The entity; Content-Location says where it is',
      body: readableSchema(entity),
      headers: ['Content-Location'],
    },
    handle: async (call) => {
      const given = validateTexts(entity, call.params, fields);
      const values = await readByCopy(call.app.engine, entity, index, given);
      // No ETag: a copy has its own, which is of no use in writing the entity.
      const headers = { 'content-location': entityPath(entity, values) };
      return { status: 200, headers, body: await shown(call, entity, values) };
    },
  };
}

/** The fields that each item of an index has; undefined if it is the whole entity. */
function copiedFields(entity: Entity, index: Index): readonly string[] | undefined {
  if (index.kind === 'index-entity' || typeof index.copies === 'string') return undefined;
  return [...entity.keyFields, ...index.copies];
}
