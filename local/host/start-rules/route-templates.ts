import type { HostedFunction, HttpTrigger } from '../load-app.ts';
import { compileRoute, templateOf } from '../route.ts';

/**
 * ASP.NET refuses these templates, and the real host then serves nothing. Defaults, constraints and optional parameters, which it
 * accepts, are refused here, because the local host does not know them.
 */
export function findTemplateErrors(
  functions: readonly HostedFunction<HttpTrigger>[],
  { routePrefix }: { readonly routePrefix: string },
): string[] {
  return functions.flatMap((one) => {
    const template = [routePrefix, templateOf(one)].filter(Boolean).join('/');
    const error = findTemplateError(template);
    return error ? [`The function ${one.name} cannot be routed: the route ${template} ${error}.`] : [];
  });
}

function findTemplateError(template: string): string | undefined {
  const names = [...template.matchAll(/\{\*?(\w+)\}/g)].map(([, name = '']) => name.toLowerCase());
  if (new Set(names).size < names.length) return 'has a parameter twice, which ignores case';
  if (/\}\{/.test(template)) return 'has two parameters side by side';
  // ASP.NET takes ~/ for the root of the app.
  if (template.startsWith('~')) return 'begins with ~';
  if (/\/\//.test(template)) return 'has an empty segment';
  if (/\?/.test(template.replace(/\{[^}]*\}/g, ''))) return 'has a ?';
  try {
    compileRoute(`/${template}`);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}
