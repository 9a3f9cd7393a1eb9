/**
 * The most levels of arrays and objects in a value. No data of an app nests deeper, and validation, comparison and `JSON.stringify`
 * are recursive: from about a thousand levels on, one of them overflows the stack.
 */
export const MAX_JSON_DEPTH = 100;
/** Around a field, a body has the levels of a transaction or of a query. Each field is checked by itself too. */
export const MAX_BODY_DEPTH = MAX_JSON_DEPTH + 10;

export const UNICODE = 'well-formed Unicode';

/** A value that JSON cannot hold, or that a program cannot hold as JSON has it. */
export interface NotJson {
  /** The names and positions that lead to the value. */
  readonly path: string[];
  readonly accepted: string;
  readonly got?: string | undefined;
}

/** In a parsed value, takes the place of a part that JavaScript would change without a word: see `parseJson`. */
export class Unheld {
  readonly accepted: string;
  readonly got: string | undefined;
  constructor(accepted: string, got?: string) {
    this.accepted = accepted;
    this.got = got;
  }
}

/**
 * The first part of a value that would not arrive as it is: what `JSON.stringify` leaves out or replaces, texts that UTF-8 cannot hold, the
 * name `__proto__`, which copies of an object lose, and more levels than `levels`. Undefined if there is none. A member that is undefined
 * is as absent, but for an element of an array. -0 is 0.
 */
export function findNotJson(value: unknown, levels = MAX_JSON_DEPTH): NotJson | undefined {
  const type = typeof value;
  if (value === null || type === 'boolean') return undefined;
  if (type === 'string') return isUnicode(value as string) ? undefined : refuse(UNICODE);
  if (type === 'number') return Number.isFinite(value) ? undefined : refuse('a finite number', sayNumber(value));
  if (typeof value !== 'object') return refuse('a JSON value', type === 'undefined' ? type : `a ${type}`);
  if (value instanceof Unheld) return refuse(value.accepted, value.got);
  const isList = Array.isArray(value);
  if (!isList && !isPlain(value)) return refuse('a JSON value', `a ${value.constructor?.name || 'class instance'}`);
  if (levels === 0) return refuse(`nested at most ${MAX_JSON_DEPTH} levels deep`);
  const members: Readonly<Record<string, unknown>> = Object(value);
  const names = Object.keys(value);
  if (isList && names.length !== value.length) return refuse('a JSON value', 'an array with gaps or other members');
  if (Object.getOwnPropertySymbols(value).some((one) => Object.prototype.propertyIsEnumerable.call(value, one)))
    return refuse('a JSON value', 'a member named by a symbol');
  for (const name of names) {
    const member = members[name];
    if (member === undefined && !isList) continue;
    const found =
      name === '__proto__'
        ? refuse('a member of another name')
        : isUnicode(name)
          ? findNotJson(member, levels - 1)
          : refuse(`named by ${UNICODE}`);
    if (!found) continue;
    found.path.unshift(name);
    return found;
  }
  return undefined;
}

/** What is wrong with a value, after its name. */
export function sayNotJson({ accepted, got }: Pick<NotJson, 'accepted' | 'got'>): string {
  return `must be ${accepted}${got === undefined ? '' : `; got ${got}`}`;
}

function refuse(accepted: string, got?: string): NotJson {
  return { path: [], accepted, got };
}

/** With the flag, half of a surrogate pair is a character of its own. React Native has no `isWellFormed`. */
function isUnicode(text: string): boolean {
  return !/[\ud800-\udfff]/u.test(text);
}

export function sayNumber(value: unknown): string {
  return Number.isNaN(value) ? 'NaN' : 'a number beyond 1.8e308';
}

/** True for an object of a literal or of `JSON.parse`, also of another realm, such as a frame. */
function isPlain(value: object): boolean {
  const prototype = Object.getPrototypeOf(value);
  if (prototype === null || prototype === Object.prototype) return true;
  return Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype, 'isPrototypeOf');
}
