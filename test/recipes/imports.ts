import { createHash } from 'node:crypto';
import { z } from 'zod';
import { defineEntity, defineModel } from '../../lib/index.ts';

/** The statement of a bank has no ids: the same line gets the same id each time. */
const payments = defineEntity('payments', {
  schema: z.object({
    account: z.string(),
    bookedOn: z.iso.date(),
    paymentId: z.string(),
    text: z.string(),
    amount: z.number(),
  }),
  table: 'payments',
  key: { partition: '{account}', row: '{bookedOn}_{paymentId}' },
  defaults: {
    paymentId: ({ text, amount }) => createHash('sha256').update(`${text}|${amount}`).digest('hex').slice(0, 12),
  },
  access: { read: ['user'], write: ['user'] },
});

export const model = defineModel({ roles: ['user', 'operator'], operatorRole: 'operator', entities: [payments] });
