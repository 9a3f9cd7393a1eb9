import { z } from 'zod';
import {
  defineClaims,
  defineEntity,
  defineModel,
  interPartitionIndex,
  memberOf,
  oneOf,
  subject,
} from '../../lib/define.ts';

/** The declarations that docs/access.md shows. */

export const notes = defineEntity('notes', {
  schema: z.object({ ownerId: z.string(), noteId: z.string(), text: z.string() }),
  table: 'notes',
  key: { partition: '{ownerId}', row: 'note_{noteId}' },
  access: {
    read: ['auditor', { role: 'user', where: { ownerId: subject() } }],
    write: [{ role: 'user', where: { ownerId: subject() } }],
  },
});

export const members = defineEntity('members', {
  schema: z.object({ groupId: z.string(), userId: z.string(), role: z.enum(['member', 'admin']) }),
  table: 'groups',
  key: { partition: '{groupId}', row: 'member_{userId}' },
  indexes: { userId: interPartitionIndex({ table: 'groupsbymember', partition: '{userId}', row: '{groupId}' }) },
  access: { read: ['operator'], write: ['operator'] },
});

const inGroup = memberOf(members, 'groupId');
const asAdmin = memberOf(members, 'groupId', { role: 'admin' });

export const expenses = defineEntity('expenses', {
  schema: z.object({
    groupId: z.string(),
    expenseId: z.string(),
    paidBy: z.string(),
    amount: z.number(),
    status: z.enum(['draft', 'final']),
  }),
  table: 'groups',
  key: { partition: '{groupId}', row: 'expense_{expenseId}' },
  access: {
    read: ['auditor', { role: 'user', where: { groupId: inGroup } }],
    write: {
      create: [{ role: 'user', where: { groupId: inGroup, paidBy: subject() } }],
      update: [{ role: 'user', where: { groupId: inGroup, paidBy: subject(), status: oneOf('draft') } }],
      delete: [{ role: 'user', where: { groupId: asAdmin } }],
    },
  },
});

export const loans = defineEntity('loans', {
  schema: z.object({
    groupId: z.string(),
    loanId: z.string(),
    borrower: z.string(),
    owner: z.string(),
    state: z.enum(['requested', 'approved', 'cancelled']),
  }),
  table: 'groups',
  key: { partition: '{groupId}', row: 'loan_{loanId}' },
  access: {
    read: [{ role: 'user', where: { groupId: inGroup } }],
    write: {
      create: [{ role: 'user', where: { groupId: inGroup, borrower: subject(), state: 'requested' } }],
      update: [
        {
          before: [{ role: 'user', where: { borrower: subject(), state: 'requested' } }],
          after: [{ role: 'user', where: { borrower: subject(), state: 'cancelled' } }],
        },
        {
          before: [{ role: 'user', where: { owner: subject(), state: 'requested' } }],
          after: [{ role: 'user', where: { owner: subject(), state: 'approved' } }],
        },
      ],
    },
  },
});

const claims = defineClaims({ departments: { verifiedBy: {} } });

export const reports = defineEntity('reports', {
  schema: z.object({ department: z.string(), reportId: z.string(), status: z.enum(['draft', 'published']) }),
  table: 'reports',
  key: { partition: '{department}', row: 'report_{reportId}' },
  access: {
    read: [
      { role: 'user', where: { status: 'published' }, lists: 'filtered' },
      { role: 'manager', where: { department: claims.departments } },
    ],
    write: [{ role: 'manager', where: { department: claims.departments } }],
  },
});

export const model = defineModel({
  roles: ['user', 'manager', 'auditor', 'operator'],
  operatorRole: 'operator',
  entities: [notes, members, expenses, loans, reports],
});
