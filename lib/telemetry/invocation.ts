import { AsyncLocalStorage } from 'node:async_hooks';
import type { FunctionHandler, HttpRequest, InvocationContext } from '@azure/functions';
import { SpanKind, trace } from '@opentelemetry/api';
import { count, recordRequest } from './metrics.ts';
import { contextOf, inSpan } from './span.ts';

/** The name of the running request, such as `GET /api/employees/{department}`. */
const running = new AsyncLocalStorage<{ name: string }>();

/**
 * Wraps a handler in a span of the host's trace, or of a new trace if the host has none. Counts timer runs and requests.
 * `routePrefix` is the one of host.json, which the host puts before each route.
 */
export function traceInvocation(
  handler: FunctionHandler,
  { functionName, options, traceContext }: InvocationContext,
  { routePrefix }: { readonly routePrefix: string },
): FunctionHandler {
  const { trigger } = options;
  const isHttp = trigger.type === 'httpTrigger';
  const route = `/${[routePrefix, trigger.route].filter(Boolean).join('/')}`;
  const parent = contextOf(traceContext?.traceParent);
  // The host has a span for the request itself; this one is its child.
  const isPart = trace.getSpanContext(parent) !== undefined;
  const kind = isPart ? SpanKind.INTERNAL : isHttp ? SpanKind.SERVER : SpanKind.CONSUMER;
  return (...parameters) =>
    inSpan(
      functionName,
      async (span) => {
        if (isHttp) {
          const { status, result } = await measureRequest(async () => {
            nameRequest((parameters[0] as HttpRequest).method, route);
            return handler(...parameters);
          });
          span.setAttribute('http.response.status_code', status);
          return result;
        }
        const result: unknown = await handler(...parameters);
        if (trigger.type === 'timerTrigger') count.timer({ timer: functionName });
        return result;
      },
      { parent, kind, attributes: { 'faas.name': functionName } },
    );
}

/** The host responds with 500 to an error, and with 204 to no result. */
function measureRequest(work: () => Promise<unknown>): Promise<{ status: number; result: unknown }> {
  const request = { name: '' };
  const start = performance.now();
  let status = 500;
  return running.run(request, async () => {
    try {
      const result = await work();
      const given = typeof result === 'object' && result && 'status' in result ? result.status : undefined;
      status = typeof given === 'number' ? given : result === undefined ? 204 : 200;
      return { status, result };
    } finally {
      recordRequest({ route: request.name, status: String(status) }, performance.now() - start);
    }
  });
}

/**
 * Names the span and the metric of a function after its request, by the template of the route, because a path has keys of entities. The function
 * of the API calls this again with the route that it finds.
 */
export function nameRequest(method: string, route: string): void {
  const name = `${method} ${route}`;
  const request = running.getStore();
  if (request) request.name = name;
  const span = trace.getActiveSpan();
  span?.updateName(name);
  // Without `http.request.method`, with which the exporter shows the span as a request to another service.
  span?.setAttribute('http.route', route);
}
