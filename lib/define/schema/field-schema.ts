import { z } from 'zod';
import { mapValues } from '../../base/values.ts';

/**
 * The metadata of schemas for `z.toJSONSchema`, with an id as the title. Otherwise, zod replaces a schema with an id by a reference,
 * which hides its type, and rejects two schemas with one id.
 */
class SchemaMetadata extends z.core.$ZodRegistry<Record<string, unknown>> {
  override get(schema: z.core.$ZodType): Record<string, unknown> {
    const { id, ...metadata } = z.globalRegistry.get(schema) ?? {};
    return id === undefined ? metadata : { title: id, ...metadata };
  }
}

export const schemaMetadata = new SchemaMetadata();

const Typed = z.object({ type: z.string().optional().catch(undefined) });
const Property = z
  .object({
    /** Undefined for a union, which is stored as JSON. */
    ...Typed.shape,
    format: z.string().optional(),
    pattern: z.string().optional(),
    const: z.unknown().optional(),
    enum: z.array(z.unknown()).optional(),
    minimum: z.number().optional(),
    maximum: z.number().optional(),
    minLength: z.number().optional(),
    maxLength: z.number().optional(),
    items: Typed.optional().catch(undefined),
    anyOf: z.array(Typed).optional(),
  })
  .transform(({ const: constant, enum: choices, items, anyOf, ...property }) => {
    const types = new Set(anyOf?.map(({ type }) => type));
    return {
      ...property,
      /** The type, or the common type of a union's members: keys contain the value, regardless of how it is stored. */
      keyType: property.type ?? (types.size === 1 ? [...types][0] : undefined),
      constant: typeof constant === 'string' ? constant : undefined,
      choices,
      elements: items?.type,
    };
  });
/** The JSON Schema of a field, as far as the validation of a model needs it. */
export type FieldSchema = z.infer<typeof Property>;

/**
 * The error of a schema whose fields cannot be validated one by one. A partial update, a key and a selection validate some
 * fields only, which a rule of the whole object does not allow.
 */
export function schemaError(what: string, schema: z.ZodType): string | undefined {
  if (!(schema instanceof z.ZodObject))
    return `${what} is not an object with fields. Use z.object({…}) without readonly, optional, default or transform.`;
  if (schema._zod.def.checks?.length)
    return `${what} has a rule of the whole object (refine, superRefine, check). Use rules of single fields, or checks of the declaration.`;
  return undefined;
}

/** The fields by name. Throws a plain error for a type without a JSON Schema, such as a date or a transform. */
export function fieldSchemas(schema: z.ZodObject): Readonly<Record<string, FieldSchema>> {
  const known = cache.get(schema);
  if (known) return known;
  const { properties = {} } = jsonSchemaOf(schema);
  const fields = mapValues(properties, (property) => Property.parse(property));
  cache.set(schema, fields);
  return fields;
}

/** What to declare instead of a type that JSON does not have. */
export const JSON_TYPES =
  'Use z.iso.date() or z.iso.datetime() for a date, z.int() for a bigint, z.record() for a map, and z.array() for a set.';

function jsonSchemaOf(schema: z.ZodObject) {
  try {
    return z.toJSONSchema(schema, { io: 'output', metadata: schemaMetadata });
  } catch (error) {
    // Zod does not say which field has the type.
    const field = Object.entries(schema.shape).find(([, type]) => !hasJsonSchema(z.object({ type })))?.[0];
    const reason = error instanceof Error ? error.message : String(error);
    const sentence = `the field "${field}" has a type that JSON does not have: ${reason}. ${JSON_TYPES}`;
    throw new Error(sentence, { cause: error });
  }
}

function hasJsonSchema(schema: z.ZodObject): boolean {
  try {
    z.toJSONSchema(schema, { io: 'output', metadata: schemaMetadata });
    return true;
  } catch {
    return false;
  }
}

/** Each start of an instance validates the model, and creating JSON Schemas takes most of that time. */
const cache = new WeakMap<z.ZodObject, Readonly<Record<string, FieldSchema>>>();

/** A text that begins with its day. */
const DAY_FIRST = '^\\d{4}-\\d{2}-\\d{2}';

/** True for a field whose values begin with an ISO date. */
export function isInstant({ keyType, format, pattern }: FieldSchema): boolean {
  return (
    keyType === 'string' && (format === 'date-time' || format === 'date' || pattern?.startsWith(DAY_FIRST) === true)
  );
}

/** True if the field may be missing or null. */
export function isOptional(schema: z.ZodObject, field: string): boolean {
  const type: z.ZodType | undefined = schema.shape[field];
  const isAccepted = (value: unknown) => {
    const parsed = type?.safeParse(value);
    return parsed?.success === true && (parsed.data === undefined || parsed.data === null);
  };
  return isAccepted(undefined) || isAccepted(null);
}

