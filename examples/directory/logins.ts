import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { defineEntity } from '../../lib/define.ts';
import { employeeId, instant } from './fields.ts';

/** Login attempts: many, small, and archived and deleted after two months. */
export const logins = defineEntity('logins', {
  schema: z.object({
    employeeId,
    at: instant.default(() => new Date().toISOString()),
    loginId: z.uuid().default(() => randomUUID()),
    succeeded: z.boolean(),
    address: z.union([z.ipv4(), z.ipv6()]).optional(),
  }),
  table: 'logins',
  key: { partition: '{employeeId}', row: '{at}_{loginId}' },
  period: { per: 'day', field: 'at', keep: 60, archiveTo: 'blob' },
  access: { read: ['hr', 'operator'], write: ['hr', 'operator'] },
});
