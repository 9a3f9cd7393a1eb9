import { z } from 'zod';
import { canRead, checkMentions, hasWriteOnlyRoles } from '../../access/rule.ts';
import type { Entity } from '../../define/entity.ts';
import { creatableSchema, maskOf, parse, schemaWithGaps, writableSchema } from '../../define/validate/validation.ts';
import type { Stored } from '../../define/values.ts';
import { createOnce } from '../../engine/write/create-once.ts';
import { type BatchOutcome, putEntities } from '../../engine/write/entity-batch.ts';
import { deleteEntity, patchEntity, putEntity } from '../../engine/write/entity-store.ts';
import { readKey, toEntityPath, toEntityTemplate } from '../entity-key.ts';
import { readRequestId } from '../idempotency.ts';
import { presentToWriter } from '../present.ts';
import { Problem, toProblem } from '../problem.ts';
import type { RequestContext, Route, RouteResult } from '../route.ts';
import { readConditions, toEntityHeaders } from '../view-etag.ts';

/** The number of actions of an entity group transaction. */
const MAX_BATCH = 100;
/** For an entity with a large text: a character may take six bytes in JSON. */
const MAX_LARGE_BODY_BYTES = 33_554_432;

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
      await deleteEntity(context.app.engine, entity, readKey(entity, context), readConditions(context));
      return { status: 204 };
    },
  };
}

export function entityWriteRoutes(entity: Entity): Route[] {
  const { name, access } = entity;
  const change = { path: toEntityTemplate(entity), roles: access.write, conditional: true } as const;
  const body = creatableSchema(entity);
  const maxBodyBytes = entity.large.length > 0 ? MAX_LARGE_BODY_BYTES : undefined;
  return [
    {
      name: `${name}-create`,
      method: 'POST',
      repeatable: true,
      path: name,
      roles: access.write,
      summary: `Create an entity of ${name}`,
      requestBody: body,
      maxBodyBytes,
      success: {
        status: 201,
        description: 'Created',
        body: writerSchema(entity),
        headers: ['ETag', 'Location'],
      },
      handle: async (context) => {
        const id = await readRequestId(context, `${name}-create`);
        const stored = await createOnce(context.app.engine, entity, await readBody(entity, context), id);
        return presentStored(entity, context, { ...stored, isCreated: true });
      },
    },
    {
      name: `${name}-batch`,
      method: 'POST',
      path: `${name}/batch`,
      roles: access.write,
      summary: `Create or replace up to ${MAX_BATCH} entities of ${name}`,
      requestBody: batchSchema(body),
      maxBodyBytes,
      success: { status: 200, description: 'A status for each item, in the same order', body: BatchResult },
      handle: (context) => writeBatch(entity, context),
    },
    {
      ...change,
      name: `${name}-replace`,
      method: 'PUT',
      summary: `Replace an entity of ${name}, or create it under this key`,
      requestBody: body,
      maxBodyBytes,
      success: {
        status: 200,
        description: 'Replaced',
        body: writerSchema(entity),
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
      summary: `Change fields of an entity of ${name}; null removes a field`,
      maxBodyBytes,
      requestBody: writableSchema(entity, entity.encrypted).partial(),
      success: { status: 200, description: 'Changed', body: writerSchema(entity), headers: ['ETag'] },
      handle: async (context) => {
        const patch = await readBody(entity, context);
        const { engine } = context.app;
        const stored = await patchEntity(engine, entity, readKey(entity, context), patch, readConditions(context));
        return presentStored(entity, context, stored);
      },
    },
  ];
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
  const whole = schemaWithGaps(entity);
  return hasWriteOnlyRoles(entity) ? z.union([whole, entity.schema.pick(maskOf(entity.keyFields))]) : whole;
}

function batchSchema(item: z.ZodType) {
  return z.strictObject({ items: z.array(item).min(1).max(MAX_BATCH) });
}

const BatchResult = z.object({
  results: z.array(z.object({ status: z.int(), problem: Problem.optional() })),
});

async function writeBatch(entity: Entity, context: RequestContext): Promise<RouteResult> {
  const { items } = parse(batchSchema(z.unknown()), await context.json());
  for (const item of items) checkMentions(entity, context.caller, item);
  const outcomes = await putEntities(context.app.engine, entity, items);
  const isReader = canRead(entity, context.caller);
  // Only a caller who may read an entity may learn that it equals the sent one.
  const visible = outcomes.map((outcome) => (outcome === 'unchanged' && !isReader ? 'replaced' : outcome));
  return { status: 200, body: { results: visible.map((outcome) => toResult(context, outcome)) } };
}

const STATUS_OF = { created: 201, replaced: 200, unchanged: 304 } as const;

function toResult({ root }: RequestContext, outcome: BatchOutcome) {
  if (typeof outcome === 'string') return { status: STATUS_OF[outcome] };
  const problem = toProblem(outcome, root);
  return { status: problem.status, problem };
}
