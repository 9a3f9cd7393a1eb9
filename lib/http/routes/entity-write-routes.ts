import { z } from 'zod';
import { canRead, hiddenFields } from '../../access/rule.ts';
import { getTransfer } from '../../api/transfer-status.ts';
import {
  AnyBatch,
  archive,
  batch,
  checkActionCount,
  create,
  deleteRange,
  move,
  patch,
  put,
  readCreated,
  readSentAction,
  remove,
  type Started,
  StartedSchema,
  toRequestId,
} from '../../api/writes.ts';
import { notJson } from '../../base/check-json.ts';
import { RowkeyError } from '../../base/errors.ts';
import { jsonText } from '../../base/json-text.ts';
import { findNotJson, MAX_BODY_DEPTH } from '../../base/json-value.ts';
import type { Stored, Values } from '../../base/values.ts';
import { parse, validateTexts } from '../../define/codec/validation.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import type { BatchAction, BatchDone, BatchOutcome } from '../../engine/write/entity-batch.ts';
import {
  bind,
  publishedEntity,
  readConditions,
  readKey,
  readRequestId,
  toEntityHeaders,
  toEntityPath,
  toEntityTemplate,
  toStoredEtag,
  toViewEtag,
} from '../bind.ts';
import { Problem, type ProblemLog, reportProblem } from '../problem.ts';
import { readBoolean, readContinuation, toNextLink } from '../query.ts';
import { maxBodyBytesOf } from '../request-body.ts';
import { pathTo, type RequestContext, type Route, type RouteResult, toPathTemplate } from '../route.ts';
import { describeFailed, FailedRows, sayOnce, TIME_BUDGET_MS } from './failed-rows.ts';

/** The delete of an entity, and its status if children may make it long. */
export function deleteRoutes(entity: Entity): Route[] {
  const isLong = entity.children.length > 0;
  const removal = bind(remove(entity), {
    method: 'DELETE',
    path: toEntityTemplate(entity),
    conditional: true,
    success: { status: 204, description: 'Deleted' },
    ...(isLong
      ? {
          others: {
            202: {
              description: 'Accepted, as there are many children; the Location header leads to the status',
              body: StartedSchema,
            },
          },
        }
      : {}),
    read: (context) => ({ key: readKey(entity, context), conditions: readConditions(context) }),
    present: (started, context, { key }) =>
      started ? presentStarted(entity, context, { key, started }) : { status: 204 },
  });
  return isLong ? [removal, statusRoute(entity, 'delete')] : [removal];
}

export function entityWriteRoutes(entity: Entity): Route[] {
  const { name } = entity;
  const maxBodyBytes = maxBodyBytesOf(entity);
  const change = { path: toEntityTemplate(entity), conditional: true, maxBodyBytes } as const;
  const readChange = async (context: RequestContext) => {
    const values = await context.json();
    return { values, key: readKey(entity, context), conditions: readConditions(context) };
  };
  const published = () => publishedEntity(entity);
  const stored = { status: 200, description: 'The stored entity', published, headers: ['ETag'] } as const;
  return [
    ...deleteRoutes(entity),
    ...deleteRangeRoutes(entity),
    bind(create(entity), {
      method: 'POST',
      path: name,
      maxBodyBytes,
      success: { status: 201, description: 'Created', published, headers: ['ETag', 'Location'] },
      read: async (context) => ({
        id: await readRequestId(context),
        values: readCreated(entity, await context.json()),
      }),
      present: (output, context) => presentStored(entity, context, output, true),
    }),
    bind(put(entity), {
      ...change,
      method: 'PUT',
      success: { ...stored, created: 'Created' },
      read: readChange,
      present: (output, context) => presentStored(entity, context, output, output.isCreated),
    }),
    bind(patch(entity), {
      ...change,
      method: 'PATCH',
      minimizable: true,
      success: stored,
      read: async (context) => ({ ...(await readChange(context)), isMinimal: prefersMinimal(context) }),
      present(output, context) {
        if (output.values) return presentStored(entity, context, { ...output, values: output.values });
        const headers = toEntityHeaders(entity, context.caller, output);
        return { status: 204, headers: { ...headers, 'preference-applied': MINIMAL } };
      },
    }),
    bind(batch(entity), {
      method: 'POST',
      path: `${name}/batch`,
      maxBodyBytes,
      success: { status: 200, description: 'A status for each action, in the same order', body: () => BatchResult },
      async read(context) {
        const body = await context.unchecked();
        checkActionCount(body);
        const found = findNotJson(body, MAX_BODY_DEPTH);
        // An entity that is not valid does not fail the others: the engine checks each.
        if (found && !(found.path[0] === 'actions' && found.path.length > IN_ENTITY)) throw notJson(found);
        const { actions, atomic = false } = parse(AnyBatch, body);
        return {
          actions: actions.map((action) => readSentAction(entity, withStoredEtag(action))),
          atomic,
          ids: await readActionIds(context, actions),
        };
      },
      present: (outcomes, context) => presentOutcomes(entity, outcomes, context),
    }),
    ...transferRoutes(entity),
  ];
}

