import { createHash } from 'node:crypto';
import { z } from 'zod';
import { guardedEngine, hideAbsent, limitOf } from '../access/limit.ts';
import { checkMentions, hasWriteOnlyRoles, requireWriter } from '../access/rule.ts';
import { isVisitor } from '../access/token.ts';
import { hasCode, RowkeyError } from '../base/errors.ts';
import { onceFor } from '../base/once.ts';
import { mapValues, pick, type Stored, type Values } from '../base/values.ts';
import { narrow } from '../define/codec/limit.ts';
import { maskOf, readableSchema, replaceableSchema, sentSchema, writableSchema } from '../define/codec/validation.ts';
import type { Conditions } from '../define/declaration/conditions.ts';
import type { Entity } from '../define/declaration/entity.ts';
import type { Deed } from '../define/declaration/request-limit.ts';
import { rolesTo } from '../define/places/reach.ts';
import { moveSchema, requestArchive, requestMove } from '../engine/transfer/transfer.ts';
import { type BatchAction, type BatchOutcome, deleteRange as deleteRangeOf } from '../engine/write/entity-batch.ts';
import {
  batchOnce,
  createOnce,
  deleteEntity,
  mergeEntity,
  patchEntity,
  putEntity,
  replaceEntity,
  writeAtomically,
} from '../engine/write/entity-store.ts';
import { Operation as Transfer } from '../engine/write/operation.ts';
import { mergeSchema, omitNulls, sentWithNulls } from './merge-schema.ts';
import { openForWriter } from './open.ts';
import { type Operation, toSignIn, type View } from './operation.ts';

/** The writes of entities. Keys have been checked: only a binding knows their form. The engine validates values. */

/** An id of a request in the engine's form, derived from its parts, so that a repeated request has the same id. */
export function toRequestId(parts: readonly (string | Uint8Array)[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part).update('\0');
  const [, ...groups] = /^(.{8})(.{4})(.{4})(.{4})(.{12})/.exec(hash.digest('hex')) ?? [];
  return groups.join('-');
}

/** An id for each action of a request, by its position. Undefined if the request is not repeated. */
export function toActionIds(id: string | undefined, actions: readonly unknown[]): string[] | undefined {
  return id === undefined ? undefined : actions.map((_, position) => toRequestId([id, String(position)]));
}

const createdBody = onceFor((entity: Entity) =>
  sentWithNulls(sentSchema(entity)).meta({ title: `${entity.name}-create-body` }),
);

const sentSchemaOf = onceFor((entity: Entity) => sentSchema(entity));

/**
 * A new entity as a request has it, without the nulls of optional fields. What replaces an entity may have none: in a response, null stands
 * for a value that cannot be read, which a caller who sends the entity back would delete.
 */
export function readCreated(entity: Entity, body: unknown): unknown {
  return omitNulls(sentSchemaOf(entity), body);
}

/** An action as a request has it, without the nulls of optional fields of a new entity. */
export function readSentAction(entity: Entity, action: BatchAction): BatchAction {
  return 'create' in action ? { ...action, create: readCreated(entity, action.create) } : action;
}

function writerSchema(entity: Entity): z.ZodType {
  const whole = readableSchema(entity);
  return hasWriteOnlyRoles(entity) ? z.union([whole, entity.schema.pick(maskOf(entity.keyFields))]) : whole;
}

interface CreateInput {
  readonly values: unknown;
  /** Identifies a request that may be repeated. */
  readonly id?: string | undefined;
}

/** Creates an entity. Throws as `createOnce` does. */
export const create = onceFor(
  (entity: Entity): Operation<CreateInput, Stored> => ({
    name: `${entity.name}-create`,
    summary: `Create an entity of ${entity.name}`,
    kind: 'write',
    entity,
    deeds: ['create'],
    roles: rolesTo(entity, 'create'),
    input: () => createdBody(entity),
    output: () => writerSchema(entity),
    repeatable: true,
    admit: (caller, { values }) => checkMentions(entity, caller, values),
    run: async (view, { values, id }) =>
      openForWriter(view, entity, await createOnce(await guardedEngine(view, entity), entity, values, id)),
  }),
);

interface ChangeInput {
  readonly key: Values;
  /** The values of a whole entity, or the fields to change. */
  readonly values: unknown;
  readonly conditions: Conditions;
}

