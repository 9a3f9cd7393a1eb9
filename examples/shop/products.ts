import { z } from 'zod';
import { defineEntity } from '../../lib/define.ts';
import { categories } from './categories.ts';
import { categoryId, productId } from './fields.ts';

const count = z.int32().min(0);

/** Products by category, each with a picture that anyone may see, and the current buyer and tax rate of its category. */
export const products = defineEntity('products', {
  schema: z.object({
    categoryId,
    productId: productId.meta({ examples: [901, 909] }),
    productName: z.string().min(1).max(200),
    categoryName: z.string().max(200).optional(),
    supplierId: count.optional(),
    quantityPerUnit: z.string().max(200).optional(),
    unitPrice: z.number().min(0).optional(),
    unitsInStock: count.optional(),
    unitsOnOrder: count.optional(),
    reorderLevel: count.optional(),
    discontinued: z.union([z.literal(0), z.literal(1)]).optional(),
    buyer: z.string().optional(),
    taxRate: z.number().optional(),
    description: z.string().max(20_000).optional(),
    specification: z.string().max(20_000).optional(),
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
  denormalized: {
    categoryId: {
      source: categories,
      copies: { buyer: ({ buyer }) => buyer, taxRate: ({ taxRate }) => taxRate },
      fanOut: true,
    },
  },
  // Prices and stock are read and changed all the time, texts are not.
  split: { text: ['description', 'specification'] },
  access: { read: ['reader', 'hr'], write: ['hr'] },
});
