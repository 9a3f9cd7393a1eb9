import type { Values } from '../../base/values.ts';
import type { Comparison, Limit, Transition } from '../declaration/comparison.ts';
import { holds, matches } from './query.ts';

/** True if the row with these values is within reach. */
export function isWithin(limit: Limit | undefined, values: Values): boolean {
  return limit?.some((each) => matches(each, values)) ?? true;
}

/** True if one of the transitions allows the change of a row; without `after`, if one of them may. */
export function isChangeWithin(
  transitions: readonly Transition[] | undefined,
  { before, after }: { readonly before: Values; readonly after?: Values | undefined },
): boolean {
  const isAllowed = (one: Transition) => isWithin(one.before, before) && (!after || isWithin(one.after, after));
  return transitions?.some(isAllowed) ?? true;
}

/** What is left to compare in rows with these values of some fields; undefined if all of them are within reach. */
export function narrow(limit: Limit | undefined, given: Values): Limit | undefined {
  const isKnown = ({ field }: Comparison) => given[field] !== undefined;
  const left = limit?.flatMap((each) =>
    each.every((one) => !isKnown(one) || holds(one, given[one.field])) ? [each.filter((one) => !isKnown(one))] : [],
  );
  return left?.some((each) => each.length === 0) ? undefined : left;
}
