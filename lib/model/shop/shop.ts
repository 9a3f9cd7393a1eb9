import { categories } from './categories.ts';
import { customers } from './customers.ts';
import { orders } from './orders.ts';
import { products } from './products.ts';

/** A shop: customers, orders, and products by category. */
export const shop = [customers, orders, categories, products] as const;
