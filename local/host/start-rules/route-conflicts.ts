import type { HostedFunction, HttpTrigger } from '../load-app.ts';
import { templateOf } from '../route.ts';

/**
 * Two functions of one route must not share a method. The real host compares the templates as text, ignoring case, and a
 * function without methods has all of them (`HttpRoutesConflict` in ScriptHost.cs).
 */
export function findRouteConflicts(
  functions: readonly Pick<HostedFunction<HttpTrigger>, 'name' | 'trigger'>[],
): string[] {
  const groups = Map.groupBy(functions, (one) => templateOf(one).toLowerCase());
  return [...groups].flatMap(([route, group]) =>
    group.flatMap((one, index) => {
      const earlier = group.slice(0, index).find((other) => shareMethod(one.trigger.methods, other.trigger.methods));
      return earlier
        ? [`The functions ${earlier.name} and ${one.name} have the route ${route} and share a method.`]
        : [];
    }),
  );
}

function shareMethod(methods: readonly string[], others: readonly string[]): boolean {
  return methods.length === 0 || others.length === 0 || methods.some((method) => others.includes(method));
}
