import type { HttpRequest, HttpResponseInit, InvocationContext } from '@azure/functions';
import { callRoute, respond } from '../lib/http/respond.ts';
import { type App, type Route, rootOf } from '../lib/http/route.ts';

/** A handler of one route, which takes the parameters of the path from the request. */
export function respondWith(app: () => App, route: Route, root = rootOf('')) {
  return (request: HttpRequest, invocation: InvocationContext): Promise<HttpResponseInit> =>
    respond(invocation, root, (spent) =>
      callRoute(app, route, { request, root, params: request.params, spent, invocation }),
    );
}
