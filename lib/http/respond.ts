import type { HttpRequest, HttpResponseInit, InvocationContext } from '@azure/functions';
import { requireWholeReader } from '../access/rule.ts';
import { type Caller, requireRole } from '../access/token.ts';
import { collectChanges } from '../engine/note-change.ts';
import { RowkeyError } from '../errors.ts';
import { BlobGone } from '../patterns/large-entities.ts';
import { type Cost, measureCost } from '../storage/cost.ts';
import { explain } from '../storage/explain.ts';
import { FOR_OPERATORS, INTERNAL_PROBLEM, PROBLEM_TYPE, toProblem } from './problem.ts';
import type { App, RequestContext, Route, RouteResult } from './route.ts';

/** A batch of a hundred entities of a few KB each; a body is read into memory as a whole. */
const MAX_BODY_BYTES = 1_048_576;
/**
 * What a page of another origin may read of an answer besides its body and what every browser shows it; the platform's
 * settings for other origins have no word for it.
 */
const EXPOSED_HEADERS = 'Content-Location, ETag, Link, Location, Retry-After, Server-Timing, WWW-Authenticate';
const READ_ATTEMPTS = 4;
const NOBODY: Caller = { subject: '', roles: [], claims: {} };

/** The handler that the functions runtime calls: who, what, and every failure as problem details. */
export function respondWith(app: () => App, route: Route) {
  return (request: HttpRequest, context: InvocationContext): Promise<HttpResponseInit> =>
    respond(context, (spent) =>
      callRoute(app, route, { request, params: request.params, spent, context }).catch((error: unknown) => {
        if (!route.refusal || !(error instanceof RowkeyError) || error.code !== 'wrong-setting') throw error;
        context.error(error.message);
        return route.refusal;
      }),
    );
}

/** Runs `work` and returns its answer, or its failure as problem details, with the headers that every response has. */
export function respond(
  context: InvocationContext,
  work: (spent: Spent) => Promise<RouteResult>,
): Promise<HttpResponseInit> {
  return measureCost(async (cost) => {
    const spent: Spent = { cost };
    const answer = await work(spent).catch((error: unknown) => failure(error, context));
    try {
      return toResponse(answer, spent);
    } catch (error) {
      // The body cannot be written as JSON. The host would answer without a body.
      return toResponse(failure(error, context), spent);
    }
  });
}

export interface Spent {
  readonly cost: Cost;
  /** Milliseconds for which the audit log was waited for, where it was. */
  audit?: number;
}

export interface RouteRequest {
  readonly request: HttpRequest;
  /** The values of the path, with `%2F` still encoded. */
  readonly params: Readonly<Record<string, string>>;
  readonly spent: Spent;
  readonly context: InvocationContext;
}

/** Checks the caller and the query, then runs the route. Throws what the response reports as problem details. */
export async function callRoute(
  app: () => App,
  route: Route,
  { request, params, spent, context }: RouteRequest,
): Promise<RouteResult> {
  const query = new URL(request.url).searchParams;
  const caller = route.roles ? await app().authenticate(request.headers.get('authorization') ?? undefined) : NOBODY;
  if (route.roles) requireRole(caller, route.roles);
  if (route.roles) await app().ready(context);
  const isExplanation = toExplain(query);
  for (const name of query.keys()) checkParameter(route, name, query.getAll(name));
  let body: Promise<Uint8Array> | undefined;
  const bytes = () => {
    body ??= readBody(request, route.maxBodyBytes);
    return body;
  };
  const call: Omit<RequestContext, 'isLastAttempt'> = {
    app: app(),
    log: context,
    caller,
    params: decoded(params),
    query,
    header: (name) => request.headers.get(name) ?? undefined,
    bytes,
    json: async () => {
      requireJson(request);
      return toJson(await bytes());
    },
  };
  // The steps of a write name rows of indexes, whose keys are fields of the entity.
  if (isExplanation && route.entity && route.method !== 'GET') requireWholeReader(route.entity, caller);
  if (isExplanation) return explanationOf(() => recorded(route, call, spent));
  if (route.method !== 'GET') await call.app.audit.catchUp();
  return recorded(route, call, spent);
}

/** Answers, and throws, only once what was changed is in the audit log. */
function recorded(route: Route, call: Omit<RequestContext, 'isLastAttempt'>, spent: Spent): Promise<RouteResult> {
  const handle = () => unlessBlobGone(route, call);
  return collectChanges(call.caller.subject, handle, async (changes) => {
    const since = performance.now();
    await call.app.audit.append(changes).finally(() => {
      spent.audit = performance.now() - since;
    });
  });
}

async function explanationOf(answer: () => Promise<RouteResult>): Promise<RouteResult> {
  const steps = await explain(answer);
  // An append to the audit log is shared by all that are waiting for one, and no cost of the request.
  const own = steps.filter((step) => !('write' in step && step.write === 'blob' && step.does === 'append'));
  return { status: 200, body: { steps, transactions: own.length }, headers: { 'cache-control': 'no-store' } };
}

