import { type HostedFunction, selectByTrigger } from './load-app.ts';
import { findRouteConflicts } from './start-rules/route-conflicts.ts';

/** Throws an error with a sentence for each rule of the real host that a function breaks. docs/local.md lists the rules. */
export function requireStartRules(functions: readonly HostedFunction[]): void {
  const errors = findRouteConflicts(selectByTrigger(functions, 'httpTrigger'));
  if (errors.length > 0) throw new Error(errors.join('\n'));
}
