import { z } from 'zod';
import { RowkeyError } from '../errors.ts';
import { type AuditPosition, auditPage } from '../patterns/drift-audit.ts';
import { DriftRun, readDriftRun } from '../patterns/drift-run.ts';
import type { Entity } from '../patterns/entity.ts';
import { markBuilt } from '../patterns/model-guard.ts';
import { nextLink, PAGE_QUERY, pageOf } from './paging.ts';
import type { Call, Route } from './route.ts';

const roles = ['operator'] as const;

const Page = z.object({
  looked: z.int(),
  findings: z.array(
    z.object({
      what: z.string(),
      of: z.string(),
      table: z.string(),
      partition: z.string(),
      row: z.string(),
      repaired: z.boolean(),
    }),
  ),
});

/** For operators: looks for drift page by page, repairs it when told to, and builds an index that is new. */
export function driftRoutes(entity: Entity): Route[] {
  const { name } = entity;
  const path = `operations/drift/${name}`;
  return [
    {
      name: `operations-drift-${name}`,
      method: 'GET',
      path,
      roles,
      summary: `How the weekly audit of ${name} went`,
      success: { status: 200, description: 'The last one', body: DriftRun },
      handle: async ({ app }) => {
        const run = await readDriftRun(app.engine, entity);
        if (!run) throw new RowkeyError('not-found', `There has been no audit of ${name} yet.`);
        return { status: 200, body: run };
      },
    },
    {
      name: `operations-drift-${name}-audit`,
      method: 'POST',
      path,
      roles,
      query: { ...PAGE_QUERY, repair: 'true: repair what is found' },
      summary: `Compare a page of ${name} with its indexes, copies, lists, counts and blobs`,
      success: { status: 200, description: 'What does not agree; the header Link names the next page', body: Page },
      handle: async (call) => answer(entity, call, { path, repair: isTrue(call, 'repair') }),
    },
    ...Object.keys(entity.indexes).map((index): Route => {
      const where = `operations/reindex/${name}/${index}`;
      return {
        name: `operations-reindex-${name}-${index}`,
        method: 'POST',
        path: where,
        roles,
        query: PAGE_QUERY,
        summary: `Build the index ${index} for a page of ${name}`,
        success: { status: 200, description: 'What was missing; the header Link names the next page', body: Page },
        handle: (call) => answer(entity, call, { path: where, repair: true, only: index }),
      };
    }),
  ];
}

async function answer(
  entity: Entity,
  call: Call,
  { path, repair, only }: { path: string; repair: boolean; only?: string },
) {
  const { engine } = call.app;
  const bound = JSON.stringify([path, repair]);
  const { top, after } = await pageOf(call, bound);
  const position = after && (JSON.parse(after.row) as AuditPosition);
  const { next, ...body } = await auditPage(engine, entity, { position, top, repair, only });
  if (!next && only !== undefined) await markBuilt(engine, entity, only);
  const row = next && { row: JSON.stringify(next) };
  return { status: 200, body, headers: await nextLink(call, row, { path: `/api/${path}`, bound }) };
}

function isTrue({ query }: Call, name: string): boolean {
  const text = query.get(name) ?? 'false';
  if (text === 'true' || text === 'false') return text === 'true';
  throw new RowkeyError('invalid-input', `The query parameter ${name} is true or false.`, {
    field: name,
    accepted: 'true, false',
  });
}
