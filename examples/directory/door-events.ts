import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { defineEntity, defineSeries } from '../../lib/define.ts';
import { department, employeeId, text } from './fields.ts';

/**
 * Door events by person and hour. The person is the partition and time is only part of the row key: a partition by time
 * alone would receive every write of the moment (the guide's append anti-pattern).
 */
export const doorevents = defineEntity('doorevents', {
  schema: z.object({
    department,
    employeeId,
    hour: z
      .string()
      .regex(/^\d{4}(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])([01]\d|2[0-3])$/, 'an hour is needed, as yyyyMMddHH in UTC')
      .default(() => new Date().toISOString().replace(/\D/g, '').slice(0, 10)),
    eventId: z.uuid().default(() => randomUUID()),
    door: text,
  }),
  table: 'doorevents',
  key: { partition: '{department}_{employeeId}', row: '{hour}_{eventId}' },
  access: { read: ['hr'], write: ['hr', 'operator'] },
});

/**
 * The people who pass the doors of a department in each minute of a day: 1,440 counts, more than a row holds (large entities pattern).
 */
export const doorminutes = defineSeries('doorminutes', {
  schema: z.object({ department, day: z.iso.date() }),
  table: 'doorminutes',
  key: { partition: '{department}', row: '{day}' },
  slots: { name: 'minute', first: 0, last: 1_439, overflow: 'blob' },
  span: { field: 'day', per: 'day' },
  access: { read: ['hr'], write: ['hr', 'operator'] },
});
