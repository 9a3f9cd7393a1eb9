import type { Entity } from '../../define/entity.ts';
import { movies } from './movies.ts';

/** Films and who plays in them. */
export const films: readonly Entity[] = [movies];
