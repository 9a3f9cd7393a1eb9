import type { HttpRequest, HttpResponseInit, InvocationContext } from '@azure/functions';
import { canReadWhole, requireRole, requireWholeReader } from '../access/rule.ts';
import type { Caller } from '../access/token.ts';
import { rereadIfBlobGone } from '../api/view.ts';
import { RowkeyError } from '../base/errors.ts';
import { withArchives } from '../define/declaration/entity.ts';
import { collectChanges } from '../engine/note-change.ts';
import { FurtherRowLost } from '../engine/read/entity-rows.ts';
import { type Cost, measureCost } from '../storage/cost.ts';
import { explain } from '../storage/explain.ts';
import { PROBLEM_TYPE, reportProblem } from './problem.ts';
import { queryError, readBoolean } from './query.ts';
import { parseJson, readBytes, requireJson } from './request-body.ts';
import { type App, EXPLANATION_TYPE, type RequestContext, type Route, type RouteResult } from './route.ts';

/**
 * The headers that a page of another origin may read besides the CORS-safelisted ones. The CORS settings of the platform
 * cannot expose headers.
 */
const EXPOSED_HEADERS = 'Content-Location, ETag, Link, Location, Retry-After, Server-Timing, WWW-Authenticate';
const COMMON_HEADERS = {
  'cache-control': 'private, no-cache',
  // Successes and errors depend on the caller.
  vary: 'Authorization',
  'x-content-type-options': 'nosniff',
  'access-control-expose-headers': EXPOSED_HEADERS,
};
const NOBODY: Caller = { subject: '', roles: [], claims: {} };

/** Runs `work` and returns its result, or its error as a problem, with the headers that every response has. */
export function respond(
  invocation: InvocationContext,
  root: string,
  work: (spent: Spent) => Promise<RouteResult>,
): Promise<HttpResponseInit> {
  return catchProblems(invocation, root, async (spent) => toResponse(await work(spent), spent));
}

/** Returns the error of `work`, or of its serialization, as a problem: the host would respond without a body. */
export function catchProblems(
  invocation: InvocationContext,
  root: string,
  work: (spent: Spent) => Promise<HttpResponseInit>,
): Promise<HttpResponseInit> {
  return measureCost((cost) => {
    const spent: Spent = { cost };
    return work(spent).catch((error: unknown) => toResponse(toErrorResult(error, root, invocation), spent));
  });
}

export interface Spent {
  readonly cost: Cost;
  /** Milliseconds of appending to the audit log, partly beside other storage calls, if there was something to record. */
  audit?: number;
}

export interface RouteRequest {
  readonly request: HttpRequest;
  readonly root: string;
  /** The parameters of the path, with `%2F` still encoded. */
  readonly params: Readonly<Record<string, string>>;
  readonly spent: Spent;
  readonly invocation: InvocationContext;
}

/** Returns the caller; `roles` is undefined if no token is needed. Throws `unauthenticated`, `forbidden`, `wrong-setting`. */
export async function admit(
  app: () => App,
  roles: readonly string[] | undefined,
  request: HttpRequest,
  invocation: InvocationContext,
): Promise<Caller> {
  if (!roles) return NOBODY;
  const caller = await app().authenticate(request.headers.get('authorization') ?? undefined);
  requireRole(caller, roles);
  await app().ready(invocation);
  return caller;
}

/** Checks the caller and the query, then runs the route. The response reports a thrown error as a problem. */
export function callRoute(app: () => App, route: Route, request: RouteRequest): Promise<RouteResult> {
  return checkAndRun(app, route, request).catch((error: unknown) => {
    if (!route.whenMisconfigured || !(error instanceof RowkeyError) || error.code !== 'wrong-setting') throw error;
    // The start has logged the error, and probes of the health route would repeat it.
    return route.whenMisconfigured;
  });
}

async function checkAndRun(
  app: () => App,
  route: Route,
  { request, root, params, spent, invocation }: RouteRequest,
): Promise<RouteResult> {
  // Not `request.query`, in which the host joins repeated parameters.
  const query = queryOf(request.url);
  const caller = await admit(app, route.roles, request, invocation);
  const isExplanation = readBoolean(query, 'explain');
  // An explanation names tables and blobs, which nobody may read without a token.
  if (isExplanation && !route.roles) throw queryError('explain', 'is not accepted by a public route', 'no explain');
  // Every route accepts `explain`, and no route reads it.
  query.delete('explain');
  for (const name of query.keys()) checkParameter(route, name, query.getAll(name));
  let body: Promise<Uint8Array> | undefined;
  const bytes = () => {
    body ??= readBytes(request, route.maxBodyBytes);
    return body;
  };
  const context: FirstContext = {
    app: app(),
    root,
    log: invocation,
    caller,
    params: decodeParams(params),
    query,
    header: (name) => request.headers.get(name) ?? undefined,
    bytes,
    json: async () => {
      requireJson(request);
      return parseJson(await bytes());
    },
  };
  // The steps of a write and of a check name rows, whose keys are fields of all entities in the table.
  if (isExplanation && !isRead(route))
    for (const entity of withArchives(context.app.entities))
      if (entity.table === route.entity?.table) requireWholeReader(entity, caller);
  if (isExplanation) return await explainRoute(() => handleAudited(route, context, spent));
  if (!isRead(route)) await context.app.audit.catchUp();
  return await handleAudited(route, context, spent);
}

