import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { httpDoor } from '../../kit/http.ts';

const ajv = new Ajv2020({ strict: false });
formats.default(ajv);

const Cat = z.strictObject({ kind: z.literal('cat'), lives: z.int(), name: z.string().optional() });
const Dog = z.strictObject({ kind: z.literal('dog'), name: z.string().nullable() });
const Bird = z.strictObject({ kind: z.literal('bird'), name: z.int(), wings: z.boolean().optional() });

const unions: [string, z.ZodType, object][] = [
  ['kinds of objects', z.discriminatedUnion('kind', [Cat, Dog]), { type: 'object', required: ['kind'] }],
  ['kinds with another type of a member', z.union([Cat, Bird]), { type: 'object' }],
  [
    'objects that exclude each other',
    z.xor([z.strictObject({ a: z.int() }), z.strictObject({ b: z.int(), c: z.int().optional() })]),
    { type: 'object', additionalProperties: false },
  ],
  [
    'an object and a map',
    z.union([z.strictObject({ a: z.string() }), z.record(z.enum(['b', 'c']), z.int())]),
    { type: 'object' },
  ],
  ['an object or null', Cat.nullable(), { oneOf: [expect.objectContaining({ type: 'object' }), { type: 'null' }] }],
  ['choices or null', z.enum(['a', 'b']).nullable(), { type: ['string', 'null'], enum: ['a', 'b', null] }],
  ['one Boolean or null', z.literal(true).nullable(), { type: ['boolean', 'null'] }],
  ['numbers', z.literal([0, 1]).or(z.literal(2)), { type: 'integer', enum: [0, 1, 2] }],
  ['formats of a text', z.ipv4().or(z.ipv6()), { type: 'string' }],
  ['formats of a text or null', z.ipv4().or(z.ipv6()).nullable(), { type: ['string', 'null'] }],
  [
    'a pattern, choices or null',
    z.union([z.string().regex(/^c/), z.enum(['a', 'b'])]).nullable(),
    { type: ['string', 'null'] },
  ],
  ['a text and a list', z.union([z.string(), z.array(z.string())]), {}],
  ['a list or null', z.array(z.string()).nullable(), { type: ['array', 'null'] }],
  ['anything', z.union([z.string(), z.unknown()]), {}],
  [
    'parts of an object',
    z.intersection(z.object({ a: z.string() }), z.object({ b: z.int() })),
    { type: 'object', required: ['a', 'b'] },
  ],
];

describe('a union of', () => {
  const members = fc.record(
    {
      kind: fc.constantFrom('cat', 'dog', 'bird'),
      lives: fc.constantFrom(1, 'x', null),
      name: fc.constantFrom('n', 1, null),
      wings: fc.constantFrom(true, 1),
      ...{ a: fc.constantFrom('x', 1), b: fc.constantFrom('x', 1), c: fc.constantFrom('x', 1), d: fc.constant(1) },
    },
    { requiredKeys: [] },
  );
  const scalars = fc.constantFrom(null, true, false, 0, 1, 2, 3, 1.5, 'a', 'b', 'c', '192.0.2.1', '2001:db8::1');
  const values = fc.oneof(members, scalars, fc.array(scalars, { maxLength: 2 }));

  test.each(unions)('%s has the same values without a union', (_, type, shape) => {
    const schema = httpDoor.toJsonSchema(type, 'input');
    const flat = httpDoor.flattenUnions(schema);
    expect(flat).toMatchObject(shape);
    expect(JSON.stringify(flat)).not.toMatch(/"(?:anyOf|allOf)"/);
    const [isValid, isFlatValid] = [schema, flat].map((one) => ajv.compile(one));
    fc.assert(
      fc.property(values, (value) => {
        expect(isFlatValid?.(value)).toBe(isValid?.(value));
      }),
      { numRuns: 500, examples: [[{}], [{ a: 1 }], [{ b: 1 }], [{ a: 1, b: 1 }], [{ kind: 'cat' }], [null]] },
    );
    // A value of each alternative, which chance may miss.
    const example = httpDoor.createExample(flat);
    if (example !== undefined) expect(isValid?.(example), JSON.stringify(example)).toBe(true);
  });
});
