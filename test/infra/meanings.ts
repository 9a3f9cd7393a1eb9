import type { Node } from 'web-tree-sitter';
import { type BicepFile, children, fileAt, properties, unquoted } from './bicep.ts';
import { type Schema, schemaOf, typeOf } from './schemas.ts';

/** What an expression may be: something written, a value or a type; something of a type of a schema; not there; not known. */
export type Meaning =
  | { readonly is: 'written'; readonly node: Node; readonly file: BicepFile }
  | { readonly is: 'typed'; readonly type: string; readonly schema?: Schema }
  | { readonly is: 'missing' | 'unknown' };

/** What functions answer; another one is added when it is first used in a resource. */
const ANSWERS: Readonly<Record<string, string>> = {
  guid: 'string',
  loadTextContent: 'string',
  subscriptionResourceId: 'string',
  'tenant().tenantId': 'string',
};

/** Everything that an expression may be, as far as the files say: both branches, each round of a loop, a parameter's type. */
export function meanings(node: Node, file: BicepFile): Meaning[] {
  const [first, ...others] = children(node);
  const each = (nodes: readonly Node[]) => nodes.flatMap((one) => meanings(one, file));
  switch (node.type) {
    case 'identifier':
      return meaningsOfName(node.text, node, file);
    case 'parenthesized_expression':
    case 'type':
    case 'union_type':
      return each(children(node));
    case 'unary_expression':
      return [{ is: 'typed', type: node.text.startsWith('!') ? 'bool' : 'int' }];
    case 'binary_expression':
      // The grammar reads the last two of more than three types as an expression.
      return /^'[^']*' \| '/.test(node.text) ? each(children(node)) : [{ is: 'unknown' }];
    case 'ternary_expression':
      return each(others);
    case 'member_expression':
    case 'subscript_expression':
      if (node.text in ANSWERS) return answer(node.text);
      return each(first ? [first] : []).flatMap((object) => member(object, unquoted(others[0]?.text ?? '')));
    case 'call_expression':
      return first?.text === 'union' ? each(others.flatMap((args) => children(args))) : answer(first?.text ?? '');
    default:
      return [{ is: 'written', node, file }];
  }
}

/** What is in a list. */
export function elements(list: Meaning): Meaning[] {
  if (list.is === 'typed') return [{ ...list, type: list.type.replace(/\[\]$/, '') }];
  if (list.is !== 'written') return [list];
  const nodes = children(list.node);
  // Of a loop what comes after the variable and what it goes through.
  return (list.node.type === 'for_statement' ? nodes.slice(2) : nodes).flatMap((one) => meanings(one, list.file));
}

function meaningsOfName(name: string, at: Node, file: BicepFile): Meaning[] {
  for (let around = at.parent; around; around = around.parent) {
    const [variable, list] = around.type === 'for_statement' ? children(around) : [];
    if (list && variable?.text === name) return meanings(list, file).flatMap(elements);
  }
  const imported = file.imports.find((one) => one.name === name);
  if (imported) return meaningsOfName(name, at, fileAt(imported.from, file));
  const declaration = file.declarations.find((one) => one.name === name && one.kind !== 'output');
  const schema = declaration && schemaOf(declaration);
  if (schema) return [{ is: 'typed', type: typeOf(declaration), schema }];
  // Of a variable or type the value, of a parameter the type.
  const second = declaration && children(declaration.node)[1];
  return second && ['var', 'type', 'param'].includes(declaration.kind) ? meanings(second, file) : [{ is: 'unknown' }];
}

function member(object: Meaning, name: string): Meaning[] {
  if (object.is === 'written') {
    const value = object.node.type === 'object' ? properties(object.node).get(name) : undefined;
    return value ? meanings(value, object.file) : [{ is: 'missing' }];
  }
  if (object.is !== 'typed') return [object];
  const type = object.schema?.types[object.type];
  const types = type && 'elements' in type ? type.elements : type ? [type] : [];
  const [found] = types.flatMap((one) => one.properties[name]?.type ?? one.additionalPropertiesType ?? []);
  return [found ? { ...object, type: found } : { is: 'missing' }];
}

function answer(name: string): Meaning[] {
  const type = ANSWERS[name];
  return [type ? { is: 'typed', type } : { is: 'unknown' }];
}
