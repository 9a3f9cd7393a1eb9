import { z } from 'zod';
import { entitiesToTransact, readTransaction, transact } from '../../api/transact.ts';
import { readSentAction } from '../../api/writes.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { bind, readRequestId } from '../bind.ts';
import { maxBodyBytesOf } from '../request-body.ts';
import type { Route } from '../route.ts';
import { toResult, withStoredEtag } from './entity-write-routes.ts';

const Result = z.object({
  status: z.int().describe('201 created, 200 stored, 304 unchanged, 204 deleted'),
  etag: z.string().optional(),
  key: z.record(z.string(), z.unknown()).describe('The fields of the key, also those that the app generates'),
});

/** Writes of several entities of one partition in one transaction. */
export function transactRoute(all: readonly Entity[]): Route {
  const entities = entitiesToTransact(all);
  return bind(transact(entities), {
    method: 'POST',
    path: 'transact',
    explains: entities,
    maxBodyBytes: Math.max(...entities.map(maxBodyBytesOf)),
    success: {
      status: 200,
      description: 'Executed: a result for each action, in the same order',
      body: () => z.object({ results: z.array(Result) }),
    },
    async read(context) {
      const id = await readRequestId(context);
      const actions = readTransaction(entities, await context.json());
      return {
        id,
        actions: actions.map((one) => ({ ...one, action: readSentAction(one.entity, withStoredEtag(one.action)) })),
      };
    },
    present: (done, context, { actions }) => ({
      status: 200,
      body: {
        results: actions.flatMap(({ entity }, position) => {
          const one = done[position];
          return one ? [{ ...toResult(entity, context, one), key: one.key }] : [];
        }),
      },
    }),
  });
}
