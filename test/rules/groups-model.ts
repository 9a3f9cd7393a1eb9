import { z } from 'zod';
import {
  type DeclaredEntity,
  defineClaims,
  defineEntity,
  defineModel,
  indexEntity,
  interPartitionIndex,
  intraPartitionIndex,
  memberOf,
  oneOf,
  subject,
  total,
} from '../../lib/define.ts';

/** An app whose users sign in: groups of users with expenses, which only their members see. */

const inGroup = memberOf((): DeclaredEntity => members, 'groupId');
const asAdmin = memberOf((): DeclaredEntity => members, 'groupId', { role: 'admin' });

export const members = defineEntity('members', {
  schema: z.object({ groupId: z.string(), userId: z.string(), role: z.enum(['admin', 'member']) }),
  table: 'groups',
  key: { partition: '{groupId}', row: 'member_{userId}' },
  indexes: {
    userId: interPartitionIndex({ table: 'membersbyuser', partition: '{userId}', row: '{groupId}' }),
  },
  access: {
    read: ['auditor', { role: 'user', where: { groupId: inGroup } }],
    write: ['auditor', { role: 'user', where: { groupId: asAdmin } }],
  },
});

export const expenses = defineEntity('expenses', {
  schema: z.object({
    groupId: z.string(),
    expenseId: z.string(),
    paidBy: z.string(),
    amount: z.number(),
    status: z.enum(['draft', 'final']),
    note: z.string().optional(),
  }),
  table: 'groups',
  key: { partition: '{groupId}', row: 'expense_{expenseId}' },
  indexes: {
    status: intraPartitionIndex({ row: 'status_{status}_{expenseId}' }),
    paidBy: interPartitionIndex({ table: 'expensesbypayer', partition: '{paidBy}', row: '{groupId}_{expenseId}' }),
    expenseId: interPartitionIndex({ table: 'expensesbyid', partition: '{expenseId}', row: 'e', unique: true }),
    note: indexEntity({ row: 'note_{note}', holds: '{expenseId}' }),
  },
  totals: { perGroup: total({ table: 'expensetotals', partition: '{groupId}', row: 't', sum: ['amount'] }) },
  access: {
    read: ['auditor', { role: 'user', where: { groupId: inGroup } }, { role: 'payer', where: { paidBy: subject() } }],
    write: {
      create: ['auditor', { role: 'user', where: { groupId: inGroup, paidBy: subject() } }],
      update: ['auditor', { role: 'user', where: { groupId: inGroup, paidBy: subject(), status: oneOf('draft') } }],
      delete: ['auditor', { role: 'user', where: { groupId: asAdmin } }],
    },
  },
});

export const groupsModel = defineModel({
  roles: ['user', 'payer', 'auditor', 'operator'],
  operatorRole: 'operator',
  entities: [members, expenses],
});

const payslips = defineEntity('payslips', {
  schema: z.object({ year: z.string(), owner: z.string(), amount: z.number(), account: z.string().optional() }),
  table: 'payslips',
  key: { partition: '{year}', row: '{owner}' },
  access: {
    read: ['hr', 'employee'],
    write: ['hr'],
    restricted: { account: ['hr', { role: 'employee', where: { owner: subject() } }] },
  },
});

/** Everybody reads all rows, and only the owner and hr the account. */
export const rowsOfPay = {
  payslips,
  model: defineModel({ roles: ['hr', 'employee'], operatorRole: 'hr', entities: [payslips] }),
};

const notes = defineEntity('notes', {
  schema: z.object({ book: z.string(), noteId: z.string(), owner: z.string() }),
  table: 'notes',
  key: { partition: '{book}', row: '{noteId}' },
  access: { read: ['all'], write: ['all', { role: 'user', where: { owner: subject() } }] },
});

/** An entity of one row, whose rule is of a field beside its key. */
export const notesModel = defineModel({ roles: ['all', 'user'], operatorRole: 'all', entities: [notes] });

const books = defineEntity('books', {
  schema: z.object({ book: z.string().toLowerCase(), title: z.string() }),
  table: 'books',
  key: { partition: '{book}', row: 'book' },
  access: { read: ['all', 'user'], write: ['all', 'user'] },
});
const chapters = defineEntity('chapters', {
  schema: z.object({ book: z.string(), chapterId: z.string() }),
  table: 'books',
  key: { partition: '{book}', row: 'book_{chapterId}' },
  childOf: books,
  access: {
    read: ['all', 'user'],
    write: ['all', { role: 'user', where: { book: defineClaims({ books: { verifiedBy: {} } }).books } }],
  },
});

/** A parent whose schema changes its key, and children under a rule of that key. */
export const booksModel = defineModel({ roles: ['all', 'user'], operatorRole: 'all', entities: [books, chapters] });
