import type { HttpMethod, HttpRequest, InvocationContext } from '@azure/functions';
import { RowkeyError } from '../errors.ts';
import type { Handler } from './handler.ts';
import { callRoute, respond, respondWith } from './respond.ts';
import { type App, type Route, type RouteResult, rootOf, tagOf } from './route.ts';

/**
 * The Functions host returns an empty 404 for an unknown path and for a method that no function has. It tries functions in
 * the order of their names and calls the first whose route and method match, so a function of this name comes last.
 */
export const OTHER_REQUESTS = 'zzz-other-requests';
/**
 * The same for an instance with a path. The name sorts after the functions of all instances and before the function for all
 * paths.
 */
export function otherRequestsName(path: string): string {
  return path === '' ? OTHER_REQUESTS : `zzz-in-${path}`;
}
/** Its route, below the root of the instance. */
export const ANY_PATH = '{*path}';
/** Every method that a function can register. */
export const ANY_METHOD: HttpMethod[] = [
  ...(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const),
  ...(['OPTIONS', 'TRACE', 'CONNECT'] as const),
];

interface Candidate {
  readonly route: Route;
  readonly segments: readonly string[];
}

export interface Handlers {
  /** For the function of a route, which accepts HEAD besides the method of the route. */
  forRoute(route: Route): Handler;
  /** For requests that no other function matches. */
  readonly forOthers: Handler;
}

/**
 * HEAD returns the response to GET without its body, OPTIONS 204 with `Allow`, another method 405 with `Allow`, and an
 * unknown path 404. Every function accepts HEAD: newer hosts return 405 themselves if the first function of a path accepts
 * neither GET nor HEAD (BuildConstraintMethods in WebScriptHostHttpRoutesManager.cs).
 */
export function createHandlers(app: () => App, routes: readonly Route[], root = rootOf('')): Handlers {
  const candidates: readonly Candidate[] = routes
    .map((route) => ({ route, segments: route.path.split('/') }))
    .toSorted((one, other) => (one.route.name < other.route.name ? -1 : 1));

  async function respondToOther(request: HttpRequest, invocation: InvocationContext, path: string) {
    const response = await respond(invocation, root, async (spent) => {
      // Throws while a setting is wrong.
      app();
      const matches = findMatches(candidates, path);
      const readable = matches.find(({ route }) => route.method === 'GET');
      if (request.method === 'HEAD' && readable)
        return callRoute(app, readable.route, { request, root, params: readable.params, spent, invocation });
      const found = matches.map(({ route }) => route.method);
      const isReading = request.method === 'GET' || request.method === 'HEAD';
      return respondToUnmatched(root, request.method, found, isReading ? nameReads(routes, root, path) : '');
    });
    if (request.method !== 'HEAD') return response;
    const { body: _, ...head } = response;
    return head;
  }

  return {
    forRoute(route) {
      const respondToRoute = respondWith(app, route, root);
      return (request, invocation) =>
        request.method === 'HEAD'
          ? respondToOther(request, invocation, fillPath(route, request.params))
          : respondToRoute(request, invocation);
    },
    forOthers: (request, invocation) => respondToOther(request, invocation, request.params.path ?? ''),
  };
}

function fillPath({ path }: Route, params: Readonly<Record<string, string>>): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => params[name] ?? '');
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

/** Matches a path like the host: literals ignore case, a parameter is one segment, a trailing slash is ignored. */
function findMatches(candidates: readonly Candidate[], path: string) {
  const values = path.replace(/\/$/, '').split('/');
  return candidates.flatMap(({ route, segments }) => {
    const params = matchSegments(segments, values);
    return params ? [{ route, params }] : [];
  });
}

function matchSegments(segments: readonly string[], values: readonly string[]): Record<string, string> | undefined {
  if (segments.length !== values.length) return undefined;
  const params: Record<string, string> = {};
  for (const [index, segment] of segments.entries()) {
    const value = values[index] ?? '';
    const [, name] = /^\{(\w+)\}$/.exec(segment) ?? [];
    if (name !== undefined && value !== '') params[name] = value;
    else if (segment.toLowerCase() !== value.toLowerCase()) return undefined;
  }
  return params;
}
