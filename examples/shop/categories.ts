import { z } from 'zod';
import { defineEntity } from '../../lib/define.ts';
import { categoryId } from './fields.ts';

/** In the partition of its products, which have copies of its buyer and its tax rate. */
export const categories = defineEntity('categories', {
  schema: z.object({
    categoryId: categoryId.meta({ examples: [91, 99] }),
    description: z.string().max(2_000).optional(),
    buyer: z.string().max(200).optional(),
    taxRate: z.number().min(0).max(1).optional(),
  }),
  table: 'products',
  key: { partition: '{categoryId:5}', row: 'category' },
  access: { read: ['reader', 'hr'], write: ['hr'] },
});
