import type { HttpMethod } from '@azure/functions';
import { checkJson } from '../base/check-json.ts';
import { hasCode, RowkeyError } from '../base/errors.ts';
import { MAX_BODY_DEPTH } from '../base/json-value.ts';
import { nameRequest } from '../telemetry/span.ts';
import type { Handler } from './handler.ts';
import { MIDDLEWARE } from './middleware.ts';
import { parseJson, readBytes, requireJson } from './request-body.ts';
import { readSegments } from './request-path.ts';
import { catchProblems, toResponse, toTextResponse } from './response.ts';
import { type App, type Exchange, type Next, NOBODY, type Route, type RouteResult, rootOf, tagOf } from './route.ts';

/** The route of the function, below the root of the instance. */
export const ANY_PATH = '{*path}';
/** Not TRACE and CONNECT, of which no `Request` can be made, so the library would throw. The host returns 404 to them. */
export const ANY_METHOD: HttpMethod[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

/**
 * Handles every request to the API. HEAD returns the response to GET without its body, OPTIONS 204 with `Allow`, another
 * method 405 with `Allow`, and an unknown path 404: the Functions host itself returns an empty 404 for both.
 */
export function createApiHandler(app: () => App, routes: readonly Route[], root = rootOf('')): Handler {
  const groups = groupRoutes(routes);
  const responders = new Map(routes.map((route) => [route, createResponder(app, route)]));
  return async (request, invocation) => {
    // The host takes methods in any case. The standard `Request` inside `request` writes all but PATCH in upper case.
    const method = request.method.toUpperCase();
    const wanted = method === 'HEAD' ? 'GET' : method;
    const response = await catchProblems(invocation, root, async (spent) => {
      const segments = readSegments(request.params.path ?? '', request.headers);
      const matches = findMatches(groups, segments);
      const match = matches.find(({ route }) => route.method === wanted);
      nameRequest(method, `${root}/${match?.route.path ?? ANY_PATH}`);
      if (match && segments.at(-1) === '') refuseEmptyValue(findMatches(groups, segments, true), wanted);
      const respond = match && responders.get(match.route);
      if (respond) {
        const responding = respond({ request, root, params: match.params, spent, invocation });
        return toResponse(await responding.catch(notingMissing(app)), spent);
      }
      // Throws while a setting is wrong.
      app();
      const found = matches.map((one) => one.route.method);
      const [name = ''] = segments;
      const reads = () => nameReads(routes, root, segments) || nameReads(routes, root, [name]);
      const hint = nameMissing(routes, segments) || nameSimilar(routes, name) || (wanted === 'GET' ? reads() : '');
      return toResponse(respondToUnmatched(root, method, found, hint), spent);
    });
    if (method !== 'HEAD') return toTextResponse(response);
    const { body: _, ...head } = response;
    return head;
  };
}

/** What a table that was deleted under the app makes of a request: the next check of the health names it. */
function notingMissing(app: () => App): (error: unknown) => never {
  return (error) => {
    if (hasCode(error, 'not-provisioned')) app().noteMissing?.();
    throw error;
  };
}

type Respond = (
  request: Pick<Exchange, 'root' | 'params' | 'request' | 'invocation' | 'spent'>,
) => Promise<RouteResult>;

/** Creates the function that passes the requests of a route through the middleware. It throws the error that the response reports as a problem. */
export function createResponder(open: () => App, route: Route): Respond {
  const handle = MIDDLEWARE.reduceRight<Next>(
    (next, middleware) => middleware(route, next),
    (exchange) => {
      const { request, invocation, bytes } = exchange;
      const app = open();
      const unchecked = async () => {
        requireJson(request);
        return parseJson(await bytes());
      };
      return route.handle({
        ...exchange,
        app,
        engine: app.engine,
        limits: app.limits,
        route,
        log: invocation,
        headers: request.headers,
        isHead: request.method.toUpperCase() === 'HEAD',
        ready: () => app.ready(invocation),
        unchecked,
        json: async () => {
          const body = await unchecked();
          checkJson(body, MAX_BODY_DEPTH);
          return body;
        },
      });
    },
  );
  return (routed) => {
    const { request } = routed;
    // Parsing the whole URL would take longer, and most requests have no query.
    const start = request.url.indexOf('?');
    const query = new URLSearchParams(start < 0 ? '' : request.url.slice(start + 1));
    // The body can be read once.
    let body: Promise<Uint8Array> | undefined;
    const bytes = () => {
      body ??= readBytes(request, route.maxBodyBytes);
      return body;
    };
    const isExplanation = query.get('explain') === 'true';
    return handle({ ...routed, open, query, isExplanation, bytes, caller: NOBODY, record: doIt });
  };
}

function doIt<Done>(write: () => Promise<Done>): Promise<Done> {
  return write();
}

export interface Segment {
  readonly text: string;
  /** In lower case, because literals ignore case, as those of the Functions host do. */
  readonly folded: string;
  /** The name of a parameter, which is one segment of any text. */
  readonly parameter: string | undefined;
}

interface ParsedRoute {
  readonly route: Route;
  readonly segments: readonly Segment[];
}

interface Match {
  readonly route: Route;
  /** Decoded. */
  readonly params: Readonly<Record<string, string>>;
}

export function parseSegments(path: string): Segment[] {
  return path.split('/').map((text) => ({
    text,
    folded: text.toLowerCase(),
    parameter: /^\{(\w+)\}$/.exec(text)?.[1],
  }));
}

/**
 * Groups the routes that can match the same path, and sorts each group: a route precedes those that have a parameter where it
 * has a literal, and the first segment that differs decides.
 */
export function groupRoutes(routes: readonly Route[]): ReadonlyMap<string, readonly ParsedRoute[]> {
  const parsed = routes.map((route) => ({ route, segments: parseSegments(route.path) }));
  const precedenceOf = ({ segments }: ParsedRoute) =>
    segments.map(({ parameter }) => (parameter === undefined ? 0 : 1)).join('');
  parsed.sort((one, other) => (precedenceOf(one) < precedenceOf(other) ? -1 : 1));
  return Map.groupBy(parsed, ({ route }) => groupOf(route.path.split('/')));
}

/** Every path begins with a literal. */
export function groupOf([first = '', ...others]: readonly string[]): string {
  return `${first.toLowerCase()}/${others.length}`;
}

/**
 * The routes of the decoded segments of a path, the preferred one of each method first. A trailing slash is ignored; with `isEmptyLast`, it
 * begins a parameter without text.
 */
function findMatches(
  groups: ReturnType<typeof groupRoutes>,
  segments: readonly string[],
  isEmptyLast = false,
): readonly Match[] {
  const values = segments.at(-1) === '' && !isEmptyLast ? segments.slice(0, -1) : segments;
  const matches: Match[] = [];
  nextRoute: for (const { route, segments: wanted } of groups.get(groupOf(values)) ?? []) {
    const params: Record<string, string> = {};
    for (const [index, { folded, parameter }] of wanted.entries()) {
      const value = values[index] ?? '';
      const isAccepted = value !== '' || (isEmptyLast && index === wanted.length - 1);
      if (parameter !== undefined && isAccepted) params[parameter] = value;
      else if (folded !== value.toLowerCase()) continue nextRoute;
    }
    matches.push({ route, params });
  }
  return matches;
}

/** Without its empty last value, the path is that of a list, a range or another entity. */
function refuseEmptyValue(matches: readonly Match[], method: string): void {
  const match = matches.find(({ route }) => route.method === method);
  if (!match) return;
  const field = match.route.path.replace(/^.*\{(\w+)\}$/, '$1');
  throw new RowkeyError('invalid-input', `The path ends with an empty value of "${field}".`, {
    field,
    accepted: 'a path with a value after its last slash, or without that slash',
  });
}

/** The routes that a model has only if it declares something. */
const DECLARED_ROUTES = [
  [
    /^operations\/(backup|history|undelete|differences|restore)\b/,
    'declares no backup: add backup: { days: 35 } to defineModel',
  ],
  [
    /^operations\/users\/(block|unblock|blocked)$/,
    'does not declare blocksUsers: add blocksUsers: true to defineModel',
  ],
  [
    /^(me\/data|operations\/users\/(data|erase))$/,
    'has no entity with ofUser: name the field that has the subject of the user',
  ],
] as const;

/** A sentence with what the model would have to declare to have the path. Otherwise an empty text. */
function nameMissing(routes: readonly Route[], segments: readonly string[]): string {
  const path = segments.join('/');
  const [pattern, what] = DECLARED_ROUTES.find(([one]) => one.test(path)) ?? [];
  return !pattern || routes.some((route) => pattern.test(route.path)) ? '' : ` The model ${what}.`;
}

/** A sentence with the entity whose name begins as that of the path, such as `sessions` for `session`. Otherwise an empty text. */
function nameSimilar(routes: readonly Route[], name: string): string {
  const names = [...new Set(routes.flatMap(({ entity }) => entity?.name ?? []))];
  const folded = name.toLowerCase();
  if (folded.length < SHORTEST_SIMILAR || routes.some(({ path }) => path.split('/')[0] === folded)) return '';
  const similar = names.find((one) => one.startsWith(folded) || folded.startsWith(one));
  return similar === undefined ? '' : ` There is ${similar}.`;
}

/** In characters. Fewer begin many names. */
const SHORTEST_SIMILAR = 3;

/** A sentence with the paths that read an entity, after the path of the entity alone. Otherwise an empty text. */
function nameReads(routes: readonly Route[], root: string, segments: readonly string[]): string {
  const below = `${segments.join('/').replace(/\/$/, '').toLowerCase()}/`;
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
  hint: string,
): RouteResult {
  if (found.length === 0)
    throw new RowkeyError('not-found', `No route matches the path.${hint}`, {
      field: 'path',
      accepted: `the paths in ${root}/openapi.json`,
    });
  const accepted = ANY_METHOD.filter(
    (each) => each === 'OPTIONS' || found.some((one) => one === each || (one === 'GET' && each === 'HEAD')),
  ).join(', ');
  if (method === 'OPTIONS') return { status: 204, headers: { allow: accepted } };
  throw new RowkeyError('method-not-allowed', `Method ${method} is not supported by this path.${hint}`, { accepted });
}
