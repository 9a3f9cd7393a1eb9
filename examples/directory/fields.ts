import { z } from 'zod';

/** Fields that several entities of the directory have. */

export const text = z.string().min(1).max(200);

/** The examples of keys are those of the sample data. The last one is that of a new entity. */
export const department = text.meta({ examples: ['Sales'] });

/** Six digits as text, because leading zeros are significant. */
export const employeeId = z
  .string()
  .regex(/^\d{6}$/, 'six digits are needed, such as 000123')
  .meta({ examples: ['000123'] });

/** Characters that reverse or hide displayed text, and code points that Unicode has not assigned. */
const INVISIBLE = /\p{C}/u;

/**
 * An address in one case and one normal form, so that equal addresses are equal texts. Names outside ASCII have addresses
 * too (RFC 6531). A character that becomes ASCII in this form, such as the Kelvin sign (`k`), is rejected, because the
 * result would be the address of another person.
 */
export const email = z
  .email({ pattern: z.regexes.unicodeEmail })
  .max(254)
  .refine((address) => !INVISIBLE.test(address), 'no control or invisible characters are accepted')
  .refine(
    (address) => [...address].every((character) => isAscii(character) || !isAscii(fold(character))),
    'a character that looks like an ASCII letter is not accepted',
  )
  .toLowerCase()
  .normalize();

function fold(text: string): string {
  return text.toLowerCase().normalize();
}

function isAscii(text: string): boolean {
  return !/[^\0-\x7f]/.test(text);
}

/** Any ISO instant. Keys contain it, so it is stored in one form. */
export const instant = z.iso
  .datetime({ offset: true })
  // Zod also runs the transform on an invalid instant and rejects the value anyway.
  .overwrite((at) => (Number.isNaN(Date.parse(at)) ? at : new Date(at).toISOString()));
