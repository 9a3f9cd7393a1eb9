import type { HttpMethod } from '@azure/functions';
import { RowkeyError } from '../base/errors.ts';
import { nameRequest } from '../telemetry/span.ts';
import type { Handler } from './handler.ts';
import { createResponder } from './respond.ts';
import { catchProblems, toResponse } from './response.ts';
import { type App, type Route, type RouteResult, rootOf, tagOf } from './route.ts';
import { createRouter } from './router.ts';

/** The route of the function, below the root of the instance. */
export const ANY_PATH = '{*path}';
/** Not TRACE and CONNECT, of which no `Request` can be made, so the library would throw. The host returns 404 to them. */
export const ANY_METHOD: HttpMethod[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

/**
 * Handles every request to the API. HEAD returns the response to GET without its body, OPTIONS 204 with `Allow`, another
 * method 405 with `Allow`, and an unknown path 404: the Functions host itself returns an empty 404 for both.
 */
export function createApiHandler(app: () => App, routes: readonly Route[], root = rootOf('')): Handler {
  const findMatches = createRouter(routes);
  const responders = new Map(routes.map((route) => [route, createResponder(app, route)]));
  return async (request, invocation) => {
    // The host takes methods in any case. The standard `Request` inside `request` writes all but PATCH in upper case.
    const method = request.method.toUpperCase();
    const path = request.params.path ?? '';
    const matches = findMatches(path);
    const wanted = method === 'HEAD' ? 'GET' : method;
    const match = matches.find(({ route }) => route.method === wanted);
    const route = match?.route;
    nameRequest(method, `${root}/${route?.path ?? ANY_PATH}`);
    const response = await catchProblems(invocation, root, async (spent) => {
      const respond = route && responders.get(route);
      if (respond) return toResponse(await respond({ request, root, params: match.params, spent, invocation }), spent);
      // Throws while a setting is wrong.
      app();
      const found = matches.map((one) => one.route.method);
      const reads = wanted === 'GET' ? nameReads(routes, root, path) : '';
      return toResponse(respondToUnmatched(root, method, found, reads), spent);
    });
    if (method !== 'HEAD') return response;
    const { body: _, ...head } = response;
    return head;
  };
}

/** A sentence with the paths that read an entity, after the path of the entity alone. Otherwise an empty text. */
function nameReads(routes: readonly Route[], root: string, path: string): string {
  const below = `${path.replace(/\/$/, '').toLowerCase()}/`;
  const reads = routes.filter(
    ({ entity, method, isUndescribed, path: template }) =>
      entity && method === 'GET' && !isUndescribed && template.toLowerCase().startsWith(below) && !isOfOne(template),
  );
  const [first] = reads;
  const [name = ''] = first?.path.split('/') ?? [];
  if (!first || ![first.entity?.name, first.entity?.archive?.name].includes(name)) return '';
  const paths = reads.map((route) => `${root}/${route.path}`).join(', ');
  return ` To read ${name}, use ${paths}. They are described in ${root}/openapi.json?tag=${tagOf(first)}.`;
}

/** True for a file or an operation of one entity. */
function isOfOne(template: string): boolean {
  return /\}\/[^{]/.test(template);
}

function respondToUnmatched(
  root: string,
  method: string,
  found: readonly Route['method'][],
  reads: string,
): RouteResult {
  if (found.length === 0)
    throw new RowkeyError('not-found', `No route matches the path.${reads}`, {
      field: 'path',
      accepted: `the paths in ${root}/openapi.json`,
    });
  const accepted = ANY_METHOD.filter(
    (each) => each === 'OPTIONS' || found.some((one) => one === each || (one === 'GET' && each === 'HEAD')),
  ).join(', ');
  if (method === 'OPTIONS') return { status: 204, headers: { allow: accepted } };
  throw new RowkeyError('method-not-allowed', `Method ${method} is not supported by this path.${reads}`, { accepted });
}
