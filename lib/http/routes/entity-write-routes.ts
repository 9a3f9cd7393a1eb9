import { z } from 'zod';
import { canRead, checkMentions, hasWriteOnlyRoles, hiddenFields, requireRemover } from '../../access/rule.ts';
import { RowkeyError } from '../../base/errors.ts';
import type { Stored } from '../../base/values.ts';
import {
  creatableSchema,
  maskOf,
  parse,
  readableSchema,
  replaceableSchema,
  writableSchema,
} from '../../define/codec/validation.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import { createOnce } from '../../engine/write/create-once.ts';
import {
  type BatchAction,
  type BatchDone,
  type BatchOutcome,
  writeAtomically,
  writeBatch,
} from '../../engine/write/entity-batch.ts';
import { deleteEntity, mergeEntity, patchEntity, putEntity } from '../../engine/write/entity-store.ts';
import { readKey, toEntityPath, toEntityTemplate } from '../entity-key.ts';
import { readRequestId } from '../idempotency.ts';
import { presentToWriter } from '../present.ts';
import { Problem, toProblem } from '../problem.ts';
import { maxBodyBytesOf } from '../request-body.ts';
import type { RequestContext, Route, RouteResult } from '../route.ts';
import { readConditions, toEntityHeaders, toStoredEtag, toViewEtag } from '../view-etag.ts';

/** The number of actions of an entity group transaction. */
const MAX_BATCH = 100;
/** Longer than the ETag of any view. */
const MAX_CONDITION_LENGTH = 1_000;
const ACTION_FORM = 'one of create, put, patch and delete is required; ifMatch may be beside put, patch and delete';

export function deleteRoute(entity: Entity): Route {
  return {
    name: `${entity.name}-delete`,
    method: 'DELETE',
    path: toEntityTemplate(entity),
    roles: entity.access.write,
    conditional: true,
    summary: `Delete an entity of ${entity.name}`,
    success: { status: 204, description: 'Deleted' },
    handle: async (context) => {
      requireRemover(entity, context.caller);
      await deleteEntity(context.app.engine, entity, readKey(entity, context), readConditions(context));
      return { status: 204 };
    },
  };
}

export function entityWriteRoutes(entity: Entity): Route[] {
  const { name, access } = entity;
  const change = { path: toEntityTemplate(entity), roles: access.write, conditional: true } as const;
  const maxBodyBytes = maxBodyBytesOf(entity);
  return [
    {
      name: `${name}-create`,
      method: 'POST',
      repeatable: true,
      path: name,
      roles: access.write,
      summary: `Create an entity of ${name}`,
      requestBody: () => creatableSchema(entity),
      maxBodyBytes,
      success: {
        status: 201,
        description: 'Created',
        body: () => writerSchema(entity),
        headers: ['ETag', 'Location'],
      },
      handle: async (context) => {
        const id = await readRequestId(context, `${name}-create`);
        const stored = await createOnce(context.app.engine, entity, await readBody(entity, context), id);
        return presentStored(entity, context, { ...stored, isCreated: true });
      },
    },
    {
      ...change,
      name: `${name}-replace`,
      method: 'PUT',
      summary: `Replace an entity of ${name}, or create it under this key`,
      requestBody: () => replaceableSchema(entity),
      maxBodyBytes,
      success: {
        status: 200,
        description: 'The stored entity',
        body: () => writerSchema(entity),
        headers: ['ETag'],
        created: 'Created',
      },
      handle: async (context) => {
        const input = await readBody(entity, context);
        const { engine } = context.app;
        const stored = await putEntity(engine, entity, readKey(entity, context), input, readConditions(context));
        return presentStored(entity, context, stored);
      },
    },
    {
      ...change,
      name: `${name}-patch`,
      method: 'PATCH',
      minimizable: true,
      summary: `Change fields of an entity of ${name}; null removes a field`,
      maxBodyBytes,
      requestBody: () => patchSchema(entity),
      success: {
        status: 200,
        description: 'The stored entity',
        body: () => writerSchema(entity),
        headers: ['ETag'],
      },
      handle: async (context) => {
        const patch = await readBody(entity, context);
        const { engine } = context.app;
        if (prefersMinimal(context)) {
          const merged = await mergeEntity(engine, entity, readKey(entity, context), patch, readConditions(context));
          const headers = { ...toEntityHeaders(entity, context.caller, merged), 'preference-applied': MINIMAL };
          return { status: 204, headers };
        }
        const stored = await patchEntity(engine, entity, readKey(entity, context), patch, readConditions(context));
        return presentStored(entity, context, stored);
      },
    },
    {
      name: `${name}-batch`,
      method: 'POST',
      path: `${name}/batch`,
      roles: access.write,
      summary: `Create, put, patch or delete up to ${MAX_BATCH} entities of ${name}`,
      requestBody: () => describedBatch(entity),
      maxBodyBytes,
      success: { status: 200, description: 'A status for each action, in the same order', body: () => BatchResult },
      handle: (context) => batch(entity, context),
    },
  ];
}

const MINIMAL = 'return=minimal';

/** https://www.rfc-editor.org/rfc/rfc7240#section-4.2 */
function prefersMinimal({ header }: RequestContext): boolean {
  const preferences = header('prefer')?.toLowerCase().split(/[,;]/) ?? [];
  return preferences.some((preference) => preference.replace(/[\s"]/g, '') === MINIMAL);
}

/** Throws `forbidden` if the body has a field that the caller may not write. */
async function readBody(entity: Entity, context: RequestContext): Promise<unknown> {
  const input = await context.json();
  checkMentions(entity, context.caller, input);
  return input;
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
  const patch = patchSchema(entity);
  // A patch names the entity by its whole key, although a PATCH accepts no derived field.
  const isDerived = (field: string) => !(field in patch.shape);
  const derived = entity.schema.pick(maskOf(entity.keyFields.filter(isDerived))).partial();
  // The example of a batch is the first of them, which is short.
  const actions = [
    z.strictObject({ delete: key, ifMatch }),
    z.strictObject({ create: whole }),
    z.strictObject({ put: whole, ifMatch }),
    z
      .strictObject({ patch: z.intersection(patch.extend(derived.shape), key), ifMatch })
      .meta({ title: `${entity.name}-patch-action` }),
  ];
  return batchSchema(z.xor(actions));
}

const BatchResult = z.object({
  results: z.array(z.object({ status: z.int(), etag: z.string().optional(), problem: Problem.optional() })),
});

async function batch(entity: Entity, context: RequestContext): Promise<RouteResult> {
  const { actions, atomic } = parse(ANY_BATCH, await context.json());
  const given = actions.map(withStoredEtag);
  for (const action of given) {
    if ('delete' in action) requireRemover(entity, context.caller);
    for (const fields of Object.values(action)) checkMentions(entity, context.caller, fields);
  }
  const { engine } = context.app;
  const outcomes = await (atomic ? writeAtomically : writeBatch)(engine, entity, given);
  return { status: 200, body: { results: outcomes.map((outcome) => toResult(entity, context, outcome)) } };
}

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
