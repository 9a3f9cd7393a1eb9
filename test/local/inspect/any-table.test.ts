import fc from 'fast-check';
import { expect, test } from 'vitest';
import { defineKeys } from '../../kit/define.ts';
import { sampleRuns } from '../../points.ts';
import { describe, evaluate, propose, schemasOf } from './samples.ts';
import { guidOf, type StoredRow, typed } from './shapes.ts';

/** Tables of random declarations: what is proposed reads each of their rows. */

const seeds = fc.array(fc.nat(99_999), { minLength: 3, maxLength: 12 });
const word = fc.stringMatching(/^[a-z]{2,6}$/);
const ticksOf = (seed: number) => String(2_516_000_000_000_000_000n + BigInt(seed) * 1_234_567n);
/** The parts of keys, each by a number. */
const PARTS: Readonly<Record<string, (seed: number) => string>> = {
  padded: (seed) => String(seed).padStart(8, '0'),
  number: String,
  guid: (seed) => guidOf(String(seed)),
  day: (seed) => new Date(Date.UTC(2020, 0, 1 + (seed % 2_000))).toISOString().slice(0, 10),
  ticks: ticksOf,
  text: (seed) => `${'abc'[seed % 3]}z${seed.toString(36).replace(/\d/g, 'x')}é`,
};
const part = fc.constantFrom(...Object.keys(PARTS));
/** The types of properties with the schema of each, by a number. */
const TYPES: Readonly<Record<string, readonly [schema: RegExp, value: (seed: number) => unknown]>> = {
  text: [/^z\.(string|enum)\(/, (seed) => `word ${seed % 5}`],
  int32: [/^z\.int32\(\)$/, (seed) => seed - 5],
  int64: [/^z\.int\(\)$/, (seed) => typed('Int64')(String(seed))],
  huge: [/^z\.string\(\)\.regex/, (seed) => typed('Int64')(`90071992547409930${seed % 10}`)],
  double: [/^z\.number\(\)$/, (seed) => typed('Double')(`${seed}.0`)],
  boolean: [/^z\.boolean\(\)$/, (seed) => seed % 2 === 0],
  instant: [/^z\.iso\.datetime\(\)$/, (seed) => typed('DateTime')(new Date(seed * 1e7).toISOString())],
  guid: [/^z\.uuid\(\)$/, (seed) => typed('Guid')(guidOf(`p${seed}`))],
  binary: [/^z\.base64\(\)$/, (seed) => typed('Binary')(Buffer.from(String(seed)).toString('base64'))],
};
const property = fc.record({ type: fc.constantFrom(...Object.keys(TYPES)), isOptional: fc.boolean() });

const kind = fc.record({
  heads: fc.tuple(word, word),
  separator: fc.constantFrom('|', '_', '-', '~'),
  parts: fc.array(part, { minLength: 1, maxLength: 3 }),
  properties: fc.array(property, { minLength: 2, maxLength: 6 }),
  seeds,
});
type Kind = Parameters<Parameters<typeof kind.map>[0]>[0];

/** The rows of a kind, whose properties no other kind has. */
function rowsOf(
  { heads: [ofPartition, ofRow], separator, parts, properties, seeds: all }: Kind,
  number: number,
  { length }: readonly Kind[],
): StoredRow[] {
  // Only a kind that is alone can do without a beginning of its own.
  const [before, beforeRow] = length === 1 ? ['', ''] : [`${ofPartition}_`, `${ofRow}${number}_`];
  return all.map((seed, at): StoredRow => {
    const texts = parts.map((name, position) => PARTS[name]?.(seed + position * 7 + at));
    const values = properties.flatMap(({ type, isOptional }, position) => {
      const value = TYPES[type]?.[1](seed + position);
      return isOptional && at % 2 === 1 ? [] : [[`K${number}${type}${position}`, value] as const];
    });
    return {
      table: 'Things',
      partition: `${before}${PARTS.padded?.(seed % 5)}`,
      row: `${beforeRow}${texts.join(separator)}`,
      properties: Object.fromEntries(values),
    };
  });
}

const unique = (rows: readonly StoredRow[]) => [
  ...new Map(rows.map((row) => [`${row.partition}/${row.row}`, row])).values(),
];

/** Some of its keys begin with a Guid whose first digit is the same letter. */
const LIKE_A_HEAD: Kind = {
  heads: ['aa', 'aa'],
  separator: '|',
  parts: ['guid', 'padded'],
  properties: [
    { type: 'text', isOptional: false },
    { type: 'text', isOptional: true },
  ],
  seeds: [0, 0, 11_707, 14_764],
};

test('reads each row by its template, builds the same keys again, and has the types of the properties', () => {
  const kinds = fc.array(kind, { minLength: 1, maxLength: 3 });
  fc.assert(
    fc.property(kinds, (declared) => {
      const rows = unique(declared.flatMap(rowsOf));
      const { tables } = propose(rows);
      const proposed = tables.flatMap((table) => table.kinds);
      expect(Object.keys(evaluate(describe(rows)).entities)).toHaveLength(proposed.length);
      expect(proposed.flatMap(({ notRead }) => [...notRead])).toEqual([]);
      expect(proposed.reduce((sum, each) => sum + each.rows.length, 0)).toBe(rows.length);
      for (const each of proposed) {
        const schemas = schemasOf(each);
        for (const row of each.rows) {
          for (const [template, key] of [
            [each.partition, row.partition],
            [each.row, row.row],
          ] as const) {
            const compiled = defineKeys.compileTemplate(template);
            expect(defineKeys.buildKey(compiled, defineKeys.parseKey(compiled, key) ?? {})).toBe(key);
          }
          for (const name of Object.keys(row.properties)) {
            const type = /^K\d([a-z]+(?:32|64)?)\d$/.exec(name)?.[1] ?? '';
            const isKey = each.fields.some(({ property: of, field }) => of === name && each.keyFields.includes(field));
            const isOptional = each.rows.some((other) => other.properties[name] === undefined);
            if (!isKey) expect(schemas[name]?.replace(/\?$/, ''), name).toMatch(TYPES[type]?.[0] ?? /^$/);
            if (!isKey) expect(schemas[name]?.endsWith('?'), name).toBe(isOptional);
          }
        }
      }
    }),
    { ...sampleRuns(100), examples: [[[LIKE_A_HEAD]]] },
  );
});
