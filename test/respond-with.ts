import type { HttpRequest, HttpResponseInit, InvocationContext } from '@azure/functions';
import { type App, httpDoor, type Route } from './kit/http.ts';

/** A handler of one route, which takes the parameters of the path from the request. */
export function respondWith(app: () => App, route: Route, root = httpDoor.rootOf('')) {
  const respond = httpDoor.createResponder(app, route);
  return (request: HttpRequest, invocation: InvocationContext): Promise<HttpResponseInit> =>
    httpDoor.catchProblems(invocation, root, async (spent) =>
      httpDoor.toResponse(await respond({ request, root, params: request.params, spent, invocation }), spent),
    );
}
