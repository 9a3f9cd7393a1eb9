import { z } from 'zod';
import { defineEntity } from '../../define/define-entity.ts';
import { interPartitionIndex } from '../../define/indexes.ts';
import { employees } from './employees.ts';
import { employeeId } from './fields.ts';

/** In the table and partition of its employees, so that the copies of its manager's name and email are always current. */
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
  indexes: {
    // Without fields that change with an employee, because an index changes only with its own entity.
    inOrder: interPartitionIndex({
      table: 'departmentlist',
      partition: 'all',
      row: '{department}',
      copies: ['description', 'managerId'],
    }),
  },
  lookup: { index: 'inOrder' },
  // Clients may cache it, too.
  maxAge: 60,
  access: { read: ['reader', 'hr'], write: ['hr'] },
});
