import { z } from 'zod';
import { defineEntity } from '../../define/define-entity.ts';

const count = z.int32().min(0);

/** Products by category, with a picture that anyone may see. */
export const products = defineEntity('products', {
  schema: z.object({
    categoryId: z.int32().min(0).max(99_999),
    productId: z.int32().min(0).max(99_999_999),
    productName: z.string().min(1).max(200),
    categoryName: z.string().max(200).optional(),
    supplierId: count.optional(),
    quantityPerUnit: z.string().max(200).optional(),
    unitPrice: z.number().min(0).optional(),
    unitsInStock: count.optional(),
    unitsOnOrder: count.optional(),
    reorderLevel: count.optional(),
    discontinued: z.union([z.literal(0), z.literal(1)]).optional(),
  }),
  table: 'products',
  key: { partition: '{categoryId:5}', row: '{productId:8}' },
  attachments: {
    picture: {
      container: 'pictures',
      maxBytes: 1_000_000,
      types: ['image/jpeg', 'image/png', 'image/webp'],
      public: true,
      maxAge: 3_600,
    },
  },
  access: { read: ['reader', 'hr'], write: ['hr'] },
});
