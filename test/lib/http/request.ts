import { type HttpMethod, HttpRequest, InvocationContext } from '@azure/functions';
import { engineCore } from '../../kit/engine.ts';
import { type App, httpDoor, type RequestContext, type Route } from '../../kit/http.ts';
import type { Internal } from '../../kit/internal.ts';
import { storageAccounts } from '../../kit/storage.ts';
import { log } from '../../silent-log.ts';
import { testStorage } from '../../storage.ts';

/** An app without entities, on the test file's own storage, in which everybody is a reader. */
export function testApp(url: string, over: Partial<App> = {}): App {
  return {
    engine: engineCore.createEngine(storageAccounts.openStorage({ connectionString: testStorage(url) })),
    entities: [],
    operatorRole: 'operator',
    limits: [],
    trustedProxies: 0,
    execute: () => {
      throw new Error('No test has operations.');
    },
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
    route: testRoute(),
    root: '/api',
    log,
    caller: { subject: 'ann', roles: ['reader'], claims: {} },
    params: {},
    query: new URLSearchParams(),
    headers: new Headers(),
    isHead: false,
    isExplanation: false,
    record: (write) => write(),
    json: async () => undefined,
    unchecked: async () => undefined,
    bytes: async () => new Uint8Array(),
    ...over,
  };
}

export interface TestRoute extends Partial<Omit<Route, 'handle'>> {
  readonly handle?: (context: RequestContext, view: Internal['View']) => Promise<Internal['RouteResult']>;
}

/** A route of an operation whose input is the whole context, and whose output is the result. */
export function testRoute({
  name = 'things-get',
  method = 'GET',
  kind = method === 'GET' ? 'read' : 'write',
  handle = async () => ({ status: 200, body: {} }),
  ...over
}: TestRoute = {}): Route {
  const roles = 'roles' in over ? over.roles : ['reader'];
  const run = (view: Internal['View'], context: RequestContext) => handle(context, view);
  return httpDoor.bind(
    { name, summary: 'Things', kind, roles, run },
    {
      method,
      path: 'things',
      success: { status: 200, description: 'Things' },
      ...over,
      read: (context) => context,
      present: (result) => result,
    },
  );
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