function replaceBy<Output extends Stored>(
  change: (...args: Parameters<typeof replaceEntity>) => Promise<Output>,
): (entity: Entity) => Operation<ChangeInput, Output> {
  return onceFor((entity) => ({
    name: `${entity.name}-replace`,
    summary: `Replace an entity of ${entity.name}, or create it under this key`,
    kind: 'write',
    entity,
    deeds: ({ conditions }) => [deedOfPut(conditions)],
    roles: [...new Set([...rolesTo(entity, 'update'), ...rolesTo(entity, 'create')])],
    input: () => replaceableSchema(entity).meta({ title: `${entity.name}-replace-body` }),
    output: () => writerSchema(entity),
    admit: (caller, { values }) => checkMentions(entity, caller, values),
    run: async (view, { key, values, conditions }) =>
      openForWriter(view, entity, await change(await guardedEngine(view, entity), entity, key, values, conditions)),
  }));
}

/** A PUT may do either, unless its conditions exclude one. */
function deedOfPut({ ifMatch, ifNoneMatch }: Conditions): Deed {
  if (ifMatch !== undefined) return 'update';
  return ifNoneMatch?.trim() === '*' ? 'create' : ['create', 'update'];
}

/** Replaces a whole entity, or creates it under this key. */
export const put = replaceBy(putEntity);
/** Replaces a whole entity. Throws `not-found`. */
export const replace = replaceBy(replaceEntity);

interface PatchInput extends ChangeInput {
  /** True to get the ETag alone, so that the fields may be merged without a read. */
  readonly isMinimal: boolean;
}

/** Changes some fields and returns the entity. */
export const patch = onceFor(
  (entity: Entity): Operation<PatchInput, Pick<Stored, 'etag'> & Partial<Stored>> => ({
    name: `${entity.name}-patch`,
    summary: `Change fields of an entity of ${entity.name}; null removes a field`,
    kind: 'write',
    entity,
    roles: rolesTo(entity, 'update'),
    input: () => patchSchema(entity),
    output: () => writerSchema(entity),
    admit: (caller, { values }) => checkMentions(entity, caller, values),
    async run(view, { key, values, conditions, isMinimal }) {
      const engine = await guardedEngine(view, entity);
      if (isMinimal) return { etag: (await mergeEntity(engine, entity, key, values, conditions)).etag };
      return openForWriter(view, entity, await patchEntity(engine, entity, key, values, conditions));
    },
  }),
);

/** A merge patch (RFC 7396): null removes a field, unless the field is required. */
function patchSchema(entity: Entity): z.ZodObject {
  const { shape } = writableSchema(entity, [...entity.encrypted, ...Object.keys(entity.access.set ?? {})]);
  const kinds = entity.union instanceof z.ZodDiscriminatedUnion ? entity.union.options : [entity.schema];
  const fields = Object.entries(shape as z.core.$ZodLooseShape).map(([field, type]) => {
    const hasDefault = Object.hasOwn(entity.defaults, field);
    const isRemovable = (type.isOptional() || hasDefault) && !entity.keyFields.includes(field);
    const merged = mergeSchema(type);
    const value = isRemovable ? merged.nullable() : merged;
    const isOfAll = kinds.every((kind) => kind instanceof z.ZodObject && field in kind.shape);
    // The example of a patch has no field of one kind alone.
    return [field, isOfAll ? value : value.meta({ examples: [] })];
  });
  return z
    .strictObject(Object.fromEntries(fields))
    .partial()
    .meta({ title: `${entity.name}-patch-body` });
}

/**
 * Throws `forbidden` unless the caller may delete, archive or move the entity with its children, which go along: a rule on their rows
 * must hold for all that have the `given` values of the key.
 */
async function requireRemover(view: View, entity: Entity, given: Values): Promise<void> {
  const { caller } = view;
  if (!caller) return;
  // A body has not been validated yet: the children are those of the key as it is stored.
  const key = mapValues(pick(given, entity.keyFields), (value, field) => {
    return (entity.schema.shape[field] as z.ZodType | undefined)?.safeParse(value).data;
  });
  for (const child of entity.children) {
    requireWriter(entity, child, caller);
    if (narrow(await limitOf(view, child, 'delete'), key))
      throw new RowkeyError(
        'forbidden',
        `A delete, archive or move of ${entity.name} includes its ${child.name}, of which the rules let the caller delete some only.`,
      );
  }
}

