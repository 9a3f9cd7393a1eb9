import { customers } from './customers.ts';
import { orders } from './orders.ts';
import { products } from './products.ts';

/** A shop: customers, products and orders. */
export const shop = [customers, orders, products] as const;
