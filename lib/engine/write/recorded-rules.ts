import { z } from 'zod';
import { RowkeyError } from '../../base/errors.ts';
import type { Values } from '../../base/values.ts';
import { MAX_STRING_LENGTH } from '../../define/codec/entity-codec.ts';
import { isChangeWithin, narrow } from '../../define/codec/limit.ts';
import { type Limit, OPERATORS, type Transition } from '../../define/declaration/comparison.ts';
import type { Entity } from '../../define/declaration/entity.ts';
import type { Engine } from '../engine.ts';

/**
 * The rules on rows of the caller who requested an operation, as they were resolved at the request. The operation asks them again of the rows
 * that it finds when it runs. A key does not change until then, so what the rules say of the key is left out: it has been compared.
 */

const LimitSchema: z.ZodType<Limit> = z.array(
  z.array(
    z.object({
      field: z.string(),
      operator: z.enum(OPERATORS),
      values: z.array(z.union([z.string(), z.number(), z.boolean()])).min(1),
    }),
  ),
);

const TransitionSchema = z.object({
  /** The entity that is found. */
  before: LimitSchema.optional(),
  /** The entity at the destination of a move. */
  after: LimitSchema.optional(),
});

/** Without a limit, the caller reaches every row. Not strict: a later release may add members. */
export const RecordedRules = TransitionSchema.extend({
  /** Each allows the operation as well. An earlier release does not know them, and refuses what they alone allow. */
  others: z.array(TransitionSchema).optional(),
  /** The children at the destination of a move, by the name of their entity. */
  children: z.record(z.string(), LimitSchema).optional(),
});
export type RecordedRules = z.infer<typeof RecordedRules>;

/** The reason of an operation that the rules refuse when it runs. It is also that of one whose entity is gone: the caller may not know which. */
export const RULED_OUT =
  'The entity was deleted, its key changed, or the rules on rows no longer let the caller do this with it and its children.';

/**
 * The rules to record for an operation on the entity with this key; undefined if they hold for every row with it. `to` has the key fields that a
 * move changes. Throws `too-large`.
 */
export function rulesToRecord(
  { guard }: Pick<Engine, 'guard'>,
  entity: Entity,
  { key, to }: { readonly key: Values; readonly to?: Values | undefined },
): RecordedRules | undefined {
  if (!guard) return undefined;
  const there = { ...key, ...to };
  const allowed = to ? guard.transitionsOf(entity.name) : [{ before: guard.limitOf(entity.name, 'delete') }];
  const narrowed = allowed?.flatMap((one: Transition) => {
    const [before, after] = [narrow(one.before, key), narrow(one.after, there)];
    const isNever = before?.length === 0 || after?.length === 0;
    return isNever ? [] : [{ ...(before ? { before } : {}), ...(after ? { after } : {}) }];
  });
  const isEvery = narrowed?.some((one) => Object.keys(one).length === 0) ?? true;
  const [first = { before: [] }, ...others] = (!isEvery && narrowed) || [{}];
  // The children are deleted here, for which the request needs rules that hold for all of them, and created there.
  const children = (to ? entity.children : []).flatMap(({ name }) => {
    const limit = narrow(guard.limitOf(name, 'create'), there);
    return limit ? [[name, limit] as const] : [];
  });
  if (isEvery && children.length === 0) return undefined;
  const rules: RecordedRules = {
    ...first,
    ...(others.length > 0 ? { others } : {}),
    ...(children.length > 0 ? { children: Object.fromEntries(children) } : {}),
  };
  if (JSON.stringify(rules).length <= MAX_STRING_LENGTH) return rules;
  throw new RowkeyError(
    'too-large',
    `The operation cannot be recorded: the rules of ${entity.name} give the caller more values than a record holds.`,
    { accepted: `rules that take at most ${MAX_STRING_LENGTH} characters as JSON` },
  );
}

/** The rules in the record of an operation. An operation that an earlier release recorded has none, and runs as in that release. */
export function recordedRules({ rules }: Values): RecordedRules | undefined {
  return rules === undefined ? undefined : RecordedRules.parse(rules);
}

/** True if the rules allow the operation on an entity with the values `before`; of a move also with those that it then has. */
export function isAllowed(rules: RecordedRules | undefined, before: Values, after?: Values): boolean {
  return isChangeWithin(rules && [rules, ...(rules.others ?? [])], { before, after });
}

/** The error of an operation that the rules refuse. */
export function ruledOut(): RowkeyError {
  return new RowkeyError('forbidden', RULED_OUT);
}
