import { AsyncLocalStorage } from 'node:async_hooks';
import {
  type Context,
  context,
  propagation,
  ROOT_CONTEXT,
  type Span,
  type SpanOptions,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import { RowkeyError } from '../base/errors.ts';

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
export function inSpan<Result>(
  name: string,
  work: (span: Span) => Promise<Result>,
  { parent = context.active(), ...options }: InSpanOptions = {},
): Promise<Result> {
  return tracer.startActiveSpan(name, options, parent, async (span) => {
    try {
      return await work(span);
    } catch (error) {
      // Not the message, which may contain parts of the request.
      const message = error instanceof RowkeyError ? error.code : error instanceof Error ? error.name : 'unknown';
      span.setStatus({ code: SpanStatusCode.ERROR, message });
      throw error;
    } finally {
      span.end();
    }
  });
}

/** Wraps a function of a pattern: with a span, and with its storage transactions counted for the pattern. */
export function inPattern<Parameters extends unknown[], Result>(
  name: string,
  work: (...parameters: Parameters) => Promise<Result>,
): (...parameters: Parameters) => Promise<Result> {
  return (...parameters) => pattern.run(name, () => inSpan(name, () => work(...parameters)));
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
