import { z } from 'zod';

/** Fields that several entities of the directory have. */

export const text = z.string().min(1).max(200);

/** Six digits, as text: zeros in front count. */
export const employeeId = z.string().regex(/^\d{6}$/, 'six digits are needed, such as 000123');

/** Any ISO instant; kept in one form, as it is part of keys. */
export const instant = z.iso
  .datetime({ offset: true })
  // Runs on what is no instant as well; that is refused all the same.
  .overwrite((at) => (Number.isNaN(Date.parse(at)) ? at : new Date(at).toISOString()));
