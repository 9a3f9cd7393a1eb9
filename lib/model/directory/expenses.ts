import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { defineEntity } from '../../define/define-entity.ts';
import { employees } from './employees.ts';
import { employeeId, instant } from './fields.ts';

/** Expense claims of an employee, the newest first (log tail pattern): the first rows are those that are looked at. */
export const expenses = defineEntity('expenses', {
  schema: z.object({
    employeeId,
    at: instant.default(() => new Date().toISOString()),
    /** Tells claims of one instant apart. */
    claimId: z.uuid().default(() => randomUUID()),
    amount: z.number().min(0).max(1_000_000),
    category: z.string().min(1).max(100),
    description: z.string().max(1_000).optional(),
  }),
  table: 'expenses',
  key: { partition: '{employeeId}', row: '{at~}_{claimId}' },
  // A phone hands in claims straight to storage; what is handed in is changed by the API alone.
  access: { read: ['hr'], write: ['hr'], own: { through: employees, permissions: 'ra' } },
});
