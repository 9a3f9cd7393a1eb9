import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineCodec } from '../../kit/define.ts';

const schema = z.strictObject({
  plate: z.string().min(2).max(8),
  boughtOn: z.iso.date().optional(),
  soldAt: z.iso.datetime().optional(),
  seats: z.int32().min(1).max(9).optional(),
  price: z.number().positive().optional(),
  tags: z.array(z.string()).max(1).optional(),
  isSold: z.boolean().optional(),
  fuel: z.enum(['gas', 'none']).optional(),
  owner: z.email().optional(),
  size: z.union([z.string(), z.array(z.string())]).optional(),
  code: z.string().regex(/^\d$/, 'a digit is needed, such as 7').optional(),
});
const secret = '7-secret';

test.each<[unknown, string]>([
  [{}, '"plate" is required.'],
  [{ plate: 7 }, '"plate" must be a string; got a number.'],
  [{ plate: null }, '"plate" must be a string; got null.'],
  [{ plate: 'A' }, '"plate" must have at least 2 characters.'],
  [{ plate: `${secret}12` }, '"plate" must have at most 8 characters.'],
  [{ plate: 'AB', boughtOn: '01.05.2024' }, '"boughtOn" must be a date such as 2026-11-20.'],
  [{ plate: 'AB', soldAt: 'today' }, '"soldAt" must be an instant such as 2026-11-20T09:00:00Z.'],
  [{ plate: 'AB', seats: secret }, '"seats" must be a number; got a string.'],
  [{ plate: 'AB', seats: 1.5 }, '"seats" must be a whole number; got a fraction.'],
  [{ plate: 'AB', seats: 10 }, '"seats" must be at most 9.'],
  [{ plate: 'AB', price: 0 }, '"price" must be more than 0.'],
  [{ plate: 'AB', tags: [secret, secret] }, '"tags" must have at most 1 elements.'],
  [{ plate: 'AB', tags: {} }, '"tags" must be an array; got an object.'],
  [{ plate: 'AB', isSold: secret }, '"isSold" must be true or false; got a string.'],
  [{ plate: 'AB', fuel: secret }, '"fuel" must be "gas" or "none".'],
  [{ plate: 'AB', owner: secret }, '"owner" must be an email address.'],
  [{ plate: 'AB', code: secret }, '"code" is not valid: a digit is needed, such as 7.'],
  [{ plate: 'AB', size: 7 }, '"size" must be a string or an array; got a number.'],
  [{ plate: 'AB', color: 'red' }, '"color" does not exist or cannot be written.'],
  [[], 'The body must be an object; got an array.'],
])('names the field and what is accepted, and not the value: %j', (input, detail) => {
  let message: unknown;
  try {
    defineCodec.parse(schema, input);
  } catch (error) {
    message = error instanceof Error ? `${error.message} ${JSON.stringify(error)}` : error;
  }
  expect(String(message).startsWith(`${detail} {`), String(message)).toBe(true);
  expect(message).not.toContain(secret);
});
