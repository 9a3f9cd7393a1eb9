import fc from 'fast-check';
import type { z } from 'zod';
import { FURTHER_ROW, MARK_HEAD } from '../../lib/base/engine-names.ts';
import { onceFor } from '../../lib/base/once.ts';
import { pick, type Values } from '../../lib/base/values.ts';
import { creatableSchema } from '../../lib/define/codec/validation.ts';
import type { Entity } from '../../lib/define/declaration/entity.ts';
import { indexKeyFields, isUnique } from '../../lib/define/places/index-entries.ts';
import { type JsonSchema, toJsonSchema } from '../../lib/http/json-schema.ts';
import { createExample } from '../../lib/http/openapi-examples.ts';
import { addComputed } from '../packs/example-values.ts';

/**
 * Random values of entities, from their schemas. Each field has few values, the same in all entities that refer to each other, so
 * that keys, unique values and groups collide.
 */

const KEY_VALUES = 4;
const OTHER_VALUES = 4;
/** More, because no two entities have the same one. */
const UNIQUE_VALUES = 8;
/** Candidates that are sampled for each wanted value, because code may reject some of them. */
const CANDIDATES = 12;

const DAY_MS = 86_400_000;
/** Periods keep only recent instants. The day before, so that no value is in the future in any time zone. */
const days = Array.from({ length: 3 }, (_, ago) =>
  new Date(Date.now() - (ago + 1) * DAY_MS).toISOString().slice(0, 10),
);

const EMAILS = ['ann', 'bob', 'Eve', 'kim', 'lou', 'max', 'ned', 'zoe'].map((name) => `${name}@example.com`);
const FORMATS: Readonly<Record<string, readonly string[]>> = {
  date: days,
  'date-time': days.map((day) => `${day}T09:30:00.000Z`),
  duration: ['P1D', 'PT5M'],
  email: EMAILS,
  'idn-email': EMAILS,
  ipv4: ['192.0.2.1', '192.0.2.2'],
  ipv6: ['2001:db8::1'],
  uri: ['https://example.com/', 'https://example.com/a'],
  uuid: [
    '0198c1f2-7a3b-4c4d-8e5f-6a7b8c9d0e1f',
    '0198c1f2-7a3b-4c4d-8e5f-6a7b8c9d0e2f',
    '0198c1f2-7a3b-4c4d-8e5f-6a7b8c9d0e3f',
  ],
};
/** Separators of keys, letters whose order differs in other cases, characters that a path encodes, and names of the engine. */
export const WORDS = ['~own', 'A_b c', `ü%2F${FURTHER_ROW}wide1`, `${MARK_HEAD}O'Neil_1`, 'a'];

/** Values that create an entity. */
export const creationOf = onceFor((entity: Entity): fc.Arbitrary<Values> => {
  const kinds = kindsOf(entity).map(({ properties = {}, required = [] }) => {
    const values = Object.entries(properties).map(
      ([field, schema]) => [field, valuesOf(entity, field, schema)] as const,
    );
    const fields = values.filter(([, some]) => some.length > 0);
    const model = Object.fromEntries(fields.map(([field, some]) => [field, fc.constantFrom(...some)]));
    // A key field that the server would make up is given, so that other steps can name the entity.
    const given = [...required, ...entity.keyFields].filter((field) => Object.hasOwn(model, field));
    return fc.record(model, { requiredKeys: given });
  });
  return fc.oneof(...kinds) as fc.Arbitrary<Values>;
});

export function keyOf(entity: Entity): fc.Arbitrary<Values> {
  return creationOf(entity).map((values) => pick(addComputed(entity, values), entity.keyFields));
}

/** Some fields to change, null to remove one. */
export function patchOf(entity: Entity): fc.Arbitrary<Values> {
  const changeable = (values: Values) => {
    const { keyFields, encrypted } = entity;
    return Object.fromEntries(
      Object.entries(values).filter(([field]) => ![...keyFields, ...encrypted, 'kind'].includes(field)),
    );
  };
  const given = creationOf(entity).map(changeable);
  return fc
    .tuple(given, fc.infiniteStream(fc.constantFrom('keep', 'keep', 'keep', 'leave', 'remove')))
    .map(([values, fates]) =>
      Object.fromEntries(
        Object.entries(values).flatMap(([field, value]) => {
          const fate = fates.next().value;
          return fate === 'leave' ? [] : [[field, fate === 'keep' ? value : null]];
        }),
      ),
    );
}