/** Parsing the whole URL would take longer, and most requests have no query. */
function queryOf(url: string): URLSearchParams {
  const start = url.indexOf('?');
  return new URLSearchParams(start < 0 ? '' : url.slice(start + 1));
}

type FirstContext = Omit<RequestContext, 'isLastAttempt'>;

/** Records the changes in the audit log before it returns or throws. */
async function handleAudited(route: Route, context: FirstContext, spent: Spent): Promise<RouteResult> {
  const handle = () => handleWithRereads(route, context);
  const result = await collectChanges(context.caller.subject, handle, async (changes) => {
    const since = performance.now();
    await context.app.audit.append(changes).finally(() => {
      spent.audit = (spent.audit ?? 0) + performance.now() - since;
    });
  });
  result.onRecorded?.();
  return result;
}

async function explainRoute(handle: () => Promise<RouteResult>): Promise<RouteResult> {
  const steps = await explain(handle);
  // Concurrent requests share an append to the audit log, so it is not a cost of this one.
  const own = steps.filter((step) => !('write' in step && step.write === 'blob' && step.does === 'append'));
  const headers = { 'cache-control': 'no-store', 'content-type': EXPLANATION_TYPE };
  return { status: 200, body: { steps, transactions: own.length }, headers };
}

/** Retries a read whose blob is missing. A write is not retried: its row is not stale, so a missing blob is lost. */
function handleWithRereads(route: Route, context: FirstContext): Promise<RouteResult> {
  const handle = (isLastAttempt: boolean) =>
    route.handle({ ...context, isLastAttempt }).catch((error: unknown) => {
      throw withLostKey(error, context.caller);
    });
  return rereadIfBlobGone(`Route ${route.name}`, handle, { attempts: isRead(route) ? undefined : 1 });
}

/** A list fails for any of its entities, so its callers need the key of the one to repair. */
function withLostKey(error: unknown, caller: Caller): unknown {
  if (!(error instanceof FurtherRowLost) || !canReadWhole(error.entity, caller)) return error;
  return new RowkeyError(error.code, error.message, { detail: error.detailWithKeys, cause: error });
}

function isRead(route: Route): boolean {
  return route.method === 'GET' || route.isRead === true;
}

function checkParameter({ query = {}, filters = {} }: Route, name: string, values: readonly string[]): void {
  const filter = Object.hasOwn(filters, name) ? filters[name] : undefined;
  if (filter?.refused !== undefined)
    throw queryError(name, `is no filter: the field ${filter.refused}`, 'other fields');
  if (filter) return;
  const names = [...Object.keys(query), ...Object.keys(filters).filter((field) => !filters[field]?.refused)];
  if (names.includes(name) && values.length === 1) return;
  const why = names.includes(name) ? 'is given more than once' : 'is unknown';
  throw queryError(name.slice(0, 100), why, names.length > 0 ? names.join(', ') : 'no query parameters');
}

/** The host decodes a path once, except for an encoded slash, which would split a segment. */
function decodeParams(params: Readonly<Record<string, string>>): Record<string, string> {
  const decoded: Record<string, string> = {};
  for (const name of Object.keys(params)) decoded[name] = params[name]?.replace(/%2f/gi, '/') ?? '';
  return decoded;
}

function toErrorResult(error: unknown, root: string, invocation: InvocationContext): RouteResult {
  const headers: Record<string, string> = { 'content-type': PROBLEM_TYPE };
  const problem = reportProblem(error, root, invocation);
  if (!(error instanceof RowkeyError)) return { status: problem.status, body: problem, headers };
  if (problem.status === 401) headers['www-authenticate'] = 'Bearer';
  if (problem.status === 405 && problem.accepted !== undefined) headers.allow = problem.accepted;
  if (error.retryAfter !== undefined) headers['retry-after'] = String(error.retryAfter);
  if (error.etag !== undefined) headers.etag = error.etag;
  return { status: problem.status, body: problem, headers };
}

function toResponse({ status, body, bytes, headers }: RouteResult, spent: Spent): HttpResponseInit {
  const timing = { 'server-timing': formatTiming(spent) };
  const content = body === undefined ? {} : { 'content-type': 'application/json' };
  return {
    status,
    headers: { ...COMMON_HEADERS, ...timing, ...content, ...headers },
    ...(bytes ? { body: bytes } : body === undefined ? {} : { body: JSON.stringify(body) }),
  };
}

/** The value of `Server-Timing`. */
export function formatTiming({ cost: { transactions, milliseconds }, audit }: Spent): string {
  const storage = `storage;dur=${milliseconds.toFixed(1)};desc="${transactions} transaction${transactions === 1 ? '' : 's'}"`;
  return audit === undefined ? storage : `${storage}, audit;dur=${audit.toFixed(1)};desc="appends, shared"`;
}
