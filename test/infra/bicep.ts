import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Language, type Node, Parser } from 'web-tree-sitter';

/**
 * Reads Bicep files as trees, so that much of what the compiler and its linter would say can be said where there is no
 * compiler. Values are compared as they are written: `'TLS1_2'` with its quotes, `false` without.
 */

export const INFRA = fileURLToPath(new URL('../../infra', import.meta.url));
const GRAMMAR = fileURLToPath(import.meta.resolve('tree-sitter-bicep/tree-sitter-bicep.wasm'));

await Parser.init();
const parser = new Parser().setLanguage(await Language.load(GRAMMAR));

export type Kind = 'param' | 'var' | 'type' | 'resource' | 'module' | 'output';

const KINDS: Readonly<Record<string, Kind>> = {
  parameter_declaration: 'param',
  variable_declaration: 'var',
  type_declaration: 'type',
  resource_declaration: 'resource',
  module_declaration: 'module',
  output_declaration: 'output',
};

export interface Declaration {
  readonly file: string;
  readonly kind: Kind;
  readonly name: string;
  readonly node: Node;
  /** Such as `description('Name.')`. */
  readonly decorators: readonly string[];
  /** Of a resource, such as `Microsoft.Storage/storageAccounts@2025-06-01`; of a module, its path. */
  readonly of: string;
  readonly existing: boolean;
  /** What `for` goes through, as it is written. */
  readonly loopsOver: string | undefined;
  /** The object that a resource, module or variable is made of. */
  readonly body: Node | undefined;
}

export interface Import {
  readonly name: string;
  readonly from: string;
}

export interface BicepFile {
  /** Relative to the folder infra. */
  readonly path: string;
  readonly root: Node;
  readonly declarations: readonly Declaration[];
  readonly imports: readonly Import[];
  /** Of a parameter file: the file it is for. */
  readonly using: string | undefined;
}

export const paths: readonly string[] = globSync('**/*.{bicep,bicepparam}', { cwd: INFRA }).toSorted();
export const files: readonly BicepFile[] = paths.map((path) => parse(path, readFileSync(join(INFRA, path), 'utf8')));
export const templates = files.filter(({ path }) => path.endsWith('.bicep'));
export const declarations = templates.flatMap((file) => file.declarations);

export function parse(path: string, text: string): BicepFile {
  // The grammar has no parameter that is given a value without a type; a variable is written the same way.
  const readable = path.endsWith('.bicepparam') ? text.replace(/^param (?=\w+ =)/gm, 'var   ') : text;
  const root = parser.parse(readable)?.rootNode;
  if (!root) throw new Error(`${path} could not be parsed.`);
  return {
    path,
    root,
    declarations: children(root).flatMap((node) => declarationOf(path, node)),
    imports: all(root, 'import_functionality').flatMap(importsOf),
    using: all(root, 'using_statement').map(firstString)[0],
  };
}

/** Where the grammar did not know what to make of the text, as line and text. */
export function syntaxErrors(file: BicepFile): string[] {
  const wrong = (node: Node): Node[] =>
    node.isError || node.isMissing ? [node] : node.hasError ? children(node, true).flatMap(wrong) : [];
  return wrong(file.root).map((node) => `${file.path}:${node.startPosition.row + 1} ${node.text.slice(0, 60)}`);
}

/** The file that another names by a path relative to itself. */
export function fileAt(path: string, from: BicepFile): BicepFile {
  const wanted = relative(INFRA, join(INFRA, dirname(from.path), path));
  const found = files.find((file) => file.path === wanted);
  if (!found) throw new Error(`${from.path} names ${path}, which is not there.`);
  return found;
}

export function isThere(path: string, from: BicepFile): boolean {
  return existsSync(join(INFRA, dirname(from.path), path));
}

export function resources(type: string): Declaration[] {
  return declarations.filter(({ kind, of, existing }) => kind === 'resource' && !existing && of.split('@')[0] === type);
}

export function theResource(type: string): Declaration {
  const [found, ...others] = resources(type);
  if (!found || others.length > 0)
    throw new Error(`There are ${others.length + (found ? 1 : 0)} of ${type}, and not one.`);
  return found;
}

/** What is written at a path of properties such as `properties.sasPolicy.expirationAction`. */
export function written(declaration: Declaration, path: string): string | undefined {
  return at(declaration.body, path)?.text;
}

export function at(node: Node | undefined, path: string): Node | undefined {
  return path
    .split('.')
    .reduce<Node | undefined>((object, key) => (object ? properties(object).get(key) : undefined), node);
}

/** The properties of an object: their values by name, without quotes. */
export function properties(object: Node): Map<string, Node> {
  return new Map(
    children(object)
      .filter(({ type }) => type === 'object_property')
      .flatMap((property) => {
        const [key, value] = children(property);
        return key && value ? [[unquoted(key.text), value] as const] : [];
      }),
  );
}

export function all(node: Node, type: string): Node[] {
  return node.descendantsOfType(type).filter((found) => found !== null);
}

export function children(node: Node, unnamed = false): Node[] {
  const found = unnamed ? node.children : node.namedChildren;
  return found.filter((child) => child !== null && child.type !== 'comment') as Node[];
}

export function unquoted(text: string): string {
  return text.replace(/^'|'$/g, '');
}

function declarationOf(file: string, node: Node): Declaration[] {
  const kind = KINDS[node.type];
  const [name, second] = children(node);
  if (!kind || !name) return [];
  const before = node.previousNamedSibling;
  const loop = children(node).find(({ type }) => type === 'for_statement');
  const conditional = children(node).find(({ type }) => type === 'if_statement');
  return [
    {
      file,
      kind,
      name: name.text,
      node,
      decorators: before?.type === 'decorators' ? children(before).map(({ text }) => text.slice(1)) : [],
      of: second?.type === 'string' ? unquoted(second.text) : '',
      existing: children(node, true).some(({ text }) => text === 'existing'),
      loopsOver: loop && children(loop)[1]?.text,
      body: children(loop ?? conditional ?? node).findLast(({ type }) => type === 'object'),
    },
  ];
}

function importsOf(node: Node): Import[] {
  const from = firstString(node);
  return children(node)
    .filter(({ type }) => type === 'identifier')
    .map(({ text: name }) => ({ name, from }));
}

function firstString(node: Node): string {
  return unquoted(all(node, 'string')[0]?.text ?? '');
}
