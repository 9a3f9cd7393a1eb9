import { baseValues } from '../kit/base.ts';
import { modelOf, type Plan } from './random-model.ts';

let count = 0;
/**
 * The model of a plan, of which rules that bound no list are declared `filtered`, or else `none`. Undefined if the model is refused even so.
 * Each model has names of its own in the storage account.
 */
export function define(plan: Plan) {
  count += 1;
  const name = `m${[...String(count)].map((digit) => 'abcdefghij'[Number(digit)]).join('')}`;
  const declare = (given: Plan) => ({ plan: given, model: modelOf(given, name) });
  const filtered = (rules: Plan['tasks']) => ({
    ...rules,
    read: rules.read.map((one) => ({ ...one, lists: one.lists === 'bounded' ? ('filtered' as const) : one.lists })),
  });
  const closed = (rules: Plan['tasks']) => ({
    ...rules,
    read: rules.read.map((one) => ({ ...one, lists: 'none' as const })),
  });
  const tries = [
    plan,
    { ...plan, tasks: filtered(plan.tasks), notes: filtered(plan.notes) },
    { ...plan, tasks: closed(plan.tasks), notes: closed(plan.notes) },
  ];
  for (const each of tries)
    try {
      return declare(each);
    } catch (error) {
      if (!(error instanceof baseValues.DeclarationError)) throw error;
    }
  return undefined;
}
