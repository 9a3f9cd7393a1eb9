/** The template of a function below the route prefix. The name is the default, as under the real host. */
export function templateOf({
  name,
  trigger: { route },
}: {
  readonly name: string;
  readonly trigger: { readonly route?: string | undefined };
}): string {
  return (route || name).replace(/^\/+|\/+$/g, '');
}

/** A compiled ASP.NET route template. */
export interface Route {
  /** The beginning of every path that matches, in lower case. Comparing it first is faster than trying the whole route. */
  readonly beginning: string;
  /** Returns the parameters of a decoded path, or undefined if the path does not match. */
  match(path: string): Record<string, string> | undefined;
}

/**
 * Compiles a template of literals, `{name}` for one segment and, at its end, `{*name}` for the rest of the path. Not a router
 * library: those prefer literals to parameters, whereas the real host tries its functions one by one, in order of name.
 */
export function compileRoute(template: string): Route {
  const [, head = template, rest] = /^(.*?)\/\{\*(\w+)\}$/.exec(template) ?? [];
  const pieces = head.split(/\{(\w+)\}/);
  const names = pieces.filter((_, index) => index % 2 === 1);
  const literals = pieces.filter((_, index) => index % 2 === 0);
  if (literals.some((literal) => /[{}]/.test(literal)))
    throw new Error('may have only literals, {name} and a final {*name}');
  const pattern = literals.map((literal) => literal.replace(/[\\^$.*+?()[\]|]/g, '\\$&')).join('([^/]+)');
  if (rest !== undefined) names.push(rest);
  // A trailing slash is optional, and the rest does not begin with an empty segment. Flag i applies to the literals; values keep
  // their case.
  const expression = new RegExp(`^${pattern}${rest === undefined ? '/?' : '(?:/((?!/).*))?'}$`, 'is');

  return {
    // Flag i folds the case of other letters in its own way.
    beginning: /^[ -~]*/.exec(literals[0] ?? '')?.[0].toLowerCase() ?? '',
    match(path) {
      const match = expression.exec(path);
      return match ? Object.fromEntries(names.map((name, index) => [name, match[index + 1] ?? ''])) : undefined;
    },
  };
}

/** Encodes a decoded path as ASP.NET does in the URL that a function receives: `%2B` has become `+`, `%2F` is kept. */
export function encodePath(path: string): string {
  return path.replace(/%(?![\da-f]{2})|[^\w.~!$&'()*+,;=:@/%-]/giu, encodeURIComponent);
}

/** Decodes a path once, as ASP.NET does. `%2F` and invalid UTF-8 stay unchanged. */
export function decodePath(path: string): string {
  return path.replace(/(?:%[\da-f]{2})+/gi, (run) => {
    try {
      return decodeURIComponent(run.replace(/%(2f)/gi, '%25$1'));
    } catch {
      return run;
    }
  });
}
