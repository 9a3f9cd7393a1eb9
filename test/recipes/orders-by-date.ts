import { z } from 'zod';
import { defineEntity, defineModel, interPartitionIndex } from '../../lib/index.ts';

/** The example of docs/coming-from.md. */
const orders = defineEntity('orders', {
  schema: z.object({ customerId: z.string(), orderId: z.string(), orderDate: z.iso.date(), freight: z.number() }),
  table: 'orders',
  key: { partition: '{customerId}', row: 'order_{orderId}' },
  indexes: {
    date: interPartitionIndex({
      table: 'ordersbydate',
      partition: '{orderDate}',
      row: '{orderId}_{customerId}',
      appends: true,
    }),
  },
  access: { read: ['clerk'], write: ['clerk'] },
});

export const model = defineModel({ roles: ['clerk', 'operator'], operatorRole: 'operator', entities: [orders] });
