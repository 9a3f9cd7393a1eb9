import { type HttpRequest, HttpResponse, type HttpResponseInit, type InvocationContext } from '@azure/functions';
import type { Caller } from '../access/token.ts';
import { toCallersError } from '../api/app-operation.ts';
import { type Operation, perform } from '../api/operation.ts';
import { findCaller } from './find-caller.ts';
import { catchProblems, formatTiming } from './response.ts';
import { type App, NOBODY, rootOf, type Spent } from './route.ts';

export interface HandlerOptions {
  /**
   * The caller needs one of these roles of the model; undefined if everybody may call it. The role of `anyone` needs a limit of requests without
   * an entity.
   */
  readonly roles: readonly string[] | undefined;
}

/** An HTTP function of an app. Without a token, the subject of the caller is empty. */
export type Handle = (
  request: HttpRequest,
  details: { readonly caller: Caller; readonly context: InvocationContext },
) => HttpResponseInit | Promise<HttpResponseInit>;

/** A handler that `app.http` accepts. */
export type Handler = (request: HttpRequest, context: InvocationContext) => Promise<HttpResponseInit>;

/** Checks the caller as a route does, adds `Server-Timing` to the response, and returns errors of `handle` as problems. */
export function createHandler(
  app: () => App,
  { roles, root = rootOf('') }: HandlerOptions & { readonly root?: string },
  handle: Handle,
): Handler {
  const run: Handle = async (request, details) => {
    try {
      return await handle(request, details);
    } catch (error) {
      throw toCallersError(`The function "${details.context.functionName}"`, error);
    }
  };
  return (request, context) =>
    catchProblems(context, root, async (spent) => {
      // Works while a setting is wrong, as nothing of the app is needed.
      if (!roles) return withTiming(await run(request, { caller: NOBODY, context }), spent);
      const { engine, limits, ready } = app();
      const caller = await findCaller(app(), request.headers);
      const operation: Operation<HttpRequest, HttpResponseInit> = {
        name: context.functionName,
        summary: 'A function of the app',
        kind: 'write',
        roles,
        isOfApp: true,
        run: async () => run(request, { caller, context }),
      };
      // The store records the changes that the function makes.
      const call = {
        engine,
        limits,
        caller,
        ready: () => ready(context),
        record: <Done>(write: () => Promise<Done>) => write(),
      };
      return withTiming((await perform(operation, call, () => request)).output, spent);
    });
}

function withTiming(response: HttpResponseInit, spent: Spent): HttpResponseInit {
  // Copied, unless they belong to an object that cannot be copied: a function may return the same headers each time.
  const headers = response instanceof HttpResponse ? response.headers : new Headers(response.headers);
  headers.append('server-timing', formatTiming(spent));
  return response instanceof HttpResponse ? response : { ...response, headers };
}
