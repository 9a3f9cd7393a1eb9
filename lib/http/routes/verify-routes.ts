import { z } from 'zod';
import { canReadWhole } from '../../access/rule.ts';
import type { Caller } from '../../access/token.ts';
import { RowkeyError } from '../../base/errors.ts';
import { omit } from '../../base/values.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { type Finding, Findings, VisibleFinding } from '../../define/declaration/finding.ts';
import { shapesOf } from '../../define/places/index-entries.ts';
import { cleanUpIndex } from '../../operations/index-clean-up.ts';
import { markBuilt } from '../../operations/model-guard.ts';
import { rewrapEntities } from '../../operations/rewrap.ts';
import { canVerify, type VerifyPage, VerifyPosition, verifyPage } from '../../operations/verify.ts';
import { readVerifyRun, VerifyRun } from '../../operations/verify-run.ts';
import { PAGE_QUERY, readBoolean, respondWithPage } from '../query.ts';
import type { OperatorRoute, RequestContext } from '../route.ts';

/** For operators: compares a page with its index entries and repairs it, builds a new index, cleans up a removed one. */
export function verifyRoutes(entity: Entity): OperatorRoute[] {
  const { name } = entity;
  const path = `operations/verify/${name}`;
  return [
    {
      name: `operations-verify-${name}`,
      method: 'GET',
      path,
      summary: `Get the result of the last weekly consistency check of ${name}`,
      ofAll: {
        name: 'operations-verify',
        path: 'operations/verify/{entity}',
        summary: 'Get the result of the last weekly consistency check of an entity',
      },
      success: {
        status: 200,
        description: 'The result',
        body: () => VerifyRun.extend({ findings: z.array(VisibleFinding) }),
      },
      handle: async ({ app, caller }) => {
        const run = await readVerifyRun(app.engine, entity);
        if (!run)
          throw new RowkeyError(
            'not-found',
            canVerify(entity)
              ? `No weekly consistency check of ${name} has run yet.`
              : `No weekly consistency check of ${name} runs, because no other row or blob depends on its rows.`,
          );
        return { status: 200, body: { ...run, findings: hideKeys(entity, caller, run.findings) } };
      },
    },
    {
      name: `operations-verify-${name}-page`,
      method: 'POST',
      path,
      query: { ...PAGE_QUERY, repair: 'true also repairs the findings; the default is false' },
      summary: `Compare a page of ${name} with its index entries, copies, lists, counts and blobs`,
      ofAll: {
        name: 'operations-verify-page',
        path: 'operations/verify/{entity}',
        summary: 'Compare a page of an entity with its index entries, copies, lists, counts and blobs',
      },
      success: {
        status: 200,
        description: 'The findings',
        body: () => Findings,
        headers: ['Link'],
      },
      handle: (context) => verify(entity, context, path),
    },
    ...(listBuilt(entity).length > 0 ? [reindexRoute(entity)] : []),
    {
      name: `operations-clean-up-${name}`,
      method: 'POST',
      path: `operations/clean-up/${name}/{index}`,
      query: PAGE_QUERY,
      summary: `Delete a page of entries of an index that ${name} no longer declares`,
      ofAll: {
        name: 'operations-clean-up',
        path: 'operations/clean-up/{entity}/{index}',
        summary: 'Delete a page of entries of an index that an entity no longer declares',
      },
      success: {
        status: 200,
        description: 'The deleted entries',
        body: () => Findings,
        headers: ['Link'],
      },
      handle: (context) => cleanUp(entity, context, context.params.index ?? ''),
    },
  ];
}

function reindexRoute(entity: Entity): OperatorRoute {
  const { name } = entity;
  return {
    name: `operations-reindex-${name}`,
    method: 'POST',
    path: `operations/reindex/${name}/{index}`,
    query: PAGE_QUERY,
    summary: `Build an index, or copies, for a page of ${name}`,
    ofAll: {
      name: 'operations-reindex',
      path: 'operations/reindex/{entity}/{index}',
      summary: 'Build an index, or copies, for a page of an entity',
    },
    success: {
      status: 200,
      description: 'The missing entries',
      body: () => Findings,
      headers: ['Link'],
    },
    handle: (context) => build(entity, context, context.params.index ?? ''),
  };
}

/** The names of what is built from the stored entities: indexes, and copies of other entities' fields. */
function listBuilt(entity: Entity): string[] {
  return [...new Set([...Object.keys(entity.indexes), ...Object.keys(shapesOf(entity))])];
}

async function verify(entity: Entity, context: RequestContext, path: string) {
  const repair = readBoolean(context.query, 'repair');
  return presentWalk(context, { entity, path, bound: `${path}?repair=${repair}` }, (page) =>
    verifyPage(context.app.engine, entity, { ...page, repair }),
  );
}

async function build(entity: Entity, context: RequestContext, index: string) {
  const { engine } = context.app;
  const names = listBuilt(entity);
  if (!names.includes(index))
    throw new RowkeyError('not-found', `${entity.name} has no index "${index.slice(0, 100)}" to build.`, {
      field: 'index',
      accepted: names.join(', '),
    });
  const path = `operations/reindex/${entity.name}/${encodeURIComponent(index)}`;
  return presentWalk(context, { entity, path }, async (page) => {
    const built = await verifyPage(engine, entity, { ...page, repair: true, only: index });
    if (!built.next && built.left === 0) await markBuilt(engine, entity, index);
    return built;
  });
}

async function cleanUp(entity: Entity, context: RequestContext, index: string) {
  const { engine, entities } = context.app;
  const path = `operations/clean-up/${entity.name}/${encodeURIComponent(index)}`;
  return presentWalk(context, { entity, path }, (page) => cleanUpIndex(engine, entity, index, { entities, ...page }));
}

interface PageRequest {
  readonly position: VerifyPosition | undefined;
  readonly top: number;
}

/** The next page's link is valid only for the same operation and parameters (`bound`). */
function presentWalk(
  context: RequestContext,
  { entity, ...asked }: { readonly entity: Entity; readonly path: string; readonly bound?: string },
  walk: (page: PageRequest) => Promise<VerifyPage>,
) {
  return respondWithPage(context, asked, async ({ top, after }) => {
    const position = after && VerifyPosition.parse(JSON.parse(after.row));
    const { checked, findings, next } = await walk({ position, top });
    const body = { checked, findings: hideKeys(entity, context.caller, findings) };
    return { body, next: next && { row: JSON.stringify(next) } };
  });
}

function hideKeys(entity: Entity, caller: Caller, findings: readonly Finding[]) {
  return canReadWhole(entity, caller) ? findings : findings.map((finding) => omit(finding, ['partition', 'row']));
}

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
    handle: (context) =>
      respondWithPage(context, { path }, async (page) => {
        const { next, ...body } = await rewrapEntities(context.app.engine, entity, page);
        return { body, next };
      }),
  };
}
