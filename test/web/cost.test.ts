import { afterEach, expect, test, vi } from 'vitest';
import { type Cost, createMeter } from '../../web/src/api/cost.ts';

afterEach(() => void vi.unstubAllGlobals());

test('reports a request to those who listened when it was sent', async () => {
  const responded = Promise.withResolvers<Response>();
  vi.stubGlobal('fetch', () => responded.promise);
  const meter = createMeter('https://app.example/api');
  const reported: Record<string, Cost[]> = { stopped: [], listening: [], later: [] };
  const listen = (name: string) => meter.onCost((cost) => reported[name]?.push(cost));
  const stop = listen('stopped');
  listen('listening');
  const sent = meter.fetch('https://app.example/api/model');
  stop();
  listen('later');
  responded.resolve(new Response(null, { headers: { 'server-timing': 'storage;desc="3 transactions"' } }));
  await sent;
  expect(reported).toMatchObject({ stopped: [], listening: [{ path: '/model', transactions: 3 }], later: [] });
});
