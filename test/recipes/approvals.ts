import { z } from 'zod';
import { defineEntity, defineModel, oneOf, subject } from '../../lib/index.ts';

const byApplicant = (...states: [string, ...string[]]) =>
  [{ role: 'user', where: { applicant: subject(), state: oneOf(...states) } }] as const;
const byManager = (...states: [string, ...string[]]) =>
  [{ role: 'manager', where: { state: oneOf(...states) } }] as const;

const leaves = defineEntity('leaves', {
  schema: z.object({
    applicant: z.string(),
    leaveId: z.string(),
    days: z.int32(),
    state: z.enum(['draft', 'submitted', 'approved', 'rejected']),
  }),
  table: 'leaves',
  key: { partition: '{applicant}', row: 'leave_{leaveId}' },
  access: {
    read: ['manager', { role: 'user', where: { applicant: subject() } }],
    write: {
      create: byApplicant('draft'),
      update: [
        // The applicant edits a draft, and submits it.
        { before: byApplicant('draft'), after: byApplicant('draft', 'submitted') },
        // A manager decides.
        { before: byManager('submitted'), after: byManager('approved', 'rejected') },
      ],
    },
    set: { applicant: subject() },
  },
});

export const model = defineModel({
  roles: ['user', 'manager', 'operator'],
  operatorRole: 'operator',
  entities: [leaves],
});
