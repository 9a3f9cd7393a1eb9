import { z } from 'zod';
import type { Entity } from '../../define/declaration/entity.ts';
import { rewrapEntities } from '../../operations/rewrap.ts';
import { PAGE_QUERY, readPageQuery, toNextLink } from '../paging.ts';
import type { OperatorRoute } from '../route.ts';

const Rewrapped = z.object({ checked: z.int(), rewrapped: z.int(), failed: z.int() });

/** For operators, after a rotation of the key-encryption key. Repeat the request until the response links no next page. */
export function rewrapRoute(entity: Entity): OperatorRoute {
  const path = `operations/rewrap/${entity.name}`;
  return {
    name: `operations-rewrap-${entity.name}`,
    method: 'POST',
    path,
    query: PAGE_QUERY,
    summary: `Rewrap the data keys of a page of ${entity.name} with the current key-encryption key`,
    ofAll: {
      name: 'operations-rewrap',
      path: 'operations/rewrap/{entity}',
      summary: 'Rewrap the data keys of a page of an entity with the current key-encryption key',
    },
    success: {
      status: 200,
      description:
        'How many entities were read, rewrapped, and could not be decrypted; the Link header names the next page',
      body: () => Rewrapped,
      headers: ['Link'],
    },
    handle: async (context) => {
      const { next, ...body } = await rewrapEntities(context.app.engine, entity, await readPageQuery(context, path));
      return {
        status: 200,
        body,
        headers: await toNextLink(context, next, { path: `${context.root}/${path}`, bound: path }),
      };
    },
  };
}
