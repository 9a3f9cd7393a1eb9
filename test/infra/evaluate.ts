import type { Node } from 'web-tree-sitter';
import { type BicepFile, children, properties } from './bicep.ts';

/** Evaluates the expressions that check and clean parameters, as the service does when it reads a template. */

type Value = unknown;
type Function = (...args: never[]) => Value;
export type Scope = Readonly<Record<string, Value>>;

/** What Azure Resource Manager does: string comparison in `contains` is case-sensitive. Add a function when one is first used. */
const FUNCTIONS: Readonly<Record<string, Function>> = {
  contains: (container: string, item: string) => container.includes(item),
  empty: (value: string | Value[]) => value.length === 0,
  endsWith: (text: string, end: string) => text.toLowerCase().endsWith(end.toLowerCase()),
  fail: (message: string) => {
    throw new Error(message);
  },
  filter: (list: Value[], keep: (item: Value) => Value) => list.filter((item) => keep(item)),
  length: (value: string | Value[]) => value.length,
  map: (list: Value[], change: (item: Value) => Value) => list.map((item) => change(item)),
  range: (start: number, count: number) => Array.from({ length: count }, (_, index) => start + index),
  replace: (text: string, old: string, replacement: string) => text.replaceAll(old, replacement),
  split: (text: string, delimiter: string) => text.split(delimiter),
  startsWith: (text: string, start: string) => text.toLowerCase().startsWith(start.toLowerCase()),
  substring: (text: string, start: number, length: number) => text.slice(start, start + length),
  toLower: (text: string) => text.toLowerCase(),
  trim: (text: string) => text.trim(),
  union: (...lists: Value[][]) => [...new Set(lists.flat())],
};

/** The value of a variable, or of a parameter in a parameter file. `scope` has the parameters and environment variables. */
export function evaluateVariable(name: string, file: BicepFile, scope: Scope): Value {
  const declaration = file.declarations.find((one) => one.kind === 'var' && one.name === name);
  const expression = declaration && children(declaration.node)[1];
  if (!expression) throw new Error(`${file.path} declares no variable ${name}.`);
  return evaluate(expression, file, scope);
}

function evaluate(node: Node, file: BicepFile, scope: Scope): Value {
  const value = (one: Node | undefined, more: Scope = {}) => {
    if (!one) throw new Error(`"${node.text}" is incomplete.`);
    return evaluate(one, file, { ...scope, ...more });
  };
  const [first, second, third] = children(node);
  switch (node.type) {
    case 'identifier':
      return Object.hasOwn(scope, node.text) ? scope[node.text] : evaluateVariable(node.text, file, scope);
    case 'string':
      // The tree has no node for a text of spaces, so what is not interpolated is read from the source.
      return children(node)
        .filter(({ type }) => type === 'interpolation')
        .reduceRight(
          (text, part) =>
            text.slice(0, part.startIndex - node.startIndex) +
            value(children(part)[0]) +
            text.slice(part.endIndex - node.startIndex),
          node.text,
        )
        .slice(1, -1);
    case 'number':
      return Number(node.text);
    case 'array':
      return children(node).map((item) => value(item));
    case 'object':
      return Object.fromEntries([...properties(node)].map(([name, item]) => [name, value(item)]));
    case 'parenthesized_expression':
      return value(first);
    case 'ternary_expression':
      return value(value(first) ? second : third);
    case 'unary_expression':
      return !value(first);
    case 'binary_expression': {
      const operator = children(node, true)[1]?.text;
      if (operator === '&&') return value(first) && value(second);
      if (operator === '==') return value(first) === value(second);
      throw new Error(`The operator of "${node.text}" is not known here.`);
    }
    case 'member_expression':
      return (value(first) as Scope)[second?.text ?? ''];
    case 'call_expression':
      return call(first?.text ?? '', second ? children(second) : [], { file, scope });
    default:
      throw new Error(`"${node.text}" is ${node.type}, which is not known here.`);
  }
}

function call(name: string, args: readonly Node[], { file, scope }: { file: BicepFile; scope: Scope }): Value {
  const values = args.map((arg) => {
    const [parameter, body] = children(arg);
    if (arg.type !== 'lambda_expression' || !parameter || !body) return evaluate(arg, file, scope);
    return (item: Value) => evaluate(body, file, { ...scope, [parameter.text]: item });
  });
  if (name === 'readEnvironmentVariable') {
    const [variable, otherwise] = values;
    const found = scope[String(variable)] ?? otherwise;
    if (found === undefined) throw new Error(`Environment variable "${variable}" does not exist.`);
    return found;
  }
  const known = FUNCTIONS[name];
  if (!known) throw new Error(`The function ${name} is not known here.`);
  return known(...(values as never[]));
}
