import type { HttpFunctionOptions } from '@azure/functions';
import { expect, test, vi } from 'vitest';
import { OTHER_REQUESTS } from '../../lib/http/other-requests.ts';
import { ROOT_REQUESTS } from '../../lib/register-functions.ts';

const registered = vi.hoisted(() => new Map<string, HttpFunctionOptions>());
vi.mock('@azure/functions', () => ({
  HttpResponse: class {},
  app: {
    http: (name: string, options: HttpFunctionOptions) => registered.set(name, options),
    storageQueue: () => undefined,
    timer: () => undefined,
    hook: { appStart: () => undefined, preInvocation: () => undefined, appTerminate: () => undefined },
  },
}));
await import('../../functions/rowkey.ts');

test('sorts the functions with the catch-all routes last, whatever the collation', () => {
  const names = [...registered.keys()];
  expect(names.length).toBeGreaterThan(100);
  const last = [OTHER_REQUESTS, ROOT_REQUESTS];
  expect(names.toSorted().slice(-2)).toEqual(last);
  expect(names.toSorted((one, other) => one.localeCompare(other, 'en')).slice(-2)).toEqual(last);
  const catching = [...registered].filter(([, { route }]) => route?.includes('*'));
  expect(catching.map(([name, { route }]) => [name, route])).toEqual([
    [OTHER_REQUESTS, 'api/{*path}'],
    ['web-console', 'console/{*path}'],
    ['web-docs', 'docs/{*path}'],
    [ROOT_REQUESTS, '{*path}'],
  ]);
});

test('accepts HEAD on every function, because the host returns 405 for a missing method before the app runs', () => {
  const without = [...registered].filter(([, { methods = [] }]) => !methods.includes('HEAD'));
  expect(without).toEqual([]);
});
