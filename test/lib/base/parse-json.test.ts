import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isHeld, parseJson } from '../../../lib/base/parse-json.ts';
import { baseValues } from '../../kit/base.ts';
import { defineCodec, type Entity, modelParts } from '../../kit/define.ts';

/** A whole number, and a text of it with a point or an exponent. */
const whole = fc
  .tuple(
    fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }),
    fc.constantFrom('', '.0', '.00', 'e0', 'e+0', 'E00', 'shifted'),
  )
  .map(([number, form]) => ({ number, text: form === 'shifted' ? `${number}000e-3` : `${number}${form}` }));

test('holds a whole number if the double has its value or is written with its digits, however it is spelled', () => {
  fc.assert(
    fc.property(whole, ({ number, text }) => {
      const double = Number(number);
      const written = BigInt(double) === number || String(double) === String(number);
      // A double beyond 2^53 may be written with other digits than it has.
      if (isHeld(text)) expect(Number(text)).toBe(double);
      if (Number.isSafeInteger(double) && BigInt(double) === number) expect(isHeld(text)).toBe(true);
      if (!written && String(double).replace(/e.*|\D|0+$/g, '') !== String(number).replace(/\D|0+$/g, ''))
        expect(isHeld(text)).toBe(false);
    }),
    { numRuns: 2_000 },
  );
});

const CHANGED = [
  '9007199254740993',
  '9007199254740993.0',
  '9007199254740993e0',
  '90071992547409930e-1',
  '1e-400',
  '-1E-400',
];
const SAME = [
  '0',
  '0e5',
  '0.000',
  '-0.0',
  '0.1',
  '1e300',
  '1.5e-300',
  '9007199254740992',
  '1000000000000000000000',
  '12e20',
  '0.30000000000000004',
];

test('a number has no other value after each way that reads a text', () => {
  const entity = { columns: { n: 'Double' } } as unknown as Entity;
  for (const text of CHANGED) {
    expect(baseValues.findNotJson(parseJson(`{"a":[${text}]}`))?.path, text).toEqual(['a', '0']);
    expect(modelParts.parseCell('Double', text), text).toBe(text);
    expect(defineCodec.textToValue(entity, 'n', text), text).toBe(text);
  }
  for (const text of SAME) {
    expect(parseJson(text), text).toBe(Number(text));
    expect(modelParts.parseCell('Double', text), text).toBe(Number(text));
    expect(defineCodec.textToValue(entity, 'n', text), text).toBe(Number(text));
  }
});

test('takes no memory for the path of each number that is nested too deep', () => {
  const levels = 20_000;
  const text = `${'['.repeat(levels)}${'9007199254740993,'.repeat(levels)}1${']'.repeat(levels)}`;
  expect(baseValues.findNotJson(parseJson(text), baseValues.MAX_BODY_DEPTH)?.accepted).toMatch(/^nested at most/);
});

test('reads a number of a million digits without trying each of its zeros', () => {
  for (const text of [
    `1${'0'.repeat(1_000_000)}1`,
    `0.${'0'.repeat(1_000_000)}1`,
    `1${'0'.repeat(1_000_000)}1e-1000001`,
  ])
    expect(isHeld(text)).toBe(!text.startsWith('0.'));
});
