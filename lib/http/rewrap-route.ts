import { z } from 'zod';
import type { Entity } from '../define/entity.ts';
import { rewrapEntities } from '../operations/rewrap.ts';
import { nextLink, PAGE_QUERY, pageOf } from './paging.ts';
import type { Route } from './route.ts';

const Rewrapped = z.object({ looked: z.int(), rewrapped: z.int(), failed: z.int() });

/** For operators, after the key-encryption key was rotated: called until there is no next page. */
export function rewrapRoute(entity: Entity): Route {
  const path = `operations/rewrap/${entity.name}`;
  return {
    name: `operations-rewrap-${entity.name}`,
    method: 'POST',
    path,
    roles: ['operator'],
    query: PAGE_QUERY,
    summary: `Wrap the data keys of a page of ${entity.name} with the current key`,
    success: {
      status: 200,
      description: 'How many were looked at, wrapped anew, and did not open',
      body: Rewrapped,
      headers: ['Link'],
    },
    handle: async (call) => {
      const { next, ...body } = await rewrapEntities(call.app.engine, entity, await pageOf(call, path));
      return { status: 200, body, headers: await nextLink(call, next, { path: `/api/${path}`, bound: path }) };
    },
  };
}
