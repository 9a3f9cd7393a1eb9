import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { SELECTED } from '../lib/http/openapi.ts';

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

export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly schema: JsonSchema;
}

interface ResponseObject {
  readonly headers?: Readonly<Record<string, { readonly required?: boolean; readonly schema: JsonSchema }>>;
  readonly content?: Readonly<Record<string, { readonly schema?: JsonSchema }>>;
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

/** The description with each reference replaced by what it refers to. */
export function withoutReferences<Described extends object>(openapi: Described): Described {
  const expand = (value: unknown): unknown => {
    if (typeof value !== 'object' || value === null) return value;
    if (Array.isArray(value)) return value.map(expand);
    if ('$ref' in value) return expand(targetOf(openapi, String(value.$ref)));
    return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, expand(part)]));
  };
  return expand(openapi) as Described;
}

function targetOf(openapi: object, reference: string): unknown {
  const target = reference
    .slice('#/'.length)
    .split('/')
    .reduce((value: unknown, part) => Object(value)[part], openapi);
  if (target === undefined) throw new Error(`${reference} is not there.`);
  return target;
}

/** Compares responses with the description: status, required headers, media type, and the body with its schema. */
export function openapiChecker(described: OpenApi): OpenApiChecker {
  const openapi = withoutReferences(described);
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  formats.default(ajv);
  // A header is validated against its pattern, too.
  ajv.addFormat('idn-email', true);
  ajv.addSchema(openapi, 'api');
  const validators = new Map<string, ValidateFunction>();
  const wholes = new Map<string, ValidateFunction>();
  const operations = Object.entries(openapi.paths).flatMap(([template, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      method,
      operation,
      pattern: patternOf(template),
      template,
    })),
  );

  function validatorAt(pointer: string): ValidateFunction {
    const found = validators.get(pointer) ?? ajv.compile({ $ref: `api#${pointer}` });
    validators.set(pointer, found);
    return found;
  }

  /** Without the alternatives of a selection, which any object with some of the fields matches. */
  function validatorOfWhole(pointer: string, { anyOf }: JsonSchema): ValidateFunction {
    if (!Array.isArray(anyOf)) return validatorAt(pointer);
    const found =
      wholes.get(pointer) ??
      ajv.compile({
        anyOf: anyOf
          .filter(({ description }) => description !== SELECTED)
          .map((one) => {
            return { $ref: `api#${pointer}/anyOf/${anyOf.indexOf(one)}` };
          }),
      });
    wholes.set(pointer, found);
    return found;
  }

  function whyNot(template: string, method: string, operation: Operation, exchange: Exchange): string | undefined {
    const { status, headers, text } = exchange;
    const key = String(status) in operation.responses ? String(status) : 'default';
    const response = operation.responses[key];
    if (!response) return `${operation.operationId} describes no status ${status}`;
    for (const [name, { required, schema }] of Object.entries(response.headers ?? {})) {
      const value = headers.get(name);
      if (value === null && required) return `the header ${name} is missing`;
      if (value !== null && schema.type === 'integer' && !/^\d+$/.test(value))
        return `the header ${name} is no integer`;
    }
    if (!response.content) return text === '' ? undefined : `a body where ${operation.operationId} describes none`;
    const type = headers.get('content-type') ?? '';
    const content = response.content[type];
    if (!content) return `the media type "${type}"; described: ${Object.keys(response.content).join(', ')}`;
    if (!content.schema) return undefined;
    const where = ['', 'paths', template, method, 'responses', key, 'content', type, 'schema'];
    const pointer = where.map(escapePointer).join('/');
    const validate = exchange.path.includes('select=')
      ? validatorAt(pointer)
      : validatorOfWhole(pointer, content.schema);
    return validate(JSON.parse(text)) ? undefined : ajv.errorsText(validate.errors, { dataVar: 'body' });
  }

  const meantBy = ({ method: asked, path }: Pick<Exchange, 'method' | 'path'>) =>
    operations.filter(
      ({ method, pattern }) => method === asked.toLowerCase() && pattern.test(path.replace(/\?.*$/s, '')),
    );

  return {
    operationsOf: (request) => meantBy(request).map(({ operation }) => operation.operationId),
    disagreement(exchange) {
      const reasons = meantBy(exchange).map(({ template, method, operation }) =>
        whyNot(template, method, operation, exchange),
      );
      if (reasons.length === 0 || reasons.some((reason) => reason === undefined)) return undefined;
      return `${exchange.method} ${exchange.path.slice(0, 200)} ${exchange.status}: ${reasons.join(' | ')}`;
    },
  };
}

function patternOf(template: string): RegExp {
  const parts = template.split(/\{\w+\}/).map((literal) => literal.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  // The host matches paths in any case and with or without a trailing slash.
  return new RegExp(`^${parts.join('[^/]+')}/?$`, 'i');
}

function escapePointer(part: string): string {
  return encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'));
}
