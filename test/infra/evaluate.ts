import { declarations } from './bicep.ts';

type Value = unknown;
type Context = Record<string, Value>;

/** The functions in use, as Azure Resource Manager defines them: `contains` is case-sensitive, `startsWith` is not. */
const FUNCTIONS = {
  concat: (...lists: Value[][]) => lists.flat(),
  contains: (container: string, item: string) => container.includes(item),
  empty: (value: string | Value[]) => value.length === 0,
  endsWith: (text: string, end: string) => text.toLowerCase().endsWith(end.toLowerCase()),
  fail: (message: string) => {
    throw new Error(message);
  },
  filter: (list: Value[], keep: (item: Value) => boolean) => list.filter((item) => keep(item)),
  first: (list: Value[]) => list[0],
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

/** Returns the value of a variable, or of a parameter in a parameter file. `given` has the parameters and environment variables. */
export function evaluate(file: string, name: string, given: Context): Value {
  const context: Context = {
    ...FUNCTIONS,
    readEnvironmentVariable: (variable: string, fallback?: string) => given[variable] ?? fallback,
  };
  for (const declaration of declarations.filter((one) => one.file === file && !(one.name in given)))
    Object.defineProperty(context, declaration.name, { get: () => run(declaration.value, context) });
  return Object.assign(context, given)[name];
}

/** The expressions in use are JavaScript as well, once their texts are template literals and `.?` is `?.`. */
function run(expression: string, context: Context): Value {
  const script = expression.replaceAll("'", '`').replaceAll('.?', '?.');
  return new Function('context', `with (context) return (${script})`)(context);
}
