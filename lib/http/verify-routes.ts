import { z } from 'zod';
import { canReadWhole } from '../access/rule.ts';
import type { Caller } from '../access/token.ts';
import { type Entity, omit } from '../define/entity.ts';
import { RowkeyError } from '../errors.ts';
import { type Finding, Findings, VisibleFinding } from '../operations/finding.ts';
import { cleanUpIndex } from '../operations/index-clean-up.ts';
import { markBuilt } from '../operations/model-guard.ts';
import { type VerifyPage, VerifyPosition, verifyPage } from '../operations/verify.ts';
import { readVerifyRun, VerifyRun } from '../operations/verify-run.ts';
import { nextLink, PAGE_QUERY, pageOf } from './paging.ts';
import type { RequestContext, Route } from './route.ts';

const roles = ['operator'] as const;

/** For operators, page by page: looks for drift, repairs it when told to, builds an index that is new, cleans up one that was. */
export function verifyRoutes(entity: Entity): Route[] {
  const { name } = entity;
  const path = `operations/verify/${name}`;
  return [
    {
      name: `operations-verify-${name}`,
      method: 'GET',
      path,
      roles,
      summary: `How the weekly audit of ${name} went`,
      success: {
        status: 200,
        description: 'The last one',
        body: VerifyRun.extend({ findings: z.array(VisibleFinding) }),
      },
      handle: async ({ app, caller }) => {
        const run = await readVerifyRun(app.engine, entity);
        if (!run) throw new RowkeyError('not-found', `There has been no weekly audit of ${name} yet.`);
        return { status: 200, body: { ...run, findings: visible(entity, caller, run.findings) } };
      },
    },
    {
      name: `operations-verify-${name}-page`,
      method: 'POST',
      path,
      roles,
      query: { ...PAGE_QUERY, repair: 'true: repair what is found' },
      summary: `Compare a page of ${name} with its indexes, copies, lists, counts and blobs`,
      success: {
        status: 200,
        description: 'What does not agree; the header Link names the next page',
        body: Findings,
        headers: ['Link'],
      },
      handle: (call) => audit(entity, call, path),
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
        success: {
          status: 200,
          description: 'What was missing; the header Link names the next page',
          body: Findings,
          headers: ['Link'],
        },
        handle: (call) => build(entity, call, { path: where, index }),
      };
    }),
    {
      name: `operations-clean-up-${name}`,
      method: 'POST',
      path: `operations/clean-up/${name}/{index}`,
      roles,
      query: PAGE_QUERY,
      summary: `Delete a page of what an index of ${name} that is declared no more has kept`,
      success: {
        status: 200,
        description: 'What was deleted; the header Link names the next page',
        body: Findings,
        headers: ['Link'],
      },
      handle: (call) => cleanUp(entity, call, call.params.index ?? ''),
    },
  ];
}

async function audit(entity: Entity, call: RequestContext, path: string) {
  const repair = isTrue(call, 'repair');
  return answerPage(call, { entity, path, bound: `${path}?repair=${repair}` }, (page) =>
    verifyPage(call.app.engine, entity, { ...page, repair }),
  );
}

async function build(entity: Entity, call: RequestContext, { path, index }: { path: string; index: string }) {
  const { engine } = call.app;
  return answerPage(call, { entity, path }, async (page) => {
    const built = await verifyPage(engine, entity, { ...page, repair: true, only: index });
    if (!built.next && built.left === 0) await markBuilt(engine, entity, index);
    return built;
  });
}

async function cleanUp(entity: Entity, call: RequestContext, index: string) {
  const { engine, entities } = call.app;
  const path = `operations/clean-up/${entity.name}/${encodeURIComponent(index)}`;
  return answerPage(call, { entity, path }, (page) => cleanUpIndex(engine, entity, index, { entities, ...page }));
}

interface PageAsked {
  readonly position: VerifyPosition | undefined;
  readonly top: number;
}

/** One page of a walk. A link to the next one is good for the same walk (`bound`) alone. */
async function answerPage(
  call: RequestContext,
  { entity, path, bound = path }: { entity: Entity; path: string; bound?: string },
  walk: (page: PageAsked) => Promise<VerifyPage>,
) {
  const { top, after } = await pageOf(call, bound);
  const position = after && VerifyPosition.parse(JSON.parse(after.row));
  const { looked, findings, next } = await walk({ position, top });
  const row = next && { row: JSON.stringify(next) };
  const headers = await nextLink(call, row, { path: `/api/${path}`, bound });
  return { status: 200, body: { looked, findings: visible(entity, call.caller, findings) }, headers };
}

function visible(entity: Entity, caller: Caller, findings: readonly Finding[]) {
  return canReadWhole(entity, caller) ? findings : findings.map((finding) => omit(finding, ['partition', 'row']));
}

function isTrue({ query }: RequestContext, name: string): boolean {
  const text = query.get(name) ?? 'false';
  if (text === 'true' || text === 'false') return text === 'true';
  throw new RowkeyError('invalid-input', `The query parameter ${name} is true or false.`, {
    field: name,
    accepted: 'true, false',
  });
}
