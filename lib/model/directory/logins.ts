import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { defineEntity } from '../../patterns/define-entity.ts';
import { employeeId } from './employees.ts';

/** Login attempts: many, small, and worthless after two months. */
export const logins = defineEntity('logins', {
  schema: z.object({
    employeeId,
    /** Any ISO instant; kept in one form, as it is part of the key. */
    at: z.iso
      .datetime({ offset: true })
      // Runs on what is no instant as well; that is refused all the same.
      .overwrite((at) => (Number.isNaN(Date.parse(at)) ? at : new Date(at).toISOString()))
      .default(() => new Date().toISOString()),
    loginId: z.uuid().default(() => randomUUID()),
    succeeded: z.boolean(),
    address: z.union([z.ipv4(), z.ipv6()]).optional(),
  }),
  table: 'logins',
  key: { partition: '{employeeId}', row: '{at}_{loginId}' },
  perDay: { field: 'at', keepDays: 60 },
  access: { read: ['hr', 'operator'], write: ['hr', 'operator'] },
});
