import { z } from 'zod';
import { PROBLEM_TYPE, Problem } from './problem.ts';
import type { Route } from './route.ts';

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
      schemas: { Problem: jsonSchema(Problem) },
      responses: {
        Problem: {
          description: 'Problem details',
          content: content(PROBLEM_TYPE, { $ref: '#/components/schemas/Problem' }),
        },
      },
    },
  };
}

function operationOf(route: Route) {
  const { name, path, roles, query = {}, summary, requestBody, requestTypes, success } = route;
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
    ...(roles ? { description: `For the roles: ${roles.join(', ')}.` } : { security: [] }),
    parameters: [
      ...inPath,
      ...inQuery,
      EXPLAIN,
      ...(route.conditional ? CONDITIONS : []),
      ...(route.repeatable ? [REPEAT] : []),
    ],
    ...(requestTypes ? { requestBody: { required: true, content: binary(requestTypes) } } : {}),
    ...(requestBody
      ? { requestBody: { required: true, content: content('application/json', jsonSchema(requestBody, 'input')) } }
      : {}),
    responses: {
      [success.status]: {
        description: success.description,
        ...(success.types ? { content: binary(success.types) } : {}),
        ...(success.body ? { content: content('application/json', jsonSchema(success.body)) } : {}),
      },
      default: { $ref: '#/components/responses/Problem' },
    },
  };
}

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

function content(type: string, schema: unknown) {
  return { [type]: { schema } };
}

function jsonSchema(schema: z.ZodType, io: 'input' | 'output' = 'output') {
  const { $schema: _, ...described } = z.toJSONSchema(schema, { io, unrepresentable: 'any' });
  return described;
}
