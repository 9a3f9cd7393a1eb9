import { createHash } from 'node:crypto';
import { checkMentions, requireRemover } from '../access/rule.ts';
import { RowkeyError } from '../base/errors.ts';
import { onceFor } from '../base/once.ts';
import type { Stored, Values } from '../base/values.ts';
import type { Conditions } from '../define/declaration/conditions.ts';
import type { Entity } from '../define/declaration/entity.ts';
import { requestArchive, requestMove } from '../engine/transfer/transfer.ts';
import {
  type BatchAction,
  type BatchOutcome,
  deleteRange as deleteRangeOf,
  writeAtomically,
  writeBatch,
} from '../engine/write/entity-batch.ts';
import {
  createOnce,
  deleteEntity,
  mergeEntity,
  patchEntity,
  putEntity,
  replaceEntity,
} from '../engine/write/entity-store.ts';
import { readOperation, type Operation as Transfer } from '../engine/write/operation.ts';
import type { Operation } from './operation.ts';

/** The writes of entities. Keys have been checked: only a binding knows their form. The engine validates values. */

/** An id of a request in the engine's form, derived from its parts, so that a repeated request has the same id. */
export function toRequestId(parts: readonly (string | Uint8Array)[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part).update('\0');
  const [, ...groups] = /^(.{8})(.{4})(.{4})(.{4})(.{12})/.exec(hash.digest('hex')) ?? [];
  return groups.join('-');
}

interface CreateInput {
  readonly values: unknown;
  /** Identifies a request that may be repeated. */
  readonly id?: string | undefined;
}

/** Creates an entity. Throws as `createOnce` does. */
export const create = onceFor(
  (entity: Entity): Operation<CreateInput, Stored> => ({
    kind: 'write',
    roles: entity.access.write,
    admit: (caller, { values }) => checkMentions(entity, caller, values),
    run: ({ engine }, { values, id }) => createOnce(engine, entity, values, id),
  }),
);

export interface ChangeInput {
  readonly key: Values;
  /** The values of a whole entity, or the fields to change. */
  readonly values: unknown;
  readonly conditions: Conditions;
}

function changeOf<Output>(
  change: (...args: Parameters<typeof putEntity>) => Promise<Output>,
): (entity: Entity) => Operation<ChangeInput, Output> {
  return onceFor((entity) => ({
    kind: 'write',
    roles: entity.access.write,
    admit: (caller, { values }) => checkMentions(entity, caller, values),
    run: ({ engine }, { key, values, conditions }) => change(engine, entity, key, values, conditions),
  }));
}

/** Replaces a whole entity, or creates it under this key. */
export const put = changeOf(putEntity);
/** Replaces a whole entity. Throws `not-found`. */
export const replace = changeOf(replaceEntity);
/** Changes some fields and returns the entity. */
export const patch = changeOf(patchEntity);
/** Changes some fields and returns the ETag alone, so that they may be merged without a read. */
export const merge = changeOf(mergeEntity);

export type RemoveInput = Omit<ChangeInput, 'values'>;

/** Deletes an entity with its children, which the caller must be able to write too. */
export const remove = onceFor(
  (entity: Entity): Operation<RemoveInput, void> => ({
    kind: 'write',
    roles: entity.access.write,
    admit: (caller) => requireRemover(entity, caller),
    run: async ({ engine }, { key, conditions }) => void (await deleteEntity(engine, entity, key, conditions)),
  }),
);

interface BatchInput {
  readonly actions: readonly BatchAction[];
  /** All actions in one transaction, or none. */
  readonly atomic: boolean;
}

/** Runs many actions on entities, and returns the outcome of each. */
export const batch = onceFor(
  (entity: Entity): Operation<BatchInput, readonly BatchOutcome[]> => ({
    kind: 'write',
    roles: entity.access.write,
    admit(caller, { actions }) {
      for (const action of actions) {
        if ('delete' in action) requireRemover(entity, caller);
        for (const fields of Object.values(action)) checkMentions(entity, caller, fields);
      }
    },
    run: ({ engine }, { actions, atomic }) => (atomic ? writeAtomically : writeBatch)(engine, entity, actions),
  }),
);

type DeleteRange = typeof deleteRangeOf;
export type DeleteRangeInput = Parameters<DeleteRange>[3] & { readonly partition: Values };

/** Deletes the next entities of a range of a partition. */
export const deleteRange = onceFor(
  (entity: Entity): Operation<DeleteRangeInput, Awaited<ReturnType<DeleteRange>>> => ({
    kind: 'write',
    roles: entity.access.write,
    admit: (caller) => requireRemover(entity, caller),
    run: ({ engine }, { partition, ...range }) => deleteRangeOf(engine, entity, partition, range),
  }),
);

export interface TransferInput {
  readonly key: Values;
  readonly id?: string | undefined;
}

/** Requests the move of an entity to its archive, and returns the id of the operation. */
export const archive = onceFor(
  (entity: Entity): Operation<TransferInput, string> => ({
    kind: 'write',
    roles: entity.access.write,
    admit: (caller) => requireRemover(entity, caller),
    run: ({ engine }, { key, id }) => requestArchive(engine, entity, key, id),
  }),
);

/** Requests the move of an entity to another partition, and returns the id of the operation. */
export const move = onceFor(
  (entity: Entity): Operation<TransferInput & { readonly to: unknown }, string> => ({
    kind: 'write',
    roles: entity.access.write,
    admit: (caller) => requireRemover(entity, caller),
    run: ({ engine }, { key, to, id }) => requestMove(engine, entity, key, to, id),
  }),
);

interface TransferStatusInput extends Pick<Transfer, 'operation' | 'operationId'> {
  readonly key: Values;
}

/** The status of an archive or a move. Throws `not-found`, also for an operation on another entity. */
export const getTransfer = onceFor(
  (entity: Entity): Operation<TransferStatusInput, Omit<Transfer, 'entity'>> => ({
    kind: 'read',
    roles: entity.access.write,
    async run({ engine }, { key, ...asked }) {
      const { entity: _, ...status } = await readOperation(engine, { ...asked, entity: entity.name });
      if (entity.keyFields.every((field) => status.key[field] === key[field])) return status;
      throw new RowkeyError('not-found', 'Operation not found: the id belongs to an operation on another entity.');
    },
  }),
);
