import { z } from 'zod';
import { canRead, hasWriteOnlyRoles, hiddenFields } from '../../access/rule.ts';
import { openWithGaps } from '../../api/open.ts';
import { batch, type ChangeInput, create, deleteRange, merge, patch, put, remove } from '../../api/writes.ts';
import { RowkeyError } from '../../base/errors.ts';
import { pick, type Stored, type Values } from '../../base/values.ts';
import {
  creatableSchema,
  maskOf,
  parse,
  readableSchema,
  replaceableSchema,
  validateTexts,
  writableSchema,
} from '../../define/codec/validation.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import type { BatchAction, BatchDone, BatchOutcome } from '../../engine/write/entity-batch.ts';
import { bind, readKey, toEntityPath, toEntityTemplate } from '../bind.ts';
import { readRequestId } from '../idempotency.ts';
import { Problem, toProblem } from '../problem.ts';
import { readBoolean, readContinuation, toNextLink } from '../query.ts';
import { maxBodyBytesOf } from '../request-body.ts';
import { pathTo, type RequestContext, type Route, type RouteResult, toPathTemplate } from '../route.ts';
import { readConditions, toEntityHeaders, toStoredEtag, toViewEtag } from '../view-etag.ts';

/** The number of actions of an entity group transaction. */
const MAX_BATCH = 100;
/** Longer than the ETag of any view. */
const MAX_CONDITION_LENGTH = 1_000;
const ACTION_FORM = 'one of create, put, patch and delete is required; ifMatch may be beside put, patch and delete';

export function deleteRoute(entity: Entity): Route {
  return bind(remove(entity), {
    name: `${entity.name}-delete`,
    method: 'DELETE',
    path: toEntityTemplate(entity),
    conditional: true,
    summary: `Delete an entity of ${entity.name}`,
    success: { status: 204, description: 'Deleted' },
    read: (context) => ({ key: readKey(entity, context), conditions: readConditions(context) }),
  });
}

export function entityWriteRoutes(entity: Entity): Route[] {
  const { name } = entity;
  const maxBodyBytes = maxBodyBytesOf(entity);
  const change = {
    path: toEntityTemplate(entity),
    conditional: true,
    maxBodyBytes,
    read: async (context: RequestContext): Promise<ChangeInput> => {
      const values = await context.json();
      return { values, key: readKey(entity, context), conditions: readConditions(context) };
    },
  } as const;
  const stored = {
    status: 200,
    description: 'The stored entity',
    body: () => writerSchema(entity),
    headers: ['ETag'],
  } as const;
  const patchRoute = bind(patch(entity), {
    ...change,
    name: `${name}-patch`,
    method: 'PATCH',
    minimizable: true,
    summary: `Change fields of an entity of ${name}; null removes a field`,
    requestBody: () => patchSchema(entity),
    success: stored,
    present: (output, context) => presentStored(entity, context, output),
  });
  const minimalPatchRoute = bind(merge(entity), {
    ...patchRoute,
    read: change.read,
    present: (merged, { caller }) => ({
      status: 204,
      headers: { ...toEntityHeaders(entity, caller, merged), 'preference-applied': MINIMAL },
    }),
  });
  return [
    deleteRoute(entity),
    ...deleteRangeRoutes(entity),
    bind(create(entity), {
      name: `${name}-create`,
      method: 'POST',
      repeatable: true,
      path: name,
      summary: `Create an entity of ${name}`,
      requestBody: () => creatableSchema(entity),
      maxBodyBytes,
      success: {
        status: 201,
        description: 'Created',
        body: () => writerSchema(entity),
        headers: ['ETag', 'Location'],
      },
      read: async (context) => ({
        id: await readRequestId(context, `${name}-create`),
        values: await context.json(),
      }),
      present: (output, context) => presentStored(entity, context, { ...output, isCreated: true }),
    }),
    bind(put(entity), {
      ...change,
      name: `${name}-replace`,
      method: 'PUT',
      summary: `Replace an entity of ${name}, or create it under this key`,
      requestBody: () => replaceableSchema(entity),
      success: { ...stored, created: 'Created' },
      present: (output, context) => presentStored(entity, context, output),
    }),
    {
      ...patchRoute,
      handle: (context) => (prefersMinimal(context) ? minimalPatchRoute : patchRoute).handle(context),
    },
    bind(batch(entity), {
      name: `${name}-batch`,
      method: 'POST',
      path: `${name}/batch`,
      summary: `Create, put, patch or delete up to ${MAX_BATCH} entities of ${name}`,
      requestBody: () => describedBatch(entity),
      maxBodyBytes,
      success: { status: 200, description: 'A status for each action, in the same order', body: () => BatchResult },
      async read(context) {
        const { actions, atomic = false } = parse(ANY_BATCH, await context.json());
        return { actions: actions.map(withStoredEtag), atomic };
      },
      present: (outcomes, context) => ({
        status: 200,
        body: { results: outcomes.map((outcome) => toResult(entity, context, outcome)) },
      }),
    }),
  ];
}

