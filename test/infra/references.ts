import type { Node } from 'web-tree-sitter';
import { all, type BicepFile, children, type Declaration, fileAt, properties, unquoted } from './bicep.ts';

/** What the compiler, or its linter with the rules of bicepconfig.json, would find wrong with the names in a file. */

/** The functions that are used; another one is added here when it is first used. */
const FUNCTIONS = [
  'contains',
  'empty',
  'endsWith',
  'environment',
  'fail',
  'filter',
  'guid',
  'length',
  'loadJsonContent',
  'loadTextContent',
  'map',
  'range',
  'readEnvironmentVariable',
  'replace',
  'resourceGroup',
  'split',
  'startsWith',
  'subscription',
  'subscriptionResourceId',
  'substring',
  'tenant',
  'toLower',
  'trim',
  'union',
  'uniqueString',
];
const DECORATORS = ['allowed', 'batchSize', 'description', 'export', 'maxLength', 'maxValue', 'minLength', 'minValue'];

/** Names that are used and not declared; functions that are not known. */
export function undeclared(file: BicepFile): string[] {
  const declared = new Set([
    ...file.declarations.filter(({ kind }) => kind !== 'output').map(({ name }) => name),
    ...file.imports.map(({ name }) => name),
  ]);
  return uses(file)
    .filter(({ node, name }) => !declared.has(name) && !boundAround(node).includes(name))
    .map(({ node, name }) => `${file.path}:${node.startPosition.row + 1} ${name}`)
    .concat(
      calls(file)
        .filter(({ known }) => !known)
        .map(({ text }) => `${file.path} ${text}`),
    );
}

/** What is declared or imported and not used: parameters, variables, types, imports and existing resources. */
export function unused(file: BicepFile): string[] {
  const used = new Set(uses(file).map(({ name }) => name));
  const has = (decorator: string) => (declaration: Declaration) => declaration.decorators.includes(decorator);
  const declared = file.declarations
    .filter(({ kind, existing }) => ['param', 'var', 'type'].includes(kind) || existing)
    .filter((declaration) => !has('export()')(declaration));
  const ofTemplate = file.path.endsWith('.bicepparam') ? [] : declared;
  return [...ofTemplate, ...file.imports].map(({ name }) => name).filter((name) => !used.has(name));
}

export function declaredTwice(file: BicepFile): string[] {
  const names = file.declarations.filter(({ kind }) => kind !== 'output').map(({ name }) => name);
  return [...names, ...file.imports.map(({ name }) => name)].filter((name, index, list) => list.indexOf(name) < index);
}

/** Imports of what the other file does not export. */
export function notExported(file: BicepFile): string[] {
  return file.imports
    .filter(({ name, from }) => {
      const declaration = fileAt(from, file).declarations.find((other) => other.name === name);
      return !declaration?.decorators.includes('export()');
    })
    .map(({ name, from }) => `${name} of ${from}`);
}

/** Parameters that a module has to be given and is not, or is given and does not have. */
export function wrongParameters(module: Declaration, file: BicepFile): string[] {
  const given = module.body ? properties(module.body).get('params') : undefined;
  return mismatch(given ? [...properties(given).keys()] : [], fileAt(module.of, file));
}

/** The same of a parameter file. */
export function wrongAssignments(file: BicepFile): string[] {
  const template = fileAt(file.using ?? '', file);
  const assigned = [...file.root.text.matchAll(/^var {3}(\w+) =/gm)].map(([, name]) => name ?? '');
  return mismatch(assigned, template);
}

/** Outputs of modules that are read and not there. */
export function missingOutputs(file: BicepFile): string[] {
  const modules = file.declarations.filter(({ kind }) => kind === 'module');
  return [...file.root.text.matchAll(/\b(\w+)\.outputs\.(\w+)/g)]
    .filter(([, from, name]) => {
      const module = modules.find((candidate) => candidate.name === from);
      const outputs = module ? fileAt(module.of, file).declarations.filter(({ kind }) => kind === 'output') : [];
      return !outputs.some((output) => output.name === name);
    })
    .map(([text]) => text);
}

/** Files that are loaded. */
export function loaded(file: BicepFile): string[] {
  return all(file.root, 'call_expression')
    .filter((call) => /^load(Text|Json)Content\(/.test(call.text))
    .map((call) => unquoted(all(call, 'string')[0]?.text ?? ''));
}

export function isRequired({ node }: Declaration): boolean {
  // A name, a type and no value.
  return children(node).length === 2;
}

function mismatch(given: readonly string[], template: BicepFile): string[] {
  const params = template.declarations.filter(({ kind }) => kind === 'param');
  const missing = params.filter((param) => isRequired(param) && !given.includes(param.name));
  const unknown = given.filter((name) => !params.some((param) => param.name === name));
  return [...missing.map(({ name }) => `${name} is not given`), ...unknown.map((name) => `${name} is not declared`)];
}

/** Every identifier that refers to something; not those that declare, name a property or a function. */
function uses({ root }: BicepFile): { node: Node; name: string }[] {
  return all(root, 'identifier')
    .filter((node) => {
      const parent = node.parent;
      const isFirst = parent?.namedChild(0)?.equals(node);
      if (!parent || parent.type === 'import_functionality') return false;
      if (parent.type === 'object_property') return !isFirst;
      if (parent.type === 'call_expression') return !isFirst;
      if (parent.type === 'lambda_expression') return !isFirst;
      if (parent.type === 'for_statement') return !isFirst;
      return !(parent.type.endsWith('_declaration') && isFirst);
    })
    .map((node) => ({ node, name: node.text }));
}

/** The variables of the loops and lambdas around a node. */
function boundAround(node: Node): string[] {
  const bound: string[] = [];
  for (let around = node.parent; around; around = around.parent)
    if (around.type === 'for_statement' || around.type === 'lambda_expression')
      bound.push(around.namedChild(0)?.text ?? '');
  return bound;
}

function calls({ root }: BicepFile): { text: string; known: boolean }[] {
  return all(root, 'call_expression').map((call) => {
    const name = call.namedChild(0)?.text ?? '';
    return { text: call.text, known: (call.parent?.type === 'decorator' ? DECORATORS : FUNCTIONS).includes(name) };
  });
}
