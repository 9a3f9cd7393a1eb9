import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { ask } from '../../../local/cli/target.ts';
import { baseValues } from '../../kit/base.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] }));
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

it.each([429, 503])('sends no request before the Retry-After of a %i to another one', async (status) => {
  const sentAt: number[] = [];
  const began = performance.now();
  vi.stubGlobal('fetch', async () => {
    sentAt.push(Math.round(performance.now() - began));
    return sentAt.length === 1 ? new Response('', { status, headers: { 'retry-after': '20' } }) : new Response('done');
  });
  const pace = baseValues.createPace({ first: 1 });
  const target = { url: 'https://api.example', root: '/api', token: 'token', pace };
  const others = [ask(target, '/api/a'), ask(target, '/api/b'), ask(target, '/api/c')];
  await vi.advanceTimersByTimeAsync(19_900);
  expect(sentAt).toEqual([0]);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await Promise.all((await Promise.all(others)).map((response) => response.text()))).toEqual(
    Array(3).fill('done'),
  );
  expect(sentAt).toHaveLength(4);
});
