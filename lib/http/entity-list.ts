import { z } from 'zod';
import type { Entity } from '../define/entity.ts';
import { partialSchema, schemaWithGaps } from '../define/validate/validation.ts';
import type { Page } from '../engine/read/retrieve.ts';
import { toNextLink } from './paging.ts';
import { queryError, readList } from './query.ts';
import type { RequestContext, Route, RouteResult } from './route.ts';

export const SELECT = 'Fields to return, separated by commas; large fields are returned only if selected';

/** The success of a route that lists entities: whole ones, or parts of which only `required` fields are always present. */
export function describeList(entity: Entity, required?: readonly string[]): Route['success'] {
  const item = required ? partialSchema(entity, required) : schemaWithGaps(entity);
  const description = 'A page of entities; the Link header names the next page, if there is one';
  return { status: 200, description, body: z.object({ items: z.array(item) }), headers: ['Link'] };
}

/** Reads the fields to return; undefined without `select`. Throws `invalid-input`. */
export function readSelect(entity: Entity, query: URLSearchParams): string[] | undefined {
  const fields = query.get('select') ? readList(query, 'select') : undefined;
  const known = Object.keys(entity.columns);
  const unknown = fields?.find((field) => !known.includes(field));
  if (unknown === undefined) return fields;
  throw queryError('select', `names "${unknown}", which is not a field of ${entity.name}`, known.join(','));
}

/** A page of entities, with the link to the next page. */
export async function presentPage(
  context: RequestContext,
  { items, next }: Page,
  { path, bound }: { readonly path: string; readonly bound: string },
): Promise<RouteResult> {
  return { status: 200, body: { items }, headers: await toNextLink(context, next, { path, bound }) };
}
