import { AsyncLocalStorage } from 'node:async_hooks';
import type { FunctionHandler, HttpRequest, InvocationContext } from '@azure/functions';
import {
  type Context,
  context,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  type SpanOptions,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import { RowkeyError } from '../base/errors.ts';
import { count, record } from './metrics.ts';

/**
 * Traces have a span for each function call, each pattern it uses, and each storage transaction. Spans name routes,
 * patterns, tables and status codes. They never contain a key, a value, a token or an address, which may be personal data.
 * Without telemetry these functions do nothing.
 */

const tracer = trace.getTracer('rowkey');
/** Not in the context of OpenTelemetry, which is lost at the first `await` while telemetry is off. */
const pattern = new AsyncLocalStorage<string>();

interface InSpanOptions extends SpanOptions {
  /** The active context unless given. */
  readonly parent?: Context;
}

/** Runs `work` in a span, which has the status error if `work` throws. */
export async function inSpan<Result>(
  name: string,
  work: (span: Span) => Promise<Result>,
  { parent = context.active(), ...options }: InSpanOptions = {},
): Promise<Result> {
  const span = tracer.startSpan(name, options, parent);
  try {
    return await context.with(trace.setSpan(parent, span), work, undefined, span);
  } catch (error) {
    // Not the message, which may contain parts of the request.
    const message = error instanceof RowkeyError ? error.code : error instanceof Error ? error.name : 'unknown';
    span.setStatus({ code: SpanStatusCode.ERROR, message });
    throw error;
  } finally {
    span.end();
  }
}

/** Wraps a function of a pattern: with a span, and with its storage transactions counted for the pattern. */
export function inPattern<Parameters extends unknown[], Result>(
  name: string,
  work: (...parameters: Parameters) => Promise<Result>,
): (...parameters: Parameters) => Promise<Result> {
  return (...parameters) => pattern.run(name, inSpan<Result>, name, () => work(...parameters));
}

/** The innermost active pattern. */
export function currentPattern(): string {
  return pattern.getStore() ?? 'none';
}

/** The `traceparent` (https://www.w3.org/TR/trace-context/) for a message, or nothing outside a trace. */
export function traceContext(): { traceparent?: string } {
  const carrier: { traceparent?: string } = {};
  propagation.inject(context.active(), carrier);
  return carrier.traceparent ? { traceparent: carrier.traceparent } : {};
}

/** The context of the caller's trace; an empty context without one. */
export function contextOf(traceparent: string | undefined): Context {
  return traceparent ? propagation.extract(ROOT_CONTEXT, { traceparent }) : ROOT_CONTEXT;
}

/** The running request. Its name is like `GET /api/employees/{department}`. */
const running = new AsyncLocalStorage<{ name: string }>();

/**
 * Wraps a handler in a span of the host's trace, or of a new trace if the host has none. Counts timer runs, and measures requests.
 * `routePrefix` is the one of host.json, which the host puts before each route.
 */
export function traceInvocation(
  handler: FunctionHandler,
  { functionName, options: { trigger }, traceContext }: InvocationContext,
  { routePrefix }: { readonly routePrefix: string },
): FunctionHandler {
  const parent = contextOf(traceContext?.traceParent);
  // The host has a span for the request itself; this one is its child.
  const isPart = trace.getSpanContext(parent) !== undefined;
  const isHttp = trigger.type === 'httpTrigger';
  const kind = isPart ? SpanKind.INTERNAL : isHttp ? SpanKind.SERVER : SpanKind.CONSUMER;
  const attributes = { 'faas.name': functionName };
  if (!isHttp)
    return (...parameters) => {
      const run = async () => {
        const result: unknown = await handler(...parameters);
        if (trigger.type === 'timerTrigger') count.timer({ timer: functionName });
        return result;
      };
      return inSpan(functionName, run, { parent, kind, attributes });
    };
  const route = `/${[routePrefix, trigger.route].filter(Boolean).join('/')}`;
  return (...parameters) => {
    const request = { name: `${(parameters[0] as HttpRequest).method} ${route}` };
    const respond = async (span: Span) => {
      const start = performance.now();
      let status = 500;
      try {
        const result: unknown = await handler(...parameters);
        // The host responds with 500 to an error, and with 204 to no result.
        const given = typeof result === 'object' && result && 'status' in result ? result.status : undefined;
        status = typeof given === 'number' ? given : result === undefined ? 204 : 200;
        span.setAttribute('http.response.status_code', status);
        return result;
      } finally {
        record.request(performance.now() - start, { route: request.name, status: String(status) });
      }
    };
    const options = { parent, kind, attributes: { ...attributes, [ROUTE]: route } };
    return running.run(request, inSpan<unknown>, request.name, respond, options);
  };
}

/** Without `http.request.method`, with which the exporter shows the span as a request to another service. */
const ROUTE = 'http.route';

/**
 * Names the span and the metric of the running request again, for a function that has several routes. `route` is the template of the route,
 * because a path has keys of entities.
 */
export function nameRequest(method: string, route: string): void {
  const name = `${method} ${route}`;
  const request = running.getStore();
  if (request) request.name = name;
  trace.getActiveSpan()?.updateName(name).setAttribute(ROUTE, route);
}
