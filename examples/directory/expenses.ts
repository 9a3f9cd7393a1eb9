import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { defineEntity } from '../../lib/define.ts';
import { employees } from './employees.ts';
import { employeeId, instant } from './fields.ts';

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
  }),
  table: 'expenses',
  key: { partition: '{employeeId}', row: '{at~}_{claimId}' },
  // A phone creates claims directly in storage. Only the API changes them.
  access: { read: ['hr'], write: ['hr'], own: { through: employees, permissions: 'ra' } },
});
