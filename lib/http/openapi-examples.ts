import { type AST, RegExpParser } from '@eslint-community/regexpp';
import { firstAlternative } from './flatten-unions.ts';
import type { JsonSchema } from './json-schema.ts';

/** Examples of the values of a JSON Schema, for OpenAPI. */

/** Candidates by format. The example is the first that satisfies the length and the pattern of the text. */
const FORMAT_EXAMPLES: Readonly<Record<string, readonly string[]>> = {
  date: ['2026-11-20'],
  'date-time': ['2026-11-20T09:30:00Z', '2026-11-20T09:30:00.000Z'],
  duration: ['P1D'],
  email: ['ann@example.com'],
  'idn-email': ['ann@example.com'],
  ipv4: ['192.0.2.1'],
  ipv6: ['2001:db8::1'],
  time: ['09:30:00'],
  uri: ['https://example.com/'],
  'uri-reference': ['/example'],
  uuid: ['0198c1f2-7a3b-4c4d-8e5f-6a7b8c9d0e1f', '0198c1f2-7a3b-7c4d-8e5f-6a7b8c9d0e1f'],
};

/** A valid value, the same for the same schema. Undefined if none is found, which takes a rule that only code can check. */
export function createExample(schema: JsonSchema): unknown {
  // A schema that contains itself.
  if ('$ref' in schema) return undefined;
  if ('if' in schema) return createExample(firstAlternative(schema));
  const { examples, default: fallback, enum: choices, allOf, anyOf, oneOf, type } = schema;
  if (Array.isArray(examples)) return examples[0];
  if (fallback !== undefined) return fallback;
  if ('const' in schema) return schema.const;
  if (Array.isArray(choices)) return choices[0];
  if (Array.isArray(allOf)) return createWhole(allOf);
  for (const alternative of [anyOf, oneOf].flat() as (JsonSchema | undefined)[]) {
    const example = alternative && createExample(alternative);
    if (example !== undefined) return example;
  }
  // Zod describes a number that may be null by a list of types.
  if (Array.isArray(type)) return createExample({ ...schema, type: type[0] });
  switch (type) {
    case 'string':
      return createText(schema);
    case 'integer':
    case 'number':
      return createNumber(schema);
    case 'boolean':
      return true;
    case 'null':
      return null;
    case 'array':
      return createList(schema);
    case 'object':
      return createObject(schema);
    default:
      return type === undefined ? 'example' : undefined;
  }
}

/** The `examples` of a schema, if one is found. */
export function createExamples(schema: JsonSchema): { readonly examples?: readonly unknown[] } {
  const example = createExample(schema);
  return example === undefined ? {} : { examples: [example] };
}

/** Returns the schema with the last of several examples first. */
export function preferLast<Described extends object>(schema: Described): Described {
  const prefer = (keyword: string, value: unknown) =>
    keyword === 'examples' && Array.isArray(value) ? value.toReversed() : value;
  return JSON.parse(JSON.stringify(schema), prefer);
}

/** The fields of all parts. Undefined for parts that are no objects, as a value of one part may not match another. */
function createWhole(parts: readonly JsonSchema[]): unknown {
  const examples = parts.map(createExample);
  const areObjects = parts.every(({ type }) => type === 'object') && !examples.includes(undefined);
  return areObjects ? Object.assign({}, ...examples) : undefined;
}

function createText({ format, pattern, minLength = 0, maxLength = Number.POSITIVE_INFINITY }: JsonSchema) {
  const texts = FORMAT_EXAMPLES[String(format)] ?? [
    typeof pattern === 'string'
      ? createMatchingText(pattern)
      : 'example'.padEnd(Number(minLength), '.').slice(0, Number(maxLength)),
  ];
  return texts.find(
    (text) =>
      text !== undefined &&
      text.length >= Number(minLength) &&
      text.length <= Number(maxLength) &&
      (typeof pattern !== 'string' || matchesPattern(pattern, text)),
  );
}

function createNumber({ minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf = 1 }: JsonSchema) {
  const step = Number(multipleOf);
  const least = Number(minimum ?? Number.NEGATIVE_INFINITY);
  const most = Number(maximum ?? Number.POSITIVE_INFINITY);
  const isValid = (value: number) =>
    value >= least &&
    value <= most &&
    value > Number(exclusiveMinimum ?? Number.NEGATIVE_INFINITY) &&
    value < Number(exclusiveMaximum ?? Number.POSITIVE_INFINITY);
  return [step, Math.ceil(least / step) * step, Math.ceil(least / step) * step + step, 0].find(isValid);
}

