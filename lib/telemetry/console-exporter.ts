import { AggregationTemporality, type PushMetricExporter } from '@opentelemetry/sdk-metrics';
import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace-node';
import { LRUCache } from 'lru-cache';

/** A span that ends after its tree was printed would otherwise stay in memory forever. */
const TRACES_KEPT = 1_000;

/** Prints a trace as a tree when its first span in this process ends. The work of a queue message is a tree of its own. */
export function consoleSpans(print: (line: string) => void = console.log): SpanExporter {
  const waiting = new LRUCache<string, ReadableSpan[]>({ max: TRACES_KEPT });
  return {
    export(spans, done) {
      for (const span of spans) {
        const { traceId } = span.spanContext();
        const ended = waiting.get(traceId) ?? [];
        ended.push(span);
        waiting.set(traceId, ended);
        if (span.parentSpanContext && !span.parentSpanContext.isRemote) continue;
        // Other spans of the trace belong to another tree.
        const mine = descendantsOf(span, ended);
        const rest = ended.filter((other) => !mine.includes(other));
        if (rest.length > 0) waiting.set(traceId, rest);
        else waiting.delete(traceId);
        const head = `trace ${traceId}${span.parentSpanContext ? ', continued' : ''}`;
        // One message, because the real host logs concurrent messages in any order.
        print([head, ...tree(span, mine, 1)].join('\n'));
      }
      done({ code: 0 });
    },
    shutdown: async () => undefined,
  };
}

/** Prints each metric that has grown since the last time, and its growth. */
export function consoleMetrics(print: (line: string) => void = console.log): PushMetricExporter {
  return {
    export({ scopeMetrics }, done) {
      for (const { descriptor, dataPoints } of scopeMetrics.flatMap(({ metrics }) => metrics))
        for (const { attributes, value } of dataPoints) {
          const by = Object.entries(attributes).map(([name, of]) => `, ${name} ${of}`);
          const much = typeof value === 'number' ? value : `${value.count}, ${value.sum} ${descriptor.unit} in all`;
          print(`metric ${descriptor.name}${by.join('')}: ${much}`);
        }
      done({ code: 0 });
    },
    selectAggregationTemporality: () => AggregationTemporality.DELTA,
    forceFlush: async () => undefined,
    shutdown: async () => undefined,
  };
}

function descendantsOf(span: ReadableSpan, ended: readonly ReadableSpan[]): ReadableSpan[] {
  return [span, ...childrenOf(span, ended).flatMap((child) => descendantsOf(child, ended))];
}

function childrenOf(span: ReadableSpan, ended: readonly ReadableSpan[]): ReadableSpan[] {
  return ended.filter(({ parentSpanContext }) => parentSpanContext?.spanId === span.spanContext().spanId);
}

function tree(span: ReadableSpan, all: readonly ReadableSpan[], depth: number): string[] {
  const [seconds, nanoseconds] = span.duration;
  const took = `${(seconds * 1_000 + nanoseconds / 1e6).toFixed(1)} ms`;
  const { 'http.response.status_code': status } = span.attributes;
  const failed = span.status.message ? `, ${span.status.message}` : '';
  const line = `${'  '.repeat(depth)}${span.name}${status === undefined ? '' : ` ${status}`} (${took}${failed})`;
  const children = childrenOf(span, all).sort((one, other) => toMs(one) - toMs(other));
  return [line, ...children.flatMap((child) => tree(child, all, depth + 1))];
}

function toMs({ startTime: [seconds, nanoseconds] }: ReadableSpan): number {
  return seconds * 1_000 + nanoseconds / 1e6;
}
