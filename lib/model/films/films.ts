import { movies } from './movies.ts';

/** Films and who plays in them. */
export const films = [movies] as const;
