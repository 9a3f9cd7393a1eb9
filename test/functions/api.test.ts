import type { HttpFunctionOptions } from '@azure/functions';
import { expect, test, vi } from 'vitest';
import { ANY_PATH, OTHER_REQUESTS } from '../../lib/http/other-requests.ts';

const registered = vi.hoisted(() => new Map<string, HttpFunctionOptions>());
vi.mock('@azure/functions', () => ({
  app: { http: (name: string, options: HttpFunctionOptions) => registered.set(name, options) },
}));
await import('../../functions/api.ts');

test('the function with the catch-all route comes last, however names are compared', () => {
  const names = [...registered.keys()];
  expect(names.length).toBeGreaterThan(100);
  expect(names.toSorted().at(-1)).toBe(OTHER_REQUESTS);
  expect(names.toSorted((one, other) => one.localeCompare(other, 'en')).at(-1)).toBe(OTHER_REQUESTS);
  const catching = [...registered].filter(([, { route }]) => route?.includes('*'));
  expect(catching).toEqual([[OTHER_REQUESTS, expect.objectContaining({ route: ANY_PATH })]]);
});

test('every function takes HEAD, so that no host answers it by 405 before the app does', () => {
  const without = [...registered].filter(([, { methods = [] }]) => !methods.includes('HEAD'));
  expect(without).toEqual([]);
});
