import { afterEach, expect, test, vi } from 'vitest';
import { type Cost, createMeter } from '../../web/src/api/cost.ts';

afterEach(() => void vi.unstubAllGlobals());

test('reports a request to the page that was open when its work began', async () => {
  const responses: (() => void)[] = [];
  const headers = { 'server-timing': 'storage;desc="3 transactions"' };
  vi.stubGlobal('fetch', () => {
    const { promise, resolve } = Promise.withResolvers<Response>();
    responses.push(() => resolve(new Response(null, { headers })));
    return promise;
  });
  const root = 'https://app.example/api';
  const meter = createMeter(root);
  const reported: Record<string, Cost[]> = { import: [], queues: [] };
  const open = (page: string) => meter.onCost(page, (cost) => reported[page]?.push(cost));
  open('import');
  const { promise: isLeft, resolve: leave } = Promise.withResolvers<void>();
  const work = meter.measure(async (signal) => {
    await isLeft;
    await meter.fetch(`${root}/batch`, { signal });
  });
  const sent = meter.fetch(`${root}/model`);
  open('queues');
  leave();
  const other = meter.fetch(`${root}/queues`);
  await expect.poll(() => responses).toHaveLength(3);
  for (const respond of responses) respond();
  await Promise.all([sent, other]);
  expect((await work).costs).toMatchObject([{ path: '/batch', transactions: 3 }]);
  const pathsOf = (page: string) => reported[page]?.map(({ path }) => path).toSorted();
  expect([pathsOf('import'), pathsOf('queues')]).toEqual([['/batch', '/model'], ['/queues']]);
});
