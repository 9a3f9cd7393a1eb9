/** What a value is put into: a part of the key, or another field. */
export type Field = 'room' | 'id' | 'handle' | 'label' | 'amount' | 'at' | 'free';

/** One value that may change on its way, in one field. */
export interface Input {
  readonly title: string;
  readonly field: Field;
  /** The value in process. Undefined if only JSON text can spell it. */
  readonly value?: unknown;
  /** JSON text. Undefined if only a value in process can be this. */
  readonly text?: string;
  /** What reads return for a value that is held in another form. */
  readonly held?: unknown;
  /** What a merge patch (RFC 7396) makes of it, whose null removes a member. */
  readonly patched?: unknown;
  /** Another value, which a door that changes this one would reach. */
  readonly decoy?: unknown;
  /** True if no door may hold it. */
  readonly isRefused?: boolean;
}

const json = (value: unknown, over: Partial<Input> = {}): Pick<Input, 'value' | 'text'> => ({
  value,
  text: JSON.stringify(value),
  ...over,
});

/** Texts that spell names of the engine, separators of keys and paths, escapes, and other types. */
const TEXTS: readonly (readonly [text: string, decoy?: string])[] = [
  ...['~own', '~own_1', '~open_2', '~accounts', '~containers', '~', '!', '!o', '!own_1', '!21', '!0021'].map(
    (text) => [text] as const,
  ),
  ...['slots', 'all', '_', '_1', 'a_b', 'empid_1', 'label_x', "it's", "' or 1 eq 1 or '", '$batch', '$metadata'].map(
    (text) => [text] as const,
  ),
  ['a%2Fb', 'a/b'],
  ['a%252Fb', 'a%2Fb'],
  ['%41', 'A'],
  ['a/b', 'a%2Fb'],
  ['a+b', 'a b'],
  ['a%20b', 'a b'],
  ['a\\b', 'a/b'],
  ['a%5Cb', 'a\\b'],
  ...['%', '%%', '%zz', 'a#b', 'a?b', 'a;b', 'a&b=c', 'a:b', ' a', 'a ', 'a.', '.', '..', '...', '/', '//'].map(
    (text) => [text] as const,
  ),
  ...['by', 'batch', 'totals', 'query', 'picture', 'archive', 'null', 'true', '123', '-0', '{"a":1}'].map(
    (text) => [text] as const,
  ),
  ...[
    '2026-01-01T00:00:00Z',
    '__proto__',
    'constructor',
    'toString',
    'é',
    'e\u0301',
    'ß',
    '日本',
    '😀',
    '\u200b',
    '\ufeff',
  ].map((text) => [text] as const),
  ...['\u0000', 'a\u0000b', '\u0001', '\n', 'a\tb', '\u007f', '\u0085', '\uffff', '\u{10ffff}'].map(
    (text) => [text] as const,
  ),
  ['eq:a', 'a'],
  ['a,b'],
  ['x'.repeat(120)],
];

const inText = (field: Field) =>
  TEXTS.map(([text, decoy]): Input => {
    return { title: JSON.stringify(text), field, ...json(text), ...(decoy === undefined ? {} : { decoy }) };
  });

const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`;
const cyclic: Record<string, unknown> = {};
cyclic.itself = cyclic;

const refused = (title: string, field: Field, value: unknown): Input => ({ title, field, value, isRefused: true });

export const INPUTS: readonly Input[] = [
  ...(['room', 'id', 'handle', 'label'] as const).flatMap(inText),
  ...(['room', 'id', 'handle', 'label'] as const).flatMap((field): Input[] => [
    { title: 'a lone surrogate', field, value: 'a\ud800', text: '"a\\ud800"', isRefused: true },
    { title: 'a text of 1,100 characters', field, ...json('x'.repeat(1_100)) },
  ]),
  ...(['amount', 'free'] as const).flatMap((field): Input[] => [
    refused('NaN', field, Number.NaN),
    refused('Infinity', field, Number.POSITIVE_INFINITY),
    { title: '1e400', field, text: '1e400', isRefused: true },
    { title: '-1e400', field, text: '-1e400', isRefused: true },
    refused('a bigint', field, 10n),
    { title: '0.1', field, ...json(0.1) },
    { title: '1e308', field, ...json(1e308) },
    { title: '5e-324', field, ...json(5e-324) },
    { title: '2^53 - 1', field, ...json(Number.MAX_SAFE_INTEGER) },
    { title: '1e21', field, ...json(1e21) },
    { title: '-0', field, value: -0, text: '-0', held: 0 },
  ]),
  refused('NaN in a list', 'free', [1, Number.NaN]),
  refused('a Map', 'free', new Map([['a', 1]])),
  refused('a Set', 'free', { in: new Set([1]) }),
  refused('a Date', 'free', [new Date(0)]),
  refused('a typed array', 'free', new Uint8Array([1])),
  refused('a function', 'free', { run: () => 1 }),
  refused('a symbol', 'free', { of: Symbol('a') }),
  refused('undefined in a list', 'free', [undefined]),
  refused('a cycle', 'free', cyclic),
  refused(
    'an instance of a class',
    'free',
    new (class Money {
      readonly amount = 1;
    })(),
  ),
  { title: '1e400 inside', field: 'free', text: '{"a":[1e400]}', isRefused: true },
  { title: 'a lone surrogate inside', field: 'free', value: { a: '\udc00' }, text: '{"a":"\\udc00"}', isRefused: true },
  ...['__proto__', 'constructor', 'prototype', 'toJSON', 'hasOwnProperty', '', '$ref', '~1', 'a.b', 'EntityType'].map(
    (name): Input => {
      const text = `{${JSON.stringify(name)}:{"a":1}}`;
      return { title: `a member ${JSON.stringify(name)}`, field: 'free', text, value: JSON.parse(text) };
    },
  ),
  { title: 'null inside', field: 'free', ...json({ a: null, b: [null] }), patched: { b: [null] } },
  ...[10, 90].map((depth): Input => ({ title: `${depth} levels`, field: 'free', ...json(JSON.parse(nested(depth))) })),
  ...[1_100, 2_700, 5_000, 20_000].map(
    (depth): Input => ({ title: `${depth} levels`, field: 'free', text: nested(depth), isRefused: true }),
  ),
  ...['2026-01-01T00:00:00Z', '2026-01-01T00:00:00.5Z', '2026-01-01T01:30:00+02:00', '2026-01-01T00:00:00.123456Z'].map(
    (at): Input => ({ title: at, field: 'at', ...json(at) }),
  ),
  { title: '2026-02-30T00:00:00Z', field: 'at', ...json('2026-02-30T00:00:00Z'), isRefused: true },
];
