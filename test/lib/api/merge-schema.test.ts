import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { mergeSchema, omitNulls, sentWithNulls } from '../../../lib/api/merge-schema.ts';
import { defineEntity, defineModel } from '../../../lib/define.ts';
import { apiCalls } from '../../kit/api.ts';
import type { Entity } from '../../kit/define.ts';
import { httpDoor } from '../../kit/http.ts';

const { patch } = apiCalls;

const Home = z.object({
  street: z.string(),
  zip: z.string().optional(),
  geo: z
    .object({ lat: z.number(), lon: z.number().nullable().default(0) })
    .readonly()
    .optional(),
});
const Tree = z.object({
  name: z.string(),
  get first() {
    return Tree.optional();
  },
});

const ajv = new Ajv2020({ strict: false });
const accepts = (type: z.ZodType, patch: unknown) =>
  ajv.validate(httpDoor.toJsonSchema(mergeSchema(type), 'input'), patch);

describe('the schema of a merge patch', () => {
  test.each<[string, z.ZodType, unknown, boolean]>([
    ['some members', Home, { zip: '1' }, true],
    ['no members', Home, {}, true],
    ['members of a member', Home, { geo: { lat: 1 } }, true],
    ['null for an optional member', Home, { zip: null }, true],
    ['null for an optional object', Home, { geo: null }, true],
    ['null for a member with a default, within', Home, { geo: { lon: null } }, true],
    ['null for a required member', Home, { street: null }, false],
    ['another type within', Home, { geo: { lat: '1' } }, false],
    ['an unknown member', z.strictObject({ home: Home }), { house: {} }, false],
    ['an unknown member within', z.object({ home: Home.strict() }), { home: { house: 1 } }, false],
    ['members of a nullable object', Home.nullable(), { zip: '1' }, true],
    ['null for a nullable object', Home.nullable(), null, true],
    ['null for a name of a record', z.record(z.string(), Home), { a: null, b: { zip: '1' } }, true],
    ['a choice of names', z.record(z.enum(['a', 'b']), z.string()), { a: 'x' }, true],
    ['one of several objects', z.union([z.string(), Home]), { zip: '1' }, true],
    [
      'one of several kinds',
      z.discriminatedUnion('kind', [z.object({ kind: z.literal('a'), x: z.string(), y: z.string() })]),
      { x: 'x' },
      true,
    ],
    ['an object that contains itself', Tree, { first: { first: { name: 'x' } } }, true],
    ['null within an object that contains itself', Tree, { first: { first: null } }, true],
    ['another type within an object that contains itself', Tree, { first: { first: { name: 1 } } }, false],
    ['a lazy object', z.lazy(() => Home), { zip: '1' }, true],
    ['an element of a list in part', z.array(Home), [{ zip: '1' }], false],
    ['free JSON', z.json(), { a: [null, { b: null }] }, true],
  ])('of %s', (_, type, patch, isAccepted) => {
    expect(accepts(type, patch)).toBe(isAccepted);
  });

  test.each([
    z.string().meta({ title: 'x' }),
    z.json(),
    z.array(Home),
    z.union([z.string(), z.number()]),
    z.string().optional(),
  ])('is the schema itself without objects: %#', (type) => expect(mergeSchema(type)).toBe(type));
});

test('the description of a PATCH and of an action has it', () => {
  const people = defineEntity('people', {
    schema: z.object({ city: z.string(), id: z.string(), home: Home }),
    table: 'people',
    key: { partition: '{city}', row: '{id}' },
    access: { read: ['clerk'], write: ['clerk'] },
  });
  const model = defineModel({ entities: [people], roles: ['clerk'], operatorRole: 'clerk' });
  const entity = model.list[0] as Entity;
  const accepts = (schema: z.ZodType | undefined, body: unknown) =>
    ajv.validate(httpDoor.toJsonSchema(schema as z.ZodType, 'input'), body);
  expect(accepts(patch(entity).input?.(), { home: { zip: null } })).toBe(true);
  const actions = { actions: [{ patch: { city: 'x', id: '1', home: { zip: null } } }] };
  expect(accepts(apiCalls.batch(entity).input?.(), actions)).toBe(true);
});

describe('null in a value that is sent as a whole', () => {
  const Kinds = z.discriminatedUnion('kind', [
    z.object({ kind: z.literal('a'), x: z.string().optional() }),
    z.object({ kind: z.literal('b'), x: z.string() }),
  ]);

  test.each<[string, z.ZodType, unknown, unknown]>([
    ['means none for an optional member', Home, { street: 's', zip: null }, { street: 's' }],
    ['means none for an optional object', Home, { street: 's', geo: null }, { street: 's' }],
    ['stays a value of a member that may be null', Home, { street: 's', geo: { lat: 1, lon: null } }, undefined],
    [
      'means none within a member',
      z.object({ home: Home }),
      { home: { street: 's', zip: null } },
      { home: { street: 's' } },
    ],
    ['means none within an element of a list', z.array(Home), [{ street: 's', zip: null }], [{ street: 's' }]],
    ['means none by the kind of an object', Kinds, { kind: 'a', x: null }, { kind: 'a' }],
    [
      'means none within an object that contains itself',
      Tree,
      { name: 'n', first: { name: 'm', first: null } },
      { name: 'n', first: { name: 'm' } },
    ],
    ['stays in free JSON', z.json(), { a: [null] }, undefined],
  ])('%s', (_, type, sent, expected = sent) => {
    expect(omitNulls(type, sent)).toEqual(expected);
    expect(type.safeParse(expected).success).toBe(true);
    expect(ajv.validate(httpDoor.toJsonSchema(sentWithNulls(type), 'input'), sent)).toBe(true);
  });

  test.each<[string, z.ZodType, unknown]>([
    ['for a required member', Home, { street: null }],
    ['for a required member of a kind', Kinds, { kind: 'b', x: null }],
    ['for an unknown member', Home.strict(), { street: 's', other: null }],
  ])('is rejected %s', (_, type, sent) => {
    expect(omitNulls(type, sent)).toEqual(sent);
    expect(ajv.validate(httpDoor.toJsonSchema(sentWithNulls(type), 'input'), sent)).toBe(false);
  });
});
