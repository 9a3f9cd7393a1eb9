import { expect, test } from 'vitest';
import { z } from 'zod';
import { parse } from '../../../lib/define/validate/validation.ts';

const schema = z.strictObject({
  plate: z.string(),
  boughtOn: z.iso.date().optional(),
  soldAt: z.iso.datetime().optional(),
});

test.each([
  [{}, 'The field plate is not valid: a value is required.'],
  [
    { plate: 'A', boughtOn: '01.05.2024' },
    'The field boughtOn is not valid: must be a date of the calendar such as 2026-11-20.',
  ],
  [
    { plate: 'A', soldAt: 'today' },
    'The field soldAt is not valid: must be an ISO 8601 instant such as 2026-11-20T09:00:00Z.',
  ],
  [{ plate: 'A', color: 'red' }, 'The field color is not valid: the field does not exist, or cannot be written.'],
  [[], 'The body is not valid: Invalid input: expected object, received array.'],
])('names the field and the expected value: %j', (input, detail) => {
  expect(() => parse(schema, input)).toThrow(detail);
});
