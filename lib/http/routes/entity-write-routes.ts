import { z } from 'zod';
import { canRead, hasWriteOnlyRoles, hiddenFields } from '../../access/rule.ts';
import { perform } from '../../api/operation.ts';
import { batch, type ChangeInput, create, merge, patch, put, remove } from '../../api/writes.ts';
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
import type { BatchAction, BatchDone, BatchOutcome } from '../../engine/write/entity-batch.ts';
import { readKey, toEntityPath, toEntityTemplate } from '../entity-key.ts';
import { readRequestId } from '../idempotency.ts';
import { presentToWriter, toView } from '../present.ts';
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
      await perform(remove(entity), toView(context), () => ({
        key: readKey(entity, context),
        conditions: readConditions(context),
      }));
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
        const stored = await perform(create(entity), toView(context), async () => ({
          id: await readRequestId(context, `${name}-create`),
          values: await context.json(),
        }));
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
        const stored = await perform(put(entity), toView(context), () => readChange(entity, context));
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
        const read = () => readChange(entity, context);
        if (prefersMinimal(context)) {
          const merged = await perform(merge(entity), toView(context), read);
          const headers = { ...toEntityHeaders(entity, context.caller, merged), 'preference-applied': MINIMAL };
          return { status: 204, headers };
        }
        return presentStored(entity, context, await perform(patch(entity), toView(context), read));
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
      handle: (context) => runBatch(entity, context),
    },
  ];
}

const MINIMAL = 'return=minimal';

/** https://www.rfc-editor.org/rfc/rfc7240#section-4.2 */
function prefersMinimal({ header }: RequestContext): boolean {
  const preferences = header('prefer')?.toLowerCase().split(/[,;]/) ?? [];
  return preferences.some((preference) => preference.replace(/[\s"]/g, '') === MINIMAL);
}

async function readChange(entity: Entity, context: RequestContext): Promise<ChangeInput> {
  const values = await context.json();
  return { values, key: readKey(entity, context), conditions: readConditions(context) };
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

async function runBatch(entity: Entity, context: RequestContext): Promise<RouteResult> {
  const outcomes = await perform(batch(entity), toView(context), async () => {
    const { actions, atomic = false } = parse(ANY_BATCH, await context.json());
    return { actions: actions.map(withStoredEtag), atomic };
  });
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
