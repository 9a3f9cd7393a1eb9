import { z } from 'zod';
import { defineEntity } from '../../lib/define.ts';
import { customerId, orderId, productId } from './fields.ts';
import { orders } from './orders.ts';

/** The lines of an order, next to the order: read in one query and deleted together. */
export const orderlines = defineEntity('orderlines', {
  schema: z.object({
    customerId,
    orderId,
    productId,
    quantity: z.int32().min(1),
    unitPrice: z.number().min(0),
    discount: z.number().min(0).max(1).optional(),
  }),
  table: 'orders',
  key: { partition: '{customerId}', row: '{orderId:8}_{productId:8}' },
  childOf: orders,
  access: { read: ['reader', 'hr'], write: ['hr'] },
});
