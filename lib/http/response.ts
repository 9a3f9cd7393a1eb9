import { Blob } from 'node:buffer';
import { HttpResponse, type HttpResponseInit, type InvocationContext } from '@azure/functions';
import { isKnownError } from '../base/errors.ts';
import { jsonText } from '../base/json-text.ts';
import { measureCost } from '../storage/cost.ts';
import { PROBLEM_TYPE, reportProblem } from './problem.ts';
import type { RouteResult, Spent } from './route.ts';

/**
 * The headers that a page of another origin may read besides the CORS-safelisted ones. The CORS settings of the platform
 * cannot expose headers.
 */
const EXPOSED_HEADERS =
  'Content-Location, Content-Range, ETag, Link, Location, Retry-After, Server-Timing, WWW-Authenticate';
const COMMON_HEADERS = {
  'cache-control': 'private, no-cache',
  // Successes and errors depend on the caller, and the host may allow each origin by its name.
  vary: 'Authorization, Origin',
  'x-content-type-options': 'nosniff',
  'access-control-expose-headers': EXPOSED_HEADERS,
};

/** The response with the headers that every response has. */
export function toResponse({ status, body, bytes, headers }: RouteResult, spent: Spent): HttpResponseInit {
  const timing = { 'server-timing': formatTiming(spent) };
  const content = body === undefined ? {} : { 'content-type': 'application/json' };
  return {
    status,
    headers: { ...COMMON_HEADERS, ...timing, ...content, ...headers },
    ...(bytes ? { body: bytes } : body === undefined ? {} : { body: jsonText(body) }),
  };
}

/** The value of `Server-Timing`. */
export function formatTiming({ cost: { transactions, milliseconds }, audit }: Spent): string {
  const storage = `storage;dur=${milliseconds.toFixed(1)};desc="${transactions} transaction${transactions === 1 ? '' : 's'}"`;
  return audit === undefined ? storage : `${storage}, audit;dur=${audit.toFixed(1)};desc="appends, shared"`;
}

/** Returns the error of `work`, or of its serialization, as a problem: the host would respond without a body. */
export function catchProblems(
  invocation: InvocationContext,
  root: string,
  work: (spent: Spent) => Promise<HttpResponseInit>,
): Promise<HttpResponseInit> {
  return measureCost((cost) => {
    const spent: Spent = { cost };
    return work(spent).catch((error: unknown) => toErrorResponse(error, { root, invocation, spent }));
  });
}

interface Failed {
  readonly root: string;
  readonly invocation: InvocationContext;
  readonly spent: Spent;
}

/** An error of an app may have anything in its members, such as what JSON or a header does not have. */
function toErrorResponse(error: unknown, { root, invocation, spent }: Failed): HttpResponseInit {
  try {
    const response = toResponse(toErrorResult(error, root, invocation), spent);
    // Throws for a header that cannot be sent.
    new Headers(response.headers as Record<string, string>);
    return response;
  } catch (cause) {
    return toResponse(toErrorResult(cause, root, invocation), spent);
  }
}

function toErrorResult(error: unknown, root: string, invocation: InvocationContext): RouteResult {
  const headers: Record<string, string> = { 'content-type': PROBLEM_TYPE };
  const problem = reportProblem(error, root, invocation);
  if (!isKnownError(error)) return { status: problem.status, body: problem, headers };
  if (problem.status === 401) headers['www-authenticate'] = 'Bearer';
  if (problem.status === 416 && problem.accepted !== undefined) headers['content-range'] = problem.accepted;
  if (problem.status === 405 && problem.accepted !== undefined) headers.allow = problem.accepted;
  if (error.retryAfter !== undefined) headers['retry-after'] = String(error.retryAfter);
  if (error.etag !== undefined) headers.etag = error.etag;
  return { status: problem.status, body: problem, headers };
}

const encoder = new TextEncoder();

/**
 * A response that keeps its text. From an `HttpResponseInit` with a text, the library creates a stream and reads it back, which
 * takes several percent of the CPU of a GET by key.
 */
class TextResponse extends HttpResponse {
  override readonly arrayBuffer: HttpResponse['arrayBuffer'];
  override readonly text: HttpResponse['text'];
  override readonly json: HttpResponse['json'];
  override readonly blob: HttpResponse['blob'];
  override readonly clone: HttpResponse['clone'];
  readonly #text: string;

  constructor(init: HttpResponseInit, text: string) {
    super(init);
    this.#text = text;
    this.arrayBuffer = async () => encoder.encode(text).buffer;
    this.text = async () => text;
    this.json = async () => JSON.parse(text);
    this.blob = async () => new Blob([text]);
    this.clone = () => new TextResponse({ ...init, headers: this.headers }, text);
  }

  // @ts-expect-error The library declares a property and has an accessor. Read only if an app has `enableHttpStream`.
  override get body() {
    return new Response(this.#text).body as HttpResponse['body'];
  }
}

/** Returns the response in the form that costs the library least. */
export function toTextResponse(response: HttpResponseInit): HttpResponseInit {
  const { body, ...init } = response;
  return typeof body === 'string' ? new TextResponse(init, body) : response;
}