/** The values that a walk gives a field; all entities share those of fields with one name and schema. */
function valuesOf(entity: Entity, field: string, schema: JsonSchema | undefined): readonly unknown[] {
  const { to, by } = targetOf(entity, field) ?? {};
  if (to && by && to !== entity) return valuesOf(to, by, kindsOf(to)[0]?.properties?.[by]);
  const zod = entity.schema.shape[field] as z.ZodType | undefined;
  const isKey = entity.keyFields.includes(field);
  const isTakenOnce = Object.values(entity.indexes).some(
    (index) => isUnique(index) && indexKeyFields(index).includes(field),
  );
  const candidates = sample(arbitraryOf(schema ?? {}), CANDIDATES * OTHER_VALUES);
  const valid = candidates.filter((value) => value !== undefined && zod?.safeParse(value).success !== false);
  const unique = [...new Map(valid.map((value) => [JSON.stringify(value), value])).values()];
  return unique.slice(0, isTakenOnce ? UNIQUE_VALUES : isKey ? KEY_VALUES : OTHER_VALUES);
}

/** The entity that a field refers to, if its values are those of one of its fields. */
export function targetOf({ references, denormalized }: Entity, field: string): { to: Entity; by: string } | undefined {
  const link = denormalized[field];
  return references[field] ?? (link && { to: link.source, by: link.by });
}

interface ObjectSchema {
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly anyOf?: readonly ObjectSchema[];
  readonly oneOf?: readonly ObjectSchema[];
}

function kindsOf(entity: Entity): readonly ObjectSchema[] {
  const described = toJsonSchema(creatableSchema(entity), 'input') as ObjectSchema;
  return described.oneOf ?? described.anyOf ?? [described];
}

function sample<Value>(arbitrary: fc.Arbitrary<Value>, count: number): Value[] {
  return fc.sample(arbitrary, { numRuns: count, seed: 1 });
}

function arbitraryOf(schema: JsonSchema): fc.Arbitrary<unknown> {
  const { examples, enum: choices, anyOf, oneOf, allOf, type, items, properties, required } = schema;
  const example = fc.constant(createExample(schema));
  if ('const' in schema) return fc.constant(schema.const);
  if (Array.isArray(choices)) return fc.constantFrom(...choices);
  const alternatives = [anyOf, oneOf].find(Array.isArray);
  if (alternatives) return fc.oneof(...alternatives.map(arbitraryOf));
  const given = Array.isArray(examples) && examples.length > 0 ? [fc.constantFrom(...examples)] : [];
  if (allOf || Array.isArray(type)) return fc.oneof(example, ...given);
  switch (type) {
    case 'string':
      return fc.oneof(textOf(schema), ...given);
    case 'integer':
    case 'number':
      return fc.oneof(numberOf(schema), ...given);
    case 'boolean':
      return fc.boolean();
    case 'array':
      return items
        ? fc.array(arbitraryOf(Object(items)), { minLength: Number(schema.minItems ?? 0), maxLength: 3 })
        : example;
    case 'object':
      return properties
        ? fc.record(
            Object.fromEntries(Object.entries(properties).map(([name, one]) => [name, arbitraryOf(Object(one))])),
            {
              requiredKeys: Array.isArray(required) ? required : [],
            },
          )
        : example;
    default:
      return example;
  }
}

function textOf({
  format,
  pattern,
  minLength = 0,
  maxLength = Number.POSITIVE_INFINITY,
}: JsonSchema): fc.Arbitrary<unknown> {
  const known = FORMATS[String(format)];
  if (known) return fc.constantFrom(...known);
  if (typeof pattern === 'string') return matching(pattern);
  const words = WORDS.map((word) => word.padEnd(Number(minLength), 'x').slice(0, Number(maxLength)));
  return fc.constantFrom(...words);
}

function matching(pattern: string): fc.Arbitrary<unknown> {
  const example = fc.constant(createExample({ type: 'string', pattern }));
  try {
    return fc.oneof(fc.stringMatching(new RegExp(pattern)), example);
  } catch {
    return example;
  }
}

function numberOf(schema: JsonSchema): fc.Arbitrary<unknown> {
  const { minimum, maximum, type } = schema;
  const least = Number(minimum ?? -5);
  const most = Math.min(Number(maximum ?? least + 1_000), least + 1_000);
  const between = [least, least + 1, most, Math.floor((least + most) / 2)];
  return fc.constantFrom(createExample(schema), ...between, ...(type === 'number' ? [least + (most - least) / 4] : []));
}
