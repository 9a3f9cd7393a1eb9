import { categories } from './categories.ts';
import { customers } from './customers.ts';
import { orderlines } from './orderlines.ts';
import { orders } from './orders.ts';
import { products } from './products.ts';
import { vouchers } from './vouchers.ts';

/** A shop: customers, orders with lines, products by category, and vouchers. */
export const shop = [customers, orders, orderlines, categories, products, vouchers] as const;
