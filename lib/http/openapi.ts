import { z } from 'zod';
import { Step } from '../storage/explain.ts';
import { PROBLEM_TYPE, Problem } from './problem.ts';
import { type FilterParameter, type ResponseHeader, type Route, rootOf } from './route.ts';

/** The response to `explain=true`, on every route. */
const Explanation = z.object({ steps: z.array(Step), transactions: z.int() });

/** The OpenAPI 3.1 description of the routes. */
export function describeRoutes(routes: readonly Route[], root = rootOf('')) {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of routes) {
    if (route.isUndescribed) continue;
    const path = `${root}/${route.path}`;
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: describeOperation(route) };
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Rowkey', version: '1', description: 'Generated from the model.' },
    servers: [{ url: '/' }],
    security: [{ token: [] }],
    paths,
    components: {
      securitySchemes: { token: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } },
      schemas: { Problem: toJsonSchema(Problem), Explanation: toJsonSchema(Explanation) },
      responses: {
        Problem: problem('Problem details'),
        Unauthenticated: problem('The token is missing or not valid', {
          'WWW-Authenticate': { required: true, schema: { type: 'string' } },
        }),
        Unavailable: problem('The service is unavailable; without Retry-After an operator must act', {
          'Retry-After': { description: 'Seconds', schema: { type: 'integer', minimum: 1 } },
        }),
      },
    },
  };
}

function describeOperation(route: Route) {
  const { name, path, roles, query = {}, filters = {}, summary, requestBody, requestTypes } = route;
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, field]) => ({
    name: field,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }));
  const inQuery = Object.entries(query).map(([field, description]) => ({
    name: field,
    in: 'query',
    description,
    schema: { type: 'string' },
  }));
  return {
    operationId: name,
    summary,
    ...(roles ? { description: `Requires one of the roles: ${roles.join(', ')}.` } : {}),
    // Alternatives: one of the roles is enough.
    security: roles?.map((role) => ({ token: [role] })) ?? [],
    parameters: [
      ...inPath,
      ...inQuery,
      ...Object.entries(filters).flatMap(describeFilter),
      EXPLAIN,
      ...(route.conditional ? CONDITIONS : []),
      ...(route.cacheable ? [IF_CHANGED] : []),
      ...(route.repeatable ? [REPEAT] : []),
    ],
    ...(requestTypes ? { requestBody: { required: true, content: describeBinary(requestTypes) } } : {}),
    ...(requestBody
      ? { requestBody: { required: true, content: content('application/json', toJsonSchema(requestBody, 'input')) } }
      : {}),
    responses: describeResponses(route),
  };
}

/** An array without `explode: false` is a parameter that may be repeated. */
function describeFilter([field, { refused, ...filter }]: readonly [string, FilterParameter]) {
  if (!('schema' in filter)) return [];
  const { default: _, ...value } = toJsonSchema(filter.schema);
  const description =
    'Only entities with this value, or for which the comparison holds, such as ge:VALUE; in:VALUE,VALUE is a list, and eq:VALUE equality with a value that begins with an operator';
  const items = { anyOf: [value, { type: 'string', pattern: filter.pattern }] };
  return [{ name: field, in: 'query', description, schema: { type: 'array', items } }];
}

