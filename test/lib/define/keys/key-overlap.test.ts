import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEntity } from '../../../../lib/define/define-entity.ts';
import type { Entity } from '../../../../lib/define/entity.ts';
import { canMeet, stepsOf } from '../../../../lib/define/keys/key-overlap.ts';
import { buildKey, compileTemplate, parseKey } from '../../../../lib/define/keys/key-template.ts';

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
  }),
  table: 'things',
  key: { partition: '{text}', row: 'x' },
  access: { read: [], write: [] },
}) as unknown as Entity;
const meet = (one: string, other: string) =>
  canMeet(stepsOf(things, compileTemplate(one)), stepsOf(things, compileTemplate(other)));

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
);
const template = fc
  .tuple(
    fc.constantFrom('', 'a', 'a_', '1', '_', 'É'),
    fc.array(fc.tuple(field, fc.constantFrom('_', '-', '_a', '-1')), { maxLength: 2 }),
    fc.option(field, { nil: '' }),
  )
  .map(([head, parts, last]) => head + parts.flat().join('') + last);

describe('two templates', () => {
  test('overlap if one key matches both', () => {
    let met = 0;
    fc.assert(
      fc.property(template, template, values, (one, other, of) => {
        const key = buildKey(compileTemplate(one), of);
        const parsed = parseKey(compileTemplate(other), key);
        if (!parsed) return;
        // A parsed value can be one that the schema rejects, or one that builds another key.
        const read = { ...of, ...parsed };
        const isStored = z.object({ ...things.schema.shape, folded: z.string() }).safeParse(read).success;
        if (!isStored || buildKey(compileTemplate(other), read) !== key) return;
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
  ])('%s and %s overlap', (one, other) => {
    expect(meet(one, other)).toBe(true);
    expect(meet(other, one)).toBe(true);
  });
});
