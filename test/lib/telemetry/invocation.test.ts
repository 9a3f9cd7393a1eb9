import type { FunctionHandler, InvocationContext } from '@azure/functions';
import { InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node';
import { expect, test } from 'vitest';
import { apiCalls } from '../../kit/api.ts';
import { countedMetrics } from '../../metrics.ts';

const counted = countedMetrics();
const spans = new InMemorySpanExporter();
new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] }).register();

/** Runs a handler as a function with this name and trigger type. */
const run = (functionName: string, type: string, handler: FunctionHandler) => {
  const context = { functionName, options: { trigger: { type, methods: ['GET'], route: 'things' } } };
  return apiCalls.traceInvocation(handler, context as unknown as InvocationContext, { routePrefix: 'api' })(
    { method: 'GET' } as never,
    context as never,
  );
};

test('counts a timer run when it ends, and counts no other trigger', async () => {
  await run('sweep', 'timerTrigger', () => undefined);
  await run('things-list', 'httpTrigger', () => ({ status: 200 }));
  await run('changes', 'queueTrigger', () => undefined);
  const failing = () => Promise.reject(new Error('storage is away'));
  await expect(run('fail', 'timerTrigger', failing)).rejects.toThrow('storage is away');
  expect(await counted('rowkey.timer.completed')).toEqual([{ by: { timer: 'sweep' }, much: 1 }]);
});

test('names the span of a request after its method and route, which a handler of several routes sets', async () => {
  spans.reset();
  await run('own', 'httpTrigger', () => ({ status: 200 }));
  await run('api', 'httpTrigger', () => {
    apiCalls.nameRequest('HEAD', '/api/things/{id}');
    return { status: 404 };
  });
  expect(spans.getFinishedSpans().map(({ name, attributes }) => [name, attributes])).toEqual([
    ['GET /api/things', { 'faas.name': 'own', 'http.route': '/api/things', 'http.response.status_code': 200 }],
    [
      'HEAD /api/things/{id}',
      { 'faas.name': 'api', 'http.route': '/api/things/{id}', 'http.response.status_code': 404 },
    ],
  ]);
});

test('measures each request by its route and its status, also if the handler throws', async () => {
  await counted('rowkey.request.duration');
  await run('own', 'httpTrigger', () => ({ status: 200 }));
  await run('own', 'httpTrigger', () => ({ status: 200 }));
  await run('api', 'httpTrigger', () => {
    apiCalls.nameRequest('GET', '/api/things/{id}');
    return { status: 503 };
  });
  await run('own', 'httpTrigger', () => undefined);
  await run('own', 'httpTrigger', () => ({ jsonBody: {} }));
  await expect(run('own', 'httpTrigger', () => Promise.reject(new Error('broken')))).rejects.toThrow('broken');
  await run('sweep', 'timerTrigger', () => undefined);
  expect(await counted('rowkey.request.duration')).toEqual([
    { by: { route: 'GET /api/things', status: '200' }, much: 3 },
    { by: { route: 'GET /api/things/{id}', status: '503' }, much: 1 },
    { by: { route: 'GET /api/things', status: '204' }, much: 1 },
    { by: { route: 'GET /api/things', status: '500' }, much: 1 },
  ]);
});
