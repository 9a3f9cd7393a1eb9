import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import { handleCors } from './cors.ts';
import { prepareDrain } from './drain-server.ts';
import { hostVersion } from './functions-core.ts';
import { deferBody, hasBody, hasKey, MAX_BODY_BYTES, type RequestHead, readHead, watchClient } from './http-request.ts';
import { invoke } from './invoke.ts';
import type { HostedFunction, HttpTrigger } from './load-app.ts';
import { compileRoute, type Route, templateOf } from './route.ts';
import { type CoreCookie, setCookie } from './set-cookie.ts';

const ADMIN_ROUTE = /^\/admin\/functions\/([^/]+)$/i;
const STATUS_ROUTE = /^\/admin\/host\/status$/i;
/** Headers that an empty response keeps. */
const OF_THE_HOST = ['connection', 'vary', 'access-control-allow-origin'];
/** Larger than the limit in `readHead`, so that `readHead` returns the status of the real host. */
const MAX_HEAD_BYTES = 65_536;
/** The default of Kestrel, the server of the real host. After Node's 5 seconds, a busy machine sends requests on connections that were just closed. */
const KEEP_ALIVE_MS = 130_000;
/** The real host ends a request whose body arrives with less than 240 bytes a second; Node can only bound the whole request. */
const REQUEST_WITHIN_MS = 60_000;
/** Header values that the real host can send; any other value makes the response a 500. */
const HEADER_VALUE = /^[\t\x20-\x7e]*$/;

/** The http output of the library. */
interface HttpOutput {
  readonly statusCode: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly cookies: readonly CoreCookie[];
  readonly body: { readonly bytes: Uint8Array };
}

interface RoutedFunction {
  readonly target: HostedFunction<HttpTrigger>;
  readonly route: Route;
}

interface HttpListenerOptions {
  readonly port: number;
  readonly routePrefix: string;
  /** Origins of web pages that may read the responses; `*` for any. */
  readonly origins: readonly string[];
  /** The key that the admin route and every function whose `authLevel` is not `anonymous` require. */
  readonly key: string;
  /** Starts a timer function. Returns false if no timer has this name. */
  readonly runTimer: (name: string) => boolean;
  /** The time in which a request must have arrived. */
  readonly requestWithinMs?: number;
}

interface HttpListener {
  readonly port: number;
  /** Accepts no more connections, and resolves when the requests in progress have their responses. */
  stop(): Promise<void>;
}

