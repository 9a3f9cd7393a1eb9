import type { JsonSchema } from './json-schema.ts';

/**
 * Generators of clients make a type without members, a type with two halves, or the type of the first alternative from `anyOf`, `oneOf` and
 * `allOf`. They read `type`, `properties`, `enum` and `items`, and skip `if` and `else`. So a union of objects becomes one object with
 * optional members, a union of texts a text, and which alternatives exist is told by `if` and `else`: the schema has the same values as before.
 */
export function flattenUnions(schema: JsonSchema): JsonSchema {
  const { anyOf, oneOf, allOf, ...rest } = mapParts(schema, (_, part) => flattenUnions(part));
  const alternatives = (anyOf ?? oneOf) as readonly JsonSchema[] | undefined;
  if (alternatives) return { ...unite(alternatives), ...rest };
  if (allOf) return { ...intersect(allOf as readonly JsonSchema[]), ...rest };
  return rest;
}

/** The schema with each schema in it mapped. */
export function mapParts(schema: JsonSchema, map: (part: string, schema: JsonSchema) => JsonSchema): JsonSchema {
  const mapped = Object.entries(schema).map(([keyword, value]) => {
    if (['properties', '$defs'].includes(keyword) && isSchema(value))
      return [keyword, Object.fromEntries(Object.entries(value).map(([name, one]) => [name, map(name, Object(one))]))];
    if (['anyOf', 'oneOf', 'allOf'].includes(keyword) && Array.isArray(value))
      return [keyword, value.map((one, index) => map(String(index + 1), one))];
    const isPart = ['items', 'additionalProperties'].includes(keyword) && isSchema(value);
    return [keyword, isPart ? map('item', value) : value];
  });
  return Object.fromEntries(mapped);
}

/** The schema of the values of any of the alternatives, which are flat. */
function unite(alternatives: readonly JsonSchema[]): JsonSchema {
  const all = distinct(alternatives);
  const values = all.filter(({ type }) => type !== 'null');
  return values.length < all.length ? toNullable(uniteValues(values)) : uniteValues(values);
}

function uniteValues(all: readonly JsonSchema[]): JsonSchema {
  const [first] = all;
  if (!first || all.length === 1) return first ?? {};
  // A schema without rules has all values.
  if (all.some((one) => Object.keys(one).length === 0)) return {};
  const types = new Set(all.map(({ type }) => (type === 'number' && all.every(isInteger) ? 'integer' : type)));
  const [type] = types;
  if (types.size > 1 || typeof type !== 'string' || type === 'array') return eitherOf(all);
  if (type === 'object') return uniteObjects(all);
  const choices = all.map(choicesOf);
  if (choices.every((each) => each !== undefined)) return { type, enum: [...new Set(choices.flat())] };
  return { type, ...eitherOf(all.map(({ type: _, ...rules }) => rules)) };
}

/** Without a type: a generator takes any value. */
function eitherOf([first, ...others]: readonly JsonSchema[]): JsonSchema {
  return others.length === 0 ? { ...first } : { if: first, else: eitherOf(others) };
}

function uniteObjects(all: readonly JsonSchema[]): JsonSchema {
  const names = [...new Set(all.flatMap((one) => Object.keys(propertiesOf(one))))];
  const properties = Object.fromEntries(names.map((name) => [name, unite(all.flatMap((one) => memberOf(one, name)))]));
  const required = names.filter((name) => all.every((one) => requiredOf(one).includes(name)));
  const others = all.map(({ additionalProperties }) => additionalProperties);
  const open = others.filter((one) => one !== false).map((one) => (isSchema(one) ? one : {}));
  const additionalProperties = open.length === 0 ? false : unite(open);
  const isMarked = open.length === 0 || open.every((one) => Object.keys(one).length > 0);
  const whole = {
    type: 'object',
    ...(names.length > 0 ? { properties } : {}),
    ...(required.length > 0 ? { required } : {}),
    ...(isMarked ? { additionalProperties } : {}),
  };
  return { ...whole, ...eitherOf(all.map((one) => rulesBeyond(whole, one))) };
}

