import { z } from 'zod';
import { AppliedRuleExplanation } from '../access/why.ts';
import type { SchemaBuilder } from '../api/operation.ts';
import { OPERATORS } from '../define/declaration/comparison.ts';
import { Step } from '../storage/explain.ts';
import { flattenUnions } from './flatten-unions.ts';
import { toJsonSchema } from './json-schema.ts';
import {
  type Components,
  createComponents,
  type Parameter,
  refTo,
  type Schema,
  shareParameters,
  shareResponses,
} from './openapi-components.ts';
import { createExamples, preferLast } from './openapi-examples.ts';
import { PROBLEM_TYPE, Problem } from './problem.ts';
import { PROBLEMS } from './problem-kinds.ts';
import { EXPLANATION_TYPE, type FilterParameter, type ResponseHeader, type Route, rootOf, tagOf } from './route.ts';

/** The response to `explain=true`, on every route. */
const Explanation = z.object({
  steps: z.array(Step),
  transactions: z.int(),
  rules: z
    .array(AppliedRuleExplanation)
    .optional()
    .describe('For operators: the rules on rows that decided what the request reaches'),
});

/** What many operations have in common, so that none of them repeats the text. */
const CONVENTIONS = `Generated from the model. \`?tag=\` with the name of an entity describes only its operations.

One of the roles in \`security\` is enough; \`{}\` among them needs no token. An operation without \`security\` accepts the roles of the whole description, and \`[]\` needs no token.

A filter has the name of a field. \`field=VALUE\` returns the entities with this value, and \`field=ge:VALUE\` those for which the comparison holds. \`in:VALUE,VALUE\` is a list of values. \`eq:VALUE\` compares with a value that begins with an operator. The values of \`eq\`, \`ne\` and \`in\` must be values of the field. A repeated filter must hold each time.

\`explain=true\` returns 200 with the media type \`${EXPLANATION_TYPE}\` and the schema \`Explanation\`. No operation lists this response, so that a generated client has the operation's own alone.`;

/** The OpenAPI 3.1 description of the routes. Schemas, parameters and responses that operations share are components. */
export function describeRoutes(routes: readonly Route[], root = rootOf(''), anyone?: string) {
  const issued = (route: Route) =>
    route.isGrant ? { ...route, roles: route.roles?.filter((role) => role !== anyone) } : route;
  // Without a role that may, the security would be empty, which means that no token is needed.
  const isOpen = ({ isUndescribed, roles }: Route) => !isUndescribed && roles?.length !== 0;
  const described = mergeEntities(routes.map(issued).filter(isOpen));
  const shared = createComponents(Object.keys(COMPARISONS));
  const security = findUsualRoles(described);
  shared.addSchema('problem', toJsonSchema(Problem));
  shared.addSchema('explanation', toJsonSchema(Explanation));
  const paths: Record<string, Record<string, ReturnType<typeof describeOperation>>> = {};
  for (const route of described) {
    const path = `${root}/${route.path}`;
    const operation = describeOperation(route, shared, { usual: security, anyone });
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation };
  }
  const { paths: sharing, responses } = shareResponses(paths);
  const filters = JSON.stringify([shared.parameters, shared.schemas]);
  return {
    openapi: '3.1.0',
    info: { title: 'Rowkey', version: '1', description: CONVENTIONS },
    servers: [{ url: '/' }],
    security: toSecurity(security, anyone),
    tags: [...new Set(described.map(tagOf))].map((name) => ({ name })),
    paths: shareParameters(sharing),
    components: {
      securitySchemes: { token: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } },
      headers: Object.fromEntries(
        Object.entries(HEADERS).map(([name, description]) => [
          name,
          { description, required: name !== 'Link', schema: { type: 'string' } },
        ]),
      ),
      parameters: shared.parameters,
      schemas: {
        ...Object.fromEntries(
          Object.entries(COMPARISONS).filter(([name]) => filters.includes(`"${refTo('schemas', name).$ref}"`)),
        ),
        ...shared.schemas,
      },
      responses: {
        ...responses,
        ...Object.fromEntries(STATUSES.map(describeProblem)),
        Problem: problem(describeOtherProblems(), PROBLEM_HEADERS),
        'not-modified': {
          description: 'Not modified: If-None-Match names the current ETag',
          headers: describeHeaders(['ETag']),
        },
      },
    },
  };
}

