import { type AST, RegExpParser } from '@eslint-community/regexpp';

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
