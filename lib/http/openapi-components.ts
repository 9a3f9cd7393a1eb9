import { createExamples } from './openapi-examples.ts';

/** Parts of an OpenAPI description that several operations share. */

export interface Ref {
  readonly $ref: string;
}

type Schema = Readonly<Record<string, unknown>>;

interface Parameter {
  readonly name: string;
  readonly in: string;
}

export interface Components {
  /** Returns a reference to the parameter. */
  addParameter(parameter: Parameter): Ref;
  /** Returns a reference to the schema with an example, in which lists of objects are references too; a short schema in place. */
  addSchema(operation: string, schema: Schema): Ref | Schema;
  readonly parameters: Readonly<Record<string, unknown>>;
  readonly schemas: Readonly<Record<string, unknown>>;
}

/** A shorter schema costs less in place than by reference. */
const SHORTEST_SHARED = 120;

export function createComponents(): Components {
  const parameters = createSection('parameters');
  const schemas = createSection('schemas');
  const addSchema = (name: string, schema: Schema): Ref | Schema => {
    const parts = { ...schema, ...shareParts(name, schema) };
    const described = { ...parts, ...createExamples(schema) };
    return JSON.stringify(parts).length < SHORTEST_SHARED ? described : schemas.add(name, described);
  };
  /** The properties of a page or a batch, with the schemas of its entities as references. */
  const shareParts = (name: string, { properties, items }: Schema): Schema => {
    if (isSchema(items)) {
      const { anyOf } = items;
      if (items.type === 'object') return { items: addSchema(`${name}Item`, items) };
      return Array.isArray(anyOf) ? { items: { anyOf: anyOf.map((action) => shareEntity(name, action)) } } : {};
    }
    if (!isSchema(properties)) return {};
    const shared = Object.entries(properties).map(([field, value]) =>
      isSchema(value) && value.type === 'array' ? [field, { ...value, ...shareParts(name, value) }] : [field, value],
    );
    return { properties: Object.fromEntries(shared) };
  };
  /** An action of a batch, with the schema of its entity as a reference. */
  const shareEntity = (name: string, action: Schema): Schema => {
    const shared = Object.entries(Object(action.properties)).map(([field, value]) => {
      const isEntity = isSchema(value) && (value.type === 'object' || value.oneOf !== undefined);
      return [field, isEntity ? addSchema(`${name}-${field}`, value) : value];
    });
    return { ...action, properties: Object.fromEntries(shared) };
  };
  return {
    addParameter: (parameter) => parameters.add(parameter.name, parameter),
    addSchema: (operation, schema) => addSchema(toTypeName(operation), schema),
    parameters: parameters.all,
    schemas: schemas.all,
  };
}

type Operations = Readonly<
  Record<string, Readonly<Record<string, { readonly operationId: string; readonly responses: object }>>>
>;

/** The paths with references to the responses that several operations have. */
export function shareResponses(paths: Operations) {
  const times = new Map<string, number>();
  const operations = Object.values(paths).flatMap((path) => Object.values(path));
  for (const response of operations.flatMap(({ responses }) => Object.values(responses))) {
    const text = JSON.stringify(response);
    times.set(text, (times.get(text) ?? 0) + 1);
  }
  const { all, add } = createSection('responses');
  const share = (operation: (typeof operations)[number]) => {
    const responses = Object.entries(operation.responses).map(([status, response]) => {
      const isShared = !('$ref' in response) && Number(times.get(JSON.stringify(response))) > 1;
      return [status, isShared ? add(`${toTypeName(operation.operationId)}-${status}`, response) : response];
    });
    return { ...operation, responses: Object.fromEntries(responses) };
  };
  const shared = Object.entries(paths).map(([path, methods]) => [
    path,
    Object.fromEntries(Object.entries(methods).map(([method, operation]) => [method, share(operation)])),
  ]);
  return { paths: Object.fromEntries(shared), responses: all };
}

export function refTo(section: string, name: string): Ref {
  return { $ref: `#/components/${section}/${name}` };
}

/** Equal parts have one name: that of the first operation that has the part. */
function createSection(section: string) {
  const all: Record<string, unknown> = {};
  const names = new Map<string, string>();
  return {
    all,
    add(wanted: string, part: object): Ref {
      const text = JSON.stringify(part);
      let name = names.get(text);
      if (name === undefined) {
        name = wanted;
        for (let number = 2; Object.hasOwn(all, name); number += 1) name = `${wanted}${number}`;
        names.set(text, name);
        all[name] = part;
      }
      return refTo(section, name);
    },
  };
}

/** `employees-get` is `Employees`, `employees-by-email` is `EmployeesByEmail`. */
function toTypeName(operation: string): string {
  const words = operation.replace(/-get$/, '').split('-');
  return words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('');
}

function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
