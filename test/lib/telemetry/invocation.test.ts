import type { FunctionHandler, InvocationContext } from '@azure/functions';
import { expect, test } from 'vitest';
import { traceInvocation } from '../../../lib/telemetry/invocation.ts';
import { countedMetrics } from '../../metrics.ts';

const counted = countedMetrics();

/** Runs a handler as a function with this name and trigger type. */
const run = (functionName: string, type: string, handler: FunctionHandler) => {
  const context = { functionName, options: { trigger: { type, methods: ['GET'], route: 'things' } } };
  return traceInvocation(handler, context as unknown as InvocationContext, { routePrefix: 'api' })(
    undefined,
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
