import type { HostedFunction, HttpTrigger } from '../load-app.ts';
import { templateOf } from '../route.ts';

const RESERVED = ['admin', 'runtime'];

/** Compares the beginning only, as the real host does: `administrators` is reserved too (`ValidateHttpFunction` in ScriptHost.cs). */
export function findReservedRoutes(functions: readonly HostedFunction<HttpTrigger>[]): string[] {
  return functions.flatMap((one) => {
    const template = templateOf(one);
    const reserved = RESERVED.find((word) => template.toLowerCase().startsWith(word));
    return reserved
      ? [`The function ${one.name} has the reserved route ${template}: a route must not start with ${reserved}.`]
      : [];
  });
}
