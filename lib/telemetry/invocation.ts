import type { FunctionHandler, InvocationContext } from '@azure/functions';
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
  // Every route also has HEAD, and the function for unknown requests has many methods.
  const methods = isHttp ? [trigger.methods].flat().filter((method) => String(method).toUpperCase() !== 'HEAD') : [];
  const path = [routePrefix, trigger.route].filter(Boolean).join('/');
  const route = `${methods.length === 1 ? `${String(methods[0]).toUpperCase()} ` : ''}/${path}`;
  const name = isHttp ? route : functionName;
  const parent = contextOf(traceContext?.traceParent);
  // The host has a span for the request itself; this one is its child.
  const isPart = trace.getSpanContext(parent) !== undefined;
  const kind = isPart ? SpanKind.INTERNAL : isHttp ? SpanKind.SERVER : SpanKind.CONSUMER;
  return (...parameters) =>
    inSpan(
      name,
      async (span) => {
        const result: unknown = await handler(...parameters);
        if (trigger.type === 'timerTrigger') countTimer({ timer: functionName });
        const status = typeof result === 'object' && result && 'status' in result ? result.status : undefined;
        if (typeof status === 'number') span.setAttribute('http.response.status_code', status);
        return result;
      },
      { parent, kind, attributes: { 'faas.name': functionName } },
    );
}
