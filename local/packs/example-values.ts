import fc from 'fast-check';
import { z } from 'zod';
import type { Entity } from '../../lib/define/entity.ts';
import { writableSchema } from '../../lib/define/validate/validation.ts';
import type { Values } from '../../lib/define/values.ts';

/** The parts of JSON Schema that the generator reads. */
const JsonSchema = z.object({
  type: z.string().optional(),
  const: z.unknown().optional(),
  enum: z.array(z.unknown()).optional(),
  default: z.unknown().optional(),
  format: z.string().optional(),
  pattern: z.string().optional(),
  minLength: z.number().optional(),
  maxLength: z.number().optional(),
  minimum: z.number().optional(),
  exclusiveMinimum: z.number().optional(),
  get anyOf() {
    return z.array(JsonSchema).optional();
  },
  get oneOf() {
    return z.array(JsonSchema).optional();
  },
  get allOf() {
    return z.array(JsonSchema).optional();
  },
  get properties() {
    return z.record(z.string(), JsonSchema).optional();
  },
  required: z.array(z.string()).optional(),
});
type JsonSchema = z.infer<typeof JsonSchema>;

const BY_FORMAT: Readonly<Record<string, string>> = {
  date: '2026-01-31',
  'date-time': '2026-01-31T12:00:00Z',
  time: '12:00:00',
  email: 'ann@example.com',
  uuid: '00000000-0000-4000-8000-000000000001',
  ipv4: '192.0.2.1',
  uri: 'https://example.com/',
};
/** A constant seed gives the same values at every start. */
const SEED = 1;

/**
 * Values that create one of these entities: required fields, key fields and the fields of indexes. Returns undefined if the
 * schema does not describe valid values, for example because code checks them.
 */
export function makeExampleValues(entity: Entity): Values | undefined {
  const schema = entity.union ?? writableSchema(entity);
  const described = JsonSchema.parse(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }));
  const wanted = [...entity.keyFields, ...Object.values(entity.indexes).flatMap(({ uses }) => uses)];
  const values = makeExample(described, wanted);
  const parsed = schema.safeParse(values);
  return parsed.success ? z.record(z.string(), z.unknown()).parse(parsed.data) : undefined;
}

export function addDerived({ derived }: Entity, values: Values): Values {
  return {
    ...values,
    ...Object.fromEntries(Object.entries(derived).map(([field, derive]) => [field, derive(values)])),
  };
}

function makeExample(schema: JsonSchema, wanted: readonly string[] = []): unknown {
  const [first] = schema.anyOf ?? schema.oneOf ?? schema.allOf ?? [];
  if (schema.const !== undefined) return schema.const;
  if (schema.default !== undefined) return schema.default;
  if (schema.enum) return schema.enum[0];
  if (first) return makeExample(first, wanted);
  if (schema.type === 'string') return makeExampleText(schema);
  if (schema.type === 'boolean') return true;
  if (schema.type === 'integer' || schema.type === 'number')
    return Math.max(1, schema.minimum ?? 1, (schema.exclusiveMinimum ?? 0) + 1);
  if (schema.type === 'array') return [];
  const { properties = {}, required = [] } = schema;
  const made = Object.entries(properties).filter(([field]) => required.includes(field) || wanted.includes(field));
  return Object.fromEntries(made.map(([field, property]) => [field, makeExample(property)]));
}

function makeExampleText({
  format = '',
  pattern,
  minLength = 0,
  maxLength = Number.MAX_SAFE_INTEGER,
}: JsonSchema): string {
  const known = BY_FORMAT[format];
  if (known !== undefined) return known;
  if (pattern !== undefined)
    return fc.sample(fc.stringMatching(new RegExp(pattern)), { seed: SEED, numRuns: 1 })[0] ?? '';
  return 'example'.padEnd(minLength, '.').slice(0, maxLength);
}
