import type { HttpMethod, HttpRequest, HttpResponseInit, InvocationContext } from '@azure/functions';
import { RowkeyError } from '../errors.ts';
import { callRoute, respond, respondWith } from './respond.ts';
import type { App, Route, RouteResult } from './route.ts';

/**
 * The Functions host answers an unknown path, and a method that no function has, with an empty 404. It tries functions in
 * order of name and calls the first whose route and method match, so a function of this name comes after all others.
 */
export const OTHER_REQUESTS = 'zzz-other-requests';
/** Its route, without the prefix `api`. */
export const ANY_PATH = '{*path}';
/** Every method that a function can have. */
export const ANY_METHOD: HttpMethod[] = [
  ...(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const),
  ...(['OPTIONS', 'TRACE', 'CONNECT'] as const),
];

interface Candidate {
  readonly route: Route;
  readonly segments: readonly string[];
}

type Handler = (request: HttpRequest, context: InvocationContext) => Promise<HttpResponseInit>;

/** The handlers of all functions of the API. */
export interface Handlers {
  /** For the function of a route, which takes HEAD as well as the route's own method. */
  forRoute(route: Route): Handler;
  /** For what no other function takes. */
  readonly forOthers: Handler;
}

/**
 * HEAD is answered as GET without its body, OPTIONS with `Allow`, another method by 405 with `Allow`, and an unknown path by
 * 404. Every function takes HEAD: newer hosts answer it themselves by 405 wherever the first function of a path takes
 * neither GET nor HEAD, whatever comes after it (BuildConstraintMethods in WebScriptHostHttpRoutesManager.cs).
 */
export function handlersOf(app: () => App, routes: readonly Route[]): Handlers {
  const candidates: readonly Candidate[] = routes
    .map((route) => ({ route, segments: route.path.split('/') }))
    .toSorted((one, other) => (one.route.name < other.route.name ? -1 : 1));

  async function respondToOther(request: HttpRequest, context: InvocationContext, path: string) {
    const response = await respond(context, async (spent) => {
      // Throws while the settings are not usable: then no other answer is given.
      app();
      const matches = matchesOf(candidates, path);
      const readable = matches.find(({ route }) => route.method === 'GET');
      if (request.method === 'HEAD' && readable)
        return callRoute(app, readable.route, { request, params: readable.params, spent, context });
      return answerOther(
        request.method,
        matches.map(({ route }) => route.method),
      );
    });
    if (request.method !== 'HEAD') return response;
    const { body: _, ...head } = response;
    return head;
  }

  return {
    forRoute(route) {
      const respondToRoute = respondWith(app, route);
      return (request, context) =>
        request.method === 'HEAD'
          ? respondToOther(request, context, pathOf(route, request.params))
          : respondToRoute(request, context);
    },
    forOthers: (request, context) => respondToOther(request, context, request.params.path ?? ''),
  };
}

/** The path of a request to a route. */
function pathOf({ path }: Route, params: Readonly<Record<string, string>>): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => params[name] ?? '');
}

function answerOther(method: string, found: readonly Route['method'][]): RouteResult {
  if (found.length === 0)
    throw new RowkeyError('not-found', 'No route has this path.', {
      field: 'path',
      accepted: 'the paths in /api/openapi.json',
    });
  const accepted = ANY_METHOD.filter(
    (each) => each === 'OPTIONS' || found.some((one) => one === each || (one === 'GET' && each === 'HEAD')),
  ).join(', ');
  if (method === 'OPTIONS') return { status: 204, headers: { allow: accepted } };
  throw new RowkeyError('method-not-allowed', `The route does not support the method ${method}.`, { accepted });
}

/** Matches a path as the host does: literals in any case, a parameter for one segment, a trailing slash ignored. */
function matchesOf(candidates: readonly Candidate[], path: string) {
  const values = path.replace(/\/$/, '').split('/');
  return candidates.flatMap(({ route, segments }) => {
    const params = paramsOf(segments, values);
    return params ? [{ route, params }] : [];
  });
}

function paramsOf(segments: readonly string[], values: readonly string[]): Record<string, string> | undefined {
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