export type RemoveInput = Omit<ChangeInput, 'values'>;

/**
 * Deletes an entity with its children, which the caller must be able to write too. With more children than a transaction has rows, the delete
 * ends later, and an operation is returned.
 */
export const remove = onceFor(
  (entity: Entity): Operation<RemoveInput, Started | undefined> => ({
    name: `${entity.name}-delete`,
    summary: `Delete an entity of ${entity.name}`,
    kind: 'write',
    entity,
    deeds: ['delete'],
    roles: rolesTo(entity, 'delete'),
    admit: (_, { key }, view) => requireRemover(view, entity, key),
    async run(view, { key, conditions }) {
      const operationId = await deleteEntity(await guardedEngine(view, entity), entity, key, conditions);
      return operationId === undefined ? undefined : { operationId, operation: 'delete', status: 'running' };
    },
  }),
);

interface BatchInput {
  readonly actions: readonly BatchAction[];
  /** All actions in one transaction, or none. */
  readonly atomic: boolean;
  /** Identify the actions of a request that may be repeated. */
  readonly ids?: readonly string[] | undefined;
}

function deedOf(action: BatchAction): Deed {
  if ('put' in action) return deedOfPut(action);
  return 'create' in action ? 'create' : 'patch' in action ? 'update' : 'delete';
}

/** The number of actions of an entity group transaction. */
export const MAX_BATCH = 100;
/** Longer than the ETag of any view. */
const MAX_CONDITION_LENGTH = 1_000;
const ACTION_FORM = 'one of create, put, patch and delete is required; ifMatch may be beside put, patch and delete';

/** Runs many actions on entities, and returns the outcome of each. */
export const batch = onceFor(
  (entity: Entity): Operation<BatchInput, readonly BatchOutcome[]> => ({
    name: `${entity.name}-batch`,
    summary: `Create, put, patch or delete up to ${MAX_BATCH} entities of ${entity.name}`,
    kind: 'write',
    entity,
    deeds: ({ actions }) => actions.map(deedOf),
    roles: entity.access.write,
    input: () => batchSchema(actionSchema(entity)),
    repeatable: true,
    async admit(caller, { actions }, view) {
      for (const action of actions) {
        if ('delete' in action) await requireRemover(view, entity, Object(action.delete));
        for (const fields of Object.values(action)) checkMentions(entity, caller, fields);
      }
    },
    async run(view, { actions, atomic, ids }) {
      const engine = await guardedEngine(view, entity);
      const outcomes = await (atomic ? writeAtomically : batchOnce)(engine, entity, actions, ids);
      if (!view.caller || !isVisitor(view.caller)) return outcomes;
      return outcomes.map((outcome) => (hasCode(outcome, 'forbidden') ? toSignIn(outcome) : outcome));
    },
  }),
);

const ifMatch = z.string().max(MAX_CONDITION_LENGTH).optional();

/**
 * Throws `too-large` for a list with more actions than a transaction has, before they are read. Another input is left to its schema.
 */
export function checkActionCount(given: unknown): void {
  const actions: unknown = Object(given).actions;
  if (!Array.isArray(actions) || actions.length <= MAX_BATCH) return;
  throw new RowkeyError('too-large', `The request has ${actions.length} actions.`, {
    field: 'actions',
    accepted: `at most ${MAX_BATCH} actions`,
  });
}

export function batchSchema<Action extends z.ZodType>(action: Action) {
  return z.strictObject({
    actions: z.array(action).min(1).max(MAX_BATCH),
    /** All actions in one transaction, or none. */
    atomic: z.boolean().optional(),
  });
}

/** The engine validates each entity, so that an invalid one does not fail the others. */
export const AnyAction = z.union(
  [
    z.strictObject({ create: z.unknown() }),
    z.strictObject({ put: z.unknown(), ifMatch }),
    z.strictObject({ patch: z.unknown(), ifMatch }),
    z.strictObject({ delete: z.unknown(), ifMatch }),
  ],
  { error: ACTION_FORM },
);

export const AnyBatch = batchSchema(AnyAction);

