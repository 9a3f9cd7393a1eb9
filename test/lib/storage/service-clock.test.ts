import { createHttpHeaders, createPipelineRequest, type PipelineRequest } from '@azure/core-rest-pipeline';
import { expect, test } from 'vitest';
import { storageAccounts } from '../../kit/storage.ts';

test('bounds the time of the service, although local time is wrong and headers have whole seconds', async () => {
  const local = { now: 1_000 };
  const service = { now: Date.parse('2026-11-22T10:00:00.900Z') };
  const pass = (milliseconds: number) => {
    local.now += milliseconds;
    service.now += milliseconds;
  };
  const clock = storageAccounts.createServiceClock(() => local.now);
  const answer = async (request: PipelineRequest) => {
    pass(300);
    const headers = createHttpHeaders({ date: new Date(service.now).toUTCString() });
    pass(200);
    return { request, status: 200, headers };
  };
  expect(clock.latestTime()).toBeUndefined();
  expect(clock.earliestTime()).toBeUndefined();
  await clock.policy.sendRequest(createPipelineRequest({ url: 'https://a.example' }), answer);
  pass(60_000);
  const ahead = Number(clock.latestTime()) - service.now;
  expect(ahead).toBeGreaterThanOrEqual(0);
  // The resolution of the header and the time of the request.
  expect(ahead).toBeLessThanOrEqual(1_500);
  const behind = service.now - Number(clock.earliestTime());
  expect(behind).toBeGreaterThanOrEqual(0);
  expect(behind).toBeLessThanOrEqual(1_500);
});

test('keeps what it knows after a response without a date', async () => {
  const clock = storageAccounts.createServiceClock(() => 0);
  const answer = (headers: Record<string, string>) =>
    clock.policy.sendRequest(createPipelineRequest({ url: 'https://a.example' }), async (request) => ({
      request,
      status: 503,
      headers: createHttpHeaders(headers),
    }));
  await answer({ date: 'Thu, 01 Jan 1970 00:00:05 GMT' });
  await answer({});
  expect(clock.latestTime()).toBe(6_000);
  expect(clock.earliestTime()).toBe(5_000);
});
