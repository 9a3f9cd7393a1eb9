import { z } from 'zod';
import { partialSchema, readableSchema } from '../define/codec/validation.ts';
import type { Entity } from '../define/declaration/entity.ts';
import type { Page } from '../engine/read/retrieve.ts';
import { toNextLink } from './paging.ts';
import { readList } from './query.ts';
import type { RequestContext, Route, RouteResult } from './route.ts';

/** The description of `select` for an entity, and for lists. */
export const SELECT_ONE = 'Fields to return, separated by commas; all without it';
export const SELECT = 'Fields to return, separated by commas; large fields are returned only if selected';

/** The success of a route that lists entities: whole, or without `select` the `copied` fields. */
export function describeList(entity: Entity, copied?: readonly string[]): Route['success'] {
  return {
    status: 200,
    description: 'A page of entities',
    body: () => listOf(copied ? copySchema(entity, copied) : readableSchema(entity)),
    selected: () => listOf(partialSchema(entity, [])),
    headers: ['Link'],
  };
}

function copySchema(entity: Entity, copied: readonly string[]): z.ZodType {
  const { schema, access } = entity;
  // An optional field may have no value, and a restricted one is left out for some roles.
  const isCertain = (field: string) =>
    !Object.hasOwn(access.restricted ?? {}, field) && !schema.shape[field]?.safeParse(undefined).success;
  return partialSchema(entity, copied.filter(isCertain));
}

function listOf(item: z.ZodType): z.ZodType {
  return z.object({ items: z.array(item) });
}

/** The names of the fields to return; undefined without `select`. */
export function readSelect(query: URLSearchParams): readonly string[] | undefined {
  return query.get('select') ? readList(query, 'select') : undefined;
}

/** A page of entities, with the link to the next page. */
export async function presentPage(
  context: RequestContext,
  { items, next }: Page,
  { path, bound }: { readonly path: string; readonly bound: string },
): Promise<RouteResult> {
  return { status: 200, body: { items }, headers: await toNextLink(context, next, { path, bound }) };
}