/** What an alternative requires and its union does not. */
function rulesBeyond(whole: JsonSchema, one: JsonSchema): JsonSchema {
  const {
    type: _,
    title: __,
    description: ___,
    properties: ____,
    required: _____,
    additionalProperties,
    ...rules
  } = one;
  const names = Object.keys(propertiesOf(one));
  const narrower = Object.entries(propertiesOf(one)).filter(
    ([name, property]) => JSON.stringify(property) !== JSON.stringify(propertiesOf(whole)[name]),
  );
  const required = requiredOf(one).filter((name) => !requiredOf(whole).includes(name));
  const isClosed = additionalProperties === false && names.length < Object.keys(propertiesOf(whole)).length;
  const isOther = isSchema(additionalProperties) && additionalProperties !== whole.additionalProperties;
  return {
    ...rules,
    ...(narrower.length > 0 ? { properties: Object.fromEntries(narrower) } : {}),
    ...(required.length > 0 ? { required } : {}),
    ...(isClosed || (additionalProperties === false && whole.additionalProperties !== false)
      ? { propertyNames: { enum: names } }
      : {}),
    ...(isOther ? { additionalProperties } : {}),
  };
}

/** The objects that match all schemas, whose common members are equal. */
function intersect(all: readonly JsonSchema[]): JsonSchema {
  if (!all.every(({ type, ...rest }) => type === 'object' && !('if' in rest))) return { allOf: all };
  const whole = Object.assign({}, ...all);
  return {
    ...whole,
    properties: Object.assign({}, ...all.map(propertiesOf)),
    required: [...new Set(all.flatMap(requiredOf))],
  };
}

function toNullable(schema: JsonSchema): JsonSchema {
  const { type, const: constant, enum: choices, ...rules } = schema;
  if (Object.keys(schema).length === 0) return {};
  // An object is a type of its own.
  if ('properties' in schema || '$ref' in schema) return { oneOf: [schema, { type: 'null' }] };
  if (type === undefined) return { if: { type: 'null' }, else: schema };
  const types = [...new Set([type, 'null'].flat())];
  // A list of the choices would be a type of its own.
  if (type === 'boolean' && constant !== undefined) return { ...rules, type: types, not: { const: !constant } };
  const values = choicesOf(schema);
  if (values) return { ...rules, type: types, enum: [...values, null] };
  return { ...rules, type: types };
}

/** The schema of the first alternative of a flat union. */
export function firstAlternative({ if: first, else: _, ...whole }: JsonSchema): JsonSchema {
  const { properties, required, propertyNames, ...rules } = Object(first) as JsonSchema;
  const names = Object(propertyNames).enum as readonly string[] | undefined;
  const members = Object.entries({ ...propertiesOf(whole), ...Object(properties) });
  return {
    ...whole,
    ...rules,
    ...(members.length > 0
      ? { properties: Object.fromEntries(members.filter(([name]) => names?.includes(name) ?? true)) }
      : {}),
    required: [...requiredOf(whole), ...((required as readonly string[] | undefined) ?? [])],
    ...(names ? { additionalProperties: false } : {}),
  };
}

/** The schemas that a member with this name may have in an object; none if it has no such member. An open object has none of another alternative. */
function memberOf(one: JsonSchema, name: string): readonly JsonSchema[] {
  const own = propertiesOf(one)[name];
  if (own) return [own];
  return isSchema(one.additionalProperties) ? [one.additionalProperties] : [];
}

function propertiesOf({ properties }: JsonSchema): Readonly<Record<string, JsonSchema>> {
  return isSchema(properties) ? (properties as Readonly<Record<string, JsonSchema>>) : {};
}

function requiredOf({ required }: JsonSchema): readonly string[] {
  return Array.isArray(required) ? required : [];
}

/** The only values of a schema, if it lists them and has no other rule. */
function choicesOf({ const: constant, enum: choices, ...rules }: JsonSchema): readonly unknown[] | undefined {
  const hasRules = Object.keys(rules).some(
    (keyword) => !['type', 'title', 'description', 'examples'].includes(keyword),
  );
  if (hasRules) return undefined;
  return constant === undefined ? (choices as readonly unknown[] | undefined) : [constant];
}

function isInteger(schema: JsonSchema): boolean {
  return schema.type === 'integer' || (choicesOf(schema)?.every(Number.isInteger) ?? false);
}

function distinct(all: readonly JsonSchema[]): readonly JsonSchema[] {
  return [...new Map(all.map((one) => [JSON.stringify(one), one])).values()];
}

function isSchema(value: unknown): value is JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
