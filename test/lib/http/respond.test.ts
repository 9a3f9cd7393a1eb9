import { HttpRequest, type InvocationContext } from '@azure/functions';
import { expect, test } from 'vitest';
import { respondWith } from '../../../lib/http/respond.ts';
import type { App, Route } from '../../../lib/http/route.ts';

const looped: Record<string, unknown> = {};
looped.self = looped;

test.each([
  ['a BigInt', { count: 1n }],
  ['an object that holds itself', looped],
])('answers with a problem where the body cannot be written as JSON: %s', async (_, body) => {
  const errors: string[] = [];
  const context = { error: (text: string) => errors.push(text), warn: () => undefined } as unknown as InvocationContext;
  const route: Route = {
    name: 'things-get',
    method: 'GET',
    path: 'things',
    roles: undefined,
    summary: 'Things',
    success: { status: 200, description: 'Things' },
    handle: async () => ({ status: 200, body }),
  };
  const request = new HttpRequest({ method: 'GET', url: 'http://localhost/api/things' });
  const answer = await respondWith(() => ({}) as App, route)(request, context);
  expect(answer).toMatchObject({ status: 500, headers: { 'content-type': 'application/problem+json' } });
  expect(JSON.parse(String(answer.body))).toMatchObject({ type: '/api/problems#internal', status: 500 });
  expect(errors).toEqual(['An unexpected TypeError']);
});
