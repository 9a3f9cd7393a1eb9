import { createMatchingText, matchesPattern } from './matching-text.ts';

/** Examples of the values of a JSON Schema, for OpenAPI. */

export type JsonSchema = Readonly<Record<string, unknown>>;

/** Candidates by format. The example is the first that satisfies the length and the pattern of the text. */
const FORMAT_EXAMPLES: Readonly<Record<string, readonly string[]>> = {
  date: ['2026-11-20'],
  'date-time': ['2026-11-20T09:30:00Z', '2026-11-20T09:30:00.000Z'],
  duration: ['P1D'],
  email: ['ann@example.com'],
  'idn-email': ['ann@example.com'],
  ipv4: ['192.0.2.1'],
  ipv6: ['2001:db8::1'],
  time: ['09:30:00'],
  uri: ['https://example.com/'],
  'uri-reference': ['/example'],
  uuid: ['0198c1f2-7a3b-4c4d-8e5f-6a7b8c9d0e1f', '0198c1f2-7a3b-7c4d-8e5f-6a7b8c9d0e1f'],
};

/** A valid value, the same for the same schema. Undefined if none is found, which takes a rule that only code can check. */
export function createExample(schema: JsonSchema): unknown {
  // A schema that contains itself.
  if ('$ref' in schema) return undefined;
  const { examples, default: fallback, enum: choices, allOf, anyOf, oneOf, type } = schema;
  if (Array.isArray(examples)) return examples[0];
  if (fallback !== undefined) return fallback;
  if ('const' in schema) return schema.const;
  if (Array.isArray(choices)) return choices[0];
  if (Array.isArray(allOf)) return createWhole(allOf);
  for (const alternative of [anyOf, oneOf].flat() as (JsonSchema | undefined)[]) {
    const example = alternative && createExample(alternative);
    if (example !== undefined) return example;
  }
  // Zod describes a number that may be null by a list of types.
  if (Array.isArray(type)) return createExample({ ...schema, type: type[0] });
  switch (type) {
    case 'string':
      return createText(schema);
    case 'integer':
    case 'number':
      return createNumber(schema);
    case 'boolean':
      return true;
    case 'null':
      return null;
    case 'array':
      return createList(schema);
    case 'object':
      return createObject(schema);
    default:
      return type === undefined ? 'example' : undefined;
  }
}

/** The `examples` of a schema, if one is found. */
export function createExamples(schema: JsonSchema): { readonly examples?: readonly unknown[] } {
  const example = createExample(schema);
  return example === undefined ? {} : { examples: [example] };
}

/** Returns the schema with the last of several examples first. */
export function preferLast<Described extends object>(schema: Described): Described {
  const prefer = (keyword: string, value: unknown) =>
    keyword === 'examples' && Array.isArray(value) ? value.toReversed() : value;
  return JSON.parse(JSON.stringify(schema), prefer);
}

/** The fields of all parts. Undefined for parts that are no objects, as a value of one part may not match another. */
function createWhole(parts: readonly JsonSchema[]): unknown {
  const examples = parts.map(createExample);
  const areObjects = parts.every(({ type }) => type === 'object') && !examples.includes(undefined);
  return areObjects ? Object.assign({}, ...examples) : undefined;
}

function createText({ format, pattern, minLength = 0, maxLength = Number.POSITIVE_INFINITY }: JsonSchema) {
  const texts = FORMAT_EXAMPLES[String(format)] ?? [
    typeof pattern === 'string'
      ? createMatchingText(pattern)
      : 'example'.padEnd(Number(minLength), '.').slice(0, Number(maxLength)),
  ];
  return texts.find(
    (text) =>
      text !== undefined &&
      text.length >= Number(minLength) &&
      text.length <= Number(maxLength) &&
      (typeof pattern !== 'string' || matchesPattern(pattern, text)),
  );
}

function createNumber({ minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf = 1 }: JsonSchema) {
  const step = Number(multipleOf);
  const least = Number(minimum ?? Number.NEGATIVE_INFINITY);
  const most = Number(maximum ?? Number.POSITIVE_INFINITY);
  const isValid = (value: number) =>
    value >= least &&
    value <= most &&
    value > Number(exclusiveMinimum ?? Number.NEGATIVE_INFINITY) &&
    value < Number(exclusiveMaximum ?? Number.POSITIVE_INFINITY);
  return [step, Math.ceil(least / step) * step, Math.ceil(least / step) * step + step, 0].find(isValid);
}

function createList({ items, prefixItems, minItems = 1 }: JsonSchema) {
  if (Array.isArray(prefixItems)) {
    const first = prefixItems.map(createExample);
    return first.includes(undefined) ? undefined : first;
  }
  const example = createExample(Object(items));
  if (example === undefined) return minItems === 1 ? [] : undefined;
  return Array.from({ length: Math.max(1, Number(minItems)) }, () => example);
}

function createObject({ properties = {}, required = [], propertyNames, additionalProperties }: JsonSchema) {
  const values: Record<string, unknown> = {};
  for (const [name, property] of Object.entries(properties as Record<string, JsonSchema>)) {
    const example = createExample(property);
    if (example !== undefined) values[name] = example;
    else if ((required as string[]).includes(name)) return undefined;
  }
  const others = typeof additionalProperties === 'object' ? createExample(Object(additionalProperties)) : undefined;
  if (others !== undefined) values[String(createExample(Object(propertyNames ?? { type: 'string' })))] = others;
  return values;
}
