import { movies } from './movies.ts';

/** Films and their actors. */
export const films = [movies] as const;