/** A reader may have the row of before and find its blob replaced: it has to read the row again. Then the blob is lost. */
async function unlessBlobGone(route: Route, call: Omit<RequestContext, 'isLastAttempt'>): Promise<RouteResult> {
  for (let attempt = 1; ; attempt += 1) {
    const isLastAttempt = route.method !== 'GET' || attempt === READ_ATTEMPTS;
    try {
      return await route.handle({ ...call, isLastAttempt });
    } catch (error) {
      if (!(error instanceof BlobGone)) throw error;
      if (isLastAttempt) throw new RowkeyError('needs-repair', `A blob is lost, as ${route.name} found.`, {}, error);
    }
  }
}

/** `explain=true` is taken on every route, and taken out of the query, as it asks about the rest. */
function toExplain(query: URLSearchParams): boolean {
  const asked = query.get('explain');
  query.delete('explain');
  if (asked === null || asked === 'false') return false;
  if (asked === 'true') return true;
  throw new RowkeyError('invalid-input', 'The query parameter explain is true or false.', {
    field: 'explain',
    accepted: 'true, false',
  });
}

function checkParameter({ query = {} }: Route, name: string, values: readonly string[]): void {
  const names = Object.keys(query);
  if (names.includes(name) && values.length === 1) return;
  const why = names.includes(name) ? 'is given more than once' : 'is not known here';
  throw new RowkeyError('invalid-input', `The query parameter ${name} ${why}.`, {
    field: name,
    accepted: names.length > 0 ? names.join(', ') : 'no query parameters',
  });
}

/** The host decodes a path once and leaves an encoded slash as it is, lest it part the path. */
function decoded(params: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(params).map(([name, value]) => [name, value.replace(/%2f/gi, '/')]));
}

async function readBody(request: HttpRequest, maxBytes = MAX_BODY_BYTES): Promise<Uint8Array> {
  const declared = request.headers.get('content-length');
  // The host has read the body by now; a copy of one that is too large is not made.
  if (Number(declared) > maxBytes) throw bodyTooLarge(maxBytes);
  const bytes = await request.arrayBuffer();
  if (bytes.byteLength > maxBytes) throw bodyTooLarge(maxBytes);
  // The Functions host delivers a body of undeclared length as an empty one.
  if (bytes.byteLength === 0 && declared === null)
    throw new RowkeyError('length-required', 'The body has no Content-Length; chunked bodies are not supported.', {
      accepted: 'a body with the header Content-Length',
    });
  return new Uint8Array(bytes);
}

function bodyTooLarge(maxBytes: number): RowkeyError {
  return new RowkeyError('too-large', 'The body is too large.', { accepted: `at most ${maxBytes} bytes` });
}

/** A body without a media type is read as JSON. */
function requireJson(request: HttpRequest): void {
  const type = request.headers.get('content-type')?.split(';')[0]?.trim() ?? '';
  if (type === '' || /^application\/([\w.-]+\+)?json$/i.test(type)) return;
  throw new RowkeyError('unsupported-media-type', `Unsupported media type for the body: ${type.slice(0, 100)}.`, {
    accepted: 'application/json',
  });
}

function toJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    throw new RowkeyError('invalid-input', 'The body is not JSON in UTF-8.', { accepted: 'application/json' });
  }
}

function failure(error: unknown, context: InvocationContext): RouteResult {
  if (!(error instanceof RowkeyError)) {
    // Not the message, which may hold a key or what was sent; where it happened is enough to find it.
    const { name, stack = '' } = error instanceof Error ? error : new Error();
    context.error(
      `An unexpected ${name}`,
      stack
        .split('\n')
        .filter((line) => line.startsWith('    at '))
        .join('\n'),
    );
    return { status: INTERNAL_PROBLEM.status, body: INTERNAL_PROBLEM, headers: { 'content-type': PROBLEM_TYPE } };
  }
  if (error.code in FOR_OPERATORS) context.error(error.message);
  const problem = toProblem(error);
  const headers: Record<string, string> = { 'content-type': PROBLEM_TYPE };
  if (problem.status === 401) headers['www-authenticate'] = 'Bearer';
  if (problem.status === 405 && problem.accepted !== undefined) headers.allow = problem.accepted;
  if (error.details.retryAfter !== undefined) headers['retry-after'] = String(error.details.retryAfter);
  if (error.details.etag !== undefined) headers.etag = error.details.etag;
  return { status: problem.status, body: problem, headers };
}

function toResponse({ status, body, bytes, headers }: RouteResult, spent: Spent): HttpResponseInit {
  const common = {
    'server-timing': timing(spent),
    'cache-control': 'private, no-cache',
    // What is shown depends on who asks, and so does a refusal.
    vary: 'Authorization',
    'x-content-type-options': 'nosniff',
    'access-control-expose-headers': EXPOSED_HEADERS,
  };
  const content = body === undefined ? {} : { 'content-type': 'application/json' };
  return {
    status,
    headers: { ...common, ...content, ...headers },
    ...(bytes ? { body: bytes } : body === undefined ? {} : { body: JSON.stringify(body) }),
  };
}

function timing({ cost: { transactions, milliseconds }, audit }: Spent): string {
  const storage = `storage;dur=${milliseconds.toFixed(1)};desc="${transactions} transaction${transactions === 1 ? '' : 's'}"`;
  return audit === undefined ? storage : `${storage}, audit;dur=${audit.toFixed(1)};desc="1 append, shared"`;
}
