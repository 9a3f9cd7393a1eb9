import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { validate, validateKey, withDerived } from '../../../../lib/define/codec/validation.ts';
import { defineEntity } from '../../../../lib/define.ts';
import { deploy } from '../../../fixtures/deploy.ts';

const { notes } = deploy(
  defineEntity('notes', {
    schema: z.object({ city: z.string(), id: z.string(), text: z.string().optional() }),
    table: 'notes',
    key: { partition: '{city}', row: '{id}' },
    access: { read: [], write: [] },
  }),
);

test('a derived field of another type is a mistake wherever it is computed, also in a move', () => {
  const { sizes } = deploy(
    defineEntity('sizes', {
      schema: z.object({ id: z.string(), size: z.number().optional() }),
      table: 'sizes',
      key: { partition: '{id}', row: 'r' },
      derived: { size: () => 'large' as never },
      access: { read: [], write: [] },
    }),
  );
  for (const compute of [validate, withDerived])
    expect(() => compute(sizes, { id: '1' })).toThrow(expect.objectContaining({ code: 'wrong-operation' }));
});

/** Clients remove dots from a path, and hosts take an encoded `%2F` for a slash and end a text at a NUL. */
describe.each(['.', '..', 'a%2Fb', '%2f', 'a\0b', '\0'])('a text that a path cannot contain: %j', (text) => {
  test.each(['city', 'id'])('is refused in the key field %s', (field) => {
    const values = { city: 'Bern', id: '1', [field]: text };
    for (const check of [validate, validateKey])
      expect(() => check(notes, values)).toThrow(expect.objectContaining({ code: 'invalid-input', field }));
  });

  test('is accepted in another field', () => {
    expect(validate(notes, { city: 'Bern', id: '1', text })).toEqual({ city: 'Bern', id: '1', text });
  });
});

test.each(['...', 'a/b', 'a%252Fb', '%2', 'a.', '%', '#', '?'])('a path can contain %j', (id) => {
  expect(validateKey(notes, { city: 'Bern', id })).toEqual({ city: 'Bern', id });
});
