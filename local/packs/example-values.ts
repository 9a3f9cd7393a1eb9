import { z } from 'zod';
import { mapValues, type Values } from '../../lib/base/values.ts';
import { writableSchema } from '../../lib/define/codec/validation.ts';
import type { Entity } from '../../lib/define/declaration/entity.ts';
import { schemaMetadata } from '../../lib/define/schema/field-schema.ts';
import { createExample } from '../../lib/http/openapi-examples.ts';

/** The parts of JSON Schema that decide which fields an example has. */
const ObjectSchema = z.looseObject({
  get anyOf() {
    return z.array(ObjectSchema).optional();
  },
  get oneOf() {
    return z.array(ObjectSchema).optional();
  },
  properties: z.record(z.string(), z.looseObject({})).optional(),
  required: z.array(z.string()).default([]),
});
type ObjectSchema = z.infer<typeof ObjectSchema>;

/**
 * Values that create one of these entities: required fields, key fields and the fields of indexes. Returns undefined if the
 * schema does not describe valid values, for example because code checks them.
 */
export function makeExampleValues(entity: Entity): Values | undefined {
  const wanted = new Set([...entity.keyFields, ...Object.values(entity.indexes).flatMap(({ uses }) => uses)]);
  return makeExample(entity.union ?? writableSchema(entity), wanted);
}

/** What an operation of the app accepts. Undefined as for an entity. */
export function makeExampleInput(schema: z.ZodType): Values | undefined {
  return makeExample(schema, new Set());
}

function makeExample(schema: z.ZodType, wanted: ReadonlySet<string>): Values | undefined {
  const options = { io: 'input', unrepresentable: 'any', metadata: schemaMetadata } as const;
  const described = ObjectSchema.parse(z.toJSONSchema(schema, options));
  const parsed = schema.safeParse(createExample(keepFields(described, wanted)));
  return parsed.success ? z.record(z.string(), z.unknown()).parse(parsed.data) : undefined;
}

/** The values with the fields that the API computes from them. */
export function addComputed({ derived, defaults }: Entity, values: Values): Values {
  const compute = (functions: Entity['derived']) => mapValues(functions, (computed) => computed(values));
  return { ...compute(defaults), ...values, ...compute(derived) };
}

/** Leaves out the optional fields that are not wanted, such as a reference to an entity that does not exist. */
function keepFields(schema: ObjectSchema, wanted: ReadonlySet<string>): ObjectSchema {
  const { anyOf, oneOf, properties = {}, required } = schema;
  const kept = Object.entries(properties).filter(([field]) => required.includes(field) || wanted.has(field));
  return {
    ...schema,
    properties: Object.fromEntries(kept),
    ...(anyOf ? { anyOf: anyOf.map((one) => keepFields(one, wanted)) } : {}),
    ...(oneOf ? { oneOf: oneOf.map((one) => keepFields(one, wanted)) } : {}),
  };
}
