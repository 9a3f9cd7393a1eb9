import { defineModel } from '../define-model.ts';
import { directory } from './directory/directory.ts';
import { films } from './films/films.ts';
import { shop } from './shop/shop.ts';

/** What this app stores, pack by pack. A line taken out takes its routes, tables and description with it. */
export const model = defineModel({ entities: [...directory, ...shop, ...films] });
