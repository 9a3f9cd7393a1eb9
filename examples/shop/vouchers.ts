import { z } from 'zod';
import { defineEntity, interPartitionIndex } from '../../lib/define.ts';
import { customerId } from './fields.ts';

/**
 * Gift vouchers, sharded by a hash of the code: a read by code computes the shard. The row of the index has the whole key with the
 * shard, so that a read by customer does not query every shard.
 */
export const vouchers = defineEntity('vouchers', {
  schema: z.object({
    code: z
      .string()
      .regex(/^[A-Z0-9]{8}$/, 'eight capital letters and digits are needed')
      .meta({ examples: ['TEA4YOU1', 'NEWYEAR1'] }),
    customerId,
    amount: z.number().min(0),
  }),
  table: 'vouchers',
  key: { partition: '{code%8}', row: '{code}' },
  indexes: {
    customer: interPartitionIndex({
      table: 'vouchersbycustomer',
      partition: '{customerId}',
      row: '{code}',
      copies: 'keys',
    }),
  },
  access: { read: ['reader', 'hr'], write: ['hr'] },
});
