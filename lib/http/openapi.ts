import { z } from 'zod';
import { OPERATORS } from '../define/filter.ts';
import { Step } from '../storage/explain.ts';
import { toJsonSchema } from './json-schema.ts';
import { type Components, createComponents, refTo, shareResponses } from './openapi-components.ts';
import { createExamples } from './openapi-examples.ts';
import { PROBLEM_TYPE, PROBLEMS, Problem } from './problem.ts';
import { type FilterParameter, type ResponseHeader, type Route, rootOf, tagOf } from './route.ts';

/** The response to `explain=true`, on every route. */
const Explanation = z.object({ steps: z.array(Step), transactions: z.int() });

/** What many operations have in common, so that none of them repeats the text. */
const CONVENTIONS = `Generated from the model.

One of the roles in the \`security\` of an operation is enough.

A filter has the name of a field. Only entities with its value are returned, or for which the comparison holds, such as \`ge:VALUE\`; \`in:VALUE,VALUE\` is a list of values, and \`eq:VALUE\` equality with a value that begins with an operator. A repeated filter must hold each time.`;

/** The OpenAPI 3.1 description of the routes. Schemas and parameters that operations share are components. */
export function describeRoutes(routes: readonly Route[], root = rootOf('')) {
  const shared = createComponents();
  const paths: Record<string, Record<string, ReturnType<typeof describeOperation>>> = {};
  for (const route of routes) {
    if (route.isUndescribed) continue;
    const path = `${root}/${route.path}`;
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: describeOperation(route, shared) };
  }
  const { paths: sharing, responses } = shareResponses(paths);
  const explained = { description: 'The explanation, with explain=true', ...json(EXPLANATION) };
  return {
    openapi: '3.1.0',
    info: { title: 'Rowkey', version: '1', description: CONVENTIONS },
    servers: [{ url: '/' }],
    security: [{ token: [] }],
    paths: sharing,
    components: {
      securitySchemes: { token: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } },
      headers: Object.fromEntries(
        Object.entries(HEADERS).flatMap(([name, description]) => [
          [name, { description, required: true, schema: { type: 'string' } }],
          [`${name}-if-executed`, { description, required: false, schema: { type: 'string' } }],
        ]),
      ),
      parameters: shared.parameters,
      schemas: {
        Problem: describe(Problem),
        Explanation: describe(Explanation),
        Comparison: { type: 'string', pattern: `^(${OPERATORS.join('|')}):`, examples: ['ne:VALUE'] },
        ...shared.schemas,
      },
      responses: {
        ...responses,
        ...Object.fromEntries(STATUSES.map(describeProblem)),
        Problem: problem('Problem details'),
        explained,
        'not-modified': {
          description: 'Not modified: If-None-Match names the current ETag',
          headers: describeHeaders(['ETag'], true),
        },
      },
    },
  };
}

function describeOperation(route: Route, shared: Components) {
  const { name, path, roles, query = {}, filters = {}, summary, requestBody, requestTypes } = route;
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, field]) => ({
    name: String(field),
    in: 'path',
    required: true,
    schema: { type: 'string', ...pathExample(route, String(field)) },
  }));
  const inQuery = Object.entries(query).map(([field, description]) => ({
    name: field,
    in: 'query',
    description,
    schema: { type: 'string' },
  }));
  const parameters = [
    ...inPath,
    ...inQuery,
    ...Object.entries(filters).flatMap(describeFilter),
    ...(roles ? [EXPLAIN] : []),
    ...(route.conditional ? CONDITIONS : []),
    ...(route.minimizable ? [PREFER] : []),
    ...(route.cacheable ? [IF_CHANGED] : []),
    ...(route.repeatable ? [REPEAT] : []),
  ];
  return {
    operationId: name,
    tags: [tagOf(route)],
    summary,
    // Alternatives: one of the roles is enough.
    security: roles?.map((role) => ({ token: [role] })) ?? [],
    parameters: parameters.map((parameter) => shared.addParameter(parameter)),
    ...(requestTypes ? { requestBody: { required: true, content: describeBinary(requestTypes) } } : {}),
    ...(requestBody
      ? {
          requestBody: {
            required: true,
            ...json(shared.addSchema(`${name}-body`, toJsonSchema(requestBody(), 'input'))),
          },
        }
      : {}),
    responses: describeResponses(route, shared),
  };
}

/** In the path of totals, a field may be a period. */
function pathExample({ entity, path }: Route, field: string) {
  const schema = entity?.schema.shape[field];
  if (!schema || path.includes('/totals/')) return {};
  const { examples = [] } = createExamples(toJsonSchema(schema));
  return examples.length > 0 ? { examples: examples.map(String) } : {};
}

