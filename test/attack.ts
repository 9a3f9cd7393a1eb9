import fc from 'fast-check';
import { anyText } from './any-text.ts';
import { baseValues } from './kit/base.ts';
import type { JsonSchema, OpenApi, Operation } from './openapi.ts';

/** Generates requests from the OpenAPI description of an API: valid, nearly valid and hostile ones. */

interface AttackOptions {
  /** Fields whose generated values match `SECRET`, so that a response that leaks them is detected. */
  readonly restricted: readonly string[];
  /** Values of stored entities by the name of a field, in place of values that fit its schema. */
  readonly stored?: Readonly<Record<string, readonly unknown[]>>;
}

/** A request with placeholders, which are replaced when it is sent. */
export interface Attack {
  readonly operationId: string;
  readonly method: string;
  /** URL-encoded, including the query. */
  readonly path: string;
  readonly who: (typeof WHO)[number];
  readonly headers: Readonly<Record<string, string>>;
  /** Undefined if the request has no body. */
  readonly body: string | Uint8Array | undefined;
  readonly isChunked: boolean;
  /** Body fields that repeat the key values at the start of the path. */
  readonly keyFields: readonly string[];
}

/** The caller whose token a request carries: a role, the owner of an entity, or a caller without a valid token. */
export const WHO = [
  'reader',
  'hr',
  'operator',
  'owner',
  'nobody',
  'unknown role',
  'forged role',
  'unsigned',
  'garbage',
] as const;

/** A placeholder for a value of an earlier response. The number, modulo the count of these values, selects one. */
const seen = (kind: 'etag' | 'continuation' | 'id') => fc.nat(1_000).map((number) => `@@${kind}:${number}@@`);
/** A placeholder for the first segments of the path of a created entity. */
const placeOf = (entity: string, segments: number) =>
  fc.nat(1_000).map((number) => `@@/api/${entity} ${segments}:${number}@@`);
export const SEEN = /@@([^:]+):(\d+)@@/g;

/** Restricted values, which only permitted callers may receive. */
export const SECRET = /SECRET-\d|1903-03-0\d/;
const secretOf = (schema: JsonSchema) =>
  fc
    .integer({ min: 1, max: 9 })
    .map((number) => (schema.format === 'date' ? `1903-03-0${number}` : `SECRET-${number}`));

const HOSTILE_TEXTS = [
  '',
  ' ',
  '.',
  '..',
  '../../etc/passwd',
  '%',
  '%2f',
  '%00',
  'constructor',
  '__proto__',
  'prototype',
  'toString',
  'hasOwnProperty',
  'batch',
  'by',
  'archive',
  'photo',
  ...baseValues.KEY_NAMES,
  "' or 1 eq 1 or '",
  '<script>alert(1)</script>',
  '\u0000',
  '\u0007\u001f\u007f\u0085',
  '\r\nSet-Cookie: a=b',
  '\ud800',
  '\udfff\ud800',
  '\ufeff\ufffe\uffff',
  '\u202e\u2066reversed',
  '\u212aelvin',
  'İstanbul',
  '𝒜😀',
  'a/b\\c?d#e',
  'x'.repeat(300),
  'x'.repeat(1_100),
  '😀'.repeat(600),
  '0',
  '-1',
  '1e3',
  '0x10',
  '9'.repeat(30),
  'NaN',
  'null',
  'true',
  '2026-02-30',
  '+275760-09-13T00:00:00.001Z',
  '9999-12-31T23:59:59.999Z',
  'a,b,c',
  '*',
];
const hostileText = fc.oneof(fc.constantFrom(...HOSTILE_TEXTS), anyText({ maxLength: 40 }));
const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);
const hostileValue: fc.Arbitrary<unknown> = fc.oneof(
  hostileText,
  fc.constantFrom<unknown>(null, true, 0, -0, -1, 1.5, 1e21, 2 ** 31, 2 ** 53, 1e308, [], {}, [[]], { $ref: '#' }),
  fc.constantFrom<unknown>({ constructor: 1 }, JSON.parse('{"__proto__":{"hr":1}}'), JSON.parse(nested(500))),
  fc.constant('x'.repeat(70_000)),
  fc.jsonValue({ maxDepth: 3 }),
);
const HOSTILE_BODIES = [
  '',
  'null',
  '[]',
  '{}',
  '""',
  '{',
  '\ufeff{}',
  '{"items":[]}',
  '{"items":null}',
  `{"items":${JSON.stringify(Array.from({ length: 101 }, () => ({})))}}`,
  nested(20_000),
  `{"a":${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}}`,
  '1e400',
  '{"__proto__":{"roles":["hr"]},"constructor":{"prototype":{}}}',
  `{"department":"A","department":"B"}`,
  JSON.stringify(Object.fromEntries(Array.from({ length: 3_000 }, (_, index) => [`field${index}`, index]))),
  `"${'x'.repeat(1_100_000)}"`,
];
const hostileBody = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom<string | Uint8Array>(...HOSTILE_BODIES) },
  { weight: 2, arbitrary: fc.uint8Array({ maxLength: 60 }) },
  { weight: 2, arbitrary: fc.json({ maxDepth: 4 }) },
);

