/** What this app stores: one line for each entity, or for each folder of entities. */
export { directory } from './directory/directory.ts';
export { films } from './films/films.ts';
export { shop } from './shop/shop.ts';

// Keeps this file a module when every line above is deleted.
export {};
