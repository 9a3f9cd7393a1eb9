import { createHash } from 'node:crypto';
import { z } from 'zod';
import { defineEntity, interPartitionIndex } from '../../lib/define.ts';

const text = z.string().min(1).max(200);

/** Films by their first genre, and by each of their actors. */
export const movies = defineEntity('movies', {
  schema: z.object({
    genre: text.meta({ examples: ['Comedy'] }).optional(),
    title: text.meta({ examples: ['City Lights', 'The Gold Rush'] }),
    year: z
      .int32()
      .min(1800)
      .max(9999)
      .meta({ examples: [1931, 1925] }),
    /** Distinguishes films with the same title and year. */
    filmId: z
      .string()
      .min(1)
      .max(200)
      .meta({ examples: ['36e7238b'] }),
    /** Readers see published films only. */
    status: z.enum(['draft', 'published']).default('published'),
    genres: z
      .array(text)
      .max(50)
      .meta({ examples: [['Comedy', 'Romance']] }),
    cast: z
      .array(text)
      .max(200)
      .meta({ examples: [['Charlie Chaplin', 'Virginia Cherrill']] }),
  }),
  table: 'movies',
  key: { partition: '{genre}', row: '{title}_{year:4}_{filmId}' },
  derived: {
    genre: ({ genres }) => (Array.isArray(genres) && typeof genres[0] === 'string' ? genres[0] : 'Unknown'),
  },
  // From the cast of the new film, so that an import of the same file changes nothing. It stays when the cast changes.
  defaults: {
    filmId: ({ cast }) => createHash('sha256').update(JSON.stringify(cast)).digest('hex').slice(0, 8),
  },
  indexes: {
    // A partial copy: the index row contains the names of the actors, the status and the key, the entity has the other fields.
    actor: interPartitionIndex({
      table: 'moviesbyactor',
      partition: '{cast[]}',
      row: '{year:4}_{title}_{filmId}_{genre}',
      copies: ['cast', 'status'],
    }),
  },
  access: {
    // Few films are drafts, so storage reads few rows that it leaves out.
    read: [{ role: 'reader', where: { status: 'published' }, lists: 'filtered' }, 'hr'],
    write: ['hr'],
  },
});
