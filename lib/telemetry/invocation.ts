import type { FunctionHandler, HttpRequest, InvocationContext } from '@azure/functions';
import { SpanKind, trace } from '@opentelemetry/api';
import { countTimer } from './metrics.ts';
import { contextOf, inSpan } from './span.ts';

/**
 * Wraps a handler in a span of the host's trace, or of a new trace if the host has none. Counts timer runs. `routePrefix` is the
 * one of host.json, which the host puts before each route.
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
        if (isHttp) nameRequest((parameters[0] as HttpRequest).method, route);
        const result: unknown = await handler(...parameters);
        if (trigger.type === 'timerTrigger') countTimer({ timer: functionName });
        const status = typeof result === 'object' && result && 'status' in result ? result.status : undefined;
        if (typeof status === 'number') span.setAttribute('http.response.status_code', status);
        return result;
      },
      { parent, kind, attributes: { 'faas.name': functionName } },
    );
}

/**
 * Names the span of a function after its request, by the template of the route, because a path has keys of entities. The function
 * of the API calls this again with the route that it finds.
 */
export function nameRequest(method: string, route: string): void {
  const span = trace.getActiveSpan();
  span?.updateName(`${method} ${route}`);
  // Without `http.request.method`, with which the exporter shows the span as a request to another service.
  span?.setAttribute('http.route', route);
}
