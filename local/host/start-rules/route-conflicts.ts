import type { HostedFunction, HttpTrigger } from '../load-app.ts';

/**
 * Two functions of one route must not share a method. The real host compares the templates as text, ignoring case, and a
 * function without methods has all of them (`HttpRoutesConflict` in ScriptHost.cs).
 */
export function findRouteConflicts(
  functions: readonly Pick<HostedFunction<HttpTrigger>, 'name' | 'trigger'>[],
): string[] {
  const groups = Map.groupBy(functions, ({ name, trigger }) =>
    (trigger.route || name).replace(/^\/+|\/+$/g, '').toLowerCase(),
  );
  return [...groups].flatMap(([route, group]) =>
    group.flatMap((one, index) => {
      const { methods } = one.trigger;
      const earlier = group
        .slice(0, index)
        .find(
          (other) =>
            [methods, other.trigger.methods].some(({ length }) => length === 0) ||
            methods.some((method) => other.trigger.methods.includes(method)),
        );
      return earlier
        ? [`The functions ${earlier.name} and ${one.name} have the route ${route} and share a method.`]
        : [];
    }),
  );
}