function createList({ items, prefixItems, minItems = 1 }: JsonSchema) {
  if (Array.isArray(prefixItems)) {
    const first = prefixItems.map(createExample);
    return first.includes(undefined) ? undefined : first;
  }
  const example = createExample(Object(items));
  if (example === undefined) return minItems === 1 ? [] : undefined;
  return Array.from({ length: Math.max(1, Number(minItems)) }, () => example);
}

function createObject({ properties = {}, required = [], propertyNames, additionalProperties }: JsonSchema) {
  const values: Record<string, unknown> = {};
  for (const [name, property] of Object.entries(properties as Record<string, JsonSchema>)) {
    const example = createExample(property);
    if (example !== undefined) values[name] = example;
    else if ((required as string[]).includes(name)) return undefined;
  }
  const others = typeof additionalProperties === 'object' ? createExample(Object(additionalProperties)) : undefined;
  if (others !== undefined) values[String(createExample(Object(propertyNames ?? { type: 'string' })))] = others;
  return values;
}

/** The characters of a text, in the order in which they are tried. A reader expects the first ones most. */
const CHARACTERS = [
  ...'1234567890ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_. !"#$%&\'()*+,/:;<=>?@[\\]^`{|}~',
];

/** A field of text holds no more characters. Nested repetitions may ask for billions. */
const MAX_LENGTH = 32_768;

/**
 * Returns a text that matches a pattern, the same for the same pattern. The text has varied characters, the first one of each list
 * of alternatives, and as few repetitions as the pattern allows, but at least one if the pattern allows it. Undefined if the pattern
 * cannot be parsed, or if no text is found: lookarounds and backreferences are not considered.
 */
export function createMatchingText(pattern: string): string | undefined {
  for (const { flags } of compile(pattern)) {
    const text = writeText(pattern, flags);
    if (text !== undefined && matchesPattern(pattern, text)) return text;
  }
  return undefined;
}

/** True if the text matches the pattern with all flags that the pattern may have. False for a pattern that cannot be parsed. */
export function matchesPattern(pattern: string, text: string): boolean {
  const expressions = compile(pattern);
  try {
    return expressions.length > 0 && expressions.every((expression) => expression.test(text));
  } catch {
    // The first test compiles the expression and throws if it is too large.
    return false;
  }
}

/**
 * A JSON Schema has the source of a regular expression and not its flags. Many sources are valid with `u` and with `v`. A source
 * that is valid with neither of them has no flags, such as one that escapes a hyphen.
 */
function compile(pattern: string): RegExp[] {
  const compileWith = (flags: string) => {
    try {
      return [new RegExp(pattern, flags)];
    } catch {
      return [];
    }
  };
  const expressions = ['u', 'v'].flatMap(compileWith);
  return expressions.length > 0 ? expressions : compileWith('');
}

function writeText(pattern: string, flags: string): string | undefined {
  const alternatives = parse(pattern, flags);
  const choicesOf = new Map<AST.Element, readonly string[]>();
  let text = '';
  let chosen = 0;
  const findChoices = (node: AST.Element): readonly string[] => {
    const set = new RegExp(node.raw, flags);
    const choices = CHARACTERS.filter((character) => set.test(character));
    choicesOf.set(node, choices);
    return choices;
  };
  const write = (node: AST.Element): void => {
    switch (node.type) {
      case 'Character':
        text += String.fromCodePoint(node.value);
        return;
      case 'CharacterSet':
      case 'CharacterClass':
      case 'ExpressionCharacterClass': {
        const choices = choicesOf.get(node) ?? findChoices(node);
        text += choices[chosen % choices.length] ?? '';
        chosen += 1;
        return;
      }
      case 'Quantifier': {
        const times = Math.max(node.min, Math.min(node.max, 1));
        for (let time = 0, before = -1; time < times && before < text.length; time += 1) {
          if (text.length > MAX_LENGTH) return;
          before = text.length;
          write(node.element);
        }
        return;
      }
      case 'Group':
      case 'CapturingGroup':
        writeFirst(node.alternatives);
    }
  };
  const writeFirst = ([first]: readonly AST.Alternative[]) => first?.elements.forEach(write);
  writeFirst(alternatives);
  return text.length > MAX_LENGTH ? undefined : text;
}

/** Empty if the parser does not know the syntax, which may be newer. */
function parse(pattern: string, flags: string): readonly AST.Alternative[] {
  const modes = { unicode: flags === 'u', unicodeSets: flags === 'v' };
  try {
    return new RegExpParser().parsePattern(pattern, undefined, undefined, modes).alternatives;
  } catch {
    return [];
  }
}
