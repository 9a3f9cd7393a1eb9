import { z } from 'zod';
import { defineEntity, interPartitionIndex, intraPartitionIndex, total } from '../../lib/define.ts';
import { customers } from './customers.ts';
import { customerId, orderId } from './fields.ts';

/**
 * Orders of existing customers, by customer and by date, with totals by month and by day. A day is spread over buckets, so that the
 * current day is not a hot partition.
 */
export const orders = defineEntity('orders', {
  schema: z.object({
    customerId,
    orderId: orderId.meta({ examples: [10_001, 10_009] }),
    employeeId: z.int32().min(0).optional(),
    orderDate: z.iso.date().meta({ examples: ['2026-11-19'] }),
    /** In UTC with milliseconds, as `toISOString` returns it. */
    placedAt: z.iso
      .datetime({ precision: 3 })
      .meta({ examples: ['2026-11-19T09:12:07.000Z'] })
      .optional(),
    shipCity: z.string().max(200).optional(),
    shipCountry: z.string().max(200).optional(),
    freight: z.number().min(0).optional(),
  }),
  table: 'orders',
  key: { partition: '{customerId}', row: '{orderId:8}' },
  indexes: {
    // Newest first, in the transaction of the order.
    latest: intraPartitionIndex({ row: 'placed_{placedAt~}_{orderId:8}' }),
    date: interPartitionIndex({
      table: 'ordersbydate',
      partition: '{orderDate}_{orderId%8}',
      row: '{orderId:8}_{customerId}',
    }),
  },
  totals: {
    byMonth: total({
      table: 'orderspermonth',
      partition: '{customerId}',
      row: '{orderDate.month}',
      sum: ['freight'],
      min: ['freight'],
      max: ['freight'],
    }),
    // All writers of a day would change one row.
    perDay: total({ table: 'ordersperday', partition: 'all_{orderId%8}', row: '{orderDate}', sum: ['freight'] }),
  },
  references: { customerId: { to: customers, onDelete: 'refuse' } },
  access: { read: ['reader', 'hr'], write: ['hr'] },
});
