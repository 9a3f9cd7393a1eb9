import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity } from '../../../lib/define/define-entity.ts';
import { linkEntity } from '../../../lib/define/link-entities.ts';
import type { Route } from '../../../lib/http/route.ts';
import { routeErrors } from '../../../lib/http/route-conflicts.ts';
import { testRoute } from './request.ts';

const declare = (name: string, id: z.ZodType = z.string()) =>
  linkEntity(
    defineEntity(name, {
      schema: z.object({ id, kind: z.string() }),
      table: 'things',
      key: { partition: '{kind}', row: '{id}' },
      access: { read: ['reader'], write: ['hr'] },
    }),
  );
const route = (name: string, path: string, method: Route['method'] = 'GET') => testRoute({ name, path, method });
const errorsOf = (routes: readonly Route[], id?: z.ZodType) =>
  routeErrors([declare('things', id)], { own: [route('health', 'health')], all: routes, prefix: '' });

describe('two routes', () => {
  const fixed = route('a', 'things/{kind}/status');
  const open = route('b', 'things/{kind}/{id}');

  test('conflict when a value makes the later path match the earlier route', () => {
    expect(errorsOf([open, fixed])).toEqual([
      expect.stringMatching(
        /^Route GET \/api\/things\/\{kind\}\/status hides GET \/api\/things\/\{kind\}\/\{id\} where id is "status"; /,
      ),
    ]);
  });

  test('conflict in the order of their names, which ignores case', () => {
    expect(errorsOf([route('A', open.path), route('b', fixed.path)])).toEqual([expect.stringContaining('hides')]);
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
  ])('conflict with %s', (_, id) => {
    expect(errorsOf([fixed, open], id)).toEqual([expect.stringContaining('hides')]);
  });
});

describe('the name of a function', () => {
  test.each(['1things', 'things get', 'thíngs', '', 'x'.repeat(128)])('is rejected: %j', (name) => {
    expect(errorsOf([route(name, 'things')])).toEqual([expect.stringContaining('host does not accept')]);
  });

  test('must not sort after the function for all other requests', () => {
    expect(errorsOf([route('zzzz-get', 'things')])).toEqual([expect.stringContaining('sorts before "zzz"')]);
  });

  test('must differ from others in more than case', () => {
    expect(errorsOf([route('things-get', 'things'), route('Things-Get', 'other')])).toEqual([
      expect.stringContaining('ignores case'),
    ]);
  });
});

test('rejects a parameter that occurs twice in a path, in any case', () => {
  expect(errorsOf([route('a', 'things/{id}/{ID}')])).toEqual([expect.stringContaining('"id" twice')]);
});

test.each([
  ['health', 'the API itself has a route /api/health; the reserved names are health.'],
  ['administrators', 'reserves routes that begin with "admin"'],
  ['runtimes', 'reserves routes that begin with "runtime"'],
])('rejects an entity named %s', (name, why) => {
  const errors = routeErrors([declare(name)], { own: [route('health', 'health')], all: [], prefix: '' });
  expect(errors).toEqual([expect.stringContaining(why)]);
});
