import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { httpDoor, type Route } from './kit/http.ts';

/** The parts of the OpenAPI description that the tests read, without references. */
export interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

export interface Operation {
  readonly operationId: string;
  /** Alternatives: one satisfied requirement is enough. */
  readonly security: readonly { readonly token: readonly string[] }[];
  readonly parameters: readonly Parameter[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema?: JsonSchema }>> };
  readonly responses: Readonly<Record<string, ResponseObject>>;
}

interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly schema: JsonSchema;
}

interface ResponseObject {
  readonly headers?: Readonly<Record<string, { readonly required?: boolean; readonly schema: JsonSchema }>>;
  readonly content?: Readonly<Record<string, Content>>;
}

interface Content {
  readonly schema?: JsonSchema;
}

export type JsonSchema = Readonly<Record<string, unknown>>;

export interface Exchange {
  readonly method: string;
  /** Includes the query. */
  readonly path: string;
  readonly status: number;
  readonly headers: Headers;
  /** The response body as received. */
  readonly text: string;
}

export interface OpenApiChecker {
  /** Returns the ids of all operations that match a request, because a key can equal a literal of another route. */
  operationsOf(request: Pick<Exchange, 'method' | 'path'>): string[];
  /**
   * Returns the reason why a response matches none of these operations; undefined if one matches or no operation
   * exists.
   */
  disagreement(exchange: Exchange): string | undefined;
}

/** The description with each reference replaced by what it refers to, and with all parameters and roles in each operation. */
export function withoutReferences<Described extends object>(openapi: Described): Described {
  const { paths, security, ...rest } = expand(openapi, openapi) as Unexpanded;
  const expanded = Object.entries(paths).map(([path, { parameters = [], ...methods }]) => {
    const operations = Object.entries(methods).map(([method, operation]) => [
      method,
      { security, ...operation, parameters: [...parameters, ...(operation.parameters ?? [])] },
    ]);
    return [path, Object.fromEntries(operations)];
  });
  return { ...rest, paths: Object.fromEntries(expanded) } as Described;
}

interface Unexpanded {
  readonly paths: Readonly<
    Record<string, Readonly<Record<string, Partial<Operation>>> & { readonly parameters?: readonly Parameter[] }>
  >;
  readonly security: Operation['security'];
}

/** A part of the description with each reference replaced by what it refers to. */
function expand(value: unknown, openapi: object): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((part) => expand(part, openapi));
  if ('$ref' in value) {
    const { $ref, ...beside } = value;
    return { ...Object(expand(targetOf(openapi, String($ref)), openapi)), ...beside };
  }
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, expand(part, openapi)]));
}

function targetOf(openapi: object, reference: string): unknown {
  const target = reference
    .slice('#/'.length)
    .split('/')
    .reduce((value: unknown, part) => Object(value)[part], openapi);
  if (target === undefined) throw new Error(`${reference} is not there.`);
  return target;
}

/**
 * Compares responses with the description: status, required headers, media type, and the body with its schema. With `routes`, a body is also
 * compared with the schema of its route, which has the fields that a response without a selection always has. What no response needs is
 * neither expanded nor compiled: a file of tests meets a small part of the description.
 */