/** The success, the explanation, and problems for all other responses. */
function describeResponses({ roles, success, cacheable, others = {} }: Route) {
  const { status, description, body, types = [], headers = [] } = success;
  const isOk = status === 200;
  const schemas = [...(body ? [toJsonSchema(body)] : []), ...(isOk ? [EXPLANATION] : [])];
  const response = {
    description,
    // An explanation has the status 200 too, but none of these headers.
    ...(headers.length > 0 ? { headers: describeHeaders(headers, !isOk && !headers.includes('Link')) } : {}),
    ...(schemas.length > 0
      ? {
          content: {
            ...describeBinary(types),
            ...content('application/json', schemas.length > 1 ? { anyOf: schemas } : schemas[0]),
          },
        }
      : {}),
  };
  const created = body &&
    success.created && {
      description: success.created,
      headers: describeHeaders([...headers, 'Location'], true),
      content: content('application/json', toJsonSchema(body)),
    };
  return {
    200: { description: 'The explanation, with explain=true', content: content('application/json', EXPLANATION) },
    [status]: response,
    ...(created ? { 201: created } : {}),
    ...(success.unread ? { 204: { description: success.unread } } : {}),
    ...(cacheable
      ? {
          304: {
            description: 'Not modified: If-None-Match names the current ETag',
            headers: describeHeaders(['ETag'], true),
          },
        }
      : {}),
    ...(roles ? { 401: { $ref: '#/components/responses/Unauthenticated' } } : {}),
    503: { $ref: '#/components/responses/Unavailable' },
    ...Object.fromEntries(
      Object.entries(others).map(([other, { description, body }]) => [
        other,
        { description, content: content('application/json', toJsonSchema(body)) },
      ]),
    ),
    default: { $ref: '#/components/responses/Problem' },
  };
}

const HEADERS: Readonly<Record<ResponseHeader, string>> = {
  'Content-Location': 'The path of the entity',
  ETag: 'The state of the entity or file',
  Link: 'The next page, with rel="next"; absent on the last page',
  Location: 'The path of the created entity, or of the started operation',
};

function describeHeaders(names: readonly ResponseHeader[], required: boolean) {
  return Object.fromEntries(
    names.map((name) => [name, { description: HEADERS[name], required, schema: { type: 'string' } }]),
  );
}

const EXPLANATION = { $ref: '#/components/schemas/Explanation' };

const CONDITIONS = [
  {
    name: 'If-Match',
    in: 'header',
    description: 'ETags: the change is made only if one of them is current; * accepts any',
    schema: { type: 'string' },
  },
  {
    name: 'If-None-Match',
    in: 'header',
    description: 'ETags: the change is made only if none of them is current; * requires that nothing exists',
    schema: { type: 'string' },
  },
];

const IF_CHANGED = {
  name: 'If-None-Match',
  in: 'header',
  description: "ETags of the caller's copies: the response is 304 if one of them is current",
  schema: { type: 'string' },
};

const REPEAT = {
  name: 'Idempotency-Key',
  in: 'header',
  description: 'A request that is repeated with the same key and body is executed once',
  schema: { type: 'string', minLength: 1, maxLength: 200 },
};

const EXPLAIN = {
  name: 'explain',
  in: 'query',
  description: 'true returns the reads and writes of the request without executing the writes',
  schema: { type: 'boolean' },
};

/** OpenAPI 3.1 describes binary content by an empty schema. */
function describeBinary(types: readonly string[]) {
  return Object.fromEntries(types.map((type) => [type, {}]));
}

function problem(description: string, headers: Readonly<Record<string, unknown>> = {}) {
  const ref = { $ref: '#/components/schemas/Problem' };
  return { description, headers, content: content(PROBLEM_TYPE, ref) };
}

function content(type: string, schema: unknown) {
  return { [type]: { schema } };
}

export function toJsonSchema(schema: z.ZodType, io: 'input' | 'output' = 'output') {
  const { $schema: _, ...described } = z.toJSONSchema(schema, { io, unrepresentable: 'any', override: correctFormats });
  return described;
}

/** Zod checks an IPv6 address by parsing it, but describes it by a pattern that some valid addresses do not match. */
function correctFormats({ jsonSchema }: { jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  if (jsonSchema.format === 'ipv6') delete jsonSchema.pattern;
  // The format "email" allows only ASCII; RFC 6531 addresses have a format of their own.
  if (jsonSchema.format === 'email' && jsonSchema.pattern === z.regexes.unicodeEmail.source)
    jsonSchema.format = 'idn-email';
}
