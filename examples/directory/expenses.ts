import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { defineEntity, own } from '../../lib/define.ts';
import { employees } from './employees.ts';
import { department, employeeId, instant } from './fields.ts';

/** Expense claims of an employee, newest first (log tail pattern), because readers want the newest ones. */
export const expenses = defineEntity('expenses', {
  schema: z.object({
    employeeId,
    at: instant.default(() => new Date().toISOString()),
    /** Distinguishes claims of the same instant. */
    claimId: z.uuid().default(() => randomUUID()),
    amount: z.number().min(0).max(1_000_000),
    category: z.string().min(1).max(100),
    description: z.string().max(1_000).optional(),
    /** Pays the claim, and its managers see it. It stays the same if the employee moves. */
    department: department.optional(),
  }),
  table: 'expenses',
  key: { partition: '{employeeId}', row: '{at~}_{claimId}' },
  access: {
    read: [
      'hr',
      { role: 'reader', where: { employeeId: own(employees) } },
      // The claims of one employee, nearly all of which are of one department.
      { role: 'manager', where: { department: own(employees) }, lists: 'filtered' },
    ],
    write: {
      create: ['hr', { role: 'reader', where: { employeeId: own(employees), department: own(employees) } }],
      update: ['hr'],
      delete: ['hr'],
    },
    // A phone reads claims directly in storage. It cannot write them there, where no rule is checked.
    own: { through: employees, permissions: 'r' },
  },
});