export function openapiChecker(openapi: OpenApi, routes: readonly Route[] = []): OpenApiChecker {
  // A schema is compiled for a few responses. Another test compares the schemas with their specification.
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateSchema: false, code: { optimize: false } });
  formats.default(ajv);
  // A header is validated against its pattern, too.
  ajv.addFormat('idn-email', true);
  const responses = new Map<Operation, Operation['responses']>();
  const validators = new Map<string, ValidateFunction>();
  const operations = Object.entries(openapi.paths).flatMap(([template, { parameters, ...methods }]) =>
    Object.entries(methods).map(([method, operation]) => ({ method, operation, pattern: patternOf(template) })),
  );

  const exact = new Map(routes.map((route) => [route.ofAll?.name ?? route.name, route]));
  const exactSchemas = new Map<string, JsonSchema>();
  /** Undefined for a status without a schema of its own, or if the request selects fields. */
  function exactSchema({ operationId }: Operation, exchange: Exchange): JsonSchema | undefined {
    const { success, others } = exact.get(operationId) ?? {};
    const isMain = exchange.status === success?.status || (exchange.status === 201 && success?.created !== undefined);
    const build = isMain ? success?.body : others?.[exchange.status]?.body;
    if (!build || selectsFields(exchange)) return undefined;
    const key = `${operationId} ${exchange.status}`;
    const schema = exactSchemas.get(key) ?? httpDoor.toJsonSchema(build());
    exactSchemas.set(key, schema);
    return schema;
  }

  const EXPLANATION = expand({ $ref: '#/components/schemas/Explanation' }, openapi) as JsonSchema;
  function responsesOf(operation: Operation): Operation['responses'] {
    const found = responses.get(operation) ?? (expand(operation.responses, openapi) as Operation['responses']);
    responses.set(operation, found);
    return found;
  }

  function whyInvalid(name: string, schema: JsonSchema, exchange: Exchange): string | undefined {
    const validate = validators.get(name) ?? ajv.compile(schema);
    validators.set(name, validate);
    return validate(JSON.parse(exchange.text)) ? undefined : ajv.errorsText(validate.errors, { dataVar: 'body' });
  }

  function whyNot(operation: Operation, exchange: Exchange): string | undefined {
    const { status, headers, text } = exchange;
    if (status === 401 && !headers.has('www-authenticate')) return 'the header WWW-Authenticate is missing';
    // No operation lists it, and none with bytes lists a 304.
    if (status === 304 && !('304' in operation.responses) && hasBytes(responsesOf(operation)[200]))
      return text === '' && headers.has('etag') ? undefined : 'a 304 with a body or without an ETag';
    if (status === 200 && headers.get('content-type') === httpDoor.EXPLANATION_TYPE)
      return whyInvalid('Explanation', EXPLANATION, exchange);
    const all = responsesOf(operation);
    const key = String(status) in all ? String(status) : 'default';
    const response = all[key];
    if (!response) return `${operation.operationId} describes no status ${status}`;
    const type = headers.get('content-type') ?? '';
    for (const [name, { required, schema }] of Object.entries(response.headers ?? {})) {
      const value = headers.get(name);
      if (value === null && required) return `the header ${name} is missing`;
      if (value !== null && schema.type === 'integer' && !/^\d+$/.test(value))
        return `the header ${name} is no integer`;
    }
    const exactBody = exactSchema(operation, exchange);
    const whyInexact = () => exactBody && whyInvalid(`exact ${operation.operationId} ${status}`, exactBody, exchange);
    // The body of a second success is left out, as the operation would have two results.
    if (!response.content && text !== '' && exactBody && status in (exact.get(operation.operationId)?.others ?? {}))
      return whyInexact();
    if (!response.content) return text === '' ? undefined : `a body where ${operation.operationId} describes none`;
    const content = response.content[type];
    if (!content) return `the media type "${type}"; described: ${Object.keys(response.content).join(', ')}`;
    if (!content.schema || isBinary(content)) return undefined;
    return whyInvalid(`${operation.operationId} ${key} ${type}`, content.schema, exchange) ?? whyInexact();
  }

  const meantBy = ({ method: asked, path }: Pick<Exchange, 'method' | 'path'>) =>
    operations.filter(
      ({ method, pattern }) => method === asked.toLowerCase() && pattern.test(path.replace(/\?.*$/s, '')),
    );

  return {
    operationsOf: (request) => meantBy(request).map(({ operation }) => operation.operationId),
    disagreement(exchange) {
      const reasons = meantBy(exchange).map(({ operation }) => whyNot(operation, exchange));
      if (reasons.length === 0 || reasons.some((reason) => reason === undefined)) return undefined;
      return `${exchange.method} ${exchange.path.slice(0, 200)} ${exchange.status}: ${reasons.join(' | ')}`;
    },
  };
}

/** True if the content is bytes, which are no JSON. */
function isBinary({ schema }: Content): boolean {
  return schema?.format === 'binary';
}

function hasBytes(response: ResponseObject | undefined): boolean {
  return Object.values(response?.content ?? {}).some(isBinary);
}

/** True if the request has an option that may limit the fields of the response. */
function selectsFields({ path }: Exchange): boolean {
  const [, query] = path.split('?', 2);
  const given = new URLSearchParams(query);
  return Object.keys(httpDoor.LIST_QUERY).some((name) => given.has(name));
}

function patternOf(template: string): RegExp {
  const parts = template.split(/\{\w+\}/).map((literal) => literal.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  // The host matches paths in any case and with or without a trailing slash.
  return new RegExp(`^${parts.join('[^/]+')}/?$`, 'i');
}
