import { z } from 'zod';
import { RowkeyError } from '../../base/errors.ts';
import type { Values } from '../../base/values.ts';
import { MAX_STRING_LENGTH } from '../../define/codec/entity-codec.ts';
import { narrow } from '../../define/codec/limit.ts';
import { type Limit, OPERATORS } from '../../define/declaration/comparison.ts';
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

/** Without a limit, the caller reaches every row. Not strict: a later release may add members. */
export const RecordedRules = z.object({
  /** The entity that is found. */
  before: LimitSchema.optional(),
  /** The entity at the destination of a move. */
  after: LimitSchema.optional(),
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
  const before = narrow(guard.limitOf(entity.name, to ? 'update' : 'delete'), key);
  const after = to && narrow(guard.limitOf(entity.name, 'update'), there);
  // The children are deleted here, for which the request needs rules that hold for all of them, and created there.
  const children = (to ? entity.children : []).flatMap(({ name }) => {
    const limit = narrow(guard.limitOf(name, 'create'), there);
    return limit ? [[name, limit] as const] : [];
  });
  if (!before && !after && children.length === 0) return undefined;
  const rules: RecordedRules = {
    ...(before ? { before } : {}),
    ...(after ? { after } : {}),
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

/** The error of an operation that the rules refuse. */
export function ruledOut(): RowkeyError {
  return new RowkeyError('forbidden', RULED_OUT);
}
