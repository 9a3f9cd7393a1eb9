import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { isSlow } from '../../../../lib/define/schema/slow-pattern.ts';
import { defineEntity } from '../../../../lib/define.ts';
import { entity, shape, testRejections, text } from '../validate/declarations.ts';

/** Known patterns, with the verdicts of recheck 4.5 (https://makenowjust-labs.github.io/recheck/) and a few that cannot be analysed. */
const SLOW: readonly RegExp[] = [
  ...[/^(a+)+$/, /^(a*)*$/, /^(a|a)*$/, /^(a|aa)+$/, /^([a-zA-Z]+)*$/, /^(\w+\s?)*$/, /^(.*)*$/, /^(x+x+)+y$/],
  ...[/^(([a-z])+.)+[A-Z]([a-z])+$/, /^([0-9a-z]|[a-f])+!$/, /^(?:\w+[.-]?)+@$/, /^((ab)*)+$/, /^(a|b|ab)*c$/],
  ...[/^(?=(a+)+$)/, /(a+)+$/, /^(([^,])+,?)*$/, /^(?:"(?:[^"\\]|\\.|.)*")$/, /^((?:a?|b?)c)+$/, /^(a*b?)*$/],
  ...[/^(?:\p{L}+[ ]?)*$/u, /^(?:[[a-z]--[x]]+-?)*$/v, /^(?:A|a)+$/i, /^(?:ſ|s)+$/iu, /^(?:\u0430|[\u0400-\u04ff])+$/],
  ...[/^(?:\p{Script=Greek}|\p{L})+$/u, /^(?:\p{Nl}|\p{N})+$/u, /^(?:\p{Script=Greek}|[\xa0-\ufffd])+$/u],
  // Refused because characters of several code points are not analysed, and no flags of a group.
  ...[/^(?:\p{RGI_Emoji}|\p{Emoji})+$/v, /^(?:[\q{ab}]|a|b)+$/v, /^(?:(?i:a)|A)+$/],
  // Exponential in the length of a bounded repetition, or a polynomial of a high degree.
  ...[/^(?:a?){30}a{30}$/, /^(a{1,20}){1,20}$/, /^(a+){10}$/, /^(ab|ab){30}$/],
  // Refused because a backreference is not analysed.
  /^(?:(a+)\1)+$/,
];
const FAST: readonly RegExp[] = [
  ...[/^\d{6}$/, /^[a-z]+(-[a-z]+)*$/, /^([a-z]+,)*[a-z]+$/, /^(\d{1,3})(,\d{3})*$/, /^[a-z0-9]+(?:[._-][a-z0-9]+)*$/],
  ...[/^(?:ab|cd)+$/, /^[A-Z]{2}\d{2}(?: ?\d{4}){3,7}$/, /^\p{L}+(?: \p{L}+)*$/u, /^[a-z]{1,63}(\.[a-z]{1,63}){0,8}$/],
  ...[/^(\w+ ){0,5}\w+$/, /^([A-Z]\d+;)+$/, /^\d+(\.\d+)*$/, /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==)?$/],
  ...[/^(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?:25[0-5]|2[0-4]\d|1?\d?\d)){3}$/, /^(?:[A-Z]\d{3}){1,50}$/, /^(?:.|\n)*$/],
  ...[/^(?:\p{Lu}\p{Ll}+)+$/u, /^(?:\p{Script=Greek}|\p{Script=Latin})+$/u, /^\p{L}+(?:[' -]\p{L}+)*$/u],
  ...[/^(?:(?!--).)*$/, /^(a?)*$/, /^(?:A|b)+$/i, /^\s+(a+)$/, /^(a|b)\)+$/],
];

describe('a pattern', () => {
  test.each(SLOW)('%s may take exponential time', (pattern) => {
    expect(isSlow(pattern)).toBe(true);
  });

  test.each(FAST)('%s does not', (pattern) => {
    expect(isSlow(pattern)).toBe(false);
  });

  test('of zod itself is accepted', () => {
    for (const type of [
      z.email(),
      z.uuid(),
      z.iso.datetime(),
      z.iso.duration(),
      z.ipv4(),
      z.ipv6(),
      z.cidrv6(),
      z.base64(),
    ])
      expect(type._zod.def.pattern === undefined || !isSlow(type._zod.def.pattern)).toBe(true);
    const { emoji: _, ...regexes } = z.regexes;
    for (const one of Object.values(regexes)) if (one instanceof RegExp) expect(isSlow(one), String(one)).toBe(false);
  });

  test('that is found fast is evaluated fast, whatever the text', () => {
    const piece = fc.constantFrom('a', 'b', '[ab]', '\\w', '[^b]', '(a|b)', '(ab|b)', '(a+b)', '(?:a?b)', '(?:b|a+)');
    const repeated = fc.tuple(piece, fc.constantFrom('', '+', '*', '?', '{2}', '{1,3}')).map((parts) => parts.join(''));
    const group = fc
      .tuple(fc.array(repeated, { minLength: 1, maxLength: 3 }), fc.constantFrom('+', '*', '{2,}', '{5,20}'))
      .map(([parts, times]) => `(?:${parts.join('')})${times}`);
    const attack = fc.array(fc.constantFrom('a', 'b', 'ab', 'aab'), { minLength: 1, maxLength: 3 });
    let fast = 0;
    fc.assert(
      fc.property(group, attack, (source, parts) => {
        const pattern = new RegExp(`^${source}!$`);
        if (isSlow(pattern)) return;
        fast += 1;
        const before = process.cpuUsage();
        pattern.test(parts.join('').repeat(28).slice(0, 28));
        // Two ways for each of 28 characters would take seconds of processor time.
        expect(process.cpuUsage(before).user).toBeLessThan(1_500_000);
      }),
      { numRuns: 500 },
    );
    expect(fast).toBeGreaterThan(20);
  });
});

const slow = z.string().regex(/^(a+)+$/);
testRejections(
  (
    [
      ['a field', slow],
      ['an optional field', slow.optional()],
      ['the elements of a list', z.array(slow)],
      ['a field of an object', z.object({ inner: z.array(slow) })],
      ['the keys of a record', z.record(slow, text)],
      ['one of several types', z.union([z.int(), slow])],
      ['a type behind pipe', slow.pipe(z.string())],
      ['a type behind lazy', z.lazy(() => slow)],
      ['a type behind catch', slow.catch('a')],
      ['the host of a URL', z.url({ hostname: /^(a+)+$/ })],
      ['the protocol of a URL', z.url({ protocol: /^(a+)+$/ })],
      ['an e-mail address', z.email({ pattern: /^(a+)+@b$/ })],
    ] as const
  ).map(([title, type]) => [
    `a pattern that takes exponential time in ${title}`,
    () => entity('things', { schema: z.object({ ...shape, name: type }) as never }),
    /Entity "things": the field "name" has the pattern \/\^\(a\+\)\+.*\/, whose evaluation may take exponential time\. Let a repeated group/,
  ]),
);

test('a type that contains itself is walked once', () => {
  const tree: z.ZodType = z.lazy(() => z.object({ name: z.string().regex(/^(a-)+$/), children: z.array(tree) }));
  const declaration = {
    table: 'trees',
    key: { partition: '{id}', row: 'x' },
    access: { read: [], write: [] },
  } as const;
  const schema = z.object({ id: text, tree });
  expect(() => defineEntity('trees', { ...declaration, schema })).not.toThrow();
});