const MINIMAL = 'return=minimal';

/** https://www.rfc-editor.org/rfc/rfc7240#section-4.2 */
function prefersMinimal({ header }: RequestContext): boolean {
  const preferences = header('prefer')?.toLowerCase().split(/[,;]/) ?? [];
  return preferences.some((preference) => preference.replace(/[\s"]/g, '') === MINIMAL);
}

async function presentStored(
  entity: Entity,
  context: RequestContext,
  { isCreated = false, ...stored }: Stored & { readonly isCreated?: boolean },
): Promise<RouteResult> {
  const headers = toEntityHeaders(entity, context.caller, stored);
  const body = await presentToWriter(context, entity, stored.values);
  if (!isCreated) return { status: 200, headers, body };
  return { status: 201, headers: { ...headers, location: toEntityPath(context, entity, stored.values) }, body };
}

/** The response to a write: the entity, or only its key for a caller who may not read the entity. */
export async function presentToWriter(context: RequestContext, entity: Entity, values: Values): Promise<Values> {
  if (!canRead(entity, context.caller)) return pick(values, entity.keyFields);
  return openWithGaps(context, entity, values);
}

/** A caller who may not read the entity gets only its key. */
function writerSchema(entity: Entity): z.ZodType {
  const whole = readableSchema(entity);
  return hasWriteOnlyRoles(entity) ? z.union([whole, entity.schema.pick(maskOf(entity.keyFields))]) : whole;
}

/** A merge patch (RFC 7396): null removes a field, unless the field is required. */
function patchSchema(entity: Entity): z.ZodObject {
  const { shape } = writableSchema(entity, entity.encrypted);
  const kinds = entity.union instanceof z.ZodDiscriminatedUnion ? entity.union.options : [entity.schema];
  const fields = Object.entries(shape as z.core.$ZodLooseShape).map(([field, type]) => {
    const isRemovable = type.isOptional() && !entity.keyFields.includes(field);
    const value = isRemovable ? type.nullable() : type;
    const isOfAll = kinds.every((kind) => kind instanceof z.ZodObject && field in kind.shape);
    // The example of a patch has no field of one kind alone.
    return [field, isOfAll ? value : value.meta({ examples: [] })];
  });
  return z.strictObject(Object.fromEntries(fields)).partial();
}

const ifMatch = z.string().max(MAX_CONDITION_LENGTH).optional();

function batchSchema<Action extends z.ZodType>(action: Action) {
  return z.strictObject({
    actions: z.array(action).min(1).max(MAX_BATCH),
    /** All actions in one transaction, or none. */
    atomic: z.boolean().optional(),
  });
}

/** The engine validates each entity, so that an invalid one does not fail the others. */
const ANY_BATCH = batchSchema(
  z.union(
    [
      z.strictObject({ create: z.unknown() }),
      z.strictObject({ put: z.unknown(), ifMatch }),
      z.strictObject({ patch: z.unknown(), ifMatch }),
      z.strictObject({ delete: z.unknown(), ifMatch }),
    ],
    { error: ACTION_FORM },
  ),
);

function describedBatch(entity: Entity) {
  const whole = creatableSchema(entity);
  // Other fields beside the key of a delete are ignored.
  const key = z
    .object(entity.schema.pick(maskOf(entity.keyFields)).required().shape)
    .meta({ title: `${entity.name}-key` });
  const changes = patchSchema(entity);
  // A patch names the entity by its whole key, although a PATCH accepts no derived field.
  const isDerived = (field: string) => !(field in changes.shape);
  const derived = entity.schema.pick(maskOf(entity.keyFields.filter(isDerived))).partial();
  // The example of a batch is the first of them, which is short.
  const actions = [
    z.strictObject({ delete: key, ifMatch }),
    z.strictObject({ create: whole }),
    z.strictObject({ put: whole, ifMatch }),
    z
      .strictObject({ patch: z.intersection(changes.extend(derived.shape), key), ifMatch })
      .meta({ title: `${entity.name}-patch-action` }),
  ];
  return batchSchema(z.xor(actions));
}

const BatchResult = z.object({
  results: z.array(z.object({ status: z.int(), etag: z.string().optional(), problem: Problem.optional() })),
});

/** An ETag of any view stands for the stored state that it was created from. */
function withStoredEtag(action: BatchAction): BatchAction {
  return 'ifMatch' in action && action.ifMatch !== undefined
    ? { ...action, ifMatch: toStoredEtag(action.ifMatch) }
    : action;
}

const STATUS_OF: Readonly<Record<BatchDone['outcome'], number>> = {
  created: 201,
  stored: 200,
  unchanged: 304,
  deleted: 204,
};

function toResult(entity: Entity, { caller, root }: RequestContext, result: BatchOutcome) {
  if (result instanceof RowkeyError) {
    const problem = toProblem(result, root);
    return { status: problem.status, problem };
  }
  const { outcome, etag } = result;
  // Only a caller who may read an entity may learn that it equals the sent one.
  if (!canRead(entity, caller)) return { status: outcome === 'unchanged' ? STATUS_OF.stored : STATUS_OF[outcome] };
  return { status: STATUS_OF[outcome], ...(etag ? { etag: toViewEtag(etag, hiddenFields(entity, caller)) } : {}) };
}

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
function deleteRangeRoutes(entity: Entity): Route[] {
  const { fields } = entity.partition;
  const path = `${entity.name}/${toPathTemplate(fields)}`;
  if (path === toEntityTemplate(entity)) return [];
  return [
    bind(deleteRange(entity), {
      name: `${entity.name}-delete-range`,
      method: 'DELETE',
      path,
      query: {
        from: 'The first value of the first field of the row key; a prefix is enough',
        to: 'The last value of the first field of the row key; values that begin with it are included',
        all: 'true deletes the whole partition, in place of from and to',
        continuation: 'Where to continue; taken from the Link header of the previous response',
      },
      summary: `Delete ${entity.name} of one ${fields.join(', ')}`,
      success: {
        status: 200,
        description:
          'The number of deleted entities; repeat with the Link header, if there is one, to delete the others',
        body: () => DeletedRange,
        headers: ['Link'],
      },
      async read(context) {
        const { app, query, params, root } = context;
        const partition = validateTexts(entity, params, fields);
        const from = query.get('from') ?? undefined;
        const to = query.get('to') ?? undefined;
        const all = readBoolean(query, 'all');
        const path = pathTo(root, entity.name, ...fields.map((field) => partition[field]));
        const bound = JSON.stringify(['delete', path, from, to, all]);
        const after = await readContinuation(context, bound);
        return { partition, from, to, all, after, until: app.engine.now() + TIME_BUDGET_MS, link: { path, bound } };
      },
      async present({ deleted, failed, skipped, next }, context, { link }) {
        const { caller, root } = context;
        // The detail names an entity.
        const report = (error: RowkeyError) =>
          toProblem(canRead(entity, caller) ? error : new RowkeyError(error.code, error.message), root);
        const problems = failed.slice(0, MAX_PROBLEMS).map(report);
        const body = { deleted, failed: failed.length, skipped, problems };
        return { status: 200, body, headers: await toNextLink(context, next, link) };
      },
    }),
  ];
}
