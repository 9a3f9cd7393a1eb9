import { z } from 'zod';
import { defineEntity } from '../../define/define-entity.ts';
import { orders } from './orders.ts';

/** The lines of an order, next to the order: read in one query and deleted together. */
export const orderlines = defineEntity('orderlines', {
  schema: z.object({
    customerId: z
      .string()
      .min(1)
      .max(10)
      .meta({ examples: ['HARBR'] }),
    orderId: z
      .int32()
      .min(0)
      .max(99_999_999)
      .meta({ examples: [10_001] }),
    productId: z
      .int32()
      .min(0)
      .max(99_999_999)
      .meta({ examples: [901, 902] }),
    quantity: z.int32().min(1),
    unitPrice: z.number().min(0),
    discount: z.number().min(0).max(1).optional(),
  }),
  table: 'orders',
  key: { partition: '{customerId}', row: '{orderId:8}_{productId:8}' },
  childOf: orders,
  access: { read: ['reader', 'hr'], write: ['hr'] },
});
