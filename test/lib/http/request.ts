import { type HttpMethod, HttpRequest, InvocationContext } from '@azure/functions';
import { createEngine } from '../../../lib/engine/engine.ts';
import type { App, RequestContext, Route } from '../../../lib/http/route.ts';
import { openStorage } from '../../../lib/storage/storage.ts';
import { testStorage } from '../../storage.ts';

/** An app without entities, on the test file's own storage, in which everybody is a reader. */
export function testApp(url: string, over: Partial<App> = {}): App {
  return {
    engine: createEngine(openStorage({ connectionString: testStorage(url) })),
    entities: [],
    signer: () => {
      throw new Error('No test signs.');
    },
    audit: { append: async () => undefined, catchUp: async () => undefined },
    ready: async () => undefined,
    findMissing: async () => [],
    authenticate: async () => ({ subject: 'ann', roles: ['reader'], claims: {} }),
    ...over,
  };
}

export function testContext(app: App, over: Partial<RequestContext> = {}): RequestContext {
  return {
    app,
    engine: app.engine,
    root: '/api',
    log: { warn: () => undefined, error: () => undefined },
    caller: { subject: 'ann', roles: ['reader'], claims: {} },
    params: {},
    query: new URLSearchParams(),
    header: () => undefined,
    json: async () => undefined,
    bytes: async () => new Uint8Array(),
    isLastAttempt: true,
    ...over,
  };
}

export function testRoute(over: Partial<Route> = {}): Route {
  return {
    name: 'things-get',
    method: 'GET',
    path: 'things',
    roles: ['reader'],
    summary: 'Things',
    success: { status: 200, description: 'Things' },
    handle: async () => ({ status: 200, body: {} }),
    ...over,
  };
}

export interface TestRequest {
  readonly method?: HttpMethod;
  /** Below `/api/`, with the query. */
  readonly path?: string;
  readonly params?: Record<string, string>;
  readonly headers?: Record<string, string>;
  readonly body?: string | Uint8Array;
}

export function testRequest({ method = 'GET', path = 'things', params, headers, body }: TestRequest = {}): HttpRequest {
  return new HttpRequest({
    method,
    url: `http://localhost/api/${path}`,
    ...(params ? { params } : {}),
    ...(headers ? { headers } : {}),
    ...(body === undefined ? {} : { body: typeof body === 'string' ? { string: body } : { bytes: body } }),
  });
}

/** Collects what a function logs. */
export function testInvocation(): { invocation: InvocationContext; logged: string[] } {
  const logged: string[] = [];
  const invocation = new InvocationContext({ logHandler: (_level, ...args) => void logged.push(args.join(' ')) });
  return { invocation, logged };
}
