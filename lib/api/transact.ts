import { z } from 'zod';
import { guardedEngine } from '../access/limit.ts';
import { RowkeyError } from '../base/errors.ts';
import type { Values } from '../base/values.ts';
import { parse } from '../define/codec/validation.ts';
import type { Entity } from '../define/declaration/entity.ts';
import type { TransactionAction, TransactionDone } from '../engine/write/entity-batch.ts';
import { transactOnce } from '../engine/write/entity-store.ts';
import { type Operation, type Part, toPart } from './operation.ts';
import {
  AnyAction,
  checkActionCount,
  create,
  keySchema,
  MAX_BATCH,
  patch,
  put,
  remove,
  toActionIds,
} from './writes.ts';

/** Writes of several entities of one partition in one transaction. */

interface TransactInput {
  readonly actions: readonly TransactionAction[];
  /** Identifies a request that may be repeated. */
  readonly id?: string | undefined;
}

/** Executes actions on entities of one partition in one transaction, or none of them. */
export function transact(entities: readonly Entity[]): Operation<TransactInput, readonly TransactionDone[]> {
  return {
    name: 'transact',
    summary: `Create, put, patch or delete up to ${MAX_BATCH} entities of one partition in one transaction, or none of them`,
    kind: 'write',
    // Each action counts.
    deeds: [],
    roles: [...new Set(entities.flatMap(({ access }) => access.write))],
    input: () => transactionSchema(describedAction(entities)),
    repeatable: true,
    parts: ({ actions }) => actions.map(partOf),
    run: async (view, { actions, id }) => {
      const engine = await guardedEngine(view, ...new Set(actions.map(({ entity }) => entity)));
      return transactOnce(engine, actions, toActionIds(id, actions));
    },
  };
}

/** An action is admitted, and counts, like the operation that does it alone. */
function partOf({ entity, action }: TransactionAction): Part {
  if ('create' in action) return toPart(create(entity), { values: action.create });
  const { ifMatch } = action;
  const conditions = { ifMatch };
  if ('delete' in action) return toPart(remove(entity), { key: toValues(action.delete), conditions });
  if ('put' in action) return toPart(put(entity), { key: toValues(action.put), values: action.put, conditions });
  return toPart(patch(entity), { key: toValues(action.patch), values: action.patch, conditions, isMinimal: true });
}

/** The key has not been checked yet. */
function toValues(given: unknown): Values {
  return Object(given);
}

/** By the name of any entity, an action as in its own batch, which describes them in full. The first form is that of the example. */
function describedAction([first, ...others]: readonly Entity[]): z.ZodType {
  if (!first) return AnyAction;
  const action = AnyAction.meta({ title: 'transact-action' });
  return z
    .union([
      z.strictObject({ [first.name]: z.strictObject({ delete: keySchema(first) }) }),
      ...[first, ...others].map(({ name }) => z.strictObject({ [name]: action })),
    ])
    .describe('One entity by its name, with an action as in its batch');
}

function transactionSchema<Action extends z.ZodType>(action: Action) {
  return z.strictObject({ actions: z.array(action).min(1).max(MAX_BATCH) });
}

const AnyTransaction = transactionSchema(z.record(z.string(), AnyAction));

/** Reads the actions of a transaction: each is the action of one entity, by the name of the entity. Throws `invalid-input`. */
export function readTransaction(entities: readonly Entity[], given: unknown): TransactionAction[] {
  checkActionCount(given);
  return parse(AnyTransaction, given).actions.map((named, position) => {
    const [[name = '', action] = [], ...others] = Object.entries(named);
    const entity = entities.find((one) => one.name === name);
    if (entity && action && others.length === 0) return { entity, action };
    throw new RowkeyError('invalid-input', `The action at ${position} does not name one entity of the model.`, {
      field: `actions.${position}`,
      accepted: `one of ${entities.map((one) => one.name).join(', ')}`,
    });
  });
}

/** The entities that a transaction may write: those with a row of their own. */
export function entitiesToTransact(entities: readonly Entity[]): Entity[] {
  return entities.filter(({ series, isArchive }) => !series && !isArchive);
}
