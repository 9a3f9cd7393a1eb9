import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineUnion } from '../../../../lib/define/inheritance.ts';
import { defineModel } from '../../../../lib/define-model.ts';
import { describeRoutes } from '../../../../lib/http/openapi.ts';
import { createRoutes } from '../../../../lib/http/routes.ts';
import { access, entity, type Parts, type Rejected, shape, testRejections, text } from './declarations.ts';

/** The validation of the schema of an entity, whose fields are validated in groups and one by one. */

const whole = z.object(shape);
const own = z.object({ level: z.int32() });
const withSchema = (schema: z.ZodType) => entity('things', { schema } as unknown as Parts);
const union = (schema: z.ZodType, kind: z.ZodType) =>
  defineUnion('things', {
    schema,
    kinds: { toy: z.object({ colour: text }), tool: kind },
    table: 'things',
    key: { partition: '{city}', row: '{id}' },
    access,
  } as never);

testRejections([
  ...Object.entries({
    refine: whole.refine(({ year }) => year > 0),
    superRefine: whole.superRefine(() => {}),
    check: whole.check(() => {}),
    overwrite: whole.overwrite((values) => values),
    'refine, and is extended': whole.refine(() => true).safeExtend({ note: text.optional() }),
  }).map(
    ([title, schema]): Rejected => [
      `a schema that has ${title}`,
      () => withSchema(schema),
      /^Entity "things": the schema has a rule of the whole object \(refine, superRefine, check\); accepted are rules of single fields\.$/,
    ],
  ),
  ...Object.entries({
    'is readonly': whole.readonly(),
    'is optional': whole.optional(),
    'has a default': whole.default({} as never),
    'has a transform': whole.transform((values) => values),
    'is an intersection': whole.and(own),
    'is a union': z.union([whole, own]),
  }).map(
    ([title, schema]): Rejected => [
      `a schema that ${title}`,
      () => withSchema(schema),
      /^Entity "things": the schema is not an object with fields; z\.object\(\{…\}\) is accepted, without readonly/,
    ],
  ),
  ['no schema', () => withSchema(undefined as never), /^Entity "things": the schema is not an object with fields/],
  [
    'shared fields of kinds with a rule of the whole object',
    () =>
      union(
        whole.refine(() => true),
        own,
      ),
    /^Entity "things": the schema has a rule of the whole object/,
  ],
  [
    'a kind with a rule of the whole object',
    () =>
      union(
        whole,
        own.refine(({ level }) => level > 0),
      ),
    /^Entity "things": the kind "tool" has a rule of the whole object \(refine, superRefine, check\)/,
  ],
  [
    'a kind that is readonly',
    () => union(whole, own.readonly()),
    /^Entity "things": the kind "tool" is not an object with fields/,
  ],
  [
    'two fields whose different schemas have the same id',
    () => {
      const named = () => z.string().meta({ id: 'Name' });
      return withSchema(whole.extend({ first: named(), last: named() }));
    },
    /^Entity "things": the fields have no JSON Schema together: Duplicate schema id "Name" .*\. Each meta\(\{ id \}\) must be of one schema\.$/,
  ],
  [
    'a field of a type that JSON does not have',
    () => withSchema(whole.extend({ born: z.date() })),
    /the field "born" has a type that JSON does not have: .*; a day is z\.iso\.date\(\)/,
  ],
]);

test.each(
  Object.entries({
    'rules of single fields': whole.extend({ note: text.refine((value) => value !== 'x').optional() }),
    'a rule of an object in a field': whole.extend({ span: z.object({ from: text }).refine(() => true) }),
    'a brand and a description': whole.brand('Thing').meta({ id: 'Thing', description: 'A thing' }),
    'unknown fields': whole.loose(),
    'a schema for unknown fields': whole.catchall(text),
  }),
)('accepts a schema with %s, of which all routes are described', (_, schema) => {
  for (const declared of [withSchema(schema), union(schema, own)]) {
    const model = defineModel({ roles: ['hr'], operatorRole: 'hr', entities: [declared] });
    expect(Object.keys(describeRoutes(createRoutes(model)).paths).length).toBeGreaterThan(3);
  }
});
