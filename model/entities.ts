/** The entities of this app: one line for each entity, or for each folder of entities. */
export { directory } from '../examples/directory/directory.ts';
export { films } from '../examples/films/films.ts';
export { shop } from '../examples/shop/shop.ts';

/** Lets this file compile when all lines above are deleted. */
export const none = [] as const;