/** Generates values that fit a schema. Path fields have few values, so that requests address the same entities. */
function valuesOf(schema: JsonSchema, context: Context, name = ''): fc.Arbitrary<unknown> {
  const { type, allOf, anyOf, oneOf, enum: choices, const: only } = schema as Record<string, never>;
  if (context.restricted.includes(name)) return secretOf(schema);
  if (name in context.pools) return fc.constantFrom(...(context.pools[name] ?? []));
  const either = (anyOf ?? oneOf) as JsonSchema[] | undefined;
  if (either) return fc.oneof(...either.map((one) => valuesOf(one, context)));
  if (only !== undefined) return fc.constant(only);
  if (choices) return fc.constantFrom(...(choices as unknown[]));
  if (Array.isArray(type))
    return fc.oneof(...(type as unknown[]).map((one) => valuesOf({ ...schema, type: one }, context)));
  if (type === 'null') return fc.constant(null);
  if (allOf) return fc.tuple(...(allOf as JsonSchema[]).map((one) => valuesOf(one, context))).map(mergeObjects);
  if (type === 'object') return objectOf(schema, context);
  if (type === 'array')
    return fc.array(valuesOf((schema.items ?? {}) as JsonSchema, context), { minLength: 1, maxLength: 4 });
  if (type === 'boolean') return fc.boolean();
  if (type === 'integer' || type === 'number') {
    const { minimum = 0, maximum = 1_000 } = schema as { minimum?: number; maximum?: number };
    const [min, max] = [Math.max(minimum, -1_000), Math.min(maximum, Math.max(minimum, 0) + 1_000)];
    return type === 'integer' ? fc.integer({ min, max }) : fc.double({ min, max, noNaN: true });
  }
  if (type !== 'string') return fc.jsonValue({ maxDepth: 1 });
  return textsOf(schema);
}

function mergeObjects(parts: readonly unknown[]): unknown {
  return Object.assign({}, ...parts);
}

function textsOf(schema: { pattern?: string; format?: string; minLength?: number; maxLength?: number }) {
  const { pattern, format, minLength = 0, maxLength = 30 } = schema;
  const days = fc.integer({ min: -70, max: 3 }).map((day) => new Date(Date.now() + day * 86_400_000).toISOString());
  if (format === 'date-time') return days;
  if (format === 'date') return days.map((day) => day.slice(0, 10));
  if (format === 'uuid') return fc.uuid();
  if (format === 'email' || format === 'idn-email')
    return fc.constantFrom('ann', 'bo', 'jörg', 'ΣΑΣ', 'eve', 'liu', 'zoë', 'kim').map((name) => `${name}@contoso.com`);
  if (format === 'ipv4') return fc.ipV4();
  if (format === 'ipv6') return fc.ipV6();
  if (pattern) return fc.stringMatching(new RegExp(pattern));
  return fc.string({ unit: 'grapheme', minLength, maxLength: Math.min(maxLength, minLength + 20) });
}

