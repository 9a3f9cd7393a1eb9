import { MAX_BODY_DEPTH, Unheld } from './json-value.ts';

/**
 * Parses JSON. `JSON.parse` keeps the last of two members with one name, and rounds a whole number of too many digits: in their
 * place is an `Unheld`, which `findNotJson` finds. Fractions become the nearest number, as in every program that stores doubles.
 * Throws `SyntaxError`.
 */
export function parseJson(text: string): unknown {
  const root: Readonly<Record<string, unknown>> = { '': JSON.parse(text) };
  for (const { path, unheld } of findUnheld(text)) {
    let holder: unknown = root;
    for (const name of ['', ...path.slice(0, -1)]) holder = isHolder(holder) ? holder[name] : undefined;
    const [last = ''] = path.slice(-1);
    if (path.length === 0) return unheld;
    if (isHolder(holder)) holder[last] = unheld;
  }
  return root[''];
}

function isHolder(value: unknown): value is Record<string | number, unknown> {
  return typeof value === 'object' && value !== null && !(value instanceof Unheld);
}

interface Level {
  /** Of an object. */
  readonly names?: Set<string>;
  /** The name or the position of the current member. */
  at: string | number;
  /** True before the name of a member. */
  isBeforeName: boolean;
}

interface Found {
  readonly path: readonly (string | number)[];
  readonly unheld: Unheld;
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const MINUS = 0x2d;
const [ZERO, NINE] = [0x30, 0x39];
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];
/** Numbers of fewer digits are exact. */
const EXACT_DIGITS = 15;

/** Goes through a valid JSON text. */
function findUnheld(text: string): Found[] {
  const found: Found[] = [];
  const levels: Level[] = [];
  // What is deeper is refused for its depth, and a path for each of many deep numbers would take all memory.
  const note = (unheld: Unheld) =>
    levels.length <= MAX_BODY_DEPTH && found.push({ path: levels.map(({ at }) => at), unheld });
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    const level = levels.at(-1);
    if (code === QUOTE) {
      const end = endOfText(text, index + 1);
      if (level?.isBeforeName) {
        level.at = nameOf(text.slice(index, end + 1));
        level.isBeforeName = false;
        if (level.names?.has(level.at)) note(new Unheld('given once'));
        level.names?.add(level.at);
      }
      index = end;
    } else if (code === OPEN_OBJECT) levels.push({ names: new Set(), at: '', isBeforeName: true });
    else if (code === OPEN_LIST) levels.push({ at: 0, isBeforeName: false });
    else if (code === CLOSE_LIST || code === CLOSE_OBJECT) levels.pop();
    else if (code === COMMA && level) {
      if (typeof level.at === 'number') level.at += 1;
      else level.isBeforeName = true;
    } else if (code === MINUS || (code >= ZERO && code <= NINE)) {
      const end = endOfNumber(text, index);
      const literal = text.slice(index, end);
      if ((literal.length > EXACT_DIGITS || /e/i.test(literal)) && !isHeld(literal))
        note(new Unheld('a number that is exact as a double, or a text', 'more digits'));
      index = end - 1;
    }
  }
  return found;
}

/** The quote that ends a text. */
function endOfText(text: string, start: number): number {
  for (let end = text.indexOf('"', start); ; end = text.indexOf('"', end + 1)) {
    let escapes = 0;
    while (text[end - 1 - escapes] === '\\') escapes += 1;
    if (escapes % 2 === 0) return end;
  }
}

function nameOf(quoted: string): string {
  return quoted.includes('\\') ? JSON.parse(quoted) : quoted.slice(1, -1);
}

const IN_NUMBER = /[-+.\deE]/;

function endOfNumber(text: string, start: number): number {
  let end = start + 1;
  while (end < text.length && IN_NUMBER.test(text[end] ?? '')) end += 1;
  return end;
}

/**
 * False for the decimal text of a whole number that JavaScript would change, however it is written (`9007199254740993.0`), and of a fraction that
 * would become 0. Any other fraction becomes the nearest number.
 */
export function isHeld(literal: string): boolean {
  const [, whole = '', fraction = '', exponent = '0'] = /^[-+]?(\d*)\.?(\d*)(?:e([-+]?\d+))?$/i.exec(literal) ?? [];
  const digits = withoutZerosAtEnd(`${whole}${fraction}`);
  if (/^0*$/.test(digits)) return true;
  const number = Number(literal);
  if (!Number.isFinite(number)) return true;
  const isWhole = digits.length - whole.length <= Number(exponent);
  return isWhole ? digits.replace(/^0+/, '') === significant(number) : number !== 0;
}

/** The digits of a whole number without the zeros at its end; `1.2e+21` has two. */
function significant(number: number): string {
  return withoutZerosAtEnd(String(number).replace(/e.*|\D/g, ''));
}

/** A caller sends a million digits. The expression `0+$` would try each zero as the first of the last ones. */
function withoutZerosAtEnd(digits: string): string {
  let end = digits.length;
  while (digits[end - 1] === '0') end -= 1;
  return digits.slice(0, end);
}
