import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity } from '../../../lib/define.ts';
import { routeErrors } from '../../../lib/http/route-conflicts.ts';
import { modelParts } from '../../kit/define.ts';
import type { Route } from '../../kit/http.ts';
import { testRoute } from './request.ts';

const declare = (name: string, id: z.ZodType = z.string()) =>
  modelParts.linkEntity(
    defineEntity(name, {
      schema: z.object({ id, kind: z.string() }),
      table: 'things',
      key: { partition: '{kind}', row: '{id}' },
      access: { read: ['reader'], write: ['hr'] },
    }),
  );
const route = (name: string, path: string, method: Route['method'] = 'GET') => testRoute({ name, path, method });
const errorsOf = (routes: readonly Route[], id?: z.ZodType) =>
  routeErrors([declare('things', id)], { own: [route('health', 'health')], all: routes });

describe('two routes', () => {
  const fixed = route('a', 'things/{kind}/status');
  const open = route('b', 'things/{kind}/{id}');

  test('conflict when a value makes the later path match the earlier route', () => {
    expect(errorsOf([open, fixed])).toEqual([
      expect.stringMatching(
        /^Route GET \/api\/things\/\{kind\}\/status hides GET \/api\/things\/\{kind\}\/\{id\} where id is "status"\. Rename /,
      ),
    ]);
  });

  test('conflict whatever their names are', () => {
    expect(errorsOf([route('a', open.path), route('b', fixed.path)])).toEqual([
      expect.stringContaining('status hides GET /api/things/{kind}/{id} where id is "status"'),
    ]);
  });

  test('conflict when each has a literal where the other has a parameter', () => {
    expect(errorsOf([fixed, route('b', 'things/by/{id}')])).toEqual([
      expect.stringContaining('things/by/{id} hides GET /api/things/{kind}/status where kind is "by"'),
    ]);
  });

  test('conflict when they have the same method and path', () => {
    expect(errorsOf([open, route('c', open.path)])).toEqual([expect.stringContaining('hides')]);
  });

  test.each<[string, readonly Route[], z.ZodType?]>([
    ['have other methods', [fixed, route('b', open.path, 'POST')]],
    ['have other lengths', [fixed, route('b', 'things/{kind}')]],
    ['have other literals', [fixed, route('b', 'things/{kind}/state')]],
    ['have other first segments', [fixed, route('b', 'orders/{kind}/{id}')]],
    ['cannot have that value: a number', [fixed, open], z.int()],
    ['cannot have that value: an enumeration', [fixed, open], z.enum(['a', 'b'])],
    ['cannot have that value: a pattern', [fixed, open], z.string().regex(/^\d+$/)],
    ['cannot have that value: a length', [fixed, open], z.string().max(5)],
  ])('do not conflict when they %s', (_, routes, id) => {
    expect(errorsOf(routes, id)).toEqual([]);
  });

  test.each<[string, z.ZodType]>([
    ['an enumeration with the value in another case', z.enum(['Status', 'b'])],
    ['a pattern with the flag i', z.string().regex(/^[A-Z]+$/i)],
    ['a pattern with an exception', z.string().regex(/^[^a]+$/)],
    ['a pattern with a lookahead', z.string().regex(/^(?!status$).*$/)],
    ['a pattern with the flag v', z.string().regex(/^[\w--\d]+$/v)],
    ['an enumeration and catch', z.enum(['a']).catch('status' as 'a')],
    ['a length and default', z.string().max(5).default('status')],
    [
      'a check that replaces the value',
      z
        .string()
        .max(5)
        .check((context) => {
          context.value = 'status';
        }),
    ],
  ])('conflict with %s', (_, id) => {
    expect(errorsOf([fixed, open], id)).toEqual([expect.stringContaining('hides')]);
  });
});

test('rejects two routes whose operation ids differ only in case', () => {
  expect(errorsOf([route('things-get', 'things'), route('Things-Get', 'other')])).toEqual([
    expect.stringContaining('ignores case'),
  ]);
});

test('rejects a parameter that occurs twice in a path, in any case', () => {
  expect(errorsOf([route('a', 'things/{id}/{ID}')])).toEqual([expect.stringContaining('"id" twice')]);
});

test('rejects an entity with the name of a route of the API itself', () => {
  const errors = routeErrors([declare('health')], { own: [route('health', 'health')], all: [] });
  expect(errors).toEqual([
    expect.stringContaining('the API itself has a route /api/health. Choose a name other than health.'),
  ]);
});