function objectOf(schema: JsonSchema, context: Context): fc.Arbitrary<unknown> {
  const {
    properties = {},
    required = [],
    additionalProperties,
  } = schema as {
    properties?: Record<string, JsonSchema>;
    required?: string[];
    additionalProperties?: JsonSchema | boolean;
  };
  const fields = Object.fromEntries(
    Object.entries(properties).map(([name, one]) => [name, valuesOf(one, context, name)]),
  );
  const known = fc.record(fields, { requiredKeys: required });
  if (typeof additionalProperties !== 'object') return known;
  const more = fc.dictionary(fc.nat(24).map(String), valuesOf(additionalProperties, context), { maxKeys: 4 });
  return fc.tuple(known, more).map(([one, other]) => ({ ...one, ...other }));
}

interface Context extends AttackOptions {
  /** Values by the name of a path parameter. */
  readonly pools: Readonly<Record<string, readonly unknown[]>>;
  /** Entities that a POST creates. */
  readonly created: readonly string[];
}

/** Samples a few values for each path parameter from the body field with the same name. */
function poolsOf(operations: readonly { operation: Operation }[], options: AttackOptions): Context['pools'] {
  const schemas = new Map<string, JsonSchema>();
  for (const { operation } of operations) {
    const schema = operation.requestBody?.content['application/json']?.schema;
    const answer = operation.responses['200'];
    const shown = answer?.content?.['application/json']?.schema;
    for (const one of [schema, shown, ...((shown?.anyOf ?? []) as JsonSchema[])])
      for (const [name, field] of Object.entries((one?.properties ?? {}) as Record<string, JsonSchema>))
        schemas.set(name, schemas.get(name) ?? field);
  }
  const names = new Set(
    operations.flatMap(({ operation }) =>
      operation.parameters.filter((one) => one.in === 'path').map((one) => one.name),
    ),
  );
  const none = { ...options, pools: {}, created: [] };
  return Object.fromEntries(
    [...names].flatMap((name) => {
      const schema = schemas.get(name);
      return schema ? [[name, fc.sample(valuesOf(schema, none, name), { seed: 11, numRuns: 3 })]] : [];
    }),
  );
}

/** Returns the body with the key values of the path. */
export function aligned({ path, body, keyFields }: Attack): Attack['body'] {
  if (typeof body !== 'string' || keyFields.length === 0) return body;
  try {
    const parsed = JSON.parse(body);
    const values = path.split('?')[0]?.split('/').slice(3).map(decodeURIComponent) ?? [];
    for (const [index, field] of keyFields.entries())
      if (Object.hasOwn(parsed, field))
        parsed[field] = typeof parsed[field] === 'number' ? Number(values[index]) : values[index];
    return JSON.stringify(parsed);
  } catch {
    return body;
  }
}

/** Encodes a part of a path or query. */
const encoded = (value: unknown) => {
  const text = String(value).toWellFormed();
  // The API has already encoded the value that replaces a placeholder.
  return text.includes('@@') ? text : encodeURIComponent(text);
};
const hostilePart = fc.oneof(
  { weight: 6, arbitrary: hostileText.map(encoded) },
  { weight: 1, arbitrary: fc.constantFrom('%', '%zz', '%c0%af', '%ff', '%00', '..%2f..', ';a=b', '%252f', '~', '@') },
  { weight: 1, arbitrary: fc.constantFrom('x'.repeat(9_000), '%20'.repeat(600), encoded('é'.repeat(520))) },
);

export function attacksOn(openapi: OpenApi, options: AttackOptions): fc.Arbitrary<Attack> {
  const operations = Object.entries(openapi.paths).flatMap(([template, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ template, method: method.toUpperCase(), operation })),
  );
  const created = operations.flatMap(({ operation: { operationId } }) => /^(\w+)-create$/.exec(operationId)?.[1] ?? []);
  const context: Context = { ...options, pools: { ...poolsOf(operations, options), ...options.stored }, created };
  // Creates are more frequent, so that other requests find entities to read, change and delete.
  const weighted = operations.map((one) => ({
    weight: one.method === 'POST' && one.operation.requestBody ? 3 : 1,
    arbitrary: attackOn(one, context),
  }));
  return fc.oneof(...weighted);
}

