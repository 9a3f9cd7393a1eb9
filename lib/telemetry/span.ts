import {
  type Context,
  context,
  createContextKey,
  propagation,
  ROOT_CONTEXT,
  type Span,
  type SpanOptions,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import { RowkeyError } from '../errors.ts';

/**
 * Traces: a span for each call of a function, for each pattern at work in it, and for each storage transaction. They name
 * routes, patterns, tables and status codes; never a key, a value, a token or an address, as those are somebody's.
 * Where no telemetry was started all of this does nothing.
 */

const tracer = trace.getTracer('rowkey');
const PATTERN = createContextKey('rowkey.pattern');

export interface InSpanOptions extends SpanOptions {
  /** What it is a part of; else of what is under way. */
  readonly parent?: Context;
}

/** Runs `work` in a span of its own, which is an error where `work` throws. */
export function inSpan<Result>(
  name: string,
  work: (span: Span) => Promise<Result>,
  { parent = context.active(), ...options }: InSpanOptions = {},
): Promise<Result> {
  return tracer.startActiveSpan(name, options, parent, async (span) => {
    try {
      return await work(span);
    } catch (error) {
      // The code and not the message, which may say what was sent.
      const message = error instanceof RowkeyError ? error.code : error instanceof Error ? error.name : 'unknown';
      span.setStatus({ code: SpanStatusCode.ERROR, message });
      throw error;
    } finally {
      span.end();
    }
  });
}

/** The same function, as one of a pattern: with a span, and its storage transactions counted as the pattern's. */
export function inPattern<Parameters extends unknown[], Result>(
  name: string,
  work: (...parameters: Parameters) => Promise<Result>,
): (...parameters: Parameters) => Promise<Result> {
  return (...parameters) =>
    inSpan(name, () => work(...parameters), { parent: context.active().setValue(PATTERN, name) });
}

/** The innermost pattern at work. */
export function currentPattern(): string {
  return String(context.active().getValue(PATTERN) ?? 'none');
}

/** What a message carries of the trace in which it was sent: `traceparent` (https://www.w3.org/TR/trace-context/), or nothing. */
export function traceContext(): { traceparent?: string } {
  const carrier: { traceparent?: string } = {};
  propagation.inject(context.active(), carrier);
  return carrier.traceparent ? { traceparent: carrier.traceparent } : {};
}

/** The context of a trace that began elsewhere; that of none where there is no such one. */
export function contextOf(traceparent: string | undefined): Context {
  return traceparent ? propagation.extract(ROOT_CONTEXT, { traceparent }) : ROOT_CONTEXT;
}