interface DescribedRoute extends Route {
  /** The values of the parameter `entity` of the path. */
  readonly names?: readonly string[];
}

/** The routes that exist for several entities, and do the same, as one. */
function mergeEntities(routes: readonly Route[]): readonly DescribedRoute[] {
  const merged = new Map<string, DescribedRoute>();
  for (const route of routes) {
    const { entity, ofAll, ...others } = route;
    const operation = `${route.method} ${ofAll?.path ?? route.path}`;
    const { names = [] } = merged.get(operation) ?? {};
    merged.set(operation, entity && ofAll ? { ...others, ...ofAll, names: [...names, entity.name] } : route);
  }
  return [...merged.values()];
}

/** The roles that most routes accept, so that they are described once. */
function findUsualRoles(routes: readonly Route[]): readonly string[] {
  const times = new Map<string, { readonly roles: readonly string[]; count: number }>();
  for (const { roles } of routes) {
    if (!roles) continue;
    const id = JSON.stringify(roles);
    const { count } = times.get(id) ?? { count: 0 };
    times.set(id, { roles, count: count + 1 });
  }
  return [...times.values()].toSorted((one, other) => other.count - one.count)[0]?.roles ?? [];
}

/** Alternatives: one of the roles is enough. The role of requests without a token is no requirement. */
function toSecurity(roles: readonly string[] = [], anyone?: string) {
  return roles.map((role) => (role === anyone ? {} : { token: [role] }));
}

function describeOperation(
  route: DescribedRoute,
  shared: Components,
  { usual, anyone }: { readonly usual: readonly string[]; readonly anyone: string | undefined },
) {
  const { name, names, path, roles, query = {}, filters = {}, summary, requestBody, requestTypes } = route;
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, field]) => ({
    name: String(field),
    in: 'path',
    required: true,
    schema:
      names && field === 'entity'
        ? shared.addNames(`${name}-entity`, names)
        : { type: 'string', ...pathExample(route, String(field)) },
  }));
  const inQuery = Object.entries(query).map(([field, parameter]) => {
    const isText = typeof parameter === 'string';
    const { description, ...schema } = isText
      ? { description: parameter, type: 'string' }
      : toJsonSchema(parameter, 'input');
    return { name: field, in: 'query', description, schema };
  });
  const parameters = [
    ...inPath,
    ...inQuery,
    ...Object.entries(filters).flatMap(describeFilter),
    ...(roles ? [EXPLAIN] : []),
    ...(route.conditional ? [IF_MATCH] : []),
    ...(route.conditional || route.cacheable ? [IF_NONE_MATCH] : []),
    ...(route.ranges ? [RANGE, IF_RANGE] : []),
    ...(route.minimizable ? [PREFER] : []),
    ...(route.repeatable ? [REPEAT] : []),
  ];
  const isUsual = JSON.stringify(roles) === JSON.stringify(usual);
  return {
    operationId: name,
    tags: [tagOf(route)],
    summary,
    ...(isUsual ? {} : { security: toSecurity(roles, anyone) }),
    parameters: parameters.map((parameter) => shared.addParameter(parameter)),
    ...(requestTypes ? { requestBody: { required: true, content: describeBinary(requestTypes) } } : {}),
    ...(requestBody
      ? {
          requestBody: {
            required: true,
            ...json(shared.addSchema(`${name}-body`, describeBody(route, requestBody))),
          },
        }
      : {}),
    responses: describeResponses(route, shared),
  };
}

/** The examples of a new entity are the last ones, because the first ones may be those of an existing one. */
function describeBody({ method, success }: Route, body: SchemaBuilder): Schema {
  const schema = toJsonSchema(body(), 'input');
  return method === 'POST' && success.status === 201 ? preferLast(schema) : schema;
}

