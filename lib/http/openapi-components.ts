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
  /** Returns a reference to the schema of an object, in which lists of objects are references too; otherwise the schema. */
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
    const parts = { ...schema, ...shareItems(name, schema) };
    return JSON.stringify(parts).length < SHORTEST_SHARED ? parts : schemas.add(name, parts);
  };
  /** The properties of a page, with the schema of its entities as a reference. */
  const shareItems = (name: string, { properties, items }: Schema): Schema => {
    const part = (value: unknown) => addSchema(`${name}Item`, value as Schema);
    if (isSchema(items) && items.type === 'object') return { items: part(items) };
    if (!isSchema(properties)) return {};
    const shared = Object.entries(properties).map(([field, value]) =>
      isSchema(value) && value.type === 'array' ? [field, { ...value, ...shareItems(name, value) }] : [field, value],
    );
    return { properties: Object.fromEntries(shared) };
  };
  return {
    addParameter: (parameter) => parameters.add(parameter.name, parameter),
    addSchema: (operation, schema) => addSchema(toTypeName(operation), schema),
    parameters: parameters.all,
    schemas: schemas.all,
  };
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
