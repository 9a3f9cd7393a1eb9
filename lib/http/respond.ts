import { admission, NOBODY } from './middleware/admission.ts';
import { audit } from './middleware/audit.ts';
import { explanation } from './middleware/explanation.ts';
import { misconfigured } from './middleware/misconfigured.ts';
import { parameters } from './middleware/parameters.ts';
import { rereads } from './middleware/rereads.ts';
import { parseJson, readBytes, requireJson } from './request-body.ts';
import type { App, Exchange, Next, Route, RouteResult } from './route.ts';

/** What happens to each request of a route, from the outside to the inside. `catchProblems` is around all of it, also for a path without a route. */
const MIDDLEWARE = [misconfigured, admission, parameters, explanation, audit, rereads];

/** Creates the function that passes the requests of a route through the middleware. It throws the error that the response reports as a problem. */
export function createResponder(
  app: () => App,
  route: Route,
): (request: Pick<Exchange, 'request' | 'root' | 'params' | 'spent' | 'invocation'>) => Promise<RouteResult> {
  const handle = MIDDLEWARE.reduceRight<Next>(
    (next, middleware) => middleware(route, next),
    (exchange) => {
      const { request, bytes, invocation } = exchange;
      const opened = app();
      return route.handle({
        ...exchange,
        app: opened,
        engine: opened.engine,
        log: invocation,
        header: (name) => request.headers.get(name) ?? undefined,
        json: async () => {
          requireJson(request);
          return parseJson(await bytes());
        },
      });
    },
  );
  return ({ request, params, ...rest }) => {
    // Parsing the whole URL would take longer, and most requests have no query.
    const start = request.url.indexOf('?');
    const query = new URLSearchParams(start < 0 ? '' : request.url.slice(start + 1));
    // The host decodes a path once, except for an encoded slash, which would split a segment.
    const decoded: Record<string, string> = {};
    for (const name of Object.keys(params)) decoded[name] = params[name]?.replace(/%2f/gi, '/') ?? '';
    // A retry of a read has the same body, which can be read once.
    let body: Promise<Uint8Array> | undefined;
    const bytes = () => {
      body ??= readBytes(request, route.maxBodyBytes);
      return body;
    };
    const before = { caller: NOBODY, isExplanation: false, isLastAttempt: true };
    return handle({ ...rest, ...before, app, request, params: decoded, query, bytes });
  };
}