/** In the path of totals, a field may be a period. A path has one item of a list. */
function pathExample({ entity, path }: Route, field: string) {
  const schema = entity?.schema.shape[field];
  if (!schema || path.includes('/totals/')) return {};
  const { examples = [] } = createExamples(toJsonSchema(schema));
  return examples.length > 0 ? { examples: examples.flat().slice(0, 1).map(String) } : {};
}

/** The success, and problems by status. */
function describeResponses(route: Route, shared: Components) {
  const { name, success, cacheable, ranges, minimizable, others = {} } = route;
  const { status, description, body, published = body, types = [], headers = [] } = success;
  // An entity may have the schema of the body that creates it.
  const schema = published && shared.addSchema(name, preferLast(toJsonSchema(published())));
  const response = {
    description,
    ...(headers.length > 0 ? { headers: describeHeaders(headers) } : {}),
    ...(schema || types.length > 0
      ? {
          content: {
            ...describeBinary(types),
            ...(schema ? json(schema).content : {}),
          },
        }
      : {}),
  };
  const created = schema &&
    success.created && {
      description: success.created,
      headers: describeHeaders([...headers, 'Location']),
      ...json(schema),
    };
  return {
    [status]: response,
    ...(created ? { 201: created } : {}),
    ...(minimizable
      ? { 204: { description: 'Done, with Prefer: return=minimal', headers: describeHeaders(['ETag']) } }
      : {}),
    ...(success.unread ? { 204: { description: success.unread } } : {}),
    ...(ranges
      ? {
          206: {
            description: 'The bytes that Range asks for',
            headers: describeHeaders([...headers, 'Content-Range']),
            content: describeBinary(types),
          },
        }
      : {}),
    // Generators return nothing from an operation with bytes if any of its responses has none.
    ...(cacheable && types.length === 0 ? { 304: refTo('responses', 'not-modified') } : {}),
    ...Object.fromEntries(problemStatuses(route).map((each) => [each, refTo('responses', String(each))])),
    ...Object.fromEntries(
      Object.entries(others).map(([other, { description, body }]) => [
        other,
        Number(other) < 300
          ? { description, headers: describeHeaders(['Location']) }
          : { description, ...json(shared.addSchema(`${name}-${other}`, toJsonSchema(body()))) },
      ]),
    ),
    default: refTo('responses', 'Problem'),
  };
}

/** The statuses that callers of a route distinguish. Any route may have the others, such as those of a wrong token. */
function problemStatuses({ path, requestBody, requestTypes, conditional, success }: Route): number[] {
  const hasBody = requestBody !== undefined || requestTypes !== undefined;
  const isList = success.headers?.includes('Link') === true;
  return [...(path.includes('{') && !isList ? [404] : []), ...(hasBody ? [409] : []), ...(conditional ? [412] : [])];
}

const STATUSES = [404, 409, 412];

/** Present with the status 401, and 503 if a retry may succeed. */
const PROBLEM_HEADERS = {
  'WWW-Authenticate': { description: 'With 401', schema: { type: 'string' } },
  'Retry-After': {
    description: 'Seconds, with 429 and 503; absent if an operator must act',
    schema: { type: 'integer', minimum: 1 },
  },
};

/** The response of every problem with this status. */
function describeProblem(status: number) {
  const kinds = Object.entries(PROBLEMS).filter(([, kind]) => kind.status === status);
  const description = kinds.map(([code, { when }]) => `\`${code}\`: ${when}`).join('\n\n');
  return [status, problem(description)] as const;
}

/** The codes of the other problems by status. */
function describeOtherProblems(): string {
  const others = Object.entries(PROBLEMS).filter(([, { status }]) => !STATUSES.includes(status));
  const statuses = [...new Set(others.map(([, { status }]) => status))].toSorted((one, other) => one - other);
  const lines = statuses.map((status) => {
    const codes = others.filter(([, kind]) => kind.status === status).map(([code]) => `\`${code}\``);
    return `- ${status}: ${codes.join(', ')}`;
  });
  return `Another problem:\n\n${lines.join('\n')}`;
}

const HEADERS: Readonly<Record<ResponseHeader, string>> = {
  'Content-Location': 'The path of the entity',
  'Content-Range': 'The first and the last byte, and the length of the file',
  ETag: 'The state of the entity or file',
  Link: 'The next page, with rel="next"; absent on the last page',
  Location: 'The path of the created entity, or of the started operation',
};

