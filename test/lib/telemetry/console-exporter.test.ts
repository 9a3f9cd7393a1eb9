import { ROOT_CONTEXT, trace } from '@opentelemetry/api';
import { NodeTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node';
import { expect, test } from 'vitest';
import { consoleSpans } from '../../../lib/telemetry/console-exporter.ts';

const printed: string[] = [];
const provider = new NodeTracerProvider({
  spanProcessors: [new SimpleSpanProcessor(consoleSpans((message) => printed.push(message.replaceAll(/ \(.*/g, ''))))],
});
const tracer = provider.getTracer('test');
const start = (name: string) => {
  const root = tracer.startSpan(name, {}, ROOT_CONTEXT);
  const child = tracer.startSpan(`part of ${name}`, {}, trace.setSpan(ROOT_CONTEXT, root));
  return { root, child, head: `trace ${root.spanContext().traceId}` };
};

test('prints a trace as a tree in one message, and drops spans that end after their tree once enough traces followed', () => {
  const first = start('first');
  first.child.end();
  const before = start('before');
  before.child.end();
  before.root.end();
  expect(printed).toEqual([`${before.head}\n  before\n    part of before`]);
  for (let count = 0; count < 1_000; count += 1) {
    const late = start('late');
    late.root.end();
    late.child.end();
  }
  printed.length = 0;
  first.root.end();
  expect(printed).toEqual([`${first.head}\n  first`]);
});
