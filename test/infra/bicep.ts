import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * Reads the Bicep files by their layout: one property a line, two spaces a level. Values stay unparsed: `'TLS1_2'` with its
 * quotes, `false` without. The compiler checks syntax, names and types (compiles.test.ts).
 */

export const INFRA = fileURLToPath(new URL('../../infra', import.meta.url));

/** Texts by path, relative to the folder infra. */
export type Sources = ReadonlyMap<string, string>;

export interface Declaration {
  readonly file: string;
  readonly kind: string;
  readonly name: string;
  /** Without the `@`, such as `batchSize(1)`. */
  readonly decorators: readonly string[];
  /** The type of a resource, such as `Microsoft.Storage/storageAccounts`, or the path of a module. */
  readonly type: string;
  readonly version: string;
  readonly isExisting: boolean;
  /** The list of a `for`. */
  readonly list: string | undefined;
  /** The declaration without comments. */
  readonly text: string;
  /** The part after the first `=`. */
  readonly value: string;
}

export const sources: Sources = new Map(
  globSync('**/*.{bicep,bicepparam}', { cwd: INFRA })
    .toSorted()
    .map((path) => [path, readFileSync(join(INFRA, path), 'utf8')] as const),
);
export const declarations = readDeclarations(sources);

export function readDeclarations(files: Sources): Declaration[] {
  return [...files].flatMap(([file, source]) => {
    const code = source.replaceAll(/^ *(\/\/|#disable).*\n/gm, '');
    // Nothing but declarations and their decorators starts at the margin.
    return code.split(/(?<!^@.*\n)^(?=[@a-z])/m).flatMap((text) => readDeclaration(file, text.trimEnd()));
  });
}

function readDeclaration(file: string, text: string): Declaration[] {
  const head = /^(?<before>(?:@.*\n)*)(?<kind>param|var|type|resource|module|output) (?<name>\w+) ?(?<rest>.*)/s;
  const { before = '', kind, name, rest = '' } = head.exec(text)?.groups ?? {};
  if (!kind || !name) return [];
  const isTyped = kind === 'resource' || kind === 'module';
  const [, type = '', version = ''] = (isTyped && /^'([^'@]+)(?:@([^']+))?'/.exec(rest)) || [];
  return [
    {
      file,
      kind,
      name,
      decorators: before.split('\n').flatMap((line) => (line ? [line.slice(1)] : [])),
      type,
      version,
      isExisting: /^'[^']+' existing /.test(rest),
      list: /= \[\n +for (?:\w+|\(\w+, \w+\)) in ([\w.]+): (?:if \(.*\) )?\{/.exec(rest)?.[1],
      text: text.slice(before.length),
      value: rest.replace(/^[^=]*= ?/, ''),
    },
  ];
}

/** Returns every resource of a type that the template creates. Azure ignores the case of types. */
export function resources(type: string, from: readonly Declaration[] = declarations): Declaration[] {
  const isOfType = (one: Declaration) => one.type.toLowerCase() === type.toLowerCase();
  return from.filter((one) => one.kind === 'resource' && isOfType(one) && !one.isExisting);
}

export function theResource(type: string, from: readonly Declaration[] = declarations): Declaration {
  return theOnly(resources(type, from), type);
}

export function theDeclaration(kind: string, name: string, from: readonly Declaration[] = declarations): Declaration {
  return theOnly(
    from.filter((one) => one.kind === kind && one.name === name),
    `${kind} ${name}`,
  );
}

function theOnly(found: readonly Declaration[], what: string): Declaration {
  const [only, ...others] = found;
  if (!only || others.length > 0) throw new Error(`Expected one declaration of ${what}; got ${found.length}.`);
  return only;
}

/** The declarations of the accounts with the data of the app, without that of the backup. */
export const ofApp = (from: readonly Declaration[] = declarations) =>
  from.filter(({ file }) => file !== 'modules/backup.bicep');

/** Returns the value at a path such as `properties.sasPolicy.expirationAction`. */
export function valueAt({ value, list }: Declaration, path: string): string | undefined {
  const object = list ? value.slice(value.indexOf('\n') + 1) : value;
  return path.split('.').reduce<string | undefined>((text, key) => text && propertiesOf(text).get(key), object);
}

/** Returns the properties of an object, by name. A list has none. */
export function propertiesOf(object: string): Map<string, string> {
  const [, ...lines] = object.split('\n').filter((line) => line !== '');
  const indent = /^ */.exec(lines[0] ?? '')?.[0] ?? '';
  const property = new RegExp(`^${indent}(?:'([^']+)'|(\\w+)): (.*)`);
  const found = new Map<string, string>();
  let current = '';
  for (const line of lines) {
    if (!line.startsWith(indent)) break;
    const [, quoted, name = quoted, value] = property.exec(line) ?? [];
    if (name && value !== undefined) {
      current = name;
      found.set(name, value);
    } else if (current) found.set(current, `${found.get(current)}\n${line}`);
  }
  return found;
}
