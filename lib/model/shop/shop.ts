import { categories } from './categories.ts';
import { customers } from './customers.ts';
import { orderlines } from './orderlines.ts';
import { orders } from './orders.ts';
import { products } from './products.ts';

/** A shop: customers, orders with lines, and products by category. */
export const shop = [customers, orders, orderlines, categories, products] as const;
