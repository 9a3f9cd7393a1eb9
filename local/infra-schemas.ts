import { execFile } from 'node:child_process';
import { glob, readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

/**
 * Writes what Azure's types say of the resources that infra declares to test/infra/schemas.json, for the tests to read.
 * The types come with Microsoft's MCP server, in a binary of 140 MB which npx fetches; where it is there already, its path
 * is given as the argument.
 */
const SERVER = '@azure/mcp@2.0.5';
const ROOT = fileURLToPath(new URL('..', import.meta.url));
const [program = '', ...before] = process.argv[2] ? [process.argv[2]] : ['npx', '--yes', SERVER];

interface Property {
  readonly name: string;
  readonly type: string;
  readonly flags?: string;
  readonly modifiers?: string;
}
interface Type {
  readonly $type: string;
  readonly name: string;
  readonly properties?: readonly Property[];
  readonly additionalPropertiesType?: string;
  readonly baseProperties?: readonly Property[];
  readonly discriminator?: string;
  readonly elements?: readonly Type[];
  readonly bodyType?: Type;
}

/** Every type that is told of a resource; none, where it is not known. */
function typesOf(resource: string): Promise<readonly Type[]> {
  return new Promise((resolve, reject) => {
    const args = [...before, 'bicepschema', 'get', '--resource-type', resource];
    const { stdin } = execFile(program, args, { maxBuffer: 64_000_000 }, (error, answer) => {
      if (error) return answer.includes('not supported') ? resolve([]) : reject(error);
      resolve(JSON.parse(answer).results.BicepSchemaResult);
    });
    // The server waits for the end of what it is told.
    stdin?.end();
  });
}

/** The types that one leads to, by name, itself included. */
function reached(from: Type, types: readonly Type[], found = new Map([[from.name, from]])): Map<string, Type> {
  const objects = [from, ...(from.elements ?? [])];
  const names = objects.flatMap(({ properties = [], baseProperties = [], additionalPropertiesType = '' }) => [
    ...[...properties, ...baseProperties].map(({ type }) => type),
    additionalPropertiesType,
  ]);
  for (const name of names.map((type) => type.replace(/\[\]$/, ''))) {
    const type = types.find((other) => other.name === name);
    if (type && !found.has(name)) reached(type, types, found.set(name, type));
  }
  return found;
}

/** A type without its descriptions: its properties by name, or the objects of which it is one. */
function short({
  properties = [],
  additionalPropertiesType,
  baseProperties = [],
  discriminator,
  elements,
}: Type): object {
  if (elements) {
    const whole = elements.map((type) => ({ ...type, properties: [...baseProperties, ...(type.properties ?? [])] }));
    return { discriminator, elements: whole.map(short) };
  }
  const byName = properties.map(({ name, type, flags, modifiers }) => [name, { type, flags, modifiers }]);
  return { properties: Object.fromEntries(byName), additionalPropertiesType };
}

const files = await Array.fromAsync(glob('infra/**/*.bicep', { cwd: ROOT }), (file) =>
  readFile(`${ROOT}${file}`, 'utf8'),
);
const resources = files.flatMap((text) => text.match(/(?<=^resource \w+ ')[^@']+/gm) ?? []);
const schemas: Record<string, object> = {};
for (const resource of [...new Set(resources)].toSorted()) {
  const types = await typesOf(resource);
  const { bodyType, name } = types.find(({ $type }) => $type === 'Resource') ?? {};
  if (bodyType && name) {
    const named = [...reached({ ...bodyType, name: resource }, types)].map(
      ([type, definition]) => [type, short(definition)] as const,
    );
    schemas[resource] = { version: name.split('@')[1], types: Object.fromEntries(named) };
  }
  console.log(name ?? `${resource} is not known: it has to be in test/infra/schemas-by-hand.json.`);
}
// A type on each line, so that a change can be read.
const text = JSON.stringify(schemas, null, 1).replaceAll(/\n {4,}|\n {3}(?=\})/g, '');
await writeFile(`${ROOT}test/infra/schemas.json`, `${text}\n`);
