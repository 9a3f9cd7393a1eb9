import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { z } from 'zod';
import { anyText } from '../../test/any-text.ts';
import { employees } from './employees.ts';
import { people } from './people.ts';

/** Every field of the pack that has an address from callers. */
const FIELDS = [employees, people].flatMap(({ name, schema }) =>
  Object.entries(schema.shape)
    .filter(([field]) => field === 'email')
    .map(([field, type]) => [`${name}.${field}`, type as z.ZodType<unknown>] as const),
);
const isAscii = (text: string) => /^[\0-\x7f]*$/.test(text);
/** Letters that fold into ASCII or into several characters, invisible characters, and arbitrary ones. */
const character = fc.oneof(
  fc.constantFrom('k', 'K', '\u212a', 'i', '\u0130', '\u017f', '\u00e5', '\u212b', '\u1fef', '\u037e', 'e\u0301'),
  fc.constantFrom('\0', '\x1b', '\x7f', '\x85', '\u200b', '\u200e', '\u202e', '\u2066', '\u2069', '\ufeff', '\u061c'),
  anyText({ minLength: 1, maxLength: 1 }),
);
const address = fc
  .tuple(fc.array(character, { minLength: 1, maxLength: 4 }), fc.array(character, { maxLength: 2 }))
  .map(([local, domain]) => `${local.join('')}@${domain.join('')}contoso.com`);

test('finds every email field of the sample', () => {
  expect(FIELDS.map(([name]) => name)).toEqual(['employees.email', 'people.email']);
});

test.each(FIELDS)(
  '%s accepts no address that normalizes to a different ASCII address',
  { tags: ['slow'] },
  (_, type) => {
    fc.assert(
      fc.property(address, (text) => {
        const { success, data } = type.safeParse(text);
        return !success || isAscii(String(data)) === isAscii(text);
      }),
      { numRuns: 20_000 },
    );
  },
);

test.each(FIELDS)('%s accepts no control, bidi or other invisible character', { tags: ['slow'] }, (_, type) => {
  fc.assert(
    fc.property(address, (text) => !(/\p{C}/u.test(text) && type.safeParse(text).success)),
    { numRuns: 20_000 },
  );
});

test.each(FIELDS)('%s accepts its stored form again and leaves it unchanged', { tags: ['slow'] }, (_, type) => {
  fc.assert(
    fc.property(address, (text) => {
      const { success, data } = type.safeParse(text);
      return !success || type.safeParse(data).data === data;
    }),
    { numRuns: 20_000 },
  );
});

test('employees.email accepts addresses of other scripts', () => {
  const [, type] = FIELDS[0] ?? [];
  for (const text of ['jörg@contoso.com', 'Ünïted@contoso.com', '山田@contoso.com', 'ΑΣ@contoso.com'])
    expect(type?.safeParse(text).data).toBe(text.toLowerCase().normalize());
});
