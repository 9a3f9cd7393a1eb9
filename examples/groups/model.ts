import { z } from 'zod';
import {
  type DeclaredEntity,
  defineClaims,
  defineEntity,
  defineModel,
  defineOperation,
  interPartitionIndex,
  memberOf,
  oneOf,
  subject,
  total,
} from '../../lib/define.ts';

const DAY_MS = 86_400_000;
const inGroup = memberOf((): DeclaredEntity => members, 'groupId');
const ownsGroup = memberOf((): DeclaredEntity => members, 'groupId', { role: 'owner' });
const id = z.uuid().default(() => crypto.randomUUID());
const name = z.string().min(1).max(80);
const { email } = defineClaims({ email: { verifiedBy: { email_verified: [true], xms_edov: [true, 1, '1', 'true'] } } });

/** Created with its owner, who is a member: see functions.ts. */
export const groups = defineEntity('groups', {
  schema: z.object({ groupId: id, name }),
  table: 'groups',
  key: { partition: '{groupId}', row: 'group' },
  access: {
    read: [{ role: 'user', where: { groupId: inGroup } }],
    write: { update: [{ role: 'user', where: { groupId: ownsGroup } }] },
  },
});

/** The functions enter them. Nobody has the name of another: it is the verified email address. */
export const members = defineEntity('members', {
  schema: z.object({ groupId: z.uuid(), userId: z.string(), name, role: z.enum(['owner', 'member']) }),
  table: 'groups',
  key: { partition: '{groupId}', row: 'member_{userId}' },
  indexes: { userId: interPartitionIndex({ table: 'groupsbymember', partition: '{userId}', row: '{groupId}' }) },
  ofUser: { userId: 'delete' },
  access: {
    read: [{ role: 'user', where: { groupId: inGroup } }],
    write: {
      delete: [
        { role: 'user', where: { groupId: ownsGroup } },
        { role: 'user', where: { groupId: inGroup, userId: subject() } },
      ],
    },
    set: { userId: subject(), name: email },
  },
});

/** Whoever has the code may join until the instant: see functions.ts. */
export const invitations = defineEntity('invitations', {
  schema: z.object({
    groupId: z.uuid(),
    code: id,
    expiresAt: z.iso.datetime().default(() => new Date(Date.now() + DAY_MS).toISOString()),
  }),
  table: 'groups',
  key: { partition: '{groupId}', row: 'invitation_{code}' },
  indexes: { code: interPartitionIndex({ table: 'invitationcodes', partition: '{code}', row: 'code', unique: true }) },
  expiry: { at: 'expiresAt' },
  access: {
    read: [{ role: 'user', where: { groupId: ownsGroup } }],
    write: [{ role: 'user', where: { groupId: ownsGroup } }],
  },
});

const own = { role: 'user', where: { groupId: inGroup, paidBy: subject() } } as const;
const ownDraft = { role: 'user', where: { ...own.where, status: oneOf('draft') } } as const;

/** A draft belongs to its payer. Once it is final, it counts in the balances and nobody changes it. */
export const expenses = defineEntity('expenses', {
  schema: z.object({
    groupId: z.uuid(),
    expenseId: id,
    paidBy: z.string(),
    title: name,
    amount: z.number().positive().max(1_000_000),
    status: z.enum(['draft', 'final']).default('draft'),
    // Of a rent, or of a stay.
    from: z.iso.date().optional(),
    to: z.iso.date().optional(),
  }),
  table: 'groups',
  key: { partition: '{groupId}', row: 'expense_{expenseId}' },
  indexes: {
    paidBy: interPartitionIndex({ table: 'expensesbypayer', partition: '{paidBy}', row: '{groupId}_{expenseId}' }),
  },
  checks: { 'to must not be before from': ({ from, to }) => !from || !to || from <= to },
  // The others still owe, or are owed, what was paid.
  ofUser: { paidBy: { paidBy: 'former member', title: 'Deleted', receipt: null } },
  attachments: {
    receipt: { container: 'receipts', maxBytes: 10_000_000, types: ['image/jpeg', 'image/png', 'application/pdf'] },
  },
  totals: {
    balances: total({
      table: 'balances',
      partition: '{groupId}',
      row: '{paidBy}',
      sum: ['amount'],
      when: ({ status }) => status === 'final',
    }),
  },
  access: {
    read: [{ role: 'user', where: { groupId: inGroup } }],
    write: { create: [ownDraft], update: { before: [ownDraft], after: [own] }, delete: [ownDraft] },
    set: { paidBy: subject() },
  },
});

const createGroup = defineOperation('createGroup', {
  summary: 'Create a group, of which the caller is the owner',
  kind: 'write',
  roles: ['user'],
  input: z.object({ name }),
  output: z.object({ groupId: z.uuid() }),
  repeatable: true,
});

/** Somebody without an account sees where a link leads. */
const invited = defineOperation('invited', {
  summary: 'Get the name of the group of an invitation',
  kind: 'read',
  roles: ['visitor', 'user'],
  input: z.object({ code: z.uuid() }),
  output: z.object({ name }),
});

const join = defineOperation('join', {
  summary: 'Join the group of an invitation',
  kind: 'write',
  roles: ['user'],
  input: z.object({ code: z.uuid() }),
  output: z.object({ groupId: z.uuid() }),
  repeatable: true,
});

export const model = defineModel({
  roles: ['visitor', 'user', 'support', 'operator'],
  operatorRole: 'operator',
  anyone: 'visitor',
  signedIn: 'user',
  steward: 'support',
  limits: [{ role: 'visitor', requests: 60, per: 'hour' }],
  blocksUsers: true,
  entities: [groups, members, invitations, expenses],
  operations: [createGroup, invited, join],
});