/** Describes the key in an action. Other fields beside it are ignored. */
export const keySchema = onceFor((entity: Entity) =>
  z.object(entity.schema.pick(maskOf(entity.keyFields)).required().shape).meta({ title: `${entity.name}-key` }),
);

/** Describes an action on an entity. */
function actionSchema(entity: Entity): z.ZodType {
  const key = keySchema(entity);
  const changes = patchSchema(entity);
  // A patch names the entity by its whole key, although a PATCH accepts no derived field.
  const fields = { ...changes.shape, ...entity.schema.pick(maskOf(entity.keyFields)).required().shape };
  // The example of a batch is the first of them, which is short.
  const actions = [
    z.strictObject({ delete: key, ifMatch }),
    z.strictObject({ create: createdBody(entity) }),
    z.strictObject({ put: sentSchema(entity), ifMatch }),
    z.strictObject({ patch: z.strictObject(fields).meta({ title: `${entity.name}-patch` }), ifMatch }),
  ];
  return z.xor(actions).meta({ title: `${entity.name}-action` });
}

type DeleteRange = typeof deleteRangeOf;
export type DeleteRangeInput = Parameters<DeleteRange>[3] & { readonly partition: Values };

/** Deletes the next entities of a range of a partition. */
export const deleteRange = onceFor(
  (entity: Entity): Operation<DeleteRangeInput, Awaited<ReturnType<DeleteRange>>> => ({
    name: `${entity.name}-delete-range`,
    summary: `Delete ${entity.name} of one ${entity.partition.fields.join(', ')}`,
    kind: 'write',
    entity,
    deeds: ['delete'],
    roles: rolesTo(entity, 'delete'),
    admit: (_, { partition }, view) => requireRemover(view, entity, partition),
    run: async (view, { partition, ...range }) =>
      deleteRangeOf(await guardedEngine(view, entity), entity, partition, range),
  }),
);

interface TransferInput {
  readonly key: Values;
  readonly id?: string | undefined;
}

/** What a caller learns of an operation. */
export const Status = Transfer.omit({ entity: true, rules: true, by: true }).meta({ title: 'operation-status' });
export type Status = z.infer<typeof Status>;
/** The operations that end after their response. */
export type Kind = 'archive' | 'move' | 'delete';
export type Started = Pick<Status, 'operationId' | 'operation' | 'status'>;
export const StartedSchema = () =>
  Status.pick({ operationId: true, operation: true, status: true }).meta({ title: 'started-operation' });

/** Requests an archive or a move of an entity, which ends later. */
function transfer<Input extends TransferInput>(
  entity: Entity,
  operation: Kind,
  request: (view: View, input: Input) => Promise<string>,
): Operation<Input, Started> {
  return {
    name: `${entity.name}-${operation}`,
    summary:
      operation === 'archive'
        ? `Archive an entity of ${entity.name}`
        : `Move an entity of ${entity.name} to another ${entity.movable.join(', ')}`,
    kind: 'write',
    entity,
    deeds: [operation === 'move' ? 'update' : 'delete'],
    roles: rolesTo(entity, operation === 'move' ? 'update' : 'delete'),
    ...(operation === 'move' ? { input: () => moveSchema(entity) } : {}),
    output: StartedSchema,
    repeatable: true,
    admit: (_, { key }, view) => requireRemover(view, entity, key),
    async run(view, input) {
      // A move creates the children at the destination.
      const carried = operation === 'move' ? entity.children : [];
      const engine = await guardedEngine(view, entity, ...carried);
      const limited = engine.guard?.isLimited(entity.name) || undefined;
      const operationId = await hideAbsent(limited, () => request({ ...view, engine }, input));
      return { operationId, operation, status: 'running' };
    },
  };
}

/** Requests the move of an entity to its archive. */
export const archive = onceFor((entity: Entity) =>
  transfer<TransferInput>(entity, 'archive', ({ engine }, { key, id }) => requestArchive(engine, entity, key, id)),
);

/** Requests the move of an entity to another partition. */
export const move = onceFor((entity: Entity) =>
  transfer<TransferInput & { readonly to: unknown }>(entity, 'move', ({ engine }, { key, to, id }) =>
    requestMove(engine, entity, key, to, id),
  ),
);
