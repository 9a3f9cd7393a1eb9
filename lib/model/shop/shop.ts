import { customers } from './customers.ts';
import { orders } from './orders.ts';
import { products } from './products.ts';

/** A shop: who buys, what, and when. */
export const shop = [customers, orders, products] as const;