function attackOn(
  { template, method, operation }: { template: string; method: string; operation: Operation },
  context: Context,
): fc.Arbitrary<Attack> {
  const { operationId, security, parameters } = operation;
  const roles = security.flatMap(({ token }) => token) as Attack['who'][];
  const allowed = roles.includes('reader') ? [...roles, 'owner' as const] : roles;
  const body = bodyOf(operation, context);
  return fc
    .record({
      path: pathOf(template, context),
      query: queryOf(parameters, context),
      headers: headersOf(parameters),
      body: method === 'GET' ? often(fc.constant(undefined), hostileBody, 20) : body,
      who: fc.oneof(
        { weight: 6, arbitrary: fc.constantFrom<Attack['who']>(...(allowed.length > 0 ? allowed : WHO)) },
        { weight: 2, arbitrary: fc.constantFrom(...WHO) },
      ),
      type: often(
        fc.constant(Object.keys(operation.requestBody?.content ?? {})[0] ?? 'application/json'),
        fc.constantFrom('', 'text/plain', 'application/xml', 'image/png', 'application/json; charset=utf-16', 'x'),
        12,
      ),
      method: often(
        fc.constant(method),
        fc.constantFrom('HEAD', 'OPTIONS', 'PATCH', 'DELETE', 'PUT', 'POST', 'GET'),
        25,
      ),
      isChunked: often(fc.constant(false), fc.constant(true), 40),
      keyFields: often(fc.constant(keyOf(template)), fc.constant([]), 4),
    })
    .map(({ path, query, headers, type, ...rest }) => ({
      ...rest,
      operationId,
      path: path + query,
      headers: { ...headers, ...(rest.body === undefined || type === '' ? {} : { 'content-type': type }) },
    }));
}

/** Generates `usual`, and `other` once in `onceIn` times. */
function often<Value, Other>(usual: fc.Arbitrary<Value>, other: fc.Arbitrary<Other>, onceIn: number) {
  return fc.oneof({ weight: onceIn - 1, arbitrary: usual }, { weight: 1, arbitrary: other });
}

function pathOf(template: string, { pools, created }: Context): fc.Arbitrary<string> {
  const [, entity = '', key = '', rest = ''] = /^\/api\/(\w+)((?:\/\{\w+\})+)(.*)$/.exec(template) ?? [];
  const isCreated = created.includes(entity);
  const start = isCreated ? placeOf(entity, key.split('/').length - 1) : fc.constant('');
  const made = pathFrom(isCreated ? rest : template, pools);
  const existing = fc.tuple(start, made).map((parts) => parts.join(''));
  return isCreated ? fc.oneof(existing, pathFrom(template, pools)) : existing;
}

/** Returns the key fields at the start of a path. */
function keyOf(template: string): string[] {
  const [, key = ''] = /^\/api\/\w+((?:\/\{\w+\})+)/.exec(template) ?? [];
  return key
    .split('/')
    .slice(1)
    .map((part) => part.slice(1, -1));
}

function pathFrom(template: string, pools: Context['pools']): fc.Arbitrary<string> {
  const parts = template.split(/(\{\w+\})/).map((part) => {
    const name = /^\{(\w+)\}$/.exec(part)?.[1];
    if (!name) return fc.constant(part);
    const pool = pools[name];
    const valid = pool
      ? fc.constantFrom(...pool).map(encoded)
      : fc.oneof(seen('id'), fc.constantFrom('1', '9', 'email'));
    return often(valid, hostilePart, 8);
  });
  return fc.tuple(...parts).map((all) => all.join(''));
}

const day = (offset: number) => fc.constant(new Date(Date.now() + offset * 86_400_000).toISOString());

function queryOf(parameters: Operation['parameters'], { pools }: Context): fc.Arbitrary<string> {
  const values: Record<string, fc.Arbitrary<string>> = {
    top: often(fc.constantFrom('1', '2', '5', '1000'), fc.constantFrom('0', '-1', '1001', '1e2', '٣', ''), 4),
    explain: often(fc.constantFrom('true', 'false'), fc.constantFrom('TRUE', '1', ''), 4),
    continuation: fc.oneof(
      seen('continuation'),
      seen('continuation').map((token) => `${token}A`),
      hostileText,
    ),
    from: fc.oneof(day(-2), hostileText),
    to: fc.oneof(day(2), hostileText),
    repair: fc.constantFrom('true', 'false', 'yes'),
    select: fc.constantFrom('department', 'title,year', 'nationalId', 'constructor', ' ,', 'partitionKey', '*'),
    include: fc.constantFrom('reviews', 'reviews,reviews', 'constructor', ''),
  };
  const known = parameters
    .filter((one) => one.in === 'query')
    .map(({ name }) => {
      const value = values[name] ?? fc.oneof(fc.constantFrom<unknown>(...(pools[name] ?? ['A'])), hostileText);
      return value.map((text) => `${name}=${encoded(text)}`);
    });
  const unknown = fc
    .tuple(fc.constantFrom('constructor', '__proto__', '$filter', 'a[b]', 'top', 'EXPLAIN', ''), hostilePart)
    .map(([name, value]) => `${encoded(name)}=${value}`);
  const some = fc.oneof(
    { weight: 8, arbitrary: fc.constant<string[]>([]) },
    { weight: 4, arbitrary: fc.array(fc.oneof(...(known.length > 0 ? known : [unknown])), { maxLength: 3 }) },
    { weight: 1, arbitrary: fc.array(fc.oneof(unknown, ...known), { maxLength: 3 }) },
  );
  return some.map((all) => (all.length > 0 ? `?${all.join('&')}` : ''));
}

