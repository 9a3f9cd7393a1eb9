import { rolesToReadBy } from '../../access/rule.ts';
import type { Entity } from '../../define/entity.ts';
import type { Index } from '../../define/indexes.ts';
import { readableSchema, validateTexts } from '../../define/validate/validation.ts';
import { indexFields } from '../../pattern-helpers/read-through-index.ts';
import { isListing, readIndexPage, readThroughIndex } from '../../store/read.ts';
import { toEntityPath } from '../entity-key.ts';
import { describeList, presentPage, readSelect, SELECT } from '../entity-list.ts';
import { PAGE_QUERY, readPageQuery } from '../paging.ts';
import { toView } from '../present.ts';
import { pathTo, type Route, toPathTemplate } from '../route.ts';

/** A route for each index. It returns an object if the index leads to one entity, else a list. */
export function indexRoutes(entity: Entity): Route[] {
  return Object.entries(entity.indexes).map(([name, index]) => indexRoute(entity, name, index));
}

function indexRoute(entity: Entity, indexName: string, index: Index): Route {
  const fields = indexFields(entity, index);
  const common = {
    name: `${entity.name}-by-${indexName}`,
    method: 'GET',
    path: `${entity.name}/by/${indexName}/${toPathTemplate(fields)}`,
    roles: rolesToReadBy(entity, fields),
  } as const;
  const copied = copiedFields(entity, index);
  const hasLarge = entity.large.some((field) => copied?.includes(field) ?? true);
  if (isListing(entity, index))
    return {
      ...common,
      query: hasLarge ? { select: SELECT, ...PAGE_QUERY } : PAGE_QUERY,
      summary: `List ${entity.name} with this ${fields.join(', ')}`,
      success: describeList(entity, hasLarge ? [] : copied),
      handle: async (context) => {
        const given = validateTexts(entity, context.params, fields);
        const path = pathTo(context.root, entity.name, 'by', indexName, ...fields.map((field) => given[field]));
        const select = hasLarge ? readSelect(entity, context.query) : undefined;
        const bound = select ? JSON.stringify([path, select]) : path;
        const options = { ...(await readPageQuery(context, bound)), given, select };
        return presentPage(context, await readIndexPage(toView(context), entity, index, options), { bound, path });
      },
    };
  return {
    ...common,
    summary: `Get the entity of ${entity.name} with this ${fields.join(', ')}`,
    success: {
      status: 200,
      description: 'The entity; the Content-Location header is its path',
      body: readableSchema(entity),
      headers: ['Content-Location'],
    },
    handle: async (context) => {
      const given = validateTexts(entity, context.params, fields);
      const values = await readThroughIndex(toView(context), entity, index, given);
      // No ETag: that of a copy is not the ETag of the entity, which a write compares.
      const headers = { 'content-location': toEntityPath(context, entity, values) };
      return { status: 200, headers, body: values };
    },
  };
}

/** The fields that each item of an index has; undefined if it has all. */
function copiedFields(entity: Entity, index: Index): readonly string[] | undefined {
  if (index.kind === 'index-entity' || typeof index.copies === 'string') return undefined;
  return [...entity.keyFields, ...index.copies];
}
