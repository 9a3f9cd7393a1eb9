import { type AST, RegExpParser } from '@eslint-community/regexpp';

/**
 * Finds patterns whose evaluation takes exponential time, such as `^(a+)+$`: a loop that can match one text in several ways. A pattern
 * becomes the graph of its characters (Glushkov's construction), with the number of ways between two of them. The time is exponential if
 * two different walks through a loop begin and end at the same character and read the same text (Weideman et al., 2016).
 *
 * Lookarounds and what follows a loop may keep it from failing, and so from being slow. They are not considered.
 */

/** Without a repeated group, the time is polynomial. The text alone decides, so that few patterns are parsed. */
const REPEATED_GROUP = /\)[*+{]/;
/** A group that may be repeated more often is treated as if it had no end, because four nested ones are slow enough. */
const MAX_COPIES = 4;
const MAX_EXACT_CHARACTERS = 200;
/** More is refused, so that the start of an app never waits for a pattern. */
const MAX_STEPS = 300_000;
/** Beside ASCII and the ends of the ranges of a pattern. */
const SAMPLES = ['é', 'ß', 'ſ', '\u212a', 'я', '中', '\u00a0', '\u2028', '\ud83d\ude00', '\ud83d'];

/** The code points of letters, symbols and tags; those that follow either have no property or are private. */
const PROPERTY_RANGES = [
  [0x80, 0x33480],
  [0xe0000, 0xe01f0],
] as const;
/** Matches several characters at once, which the graph does not have. */
const STRINGS = /\\q\{|\\p\{(?:RGI_|Basic_Emoji|Emoji_Keycap)/;

/** How many ways lead to each character; more than two are two. */
type Ways = ReadonlyMap<number, number>;
interface Piece {
  /** The number of ways to match nothing. */
  readonly empty: number;
  readonly first: Ways;
  readonly last: Ways;
}
const NOTHING: Piece = { empty: 1, first: new Map(), last: new Map() };

/** True if the time may be exponential, or if that is unknown. */
export function isSlow(pattern: RegExp): boolean {
  if (!REPEATED_GROUP.test(pattern.source)) return false;
  const flags = pattern.flags.replace(/[gyd]/g, '');
  const modes = { unicode: flags.includes('u'), unicodeSets: flags.includes('v') };
  const { characters, follow, isUnknown } = toGraph(
    new RegExpParser().parsePattern(pattern.source, undefined, undefined, modes).alternatives,
  );
  return isUnknown || isAmbiguous(follow, textsOf(characters, flags));
}

function add(ways: Map<number, number>, at: number, count: number): void {
  if (count > 0) ways.set(at, Math.min(2, (ways.get(at) ?? 0) + count));
}

function sum(one: Ways, other: Ways, times = 1): Ways {
  const all = new Map(one);
  for (const [at, count] of other) add(all, at, count * times);
  return all;
}

function toGraph(pattern: readonly AST.Alternative[]) {
  const characters: AST.Element[] = [];
  const follow: Map<number, number>[] = [];
  let isUnknown = false;

  const connect = (last: Ways, first: Ways) => {
    for (const [from, ways] of last) for (const [to, more] of first) add(follow[from] ?? new Map(), to, ways * more);
  };
  const join = (one: Piece, other: Piece): Piece => {
    connect(one.last, other.first);
    const empty = Math.min(2, one.empty * other.empty);
    return { empty, first: sum(one.first, other.first, one.empty), last: sum(other.last, one.last, other.empty) };
  };
  const anyOf = (alternatives: readonly AST.Alternative[]): Piece =>
    alternatives
      .map(({ elements }) => elements.map(build).reduce(join, NOTHING))
      .reduce((one, other) => ({
        empty: Math.min(2, one.empty + other.empty),
        first: sum(one.first, other.first),
        last: sum(one.last, other.last),
      }));
  /** An iteration that is not required does not match nothing. */
  const optional = ({ first, last }: Piece): Piece => ({ empty: 1, first, last });

  function repeat({ element, min, max }: AST.Quantifier): Piece {
    if (max === 0) return NOTHING;
    const before = characters.length;
    const one = build(element);
    const size = characters.length - before;
    if (min > MAX_COPIES && one.empty > 0) isUnknown = true;
    const isExact = min === max && hasOneForm(element) && min * size <= MAX_EXACT_CHARACTERS;
    if ((max > MAX_COPIES && !isExact) || characters.length > MAX_EXACT_CHARACTERS * MAX_COPIES) {
      connect(one.last, one.first);
      // A required iteration may match nothing before the next one.
      return min === 0 ? optional(one) : { ...one, first: sum(one.first, one.first, one.empty) };
    }
    let all = NOTHING;
    for (let count = max; count > 0; count -= 1) {
      const copy = join(count === max ? one : build(element), all);
      all = count > min ? optional(copy) : copy;
    }
    return all;
  }

  function build(element: AST.Element): Piece {
    switch (element.type) {
      case 'Quantifier':
        return repeat(element);
      case 'Group':
        // The flags of the group differ from those of the pattern.
        if (element.modifiers) isUnknown = true;
        return anyOf(element.alternatives);
      case 'CapturingGroup':
        return anyOf(element.alternatives);
      case 'Assertion':
        // The loops of the assertion are in the graph, apart from the others.
        if ('alternatives' in element) anyOf(element.alternatives);
        return NOTHING;
      case 'Backreference':
        isUnknown = true;
        return NOTHING;
      default: {
        if (STRINGS.test(element.raw)) isUnknown = true;
        const at = characters.push(element) - 1;
        follow.push(new Map());
        return { empty: 0, first: new Map([[at, 1]]), last: new Map([[at, 1]]) };
      }
    }
  }

  anyOf(pattern);
  return { characters, follow, isUnknown };
}

/** True for a fixed sequence of characters: without alternatives and optional parts, no repetition of it is ambiguous. */
function hasOneForm(element: AST.Element): boolean {
  if (element.type === 'Quantifier') return element.min === element.max && hasOneForm(element.element);
  if (element.type !== 'Group' && element.type !== 'CapturingGroup') return true;
  return element.alternatives.length === 1 && element.alternatives.every(({ elements }) => elements.every(hasOneForm));
}

/**
 * The first code point of each range of a property such as `\p{L}`. If two sets of characters share a character, they share the first
 * one of a range. A literal is a sample itself.
 */
function propertyStarts(characters: readonly AST.Element[], flags: string): number[] {
  const sets = [...new Set(characters.filter(({ type }) => type !== 'Character').map(({ raw }) => raw))];
  if (sets.length < 2) return [];
  return sets
    .filter((raw) => /\\p\{/i.test(raw))
    .flatMap((raw) => {
      const one = new RegExp(`^(?:${raw})$`, flags);
      const starts: number[] = [];
      for (const [first, end] of PROPERTY_RANGES) {
        let isWithin = false;
        for (let code = first; code < end; code += 1) {
          const isMatch = one.test(String.fromCodePoint(code));
          if (isMatch && !isWithin) starts.push(code);
          isWithin = isMatch;
        }
      }
      return starts;
    });
}

/** The samples that each character of the pattern matches, as bits. */
function textsOf(characters: readonly AST.Element[], flags: string): readonly bigint[] {
  const ends = characters.flatMap(({ raw }) => [...raw]);
  const escaped = characters.flatMap(({ raw }) => raw.match(/\\(?:x..|u....|u\{[^}]+\})/g) ?? []);
  const coded = escaped.map((text) => Number.parseInt(text.replace(/[^0-9a-fA-F]/g, ''), 16));
  const near = [...ends.map((text) => text.codePointAt(0) ?? 0), ...coded]
    .flatMap((code) => [code - 1, code, code + 1])
    .filter((code) => code >= 0 && code <= 0x10ffff);
  const ascii = Array.from({ length: 128 }, (_, code) => code);
  const starts = propertyStarts(characters, flags);
  const samples = [
    ...new Set([...SAMPLES, ...[...ascii, ...near, ...starts].map((code) => String.fromCodePoint(code))]),
  ];
  const known = new Map<string, bigint>();
  return characters.map(({ raw }) => {
    const found = known.get(raw);
    if (found !== undefined) return found;
    const one = new RegExp(`^(?:${raw})$`, flags);
    const bits = samples.reduce((all, sample, index) => (one.test(sample) ? all | (1n << BigInt(index)) : all), 0n);
    known.set(raw, bits);
    return bits;
  });
}

function isAmbiguous(follow: readonly Ways[], texts: readonly bigint[]): boolean {
  const reachable = follow.map((_, from) => reach([from], (at) => [...(follow[at]?.keys() ?? [])]));
  const isLoop = (from: number, to: number) =>
    reachable[from]?.has(to) === true && (to === from || reachable[to]?.has(from) === true);
  const inLoop = (at: number) => [...(follow[at]?.keys() ?? [])].some((next) => isLoop(next, at) || next === at);
  // Two ways from one character of a loop to another one.
  for (const [from, ways] of follow.entries())
    for (const [to, count] of ways) if (count > 1 && (to === from || isLoop(from, to))) return true;
  // Two walks that part, read the same characters and meet again.
  const size = follow.length;
  let steps = 0;
  const before = new Map<number, number[]>();
  const next = (pair: number): number[] => {
    const [one, other] = [Math.floor(pair / size), pair % size];
    const pairs: number[] = [];
    for (const to of follow[one]?.keys() ?? [])
      for (const also of follow[other]?.keys() ?? []) {
        steps += 1;
        if (!isLoop(to, one) || !isLoop(also, other) || ((texts[to] ?? 0n) & (texts[also] ?? 0n)) === 0n) continue;
        const reached = Math.min(to, also) * size + Math.max(to, also);
        pairs.push(reached);
        before.set(reached, [...(before.get(reached) ?? []), pair]);
      }
    return steps > MAX_STEPS ? [] : pairs;
  };
  const equal = follow.flatMap((_, at) => (inLoop(at) ? [at * size + at] : []));
  const parted = reach(equal, next);
  const meeting = reach(equal, (pair) => before.get(pair) ?? []);
  const isApart = (pair: number) => Math.floor(pair / size) !== pair % size;
  return steps > MAX_STEPS || [...parted].some((pair) => isApart(pair) && meeting.has(pair));
}

/** All that is reached from `start` by one step or more, and `start`. */
function reach(start: readonly number[], next: (at: number) => readonly number[]): Set<number> {
  const seen = new Set(start);
  const open = [...start];
  for (let at = open.pop(); at !== undefined; at = open.pop())
    for (const to of next(at))
      if (!seen.has(to)) {
        seen.add(to);
        open.push(to);
      }
  return seen;
}
