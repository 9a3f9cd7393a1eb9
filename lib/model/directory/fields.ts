import { z } from 'zod';

/** Fields that several entities of the directory have. */

export const text = z.string().min(1).max(200);

/** Six digits, as text: zeros in front count. */
export const employeeId = z.string().regex(/^\d{6}$/, 'six digits are needed, such as 000123');

/** Reverses or hides a part of what is read, or is not in Unicode yet. */
const INVISIBLE = /\p{C}/u;

/**
 * An address in one case and one form, so that equal ones are equal. Names outside ASCII have addresses too (RFC 6531). A
 * character that becomes ASCII in this form, such as the Kelvin sign (`k`), is refused: it would make another person's
 * address.
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

/** Any ISO instant; kept in one form, as it is part of keys. */
export const instant = z.iso
  .datetime({ offset: true })
  // Runs on what is no instant as well; that is refused all the same.
  .overwrite((at) => (Number.isNaN(Date.parse(at)) ? at : new Date(at).toISOString()));
