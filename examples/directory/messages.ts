import { z } from 'zod';
import { defineSeries } from '../../lib/define.ts';
import { employees } from './employees.ts';
import { employeeId } from './fields.ts';

const access = {
  read: ['hr'],
  write: ['hr', 'operator'],
  own: { through: employees, permissions: 'rau' },
} as const;

/** The messages that an employee sent in each hour of a day: 24 counts in one entity. */
export const messagehours = defineSeries('messagehours', {
  schema: z.object({ employeeId, day: z.iso.date() }),
  table: 'messagehours',
  key: { partition: '{employeeId}', row: '{day}' },
  slots: { name: 'hour', first: 0, last: 23 },
  span: { field: 'day', per: 'day' },
  access,
});

/** The messages of each day of a year: 366 counts, more than one entity can hold (wide entities pattern). */
export const messageyears = defineSeries('messageyears', {
  schema: z.object({ employeeId, year: z.int32().min(1900).max(9999) }),
  table: 'messageyears',
  key: { partition: '{employeeId}', row: '{year:4}' },
  slots: { name: 'dayofyear', first: 1, last: 366, perRow: 183 },
  span: { field: 'year', per: 'year' },
  access,
});
