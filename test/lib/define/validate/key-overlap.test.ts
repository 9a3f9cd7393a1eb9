import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { haveOneKey } from '../../../../lib/define/validate/key-overlap.ts';
import { defineEntity } from '../../../../lib/define.ts';
import { defineKeys, type Entity, modelParts } from '../../../kit/define.ts';

const things = defineEntity('things', {
  schema: z.object({
    text: z.string(),
    digits: z.string().regex(/^\d{2}$/),
    word: z.string().regex(/^[a-c_-]{1,3}$/),
    dashed: z.string().regex(/^x-?[\d#]+$/),
    number: z.int32().min(0).max(99),
    kind: z.literal('a_1'),
    // Stored values never match these patterns.
    folded: z
      .string()
      .regex(/^[A-C]+$/)
      .toLowerCase(),
    ignoring: z.string().regex(/^[a-c]+$/i),
    id: z.uuid(),
    idOfVersion: z.uuidv7(),
    day: z.iso.date(),
    wrongId: z.uuid().meta({ pattern: '^a$' }),
    foldedId: z.uuid().toLowerCase(),
  }),
  table: 'things',
  key: { partition: '{text}', row: 'x' },
  access: { read: [], write: [] },
}) as unknown as Entity;
const partition = defineKeys.compileTemplate('one');
const keyOf = (row: string) => ({ entity: things, partition, row: defineKeys.compileTemplate(row) });
const meet = (one: string, other: string) => haveOneKey(keyOf(one), keyOf(other));

/** Generates values that the schema accepts from few characters, so that keys of two templates are often equal. */
const few = (characters: string, [minLength, maxLength]: [number, number]) =>
  fc.string({ unit: fc.constantFrom(...characters), minLength, maxLength });
const values = fc.record({
  text: few('ab_-!#1É', [1, 5]),
  digits: few('0123', [2, 2]),
  word: few('abc_-', [1, 3]),
  dashed: fc.tuple(fc.constantFrom('x', 'x-'), few('12#', [1, 3])).map((parts) => parts.join('')),
  number: fc.integer({ min: 0, max: 99 }),
  kind: fc.constant('a_1'),
  folded: few('abc', [1, 3]),
  ignoring: few('abcABC', [1, 3]),
  id: fc.uuid(),
  idOfVersion: fc.uuid({ version: 7 }),
  day: fc.constant('2024-02-29'),
  wrongId: fc.uuid(),
  foldedId: fc.uuid(),
});
const field = fc.constantFrom(
  '{text}',
  '{digits}',
  '{word}',
  '{dashed}',
  '{number:2}',
  '{number%10}',
  '{text#}',
  '{kind}',
  '{folded}',
  '{ignoring}',
  '{id}',
  '{idOfVersion}',
  '{day}',
);
const template = fc
  .tuple(
    fc.constantFrom('', 'a', 'a_', '1', '_', 'É'),
    fc.array(fc.tuple(field, fc.constantFrom('_', '-', '_a', '-1')), { maxLength: 2 }),
    fc.option(field, { nil: '' }),
  )
  .map(([head, parts, last]) => head + parts.flat().join('') + last);

describe('two templates', () => {
  test('overlap if one key matches both', { tags: ['slow'] }, () => {
    let met = 0;
    fc.assert(
      fc.property(template, template, values, (one, other, of) => {
        const key = defineKeys.buildKey(defineKeys.compileTemplate(one), of);
        const parsed = defineKeys.parseKey(defineKeys.compileTemplate(other), key);
        if (!parsed) return;
        // A parsed value can be one that the schema rejects, or one that builds another key.
        const read = { ...of, ...parsed };
        const isStored = z.object({ ...things.schema.shape, folded: z.string() }).safeParse(read).success;
        if (!isStored || defineKeys.buildKey(defineKeys.compileTemplate(other), read) !== key) return;
        met += 1;
        expect(meet(one, other)).toBe(true);
      }),
      { numRuns: 20_000 },
    );
    expect(met).toBeGreaterThan(200);
  });

  test.each([
    ['empid_{digits}', 'empid_{digits}_{number:4}'],
    ['a_{text}', 'b_{text}'],
    ['one', 'one_{text}'],
    ['{digits}', '{digits}_{number:2}'],
    ['{word}', '{word}_{digits}'],
    ['{number:2}', '{number:3}'],
    ['{text}_1', '{text}_2'],
    ['{kind}', 'a_2'],
    ['visit_{day}_{id}', 'visit_{day}_{id}_note_{text}'],
    ['{idOfVersion}', '{idOfVersion}_{text}'],
    ['{day}', '{day}_{text}'],
    ['{day}', '{id}'],
  ])('%s and %s do not overlap', (one, other) => {
    expect(meet(one, other)).toBe(false);
    expect(meet(other, one)).toBe(false);
  });

  test.each([
    ['empid_{text}', 'empid_{text}_{number:4}'],
    ['{text}', 'x'],
    ['{folded}', 'a'],
    ['{ignoring}', 'A'],
    ['{text#}', '{digits}'],
    ['é', '{text}'],
    ['{id}', '00000000-0000-0000-0000-000000000000'],
    ['{day}', '2024-02-29'],
    ['{wrongId}', 'b'],
    ['{foldedId}', '{foldedId}_{text}'],
  ])('%s and %s overlap', (one, other) => {
    expect(meet(one, other)).toBe(true);
    expect(meet(other, one)).toBe(true);
  });
});

/** Pieces of patterns that match few characters, in every way in which a pattern can write them. */
const piece = fc.constantFrom(
  ...['a', 'b', 'é', '_', '1', '\\x61', '\\u0062', '\\t', '\\cA', '\\n', '\\.', '\\-', '\\_', '!', '/', '\\/', '😀'],
  ...[
    '[ab]',
    '[é]',
    '[^a]',
    '[a-c]',
    '[\\u0430-\\u0431]',
    '[\\xe0-\\xe9]',
    '[\\cA-\\cB]',
    '[_\\-]',
    '[\\d_]',
    '[\\x61]',
    '[😀é]',
  ],
  ...[
    '\\d',
    '\\w',
    '\\D',
    '\\W',
    '\\s',
    '.',
    '\\p{Ll}',
    '\\u{1F600}',
    '(?:a|é)',
    '(b|1)',
    '[[ab]--[b]]',
    '[a&&[ab]]',
    '[\\q{ab|1}]',
  ],
);
const quantified = fc
  .tuple(piece, fc.constantFrom('', '', '', '+', '?', '*', '{2}', '{0,2}', '{1,}', '+?'))
  .map((parts) => parts.join(''));
const pattern = fc
  .tuple(
    fc.array(quantified, { minLength: 1, maxLength: 3 }).map((parts) => parts.join('')),
    fc.constantFrom('', '', 'u', 'i', 'v', 's', 'm', 'iu'),
    fc.constantFrom('^', '^', '^', ''),
  )
  .map(([source, flags, start]) => {
    try {
      return new RegExp(`${start}${source}$`, flags);
    } catch {
      return /^[a\u00e9]+$/;
    }
  })
  // Such a pattern is rejected when the entity is defined.
  .filter((each) => !modelParts.isSlow(each));
const schemas: readonly ((text: z.ZodString) => z.ZodType)[] = [
  (text) => text,
  (text) => text,
  (text) => text.optional().nonoptional(),
  (text) => text.toLowerCase(),
  (text) => text.catch('b'),
  (text) => text.default('a'),
  (text) => text.prefault('a'),
  (text) => text.pipe(z.string()),
  (text) => z.string().pipe(text),
  (text) => z.lazy(() => text),
  (text) => z.union([text, z.literal('1')]),
  (text) => text.meta({ pattern: '^b$' }),
  () => z.literal('a'),
  () => z.literal('é'),
  () => z.enum(['a', '_1']),
];
const textOf = fc.oneof(
  // The flags v and m, and Unicode properties, are unknown to the generator.
  pattern.chain((each) => {
    const some = few('abcéE_-!./ 1A\t\u0001\u0430😀', [1, 3]);
    try {
      return fc.record({
        pattern: fc.constant(each),
        text: fc.oneof(fc.stringMatching(each, { size: 'xsmall' }), some),
      });
    } catch {
      return fc.record({ pattern: fc.constant(each), text: some });
    }
  }),
);

test('two entities whose keys have been equal once overlap, whatever their patterns', { tags: ['slow'] }, () => {
  let met = 0;
  let apart = 0;
  const part = fc.record({
    of: textOf,
    as: fc.constantFrom(...schemas),
    head: fc.constantFrom('', '', '', 'a', 'é', '😀', '_'),
    tail: fc.constantFrom('', '', '', '_', '-1', '_é'),
  });
  fc.assert(
    fc.property(part, part, fc.constantFrom('pattern', 'value', 'neither'), (one, two, same) => {
      const literal = () => z.literal(one.of.text);
      const other =
        same === 'value' ? { ...one, as: literal } : same === 'pattern' ? { ...one, as: two.as, tail: two.tail } : two;
      const sides = [one, other].map(({ of, as, head, tail }) => {
        const schema = z.object({ id: z.string(), text: as(z.string().regex(of.pattern)) });
        const key = { partition: '{id}', row: `${head}{text}${tail}` };
        const access = { read: [], write: [] };
        const entity = defineEntity('things', { schema, table: 'things', key, access } as never) as unknown as Entity;
        return { entity, partition: entity.partition, row: entity.row };
      });
      const [first, second] = sides;
      if (!first || !second) throw new Error('Two sides are expected.');
      const mayMeet = haveOneKey(first, second);
      if (!mayMeet) apart += 1;
      for (const text of [one.of.text, undefined]) {
        const stored = first.entity.schema.safeParse({ id: 'x', text }).data;
        if (typeof stored?.text !== 'string' || stored.text === '' || !stored.text.isWellFormed()) continue;
        const key = defineKeys.buildKey(first.entity.row, stored);
        const parsed = defineKeys.parseKey(second.entity.row, key)?.text;
        for (const input of [parsed, String(parsed).toUpperCase(), undefined]) {
          const found = second.entity.schema.safeParse({ id: 'x', text: input }).data;
          if (typeof found?.text !== 'string' || found.text === '' || !found.text.isWellFormed()) continue;
          if (defineKeys.buildKey(second.entity.row, found) !== key) continue;
          met += 1;
          expect(mayMeet).toBe(true);
        }
      }
    }),
    { numRuns: 500 },
  );
  expect(met).toBeGreaterThan(40);
  expect(apart).toBeGreaterThan(20);
});
