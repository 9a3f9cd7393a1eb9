import type { Node } from 'web-tree-sitter';
import { all, type BicepFile, type Declaration, properties, unquoted } from './bicep.ts';
import { elements, type Meaning, meanings } from './meanings.ts';
import { type ObjectType, type Property, type Schema, schemaOf, typeOf } from './schemas.ts';

/** What the compiler, or Azure, would find wrong with resources by the schemas of their types. */

/** Properties that are for the compiler, and not of the resource. */
const OF_THE_LANGUAGE = ['parent', 'scope', 'dependsOn'];

/** Where something is: its path, and the types by which it is looked at. */
interface Place {
  readonly path: string;
  readonly schema: Schema;
}

type Bounds = readonly [number, number];

/** What is wrong in the body of a resource, and what cannot be told of it. */
export function wrongIn(resource: Declaration, file: BicepFile): string[] {
  const type = typeOf(resource);
  const schema = schemaOf(resource);
  if (!schema) return [`there is no schema of ${type}: run npm run infra-schemas, and commit what it writes`];
  if (!resource.body || resource.existing) return [];
  return wrongValue({ is: 'written', node: resource.body, file }, { type }, { path: type, schema });
}

/** What is read of resources and variables, and is not there. */
export function wrongReads(file: BicepFile): string[] {
  return ['member_expression', 'subscript_expression']
    .flatMap((type) => all(file.root, type))
    .filter((node) => meanings(node, file).some(({ is }) => is === 'missing'))
    .map((node) => `${node.text} is not there`);
}

function wrongValue(meaning: Meaning, expected: Property, place: Place): string[] {
  const { type } = expected;
  const { path } = place;
  if (type === 'any') return [];
  if (meaning.is === 'typed') return wrongType(meaning.type, expected, path);
  if (meaning.is !== 'written') return [`${path} cannot be told`];
  const { node, file } = meaning;
  switch (node.type) {
    case 'object':
      return wrongObject(node, file, { type, ...place });
    case 'array':
    case 'array_type':
    case 'for_statement': {
      if (!type.endsWith('[]')) return [`${path} is ${type}, and not a list`];
      const element = { type: type.slice(0, -2) };
      return elements(meaning).flatMap((one) => wrongValue(one, element, { ...place, path: `${path}[]` }));
    }
    case 'string':
      if (all(node, 'interpolation').length > 0) return wrongType('string', expected, path);
      return wrongText(unquoted(node.text), expected, path);
    case 'number':
      return wrongType('int', expected, path).concat(outOfBounds([+node.text, +node.text], expected, path));
    case 'boolean':
      return wrongType('bool', expected, path);
    case 'primitive_type':
      return wrongType(node.text, expected, path).concat(
        node.text === 'int' ? outOfBounds(boundsOf(node), expected, path) : [],
      );
    default:
      return [`${path} cannot be told`];
  }
}

function wrongObject(node: Node, file: BicepFile, { type, ...place }: Place & { readonly type: string }): string[] {
  const { path, schema } = place;
  const given = properties(node);
  const expected = objectType(given, schema, type);
  if (!expected) return [`${path} is ${type}, and not this object`];
  const missing = Object.entries(expected.properties)
    .filter(([name, { flags }]) => flags?.includes('Required') && !given.has(name))
    .map(([name]) => `${path}.${name} is missing`);
  const others = path === type ? OF_THE_LANGUAGE : [];
  const wrong = [...given]
    .filter(([name]) => !others.includes(name))
    .flatMap(([name, value]) => {
      const at = `${path}.${name}`;
      const property = expected.properties[name] ?? { type: expected.additionalPropertiesType ?? '' };
      if (property.flags?.includes('ReadOnly')) return [`${at} is read-only`];
      if (!property.type) return isSuppressed(value) ? [] : [`${at} is not known`];
      return meanings(value, file).flatMap((one) => wrongValue(one, property, { path: at, schema }));
    });
  return [...missing, ...wrong];
}

function objectType(given: ReadonlyMap<string, Node>, { types }: Schema, name: string): ObjectType | undefined {
  const type = types[name];
  if (!type || 'properties' in type) return type;
  const said = unquoted(given.get(type.discriminator)?.text ?? '');
  return type.elements.find(({ properties }) => properties[type.discriminator]?.type === said);
}

/** Of a list of values that may grow, those that are listed are those that are known to be taken. */
function wrongText(text: string, { type, modifiers = '' }: Property, path: string): string[] {
  if (type !== 'string' && !type.split(' | ').includes(text)) return [`${path} is ${type}, and not '${text}'`];
  const pattern = /pattern: (.*)$/.exec(modifiers)?.[1] ?? '';
  const unlike = new RegExp(pattern).test(text) ? [] : [`${path} is like ${pattern}, and not '${text}'`];
  return unlike.concat(outOfBounds([text.length, text.length], { type, modifiers }, path));
}

function wrongType(type: string, expected: Property, path: string): string[] {
  const taken = expected.type.split(' | ');
  const isText = type.includes(' | ') && taken.includes('string');
  return isText || taken.includes(type) ? [] : [`${path} is ${expected.type}, and not any ${type}`];
}

/** Of a number, or of the length of a text. */
function outOfBounds([least, most]: Bounds, { modifiers = '' }: Property, path: string): string[] {
  // Nothing is less or more than NaN, which is where there is no bound.
  const bound = (name: string) => Number(new RegExp(`${name}(?:Value|Length): (\\d+)`).exec(modifiers)?.[1] ?? NaN);
  return least < bound('min') || most > bound('max') ? [`${path} is out of bounds: ${modifiers}`] : [];
}

/** What a parameter may be at least and at most. */
function boundsOf(type: Node): Bounds {
  let around: Node | null = type;
  while (around && around.type !== 'parameter_declaration') around = around.parent;
  const decorators = around?.previousNamedSibling?.text ?? '';
  const bound = (name: string) => new RegExp(`@${name}Value\\((-?\\d+)\\)`).exec(decorators)?.[1];
  return [Number(bound('min') ?? -Infinity), Number(bound('max') ?? Infinity)];
}

/** Whether the compiler is told to say nothing of a property that it does not know. */
function isSuppressed(value: Node): boolean {
  return /^#disable-next-line\b.* BCP187\b/.test(value.parent?.previousNamedSibling?.text ?? '');
}