/**
 * The ids of the actions of a batch that may be repeated: each is derived from the action, so that it is recognized in another batch with the
 * same key, such as one of the actions that failed. Of equal actions, each has its own.
 */
async function readActionIds(context: RequestContext, actions: readonly BatchAction[]): Promise<string[] | undefined> {
  const id = await readRequestId(context, '');
  if (id === undefined) return undefined;
  const counts = new Map<string, number>();
  return actions.map((action) => {
    const text = jsonText(action);
    const before = counts.get(text) ?? 0;
    counts.set(text, before + 1);
    return toRequestId([id, text, String(before)]);
  });
}

/** The length of the path to an entity in a batch, such as `actions.0.put`. */
const IN_ENTITY = 3;

const MINIMAL = 'return=minimal';

/** https://www.rfc-editor.org/rfc/rfc7240#section-4.2 */
function prefersMinimal({ headers }: RequestContext): boolean {
  const preferences = headers.get('prefer')?.toLowerCase().split(/[,;]/) ?? [];
  return preferences.some((preference) => preference.replace(/[\s"]/g, '') === MINIMAL);
}

function presentStored(entity: Entity, context: RequestContext, stored: Stored, isCreated = false): RouteResult {
  const headers = toEntityHeaders(entity, context.caller, stored);
  if (!isCreated) return { status: 200, headers, body: stored.values };
  const location = toEntityPath(context, entity, stored.values);
  return { status: 201, headers: { ...headers, location }, body: stored.values };
}

const ActionResult = z
  .object({
    status: z.int(),
    etag: z.string().optional(),
    operationId: z.string().optional().describe('Of a 202: the delete of an entity with many children'),
    problem: Problem.optional(),
  })
  .meta({ title: 'action-result' });
export const BatchResult = z.object({ results: z.array(ActionResult) }).meta({ title: 'batch-result' });

export function presentOutcomes(
  entity: Entity,
  outcomes: readonly BatchOutcome[],
  context: RequestContext,
): RouteResult {
  const once = { ...context, log: sayOnce(context.log) };
  return { status: 200, body: { results: outcomes.map((outcome) => toResult(entity, once, outcome)) } };
}

/** An ETag of any view stands for the stored state that it was created from. */
export function withStoredEtag(action: BatchAction): BatchAction {
  return 'ifMatch' in action && action.ifMatch !== undefined
    ? { ...action, ifMatch: toStoredEtag(action.ifMatch) }
    : action;
}

const STATUS_OF: Readonly<Record<BatchDone['outcome'], number>> = {
  created: 201,
  stored: 200,
  unchanged: 304,
  deleted: 204,
  accepted: 202,
};

export function toResult(
  entity: Entity,
  { caller, root, log }: Pick<RequestContext, 'caller' | 'root'> & { readonly log: ProblemLog },
  result: BatchOutcome,
) {
  if (result instanceof RowkeyError) {
    const problem = reportProblem(result, root, log);
    return { status: problem.status, problem };
  }
  const { outcome, etag, operationId } = result;
  if (operationId !== undefined) return { status: STATUS_OF[outcome], operationId };
  // Only a caller who may read an entity may learn that it equals the sent one.
  if (!canRead(entity, caller)) return { status: outcome === 'unchanged' ? STATUS_OF.stored : STATUS_OF[outcome] };
  return { status: STATUS_OF[outcome], ...(etag ? { etag: toViewEtag(etag, hiddenFields(entity, caller)) } : {}) };
}

const DeletedRange = FailedRows.extend({
  deleted: z.int(),
  /** Rows that clients wrote and that are not valid entities: they are still there. */
  skipped: z.int(),
}).meta({ title: 'deleted-range' });

/** None for an entity whose partition has only one row, which a single delete deletes. */
function deleteRangeRoutes(entity: Entity): Route[] {
  const { fields } = entity.partition;
  const path = toPathTemplate([entity.name], fields);
  if (path === toEntityTemplate(entity)) return [];
  return [
    bind(deleteRange(entity), {
      method: 'DELETE',
      path,
      query: {
        from: 'The first value of the first field of the row key; a prefix is enough',
        to: 'The last value of the first field of the row key; values that begin with it are included',
        all: z.boolean().describe('true deletes the whole partition, in place of from and to'),
        continuation: 'Where to continue; taken from the Link header of the previous response',
      },
      success: {
        status: 200,
        description:
          'The number of deleted entities; repeat with the Link header, if there is one, to delete the others',
        body: () => DeletedRange,
        headers: ['Link'],
      },
      async read(context) {
        const { engine, query, params, root } = context;
        const partition = validateTexts(entity, params, fields);
        const from = query.get('from') ?? undefined;
        const to = query.get('to') ?? undefined;
        const all = readBoolean(query, 'all');
        const path = pathTo(root, entity.name, ...fields.map((field) => partition[field]));
        const bound = JSON.stringify(['delete', path, from, to, all]);
        const after = await readContinuation(context, bound);
        return { partition, from, to, all, after, until: engine.now() + TIME_BUDGET_MS, link: { path, bound } };
      },
      async present({ deleted, failed, skipped, next }, context, { link }) {
        const body = {
          deleted,
          skipped,
          ...describeFailed(
            failed.map((error) => ({ entity, error })),
            context,
          ),
        };
        return { status: 200, body, headers: await toNextLink(context, next, link) };
      },
    }),
  ];
}

/** Archive and move respond before they are done. The Location header leads to the status of the operation. */
function transferRoutes(entity: Entity): Route[] {
  const request = (operation: 'archive' | 'move') =>
    ({
      method: 'POST',
      path: `${toEntityTemplate(entity)}/${operation}`,
      success: {
        status: 202,
        description: 'Accepted; the Location header leads to the status',
        headers: ['Location'],
      },
      present: (started: Started, context: RequestContext, { key }: { key: Values }) =>
        presentStarted(entity, context, { key, started }),
    }) as const;
  const read = async (context: RequestContext) => ({ key: readKey(entity, context), id: await readRequestId(context) });
  const archiveRoute = () => bind(archive(entity), { ...request('archive'), read });
  const moveRoute = () =>
    bind(move(entity), {
      ...request('move'),
      read: async (context) => ({ ...(await read(context)), to: await context.json() }),
    });
  return [
    ...(entity.archive ? [archiveRoute(), statusRoute(entity, 'archive')] : []),
    ...(entity.movable.length > 0 ? [moveRoute(), statusRoute(entity, 'move')] : []),
  ];
}

function presentStarted(
  entity: Entity,
  context: RequestContext,
  { key, started }: { readonly key: Values; readonly started: Started },
): RouteResult {
  const location = `${toEntityPath(context, entity, key)}/${started.operation}/${started.operationId}`;
  return { status: 202, headers: { location }, body: started };
}

function statusRoute(entity: Entity, operation: 'archive' | 'move' | 'delete'): Route {
  return bind(getTransfer(entity, operation), {
    method: 'GET',
    path: `${toEntityTemplate(entity)}/${operation}/{operationId}`,
    success: { status: 200, description: 'The status' },
    read: (context) => ({ key: readKey(entity, context), operationId: context.params.operationId ?? '' }),
  });
}
