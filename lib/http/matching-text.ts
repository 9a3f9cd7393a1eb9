import { type AST, RegExpParser } from '@eslint-community/regexpp';

/** The order in which a text takes characters: those that a reader expects first. */
const CHARACTERS = [
  ...'1234567890ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_. !"#$%&\'()*+,/:;<=>?@[\\]^`{|}~',
];

/**
 * Returns a text for a pattern, the same for the same pattern: first alternatives, the fewest repetitions but one, if it may
 * be, and varied characters. The text may not match a pattern that looks around, or that limits a text elsewhere.
 */
export function createMatchingText(pattern: string): string {
  let taken = 0;
  const write = (node: AST.Element): string => {
    switch (node.type) {
      case 'Character':
        return String.fromCodePoint(node.value);
      case 'CharacterSet':
      case 'CharacterClass': {
        const set = new RegExp(node.raw, 'u');
        const choices = CHARACTERS.filter((character) => set.test(character));
        taken += 1;
        return choices[(taken - 1) % choices.length] ?? '';
      }
      case 'Quantifier':
        return Array.from({ length: Math.max(node.min, Math.min(node.max, 1)) }, () => write(node.element)).join('');
      case 'Group':
      case 'CapturingGroup':
        return writeFirst(node.alternatives);
      default:
        return '';
    }
  };
  const writeFirst = ([first]: readonly AST.Alternative[]) => (first?.elements ?? []).map(write).join('');
  return writeFirst(new RegExpParser().parsePattern(pattern, undefined, undefined, { unicode: true }).alternatives);
}
