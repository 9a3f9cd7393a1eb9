import { z } from 'zod';
import { schemaMetadata } from '../define/schema/field-schema.ts';

export type JsonSchema = Readonly<Record<string, unknown>>;

/** The JSON Schema of a zod schema, in the dialect of OpenAPI 3.1, without defaults. */
export function toJsonSchema(schema: z.ZodType, io: 'input' | 'output' = 'output') {
  const options = { io, unrepresentable: 'any', metadata: schemaMetadata, override: correct } as const;
  const { $schema: _, ...described } = z.toJSONSchema(schema, options);
  return described;
}

const { date, datetime, duration, email, guid, ipv4, ipv6, unicodeEmail, uuid } = z.regexes;
/** Long patterns of zod that say no more than their format. No format has a version of UUIDs or a precision of times. */
const FORMAT_PATTERNS = new Set(
  [date, datetime({}), datetime({ offset: true }), duration, email, guid, ipv4, ipv6, unicodeEmail, uuid()].map(
    ({ source }) => source,
  ),
);

interface Described {
  readonly zodSchema: z.core.$ZodTypes;
  readonly jsonSchema: z.core.JSONSchema.BaseSchema;
}

function correct({ zodSchema, jsonSchema }: Described): void {
  // Frozen in this process, but not for callers.
  if (zodSchema._zod.def.type === 'readonly') delete jsonSchema.readOnly;
  // The format "email" allows only ASCII; RFC 6531 addresses have a format of their own.
  if (jsonSchema.format === 'email' && jsonSchema.pattern === unicodeEmail.source) jsonSchema.format = 'idn-email';
  if (jsonSchema.format !== undefined && FORMAT_PATTERNS.has(jsonSchema.pattern ?? '')) delete jsonSchema.pattern;
  // The bounds of the integers that JavaScript represents exactly, which every integer of zod has.
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
  // Zod does not tell a constant from a computed value, such as the current hour, which is wrong an hour later.
  delete jsonSchema.default;
}
