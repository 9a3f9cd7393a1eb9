import type { HttpResponseInit, InvocationContext } from '@azure/functions';
import { admission, NOBODY } from './middleware/admission.ts';
import { audit } from './middleware/audit.ts';
import { explanation } from './middleware/explanation.ts';
import { compose, type Exchange, type Next, type Spent } from './middleware/middleware.ts';
import { misconfigured } from './middleware/misconfigured.ts';
import { parameters } from './middleware/parameters.ts';
import { catchProblems } from './middleware/problems.ts';
import { rereads } from './middleware/rereads.ts';
import { parseJson, readBytes, requireJson } from './request-body.ts';
import { toResponse } from './response.ts';
import type { App, RequestContext, Route, RouteResult } from './route.ts';

/** What happens to each request, from the outside to the inside. `respond` is around all of it, also for a path without a route. */
const handle: Next = compose([misconfigured, admission, parameters, explanation, audit, rereads], (exchange) =>
  exchange.route.handle(contextOf(exchange)),
);

/** Runs `work` and returns its result, or its error as a problem, with the headers that every response has. */
export function respond(
  invocation: InvocationContext,
  root: string,
  work: (spent: Spent) => Promise<RouteResult>,
): Promise<HttpResponseInit> {
  return catchProblems(invocation, root, async (spent) => toResponse(await work(spent), spent));
}

export type RouteRequest = Pick<Exchange, 'request' | 'root' | 'params' | 'spent' | 'invocation'>;

/** Passes a request through the middleware to its route. Throws the error that the response reports as a problem. */
export function callRoute(app: () => App, route: Route, request: RouteRequest): Promise<RouteResult> {
  const query = queryOf(request.request.url);
  // A retry of a read has the same body, which can be read once.
  let body: Promise<Uint8Array> | undefined;
  const bytes = () => {
    body ??= readBytes(request.request, route.maxBodyBytes);
    return body;
  };
  return handle({ ...request, app, route, query, bytes, caller: NOBODY, isExplanation: false, isLastAttempt: true });
}

function contextOf({
  app,
  root,
  request,
  params,
  query,
  bytes,
  invocation,
  caller,
  isLastAttempt,
}: Exchange): RequestContext {
  return {
    app: app(),
    root,
    log: invocation,
    caller,
    params: decodeParams(params),
    query,
    isLastAttempt,
    header: (name) => request.headers.get(name) ?? undefined,
    bytes,
    json: async () => {
      requireJson(request);
      return parseJson(await bytes());
    },
  };
}

/** Parsing the whole URL would take longer, and most requests have no query. */
function queryOf(url: string): URLSearchParams {
  const start = url.indexOf('?');
  return new URLSearchParams(start < 0 ? '' : url.slice(start + 1));
}

/** The host decodes a path once, except for an encoded slash, which would split a segment. */
function decodeParams(params: Readonly<Record<string, string>>): Record<string, string> {
  const decoded: Record<string, string> = {};
  for (const name of Object.keys(params)) decoded[name] = params[name]?.replace(/%2f/gi, '/') ?? '';
  return decoded;
}
