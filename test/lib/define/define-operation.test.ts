import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineOperation } from '../../../lib/define/define-operation.ts';
import { defineEntity, defineModel } from '../../../lib/define.ts';
import { httpDoor } from '../../kit/http.ts';

const valid = {
  summary: 'Do it',
  kind: 'write',
  roles: ['user'],
  input: z.object({ a: z.string() }),
  output: z.object({}),
} as const;
const things = defineEntity('things', {
  schema: z.object({ a: z.string(), b: z.string() }),
  table: 'things',
  key: { partition: '{a}', row: '{b}' },
  archive: { table: 'oldthings' },
  access: { read: ['user'], write: ['user'] },
});

test.each<[string, string, object, string]>([
  ['a name with a hyphen', 'check-in', {}, 'Operation "check-in": the name is not accepted.'],
  ['a name that a promise has', 'then', {}, 'the name is not accepted'],
  ['a name that every object has', 'toString', {}, 'is a member of every JavaScript object'],
  ['no role', 'run', { roles: [] }, 'no role may call it'],
  ['a repeatable read', 'run', { kind: 'read', repeatable: true }, 'a read may always be repeated'],
  ['an unknown option', 'run', { rolls: [] }, '"rolls" is not an option. Use summary, kind, roles, input, output'],
  ['an unknown kind', 'run', { kind: 'writes' }, '"kind" must be "read" or "write"'],
  ['no schema', 'run', { input: { a: 'string' } }, '"input" is not valid: needs a schema of zod'],
  ['no output', 'run', { output: undefined }, '"output" is not valid: needs a schema of zod'],
  ['an input that JSON does not have', 'run', { input: z.object({ at: z.date() }) }, '"input" has a type that JSON'],
  [
    'an output that JSON does not have',
    'run',
    { output: z.object({ n: z.bigint() }) },
    '"output" has a type that JSON',
  ],
])('rejects %s', (_, name, over, message) => {
  expect(() => defineOperation(name, { ...valid, ...over })).toThrow(message);
});

test('accepts an input that becomes another type, and keeps an open object open', () => {
  const at = z.iso.datetime().transform((text) => new Date(text));
  expect(
    defineOperation('run', { ...valid, input: z.object({ at }) }).input.safeParse({ at: '2026-11-20T09:00:00Z', b: 1 })
      .success,
  ).toBe(false);
  expect(defineOperation('run', { ...valid, input: z.looseObject({}) }).input.safeParse({ b: 1 }).success).toBe(true);
});

const define = (...names: string[]) =>
  defineModel({
    roles: ['user'],
    operatorRole: 'user',
    entities: [things],
    operations: names.map((name) => defineOperation(name, valid)),
  });

test.each([
  ['the name of an entity', ['things'], 'Operation "things": the entity "things" has the route.'],
  ['the name of an archive', ['oldThings'], 'Operation "oldThings": the entity "things" has the route.'],
  ['two names that differ in case', ['run', 'rUn'], 'Operation "rUn": the operation "run" has the route.'],
])('a model rejects %s', (_, names, message) => {
  expect(() => define(...names)).toThrow(message);
});

test('a model has no operation with the name of a route of the API', () => {
  const names = httpDoor
    .createRoutes(define('run'))
    .flatMap(({ entity, path }) => (entity ? [] : (path.split('/')[0] ?? [])));
  const own = new Set(['grants', ...names]);
  for (const name of ['run', 'openapi.json']) expect(own.delete(name)).toBe(true);
  for (const name of own) expect(() => define(name), name).toThrow(`the API itself has a route /api/${name}`);
});

test('a model rejects roles and limits of what it does not have', () => {
  const operations = [defineOperation('run', { ...valid, roles: ['usr'] })];
  const limits = [
    { role: 'user', operation: 'walk', requests: 1, per: 'day' },
    { role: 'user', operation: 'run', action: 'read', requests: 1, per: 'day' },
  ];
  const given: unknown = { roles: ['user'], operatorRole: 'user', entities: [things], operations, limits };
  expect(() => defineModel(given as Parameters<typeof defineModel>[0])).toThrow(
    /limit names the operation "walk".*\nThe limit of the operation "run" counts its requests\..*\nOperation "run" names the role "usr"/,
  );
  const other: unknown = { ...Object(given), operations: [{ name: 'run' }] };
  expect(() => defineModel(other as Parameters<typeof defineModel>[0])).toThrow('needs a declared operation');
});
