import type { HttpFunctionOptions } from '@azure/functions';
import { expect, test, vi } from 'vitest';
import { findRouteConflicts } from '../../local/host/start-rules/route-conflicts.ts';

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

test('registers no two functions that the host refuses because they share a route and a method', () => {
  const functions = [...registered].map(([name, { route = '', methods = [] }]) => ({
    name,
    trigger: { type: 'httpTrigger', route, methods, authLevel: 'anonymous' } as const,
  }));
  expect(findRouteConflicts(functions as never)).toEqual([]);
});

test('registers one function for the API, which the host tries after those of the app itself', () => {
  expect([...registered].map(([name, { route }]) => [name, route])).toEqual([
    ['zzz-api', 'api/{*path}'],
    ['web-console', 'console/{*path}'],
    ['web-docs', 'docs/{*path}'],
    ['zzzz-root', '{*path}'],
  ]);
});