/** An array without `explode: false` is a parameter that may be repeated. */
function describeFilter([field, { refused, ...filter }]: readonly [string, FilterParameter]) {
  if (!('schema' in filter)) return [];
  const items = { anyOf: [toJsonSchema(filter.schema), COMPARISON] };
  return [{ name: field, in: 'query', schema: { type: 'array', items } }];
}

/** The description of a body with selected fields. */
export const SELECTED = 'With select';

/** The success, the explanation, and problems by status. */
function describeResponses(route: Route, shared: Components) {
  const { name, success, cacheable, minimizable, others = {} } = route;
  const { status, description, body, selected, types = [], headers = [] } = success;
  const isOk = status === 200;
  const described = body && shared.addSchema(name, toJsonSchema(body()));
  const part = selected && shared.addSchema(`${name}-selected`, { ...toJsonSchema(selected()), description: SELECTED });
  const schemas = [...(described ? [described] : []), ...(part ? [part] : []), ...(isOk ? [EXPLANATION] : [])];
  const response = {
    description,
    // An explanation has the status 200 too, but none of these headers.
    ...(headers.length > 0 ? { headers: describeHeaders(headers, !isOk && !headers.includes('Link')) } : {}),
    ...(schemas.length > 0
      ? {
          content: {
            ...describeBinary(types),
            ...json(schemas.length > 1 ? { anyOf: schemas } : schemas[0]).content,
          },
        }
      : {}),
  };
  const created = described &&
    success.created && {
      description: success.created,
      headers: describeHeaders([...headers, 'Location'], true),
      ...json(described),
    };
  return {
    ...Object.fromEntries(problemStatuses(route).map((each) => [each, refTo('responses', String(each))])),
    200: refTo('responses', 'explained'),
    [status]: response,
    ...(created ? { 201: created } : {}),
    ...(minimizable
      ? { 204: { description: 'Done, with Prefer: return=minimal', headers: describeHeaders(['ETag'], true) } }
      : {}),
    ...(success.unread ? { 204: { description: success.unread } } : {}),
    ...(cacheable
      ? {
          304: refTo('responses', 'not-modified'),
        }
      : {}),
    ...Object.fromEntries(
      Object.entries(others).map(([other, { description, body }]) => [
        other,
        { description, ...json(describe(body())) },
      ]),
    ),
    default: refTo('responses', 'Problem'),
  };
}

/** The statuses that callers of a route distinguish. `default` describes the others, such as those of a wrong body. */
function problemStatuses({ path, roles, requestBody, requestTypes, conditional }: Route): number[] {
  const hasBody = requestBody !== undefined || requestTypes !== undefined;
  return [
    400,
    ...(roles ? [401, 403] : []),
    ...(path.includes('{') ? [404] : []),
    ...(hasBody ? [409] : []),
    ...(conditional ? [412] : []),
    503,
  ];
}

const STATUSES = [400, 401, 403, 404, 409, 412, 503];

const PROBLEM_HEADERS: Readonly<Record<number, Readonly<Record<string, unknown>>>> = {
  401: { 'WWW-Authenticate': { required: true, schema: { type: 'string' } } },
  503: {
    'Retry-After': {
      description: 'Seconds; absent if an operator must act',
      schema: { type: 'integer', minimum: 1 },
    },
  },
};

/** The response of every problem with this status. */
function describeProblem(status: number) {
  const kinds = Object.entries(PROBLEMS).filter(([, kind]) => kind.status === status);
  const description = kinds.map(([code, { when }]) => `\`${code}\`: ${when}`).join('\n\n');
  return [status, problem(description, PROBLEM_HEADERS[status])] as const;
}

const HEADERS: Readonly<Record<ResponseHeader, string>> = {
  'Content-Location': 'The path of the entity',
  ETag: 'The state of the entity or file',
  Link: 'The next page, with rel="next"; absent on the last page',
  Location: 'The path of the created entity, or of the started operation',
};

function describeHeaders(names: readonly ResponseHeader[], required: boolean) {
  return Object.fromEntries(names.map((name) => [name, refTo('headers', required ? name : `${name}-if-executed`)]));
}

const EXPLANATION = refTo('schemas', 'Explanation');
const COMPARISON = refTo('schemas', 'Comparison');

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

const PREFER = {
  name: 'Prefer',
  in: 'header',
  description: 'return=minimal: the response is 204 without the entity, which may save the read of it',
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

function problem(description: string, headers?: Readonly<Record<string, unknown>>) {
  const content = { [PROBLEM_TYPE]: { schema: refTo('schemas', 'Problem') } };
  return { description, ...(headers ? { headers } : {}), content };
}

function json(schema: unknown) {
  return { content: { 'application/json': { schema } } };
}

function describe(schema: z.ZodType) {
  const described = toJsonSchema(schema);
  return { ...described, ...createExamples(described) };
}
