import type { HostSettings } from './host-settings.ts';
import { type HostedFunction, selectByTrigger } from './load-app.ts';
import { findMissingBundle } from './start-rules/extension-bundle.ts';
import { findNameErrors } from './start-rules/function-names.ts';
import { findQueueNameErrors } from './start-rules/queue-names.ts';
import { findReservedRoutes } from './start-rules/reserved-routes.ts';
import { findRetryErrors } from './start-rules/retry-policies.ts';
import { findRouteConflicts } from './start-rules/route-conflicts.ts';
import { findTemplateErrors } from './start-rules/route-templates.ts';
import { findScheduleErrors } from './start-rules/schedules.ts';

/**
 * Throws an error with a sentence for each rule of the real host that an app breaks. The real host serves the other functions, or
 * none. docs/internals/local-host.md lists the rules.
 */
export function requireStartRules(functions: readonly HostedFunction[], settings: HostSettings): void {
  const http = selectByTrigger(functions, 'httpTrigger');
  const errors = [
    ...findNameErrors(functions),
    ...findRetryErrors(functions),
    ...findReservedRoutes(http),
    ...findTemplateErrors(http, settings.http),
    ...findRouteConflicts(http),
    ...findQueueNameErrors(selectByTrigger(functions, 'queueTrigger')),
    ...findScheduleErrors(selectByTrigger(functions, 'timerTrigger')),
    ...findMissingBundle(functions, settings),
  ];
  if (errors.length > 0) throw new Error(errors.join('\n'));
}