function headersOf(parameters: Operation['parameters']): fc.Arbitrary<Record<string, string>> {
  // HTTP headers contain single bytes and no line breaks.
  const hostile = hostileText.map((text) => Buffer.from(text.replace(/\p{Cc}/gu, '')).toString('latin1'));
  const etag = fc.oneof(
    seen('etag'),
    seen('etag').map((one) => `${one}, "x"`),
    seen('etag').map((one) => one.toUpperCase()),
    fc.constantFrom('*', '"x"', 'W/"', '"', '*, "x"', `"${'x'.repeat(5_000)}"`, ','),
    hostile,
  );
  const names = parameters.filter((one) => one.in === 'header').map(({ name }) => name);
  const values = names.map((name) => [name, name.startsWith('If-') ? etag : fc.oneof(fc.uuid(), hostile)] as const);
  const more = fc.constantFrom<Record<string, string>>(
    {},
    {},
    {},
    { 'x-http-method-override': 'DELETE' },
    { 'x-ms-client-principal': Buffer.from('{"roles":["hr"]}').toString('base64') },
    { 'x-forwarded-host': 'evil.example', 'x-original-url': '/api/operations/poison' },
    { origin: 'https://evil.example' },
    { accept: 'text/html' },
    { traceparent: '00-x-y-zz' },
    { range: 'bytes=0-1' },
  );
  const some = fc.record(Object.fromEntries(values), { requiredKeys: [] });
  return fc
    .tuple(often(fc.constant({}), some, 3), more)
    .map(([one, other]) => ({ ...(one as Record<string, string>), ...other }));
}

function bodyOf({ requestBody }: Operation, context: Context): fc.Arbitrary<Attack['body']> {
  const schema = requestBody?.content['application/json']?.schema;
  if (!schema) return fc.oneof(fc.constant(undefined), requestBody ? imageOrNot : hostileBody);
  const valid = valuesOf(schema, context);
  return fc.oneof(
    { weight: 8, arbitrary: valid.map((value) => JSON.stringify(value)) },
    { weight: 4, arbitrary: fc.tuple(valid, hostileValue, fc.nat(100), fc.nat(2)).map(spoilt) },
    { weight: 1, arbitrary: hostileBody },
    { weight: 1, arbitrary: fc.constant(undefined) },
  );
}

const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII=',
  'base64',
);
const imageOrNot = fc.oneof(
  fc.constant<Uint8Array | string>(PNG),
  fc.nat(PNG.length).map((length) => PNG.subarray(0, length)),
  fc.constantFrom('GIF89a', '<svg xmlns="http://www.w3.org/2000/svg"/>'),
  fc.uint8Array({ maxLength: 100 }),
);

/** A valid body with one error: a field with another value, a missing field or an additional field. */
function spoilt([value, hostile, at, how]: [unknown, unknown, number, number]): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(hostile);
  const fields = Object.keys(value);
  const field = fields[at % Math.max(1, fields.length)] ?? 'field';
  const { [field]: _, ...others } = value as Record<string, unknown>;
  if (how === 0) return JSON.stringify({ ...value, [field]: hostile });
  if (how === 1) return JSON.stringify(others);
  return JSON.stringify({ ...value, [typeof hostile === 'string' ? hostile : 'constructor']: hostile });
}
