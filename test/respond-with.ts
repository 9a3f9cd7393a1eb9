import type { HttpRequest, HttpResponseInit, InvocationContext } from '@azure/functions';
import { createResponder } from '../lib/http/api-handler.ts';
import { catchProblems, toResponse } from '../lib/http/response.ts';
import { type App, type Route, rootOf } from '../lib/http/route.ts';

/** A handler of one route, which takes the parameters of the path from the request. */
export function respondWith(app: () => App, route: Route, root = rootOf('')) {
  const respond = createResponder(app, route);
  return (request: HttpRequest, invocation: InvocationContext): Promise<HttpResponseInit> =>
    catchProblems(invocation, root, async (spent) =>
      toResponse(await respond({ request, root, params: request.params, spent, invocation }), spent),
    );
}
