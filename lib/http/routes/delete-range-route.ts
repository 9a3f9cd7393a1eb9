import { z } from 'zod';
import { canRead } from '../../access/rule.ts';
import { perform } from '../../api/operation.ts';
import { deleteRange } from '../../api/writes.ts';
import { RowkeyError } from '../../base/errors.ts';
import { validateTexts } from '../../define/codec/validation.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { toEntityTemplate } from '../entity-key.ts';
import { readContinuation, toNextLink } from '../paging.ts';
import { toView } from '../present.ts';
import { Problem, toProblem } from '../problem.ts';
import { readBoolean } from '../query.ts';
import { pathTo, type RequestContext, type Route, type RouteResult, toPathTemplate } from '../route.ts';

/** Well below the time that the Functions host gives a request. */
const TIME_BUDGET_MS = 20_000;
/** The number of deleted entities tells a caller enough to look at the others. */
const MAX_PROBLEMS = 20;

const DeletedRange = z.object({
  deleted: z.int(),
  /** How many entities could not be deleted, and the problems of the first of them. */
  failed: z.int(),
  /** Rows that clients wrote and that are not valid entities: they are still there. */
  skipped: z.int(),
  problems: z.array(Problem).max(MAX_PROBLEMS),
});

/** None for an entity whose partition has only one row, which a single delete deletes. */
export function deleteRangeRoutes(entity: Entity): Route[] {
  const path = `${entity.name}/${toPathTemplate(entity.partition.fields)}`;
  if (path === toEntityTemplate(entity)) return [];
  return [
    {
      name: `${entity.name}-delete-range`,
      method: 'DELETE',
      path,
      roles: entity.access.write,
      query: {
        from: 'The first value of the first field of the row key; a prefix is enough',
        to: 'The last value of the first field of the row key; values that begin with it are included',
        all: 'true deletes the whole partition, in place of from and to',
        continuation: 'Where to continue; taken from the Link header of the previous response',
      },
      summary: `Delete ${entity.name} of one ${entity.partition.fields.join(', ')}`,
      success: {
        status: 200,
        description:
          'The number of deleted entities; repeat with the Link header, if there is one, to delete the others',
        body: () => DeletedRange,
        headers: ['Link'],
      },
      handle: (context) => handle(entity, context),
    },
  ];
}

async function handle(entity: Entity, context: RequestContext): Promise<RouteResult> {
  const { app, caller, query, params, root } = context;
  const { fields } = entity.partition;
  const key = validateTexts(entity, params, fields);
  const from = query.get('from') ?? undefined;
  const to = query.get('to') ?? undefined;
  const all = readBoolean(query, 'all');
  const path = pathTo(root, entity.name, ...fields.map((field) => key[field]));
  const bound = JSON.stringify(['delete', path, from, to, all]);
  const after = await readContinuation(context, bound);
  const until = app.engine.now() + TIME_BUDGET_MS;
  const input = { partition: key, from, to, all, after, until };
  const { deleted, failed, skipped, next } = await perform(deleteRange(entity), toView(context), () => input);
  // The detail names an entity.
  const report = (error: RowkeyError) =>
    toProblem(canRead(entity, caller) ? error : new RowkeyError(error.code, error.message), root);
  const problems = failed.slice(0, MAX_PROBLEMS).map(report);
  const headers = await toNextLink(context, next, { path, bound });
  return { status: 200, body: { deleted, failed: failed.length, skipped, problems }, headers };
}
