import { z } from 'zod';

/** Keys of the shop. Their examples are those of the sample data, and the last one is that of a new entity. */

/** The customer of an order or a voucher. */
export const customerId = z
  .string()
  .min(1)
  .max(10)
  .meta({ examples: ['HARBR'] });

const id = z.int32().min(0).max(99_999_999);
export const orderId = id.meta({ examples: [10_001] });
export const productId = id.meta({ examples: [901, 902] });

export const categoryId = z
  .int32()
  .min(0)
  .max(99_999)
  .meta({ examples: [91] });