function describeHeaders(names: readonly ResponseHeader[]) {
  return Object.fromEntries(names.map((name) => [name, refTo('headers', name)]));
}

const IF_MATCH = {
  name: 'If-Match',
  in: 'header',
  description: 'ETags: the change is made only if one of them is current; * accepts any',
  schema: { type: 'string' },
};

/** Reads and writes have one description of the header, so that the operations of a path share it. */
const IF_NONE_MATCH = {
  name: 'If-None-Match',
  in: 'header',
  description:
    'ETags: GET returns 304 if one of them is current, and a change is made only if none of them is; * requires that nothing exists',
  schema: { type: 'string' },
};

const RANGE = {
  name: 'Range',
  in: 'header',
  description: 'The bytes to return, such as bytes=0-65535, bytes=65536- or bytes=-1024',
  schema: { type: 'string' },
};

const IF_RANGE = {
  name: 'If-Range',
  in: 'header',
  description: 'An ETag: the whole file is returned if it is another one',
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
  description: 'true returns the reads and writes of the request, without executing the writes',
  schema: { type: 'boolean' },
};

/** OpenAPI 3.1 describes bytes by an empty schema. Generators know only the schema of OpenAPI 3.0, which 3.1 allows. */
function describeBinary(types: readonly string[]) {
  return Object.fromEntries(types.map((type) => [type, { schema: { type: 'string', format: 'binary' } }]));
}

function problem(description: string, headers?: Readonly<Record<string, unknown>>) {
  const content = { [PROBLEM_TYPE]: { schema: refTo('schemas', 'Problem') } };
  return { description, ...(headers ? { headers } : {}), content };
}

function json(schema: unknown) {
  return { content: { 'application/json': { schema } } };
}

/** The query parameters that compare fields. An array without `explode: false` is a parameter that may be repeated. */

const NUMBER = String.raw`-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?`;

/** The components for filters, by the type of the field. No pattern has the bounds of a number, or of the values behind an operator. */
const COMPARISONS: Readonly<Record<string, Schema>> = {
  Comparison: {
    description: 'Such as ge:VALUE or in:VALUE,VALUE',
    type: 'string',
    pattern: `^(?:${OPERATORS.join('|')}):`,
  },
  NumberComparison: { type: 'string', pattern: `^(?:${compare(OPERATORS, NUMBER)})$` },
  NumberFilter: { type: 'string', pattern: `^(?:${NUMBER}|${compare(OPERATORS, NUMBER)})$` },
  BooleanFilter: { type: 'string', pattern: `^(?:true|false|${compare(['eq', 'ne', 'in'], '(?:true|false)')})$` },
};

/** Nothing for a field that cannot be compared. */
function describeFilter([field, { refused, ...filter }]: readonly [string, FilterParameter]): Parameter[] {
  if (!('schema' in filter)) return [];
  const { title: _, description: __, examples: ___, ...value }: Schema = toJsonSchema(filter.schema, 'input');
  return [{ name: field, in: 'query', schema: { type: 'array', items: describeComparison(flattenUnions(value)) } }];
}

/** A filter is always a text, so that a generated client can send a comparison of any type. */
function describeComparison({ type, ...rules }: Schema): Schema {
  const isNumber = type === 'number' || type === 'integer';
  if (Array.isArray(rules.enum))
    return {
      ...{ type: 'string', if: { enum: rules.enum.map(String) } },
      else: refTo('schemas', isNumber ? 'NumberComparison' : 'Comparison'),
    };
  if (isNumber) return refTo('schemas', 'NumberFilter');
  if (type === 'boolean') return refTo('schemas', 'BooleanFilter');
  // A text without a rule may be a comparison, too.
  const isAnyText = Object.keys(rules).length === 0;
  return { type: 'string', ...(isAnyText ? {} : { if: rules, else: refTo('schemas', 'Comparison') }) };
}

function compare(operators: readonly string[], value: string): string {
  const others = operators.filter((operator) => operator !== 'in');
  return `(?:${others.join('|')}):${value}|in:${value}(?:,${value})*`;
}
