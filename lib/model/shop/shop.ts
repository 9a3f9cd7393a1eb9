import type { Entity } from '../../define/entity.ts';
import { customers } from './customers.ts';
import { orders } from './orders.ts';
import { products } from './products.ts';

/** A shop: who buys, what, and when. */
export const shop: readonly Entity[] = [customers, orders, products];
