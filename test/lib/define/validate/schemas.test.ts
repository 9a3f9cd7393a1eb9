import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity, defineModel, defineUnion } from '../../../../lib/define.ts';
import { httpDoor } from '../../../kit/http.ts';
import { access, entity, type Rejected, shape, testRejections, text } from './declarations.ts';

/** The validation of the schema of an entity, whose fields are validated in groups and one by one. */

const whole = z.object(shape);
const own = z.object({ level: z.int32() });
const withSchema = (schema: z.ZodType) => entity('things', { schema });
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
      /^Entity "things": the schema has a rule of the whole object \(refine, superRefine, check\)\. Use rules of single fields, or checks of the declaration/,
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
      /^Entity "things": the schema is not an object with fields\. Use z\.object\(\{…\}\) without readonly, optional, default or transform/,
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
    'a field of a type that JSON does not have',
    () => withSchema(whole.extend({ born: z.date() })),
    /the field "born" has a type that JSON does not have: .*\. Use z\.iso\.date\(\)/,
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
    expect(Object.keys(httpDoor.describeRoutes(httpDoor.createRoutes(model)).paths).length).toBeGreaterThan(3);
  }
});

describe('an id of a schema', () => {
  const named = whole.extend({
    code: z.string().max(40).meta({ id: 'Name' }),
    place: z.object({ street: text, town: text }).meta({ id: 'Place' }).optional(),
  });
  const key = { partition: '{city}', row: '{id}' } as const;
  const parent = defineEntity('things', { schema: named, table: 'things', key, access });

  test('leaves a text a text', () => {
    expect(parent.columns).toMatchObject({ code: 'String', place: 'Json' });
  });

  test('may be that of another schema of a parent or child, which both are described', () => {
    const part = defineEntity('parts', {
      schema: whole.extend({ partId: text, code: z.int32().meta({ id: 'Name' }), note: text.meta({ id: 'Place' }) }),
      table: 'things',
      key: { partition: '{city}', row: '{id}_part_{partId}' },
      childOf: parent,
      access,
    });
    const model = defineModel({ roles: ['hr'], operatorRole: 'hr', entities: [parent, part] });
    const { Things, Parts } = Object(httpDoor.describeRoutes(httpDoor.createRoutes(model)).components.schemas);
    expect(Things.properties.code).toEqual({ title: 'Name', type: 'string', maxLength: 40 });
    expect(Parts.properties.code).toMatchObject({ title: 'Name', type: 'integer' });
  });
});

describe('a field that contains itself', () => {
  test.each([
    ['under its id', 'Tree', 'Tree'],
    ['under the name of the first operation', 'Дерево', 'ThingsSchema0'],
  ])('is described by a component that operations share, %s', (_, id, name) => {
    const tree = z
      .object({
        label: z.string(),
        get branches() {
          return z.array(tree).optional();
        },
      })
      .meta({ id });
    const entities = [withSchema(whole.extend({ tree: tree.optional() }))];
    const { components, ...rest } = httpDoor.describeRoutes(
      httpDoor.createRoutes(defineModel({ roles: ['hr'], operatorRole: 'hr', entities })),
    );
    const document = JSON.stringify({ components, ...rest });
    const refs = [...document.matchAll(/"\$ref":"#\/components\/schemas\/([^"]*)"/g)].map(([, ref]) => String(ref));
    expect(refs).toContain(name);
    expect(refs.filter((ref) => !Object.hasOwn(components.schemas, ref))).toEqual([]);
    expect(document).not.toContain('$defs');
    // Responses, new entities, which take null, what replaces one, and patches have schemas of their own; those of a batch have names of their own.
    const described = Object.values(components.schemas).filter((one) => Object(Object(one).properties).branches);
    const forms = new Set(described.map((one) => JSON.stringify(one).replaceAll(/schemas\/\w+/g, 'schemas')));
    expect(forms.size).toBe(5);
  });
});

test.each([
  ['Home address', 'HomeAddress', undefined],
  ['Адрес', 'ThingsPlace', 'Адрес'],
  ['Comparison', 'Comparison2', undefined],
])('describes an object with the title %s by the component %s', (title, name, kept) => {
  const place = z.object({ street: text, town: text, note: z.string().describe('x'.repeat(200)).optional() });
  const entities = [withSchema(whole.extend({ place: place.meta({ title }) }))];
  const { components } = httpDoor.describeRoutes(
    httpDoor.createRoutes(defineModel({ roles: ['hr'], operatorRole: 'hr', entities })),
  );
  const { Things, [name]: described, Comparison } = Object(components.schemas);
  expect(Things.properties.place).toEqual({ $ref: `#/components/schemas/${name}` });
  expect(described).toMatchObject({ properties: { street: {}, town: {} } });
  expect(described.title).toBe(kept);
  expect(Comparison.type).toBe('string');
});
