import { flattenUnions, mapParts } from './flatten-unions.ts';
import { createExamples } from './openapi-examples.ts';

/** Parts of an OpenAPI description that several operations share. */

export type Ref = {
  readonly $ref: string;
};

export type Schema = Readonly<Record<string, unknown>>;

export interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly schema: Schema;
}

export interface Components {
  /** Returns a reference to the parameter. */
  addParameter(parameter: Parameter): Ref;
  /**
   * Returns the schema, without unions and with references to its objects, or a reference to it if it is an object. Every object has a name,
   * because generators number the others.
   */
  addSchema(operation: string, schema: Schema): Schema;
  /** Returns a reference to the schema of these texts. */
  addNames(name: string, names: readonly string[]): Ref;
  readonly parameters: Readonly<Record<string, unknown>>;
  readonly schemas: Readonly<Record<string, unknown>>;
}

/** `reserved` are the names of schemas that the caller adds. */
export function createComponents(reserved: readonly string[]): Components {
  const parameters = createSection('parameters');
  const schemas = createSection('schemas', reserved);
  const recursive = new Map<string, ReadonlyMap<string, Ref>>();

  const share = (name: string, whole: Schema, needsExample: boolean): Schema => {
    // The name of a component is its title, and a description may differ where the component is used.
    const { title, description, examples: fixed, ...schema } = whole.$defs ? addDefinitions(name, whole) : whole;
    const hasExample = needsExample && hasOwnExample(schema);
    const leavesExample = needsExample && !hasExample;
    const parts = mapParts(schema, (part, one) => share(joinName(name, part), one, leavesExample));
    const described = description ? { description } : {};
    // The example of an object has those of its fields.
    const examples = hasExample ? createExamples(schema) : needsExample && fixed ? { examples: fixed } : {};
    // Generators number the type of a choice in a list or a map.
    if ('enum' in parts && name.endsWith('-item')) return schemas.add(name, { ...described, ...parts });
    if (!isSchema(schema.properties)) return { ...(title ? { title } : {}), ...described, ...parts, ...examples };
    const ref = isName(title)
      ? schemas.add(title, parts, true)
      : schemas.add(name, { ...(title ? { title } : {}), ...parts });
    schemas.extend(ref, examples);
    return { ...ref, ...described };
  };
  /** Adds the schemas that contain themselves, unless an earlier operation has the same. */
  const addDefinitions = (name: string, { $defs, ...schema }: Schema): Schema => {
    const text = JSON.stringify($defs);
    const known = recursive.get(text);
    const definitions = Object.entries<Schema>(Object($defs));
    const named =
      known ??
      new Map(
        definitions.map(([id, { title }]) => [id, schemas.reserve(isName(title) ? title : `${name}-${id}`)] as const),
      );
    recursive.set(text, named);
    const withNames = (value: Schema): Schema =>
      JSON.parse(JSON.stringify(value), (keyword, each) => {
        const [, id = ''] = keyword === '$ref' ? (/^#\/\$defs\/(.*)$/.exec(each) ?? []) : [];
        return named.get(id)?.$ref ?? each;
      });
    if (!known)
      for (const [id, definition] of definitions) schemas.extend(Object(named.get(id)), withNames(definition));
    return withNames(schema);
  };
  return {
    addParameter: (parameter) => parameters.add(parameter.name, parameter),
    addSchema: (operation, schema) => share(operation.replace(/-get$/, ''), flattenUnions(schema), true),
    addNames: (name, names) => schemas.add(name, { type: 'string', enum: names }),
    parameters: parameters.all,
    schemas: schemas.all,
  };
}

/** The name of a part. */
function joinName(name: string, part: string): string {
  return /^\d+$/.test(part) ? name : `${name}-${part}`;
}

/** The example of a list is that of its items. */
function hasOwnExample({ properties, required = [] }: Schema): boolean {
  const isList = (field: string) => {
    const { items, additionalProperties } = Object(Object(properties)[field]);
    return [items, additionalProperties].some((one) => isSchema(one) && one.properties !== undefined);
  };
  return isSchema(properties) && !(required as readonly string[]).some(isList);
}

interface Operation {
  readonly parameters: readonly Ref[];
  readonly responses: Readonly<Record<string, object>>;
}

type Methods = Readonly<Record<string, Operation>>;

/** The paths with the parameters that all of their operations have. */
export function shareParameters(paths: Readonly<Record<string, Methods>>) {
  const shared = Object.entries(paths).map(([path, methods]) => {
    const all = Object.values(methods).map(({ parameters }) => parameters.map(({ $ref }) => $ref));
    const common = (all[0] ?? []).filter((ref) => all.every((refs) => refs.includes(ref)));
    const withOwn = Object.entries(methods).map(([method, { parameters, ...operation }]) => {
      const own = parameters.filter(({ $ref }) => !common.includes($ref));
      return [method, { ...operation, ...(own.length > 0 ? { parameters: own } : {}) }];
    });
    const parameters = common.map(($ref) => ({ $ref }));
    return [path, { ...(common.length > 0 ? { parameters } : {}), ...Object.fromEntries(withOwn) }];
  });
  return Object.fromEntries(shared);
}

/** The operations with references to the responses that several of them have. */
export function shareResponses<Paths extends Readonly<Record<string, Methods>>>(paths: Paths) {
  const operations = Object.values(paths).flatMap((methods) => Object.values(methods));
  const times = countTexts(operations.flatMap(({ responses }) => Object.values(responses)));
  const { all, add } = createSection('responses');
  const share = (responses: Operation['responses']) =>
    mapValues(responses, (response) =>
      '$ref' in response || Number(times.get(JSON.stringify(response))) < 2
        ? response
        : add(nameResponse(response), response),
    );
  const shared = mapValues(paths, (methods) =>
    mapValues(methods, (operation) => ({ ...operation, responses: share(operation.responses) })),
  );
  return { paths: shared as Paths, responses: all };
}

/** The name of the schema of its JSON, or the first words of the description. */
function nameResponse(response: object): string {
  const { description = '', content } = response as { readonly description?: string; readonly content?: object };
  const json = JSON.stringify(Object(content)['application/json'] ?? {});
  const [, schema] = /"#\/components\/schemas\/(\w+)"/.exec(json) ?? [];
  const [words = ''] = description.split(/[^\w ]/);
  return schema ?? words.trim().replaceAll(' ', '-').toLowerCase();
}

export function refTo(section: string, name: string): Ref {
  return { $ref: `#/components/${section}/${name}` };
}

/** Equal parts have one name: that of the first operation that has the part. */
function createSection(section: string, reserved: readonly string[] = []) {
  const all: Record<string, unknown> = {};
  const refs = new Map<string, Ref>();
  const create = (wanted: string, part: object): Ref => {
    let name = wanted;
    for (let number = 2; Object.hasOwn(all, name) || reserved.includes(name); number += 1) name = `${wanted}${number}`;
    all[name] = { ...part };
    return refTo(section, name);
  };
  return {
    all,
    /** With `isNamed`, an equal part of another name stays another one: an entity has its own name, also if another one has the same fields. */
    add(wanted: string, part: object, isNamed = false): Ref {
      const text = JSON.stringify(isNamed ? [wanted, part] : part);
      const ref = refs.get(text) ?? create(section === 'parameters' ? wanted : toTypeName(wanted), part);
      refs.set(text, ref);
      return ref;
    },
    /** Returns a reference to a part whose keywords are added later. */
    reserve(wanted: string): Ref {
      return create(toTypeName(wanted), {});
    },
    /** Adds keywords to a part, which is found without them. */
    extend({ $ref }: Ref, keywords: object) {
      Object.assign(Object(all[$ref.slice(refTo(section, '').$ref.length)]), keywords);
    },
  };
}

/** How often each value occurs, by its JSON text. */
function countTexts(values: readonly object[]): ReadonlyMap<string, number> {
  const times = new Map<string, number>();
  for (const text of values.map((value) => JSON.stringify(value))) times.set(text, (times.get(text) ?? 0) + 1);
  return times;
}

/** False for a title without Latin letters and digits. */
function isName(title: unknown): title is string {
  return typeof title === 'string' && toTypeName(title) !== '';
}

/** `employees-by-email` is `EmployeesByEmail`. Names of components have letters and digits. */
function toTypeName(words: string): string {
  return words
    .split(/[\W_]+/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');
}

function mapValues<Value, Mapped>(values: Readonly<Record<string, Value>>, map: (value: Value) => Mapped) {
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, map(value)]));
}

function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