/** The patterns of a type and of all types in it. */
export function patternsIn(type: Type, seen = new Set<Type>()): RegExp[] {
  if (seen.has(type)) return [];
  seen.add(type);
  const { def, pattern } = type._zod;
  const own = [
    ...checksOf(type).flatMap((check) => [check.pattern, check.hostname, check.protocol]),
    def.type === 'template_literal' ? pattern : undefined,
  ];
  const inner = [def.getter?.(), ...Object.values(def.shape ?? {}), ...Object.values(def)].flat();
  return [
    ...own.filter((one) => one !== undefined),
    ...inner.flatMap((one) => (one instanceof z.core.$ZodType ? patternsIn(one as Type, seen) : [])),
  ];
}

/** Types that add only null or undefined to the values of their inner type. `default`, `catch`, `pipe` and others replace values. */
const WRAPPERS = ['optional', 'nullable', 'nonoptional', 'readonly', 'prefault'];
const BASE_TYPES = ['string', 'number', 'int', 'boolean', 'enum', 'literal'];
/** With other flags, a pattern matches other texts than its source, which is all that a JSON Schema has. */
const FLAGS = /^[dgsuy]*$/;
/** Other metadata, such as `pattern`, replaces what the JSON Schema says of the type. */
const METADATA = ['id', 'title', 'description', 'examples', 'deprecated'];

/** True if every stored value matches the JSON Schema of its field: nothing replaces a value after its check. */
export function isExact(schema: z.ZodObject, field: string): boolean {
  const types = typesOf(schema, field);
  return (
    keepsValues(schema, field) &&
    types.every((type) => Object.keys(schemaMetadata.get(type) ?? {}).every((key) => METADATA.includes(key))) &&
    types.flatMap(checksOf).every(({ pattern }) => FLAGS.test(pattern?.flags ?? ''))
  );
}

/** True if the field stores each value as it was sent, so that different values stay different. */
export function keepsValues(schema: z.ZodObject, field: string): boolean {
  const types = typesOf(schema, field);
  const [base, ...wrappers] = types.map(({ _zod: { def } }) => def.type).reverse();
  return (
    BASE_TYPES.includes(base ?? '') &&
    wrappers.every((type) => WRAPPERS.includes(type)) &&
    types.flatMap(checksOf).every(keepsValue)
  );
}

/**
 * True if a value that is absent becomes the same one each time: the default in the schema is a value, not a function. Zod tells the two apart
 * in a getter only, in which it clones a value and calls a function. If a version of zod does otherwise, the result is false.
 */
export function hasConstantDefault(schema: z.ZodObject, field: string): boolean {
  const outer = typesOf(schema, field).find(({ _zod: { def } }) => DEFAULTS.includes(def.type));
  if (!outer) return false;
  const { def } = outer._zod;
  const { isArray } = Array;
  const cloned: unknown[] = [];
  try {
    Array.isArray = (value): value is unknown[] => {
      cloned.push(value);
      return isArray(value);
    };
    const [value, again] = [def.defaultValue, def.defaultValue];
    const isPrimitive = typeof value !== 'object' || value === null;
    return (
      isPrimitive && cloned.length === 2 && cloned.every((one) => Object.is(one, value)) && Object.is(value, again)
    );
  } catch {
    return false;
  } finally {
    Array.isArray = isArray;
  }
}

const DEFAULTS = ['default', 'prefault'];

/** The type of a field, then the type that it wraps, and so on. */
function typesOf(schema: z.ZodObject, field: string): Type[] {
  const types: Type[] = [];
  for (let type: Type | undefined = schema.shape[field]; type; type = type._zod.def.innerType) types.push(type);
  return types;
}

function checksOf({ _zod: { def } }: Type): Check[] {
  return [def, ...(def.checks ?? []).map((one) => one._zod.def)];
}

/** Unlike `refine`, a check of one's own (`check`, `superRefine`) may replace the value. Coercion makes the number 1 of "01" and "1". */
function keepsValue({ check, format, fn, coerce }: Check): boolean {
  return check !== 'overwrite' && format !== 'url' && (check !== 'custom' || fn !== undefined) && coerce !== true;
}

interface Check {
  readonly check?: string;
  readonly format?: string;
  readonly pattern?: RegExp;
  /** The hosts that the format `url` accepts. */
  readonly hostname?: RegExp;
  readonly protocol?: RegExp;
  readonly fn?: unknown;
  readonly coerce?: boolean;
}
interface Type extends z.core.$ZodType {
  readonly _zod: z.core.$ZodType['_zod'] & {
    readonly pattern: RegExp | undefined;
    readonly def: Check & {
      readonly type: string;
      readonly getter?: () => unknown;
      readonly shape?: object;
      readonly innerType?: Type;
      readonly defaultValue?: unknown;
      readonly checks?: readonly { readonly _zod: { readonly def: Check } }[];
    };
  };
}
