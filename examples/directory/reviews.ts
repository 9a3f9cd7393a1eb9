import { z } from 'zod';
import { defineEntity, own } from '../../lib/define.ts';
import { employees } from './employees.ts';
import { department, employeeId, text } from './fields.ts';

/** The yearly reviews of an employee, next to the employee: read in one query and deleted together. */
export const reviews = defineEntity('reviews', {
  schema: z.object({
    department,
    employeeId,
    year: z
      .int32()
      .min(1900)
      .max(9999)
      .meta({ examples: [2025, 2022] }),
    rating: z.int32().min(1).max(5),
    reviewer: text.optional(),
    comments: z.string().max(5_500_000).optional(),
  }),
  table: 'employees',
  key: { partition: '{department}', row: 'empid_{employeeId}_{year:4}' },
  childOf: employees,
  large: ['comments'],
  access: {
    read: [
      'hr',
      { role: 'reader', where: { department: own(employees), employeeId: own(employees) } },
      { role: 'manager', where: { department: own(employees) } },
    ],
    write: ['hr'],
  },
});
