import { z } from 'zod';
import { defineEntity } from '../../define/define-entity.ts';
import { employees } from './employees.ts';
import { employeeId } from './fields.ts';

/** In the table and the partition of its employees, so that its manager's name is never out of date. */
export const departments = defineEntity('departments', {
  schema: z.object({
    department: z.string().min(1).max(200),
    description: z.string().max(2_000).optional(),
    managerId: employeeId.optional(),
    managerName: z.string().optional(),
    managerEmail: z.string().optional(),
    employeeCount: z.int32().optional(),
  }),
  table: 'employees',
  key: { partition: '{department}', row: 'department' },
  denormalized: [
    {
      source: employees,
      reference: { field: 'managerId', keyField: 'employeeId' },
      copies: {
        managerName: ({ firstName, lastName }) => `${firstName} ${lastName}`,
        managerEmail: ({ email }) => email,
      },
    },
  ],
  counts: { employeeCount: employees },
  // A lookup table: clients keep it.
  maxAge: 60,
  access: { read: ['reader', 'hr'], write: ['hr'] },
});
