import { z } from 'zod';
import {
  defineEntity,
  defineModel,
  interPartitionIndex,
  intraPartitionIndex,
  memberOf,
  subject,
} from '../../lib/index.ts';

/** The examples of docs/coming-from.md. */

const members = defineEntity('members', {
  schema: z.object({ groupId: z.string(), userId: z.string() }),
  table: 'groups',
  key: { partition: '{groupId}', row: 'member_{userId}' },
  indexes: { userId: interPartitionIndex({ table: 'groupsbymember', partition: '{userId}', row: '{groupId}' }) },
  access: { read: ['operator'], write: ['operator'] },
});

const inGroup = memberOf(members, 'groupId');
const expenses = defineEntity('expenses', {
  schema: z.object({ groupId: z.string(), paidAt: z.iso.datetime(), expenseId: z.string(), paidBy: z.string() }),
  table: 'groups',
  // The newest first.
  key: { partition: '{groupId}', row: 'expense_{paidAt~}_{expenseId}' },
  access: {
    read: [{ role: 'user', where: { groupId: inGroup } }],
    write: { create: [{ role: 'user', where: { groupId: inGroup, paidBy: subject() } }] },
  },
});

const posts = defineEntity('posts', {
  schema: z.object({
    author: z.string(),
    postId: z.uuid().default(() => crypto.randomUUID()),
    slug: z.string(),
    status: z.enum(['draft', 'published']),
  }),
  table: 'posts',
  key: { partition: '{author}', row: '{postId}' },
  indexes: { slug: interPartitionIndex({ table: 'postsbyslug', partition: '{slug#}', row: '{slug}', unique: true }) },
  access: {
    read: [
      { role: 'user', where: { author: subject() } },
      { role: 'user', where: { status: 'published' }, lists: 'none' },
    ],
    write: [{ role: 'user', where: { author: subject() } }],
    set: { author: subject() },
  },
});

const loans = defineEntity('loans', {
  schema: z.object({
    tool: z.string(),
    loanId: z.uuid().default(() => crypto.randomUUID()),
    borrower: z.string(),
    returned: z.iso.date().optional(),
  }),
  table: 'loans',
  key: { partition: '{tool}', row: 'loan_{loanId}' },
  indexes: {
    open: intraPartitionIndex({ row: 'open_{tool}', when: ({ returned }) => returned === undefined }),
    borrower: interPartitionIndex({ table: 'loansbyborrower', partition: '{borrower}', row: '{tool}_{loanId}' }),
  },
  access: {
    read: [{ role: 'user', where: { borrower: subject() } }],
    write: [{ role: 'user', where: { borrower: subject() } }],
    set: { borrower: subject() },
  },
});

const invoices = defineEntity('invoices', {
  schema: z.object({ owner: z.string(), invoiceId: z.string(), status: z.string(), day: z.iso.date() }),
  table: 'invoices',
  key: { partition: '{owner}', row: 'invoice_{invoiceId}' },
  indexes: { status: intraPartitionIndex({ row: 'status_{status}_{day}_{invoiceId}' }) },
  access: {
    read: [{ role: 'user', where: { owner: subject() } }],
    write: [{ role: 'user', where: { owner: subject() } }],
    set: { owner: subject() },
  },
});

const tasks = defineEntity('tasks', {
  schema: z.object({ teamId: z.string(), taskId: z.string(), assignee: z.string().optional() }),
  table: 'tasks',
  key: { partition: '{teamId}', row: 'task_{taskId}' },
  indexes: {
    assignee: interPartitionIndex({ table: 'tasksbyassignee', partition: '{assignee}', row: '{teamId}_{taskId}' }),
  },
  access: { read: ['user'], write: ['user'] },
});

const orders = defineEntity('orders', {
  schema: z.object({ customerId: z.string(), orderId: z.string(), orderDate: z.iso.date(), freight: z.number() }),
  table: 'orders',
  key: { partition: '{customerId}', row: 'order_{orderId}' },
  indexes: {
    date: interPartitionIndex({
      table: 'ordersbydate',
      partition: '{orderDate}',
      row: '{orderId}_{customerId}',
      // The partition is a day: this app has few orders a second.
      appends: true,
    }),
  },
  access: { read: ['clerk'], write: ['clerk'] },
});

export const model = defineModel({
  roles: ['user', 'clerk', 'operator'],
  operatorRole: 'operator',
  signedIn: 'user',
  entities: [members, expenses, posts, loans, invoices, tasks, orders],
});