/** Serves http functions on 127.0.0.1. Calls the first function, in order of name, whose route and method match. */
export async function startHttpListener(
  functions: readonly HostedFunction<HttpTrigger>[],
  { port, routePrefix, origins, key, runTimer, requestWithinMs = REQUEST_WITHIN_MS }: HttpListenerOptions,
): Promise<HttpListener> {
  const routed = functions.map((target) => ({
    target,
    route: compileRoute(`/${[routePrefix, templateOf(target)].filter(Boolean).join('/')}`),
  }));
  const server = createServer({
    maxHeaderSize: MAX_HEAD_BYTES,
    requestTimeout: requestWithinMs,
    // Node looks for late requests at this interval.
    connectionsCheckingInterval: requestWithinMs / 4,
  });
  const drain = prepareDrain(server);
  function serve(request: IncomingMessage, response: ServerResponse) {
    drain.begin(response);
    // After a refused body, the next bytes may be that body or a request.
    if (expectsContinue(request)) response.setHeader('connection', 'close');
    const head = readHead(request);
    if (typeof head === 'number') {
      response.setHeader('connection', 'close');
      return endEmpty(response, head);
    }
    if (handleCors(request, response, origins)) return;
    handle(head, request, response).catch(() => {
      // The invocation has logged its failure. As under the real host, the response does not disclose it.
      if (response.headersSent) response.destroy();
      else endEmpty(response, 500);
    });
  }
  // Without listeners for them, Node answers requests with `Expect` itself.
  for (const event of ['request', 'checkContinue', 'checkExpectation']) server.on(event, serve);
  server.keepAliveTimeout = KEEP_ALIVE_MS;

  async function handle(head: RequestHead, request: IncomingMessage, response: ServerResponse) {
    const { path, url, headers } = head;
    const { method = 'GET' } = request;
    const [, timer] = ADMIN_ROUTE.exec(path) ?? [];
    if (timer && method === 'POST') {
      inviteBody(request, response);
      return endEmpty(response, await handleAdmin(timer, head, request));
    }
    if (STATUS_ROUTE.test(path) && method === 'GET') return sendStatus(head, response);
    const found = findFunction(routed, path, method);
    // The real host returns 404 even if only the method is wrong.
    if (!found) return endEmpty(response, 404);
    if (found.target.trigger.authLevel !== 'anonymous' && !hasKey(head, key)) return endEmpty(response, 401);
    if (Number(headers['content-length'] ?? 0) > MAX_BODY_BYTES) {
      response.setHeader('connection', 'close');
      return endEmpty(response, 500);
    }
    inviteBody(request, response);
    const http = {
      method,
      url: url.href,
      nullableHeaders: toNullable(Object.entries(headers)),
      nullableQuery: toNullable(
        [...new Set(url.searchParams.keys())].map((name) => [name, url.searchParams.getAll(name)]),
      ),
      nullableParams: toNullable(Object.entries(found.params)),
      body: { bytes: new Uint8Array() },
    };
    const { returnValue } = await invoke(found.target, {
      data: { http },
      traceParent: headers.traceparent,
      gone: watchClient(request),
      prepare: deferBody(request),
    });
    send(response, returnValue?.http as HttpOutput | undefined);
  }

  function inviteBody(request: IncomingMessage, response: ServerResponse) {
    if (!expectsContinue(request) || !hasBody(request)) return;
    if (!drain.isDraining) response.removeHeader('connection');
    response.writeContinue();
  }

  function sendStatus(head: RequestHead, response: ServerResponse) {
    if (!hasKey(head, key)) return endEmpty(response, 401);
    response.setHeader('content-type', 'application/json; charset=utf-8');
    response.end(JSON.stringify({ state: 'Running', version: hostVersion }));
  }

  /** The key is checked first: no web page has it, so none can start a timer. */
  async function handleAdmin(timer: string, head: RequestHead, request: IncomingMessage): Promise<number> {
    if (!hasKey(head, key)) return 401;
    if (!/^application\/json\b/i.test(head.headers['content-type'] ?? '')) return 415;
    const isObject = await json(request).then(
      (body) => typeof body === 'object' && body !== null,
      () => false,
    );
    if (!isObject) return 400;
    return runTimer(timer) ? 202 : 404;
  }

  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', reject).listen(port, '127.0.0.1', resolve);
  await promise.catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EADDRINUSE') throw error;
    throw new Error(`Port ${port} is in use: stop what listens there, or choose another with --port.`);
  });
  const address = server.address();

  return {
    port: typeof address === 'object' && address ? address.port : port,
    stop: drain.drain,
  };
}

function expectsContinue({ headers }: IncomingMessage): boolean {
  return headers.expect?.toLowerCase() === '100-continue';
}

function findFunction(routed: readonly RoutedFunction[], path: string, method: string) {
  const lowerPath = path.toLowerCase();
  for (const { target, route } of routed) {
    if (!lowerPath.startsWith(route.beginning)) continue;
    const { methods } = target.trigger;
    if (methods.length > 0 && !methods.includes(method)) continue;
    const params = route.match(path);
    if (params) return { target, params };
  }
  return undefined;
}

/** The shape that the library expects. Like the real host, it joins several values of one name with commas. */
function toNullable(entries: readonly (readonly [string, string | string[] | undefined])[]) {
  return Object.fromEntries(entries.map(([key, value]) => [key, { value: String(value ?? '') }]));
}

function send(response: ServerResponse, output: HttpOutput | undefined) {
  if (!output) return endEmpty(response, 204);
  const { statusCode, headers, cookies, body } = output;
  const isSendable = Object.values(headers).every((value) => HEADER_VALUE.test(value));
  if (!isSendable) return endEmpty(response, 500);
  // The host adds its own `Vary` to that of the function.
  for (const [name, value] of Object.entries(headers))
    if (name.toLowerCase() === 'vary') response.appendHeader(name, value);
    else response.setHeader(name, value);
  if (cookies.length > 0) response.setHeader('set-cookie', cookies.map(setCookie));
  response.statusCode = Number(statusCode);
  // Without a length, as from the real host.
  if (response.req.method === 'HEAD') response.flushHeaders();
  // The real host chunks a body of which the function gives no length. With this header Node does so too, and sends head and body in one
  // write.
  else if (body.bytes.byteLength > 0 && !response.hasHeader('content-length'))
    response.setHeader('transfer-encoding', 'chunked');
  response.end(body.bytes);
}

function endEmpty(response: ServerResponse, status: number) {
  for (const name of response.getHeaderNames()) if (!OF_THE_HOST.includes(name)) response.removeHeader(name);
  response.writeHead(status, status === 204 ? {} : { 'content-length': 0 }).end();
}
