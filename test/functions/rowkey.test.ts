import type { HttpFunctionOptions } from '@azure/functions';
import { expect, test, vi } from 'vitest';
import { ANY_PATH, OTHER_REQUESTS } from '../../lib/http/other-requests.ts';

const registered = vi.hoisted(() => new Map<string, HttpFunctionOptions>());
vi.mock('@azure/functions', () => ({
  app: {
    http: (name: string, options: HttpFunctionOptions) => registered.set(name, options),
    storageQueue: () => undefined,
    timer: () => undefined,
    hook: { appStart: () => undefined, preInvocation: () => undefined, appTerminate: () => undefined },
  },
}));
await import('../../functions/rowkey.ts');

test('sorts the function with the catch-all route last, whatever the collation', () => {
  const names = [...registered.keys()];
  expect(names.length).toBeGreaterThan(100);
  expect(names.toSorted().at(-1)).toBe(OTHER_REQUESTS);
  expect(names.toSorted((one, other) => one.localeCompare(other, 'en')).at(-1)).toBe(OTHER_REQUESTS);
  const catching = [...registered].filter(([, { route }]) => route?.includes('*'));
  expect(catching).toEqual([[OTHER_REQUESTS, expect.objectContaining({ route: ANY_PATH })]]);
});

test('accepts HEAD on every function, because the host returns 405 for a missing method before the app runs', () => {
  const without = [...registered].filter(([, { methods = [] }]) => !methods.includes('HEAD'));
  expect(without).toEqual([]);
});
