import { z } from 'zod';
import { Step } from '../storage/explain.ts';
import { PROBLEM_TYPE, Problem } from './problem.ts';
import type { ResponseHeader, Route } from './route.ts';

/** What `explain=true` returns on every route. */
const Explanation = z.object({ steps: z.array(Step), transactions: z.int() });

/** The OpenAPI 3.1 description of the routes. */
export function openapiOf(routes: readonly Route[]) {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of routes) {
    const path = `/api/${route.path}`;
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operationOf(route) };
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Rowkey', version: '1', description: 'Generated from the declaration of what is stored.' },
    servers: [{ url: '/' }],
    security: [{ token: [] }],
    paths,
    components: {
      securitySchemes: { token: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } },
      schemas: { Problem: jsonSchema(Problem), Explanation: jsonSchema(Explanation) },
      responses: {
        Problem: problem('Problem details'),
        Unauthenticated: problem('No valid token', {
          'WWW-Authenticate': { required: true, schema: { type: 'string' } },
        }),
        Unavailable: problem('The service cannot answer now; without Retry-After an operator has to act', {
          'Retry-After': { description: 'Seconds', schema: { type: 'integer', minimum: 1 } },
        }),
      },
    },
  };
}

function operationOf(route: Route) {
  const { name, path, roles, query = {}, summary, requestBody, requestTypes } = route;
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
    ...(roles ? { description: `For the roles: ${roles.join(', ')}.` } : {}),
    // Any one of the roles is enough.
    security: roles?.map((role) => ({ token: [role] })) ?? [],
    parameters: [
      ...inPath,
      ...inQuery,
      EXPLAIN,
      ...(route.conditional ? CONDITIONS : []),
      ...(route.cacheable ? [IF_CHANGED] : []),
      ...(route.repeatable ? [REPEAT] : []),
    ],
    ...(requestTypes ? { requestBody: { required: true, content: binary(requestTypes) } } : {}),
    ...(requestBody
      ? { requestBody: { required: true, content: content('application/json', jsonSchema(requestBody, 'input')) } }
      : {}),
    responses: responsesOf(route),
  };
}

/** Every answer of a route: the successful one, the explanation, and problem details for all others. */
function responsesOf({ roles, success, cacheable, others = {} }: Route) {
  const { status, description, body, types = [], headers = [] } = success;
  const isOk = status === 200;
  const schemas = [...(body ? [jsonSchema(body)] : []), ...(isOk ? [EXPLANATION] : [])];
  const answer = {
    description,
    // An explanation has the status 200, and none of the headers.
    ...(headers.length > 0 ? { headers: headersOf(headers, !isOk && !headers.includes('Link')) } : {}),
    ...(schemas.length > 0
      ? {
          content: {
            ...binary(types),
            ...content('application/json', schemas.length > 1 ? { anyOf: schemas } : schemas[0]),
          },
        }
      : {}),
  };
  return {
    200: { description: 'With explain=true', content: content('application/json', EXPLANATION) },
    [status]: answer,
    ...(success.unread ? { 204: { description: success.unread } } : {}),
    ...(cacheable ? { 304: { description: 'If-None-Match names the ETag', headers: headersOf(['ETag'], true) } } : {}),
    ...(roles ? { 401: { $ref: '#/components/responses/Unauthenticated' } } : {}),
    503: { $ref: '#/components/responses/Unavailable' },
    ...Object.fromEntries(
      Object.entries(others).map(([other, { description, body }]) => [
        other,
        { description, content: content('application/json', jsonSchema(body)) },
      ]),
    ),
    default: { $ref: '#/components/responses/Problem' },
  };
}

const HEADERS: Readonly<Record<ResponseHeader, string>> = {
  'Content-Location': 'The path of the entity',
  ETag: 'The state of what is shown, or was written',
  Link: 'The next page, with rel="next"; absent on the last one',
  Location: 'The path of what was created, or of the operation that was started',
};

function headersOf(names: readonly ResponseHeader[], required: boolean) {
  return Object.fromEntries(
    names.map((name) => [name, { description: HEADERS[name], required, schema: { type: 'string' } }]),
  );
}

const EXPLANATION = { $ref: '#/components/schemas/Explanation' };

const CONDITIONS = [
  {
    name: 'If-Match',
    in: 'header',
    description: 'ETags, of which what is changed must have one; * where any will do',
    schema: { type: 'string' },
  },
  {
    name: 'If-None-Match',
    in: 'header',
    description: 'ETags, of which what is changed must have none; * where there must be nothing',
    schema: { type: 'string' },
  },
];

const IF_CHANGED = {
  name: 'If-None-Match',
  in: 'header',
  description: 'ETags of what the caller has: 304 if one of them is current',
  schema: { type: 'string' },
};

const REPEAT = {
  name: 'Idempotency-Key',
  in: 'header',
  description: 'With it, a request that is sent again is done once',
  schema: { type: 'string', minLength: 1, maxLength: 200 },
};

const EXPLAIN = {
  name: 'explain',
  in: 'query',
  description: 'Answer what would be read and written, without writing it',
  schema: { type: 'boolean' },
};

/** The bytes are all there is to it: such a schema says nothing of them. */
function binary(types: readonly string[]) {
  return Object.fromEntries(types.map((type) => [type, {}]));
}

function problem(description: string, headers: Readonly<Record<string, unknown>> = {}) {
  const ref = { $ref: '#/components/schemas/Problem' };
  return { description, headers, content: content(PROBLEM_TYPE, ref) };
}

function content(type: string, schema: unknown) {
  return { [type]: { schema } };
}

function jsonSchema(schema: z.ZodType, io: 'input' | 'output' = 'output') {
  const { $schema: _, ...described } = z.toJSONSchema(schema, { io, unrepresentable: 'any', override: correct });
  return described;
}

/** Zod checks an IPv6 address by parsing it, and describes it by a pattern that some addresses do not match. */
function correct({ jsonSchema }: { jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  if (jsonSchema.format === 'ipv6') delete jsonSchema.pattern;
  // An address outside ASCII (RFC 6531) is no "email".
  if (jsonSchema.format === 'email' && jsonSchema.pattern === z.regexes.unicodeEmail.source)
    jsonSchema.format = 'idn-email';
}
