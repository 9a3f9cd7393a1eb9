import { expect, test } from 'vitest';
import { movies } from './movies.ts';
import { sampleRequests } from './sample.ts';

test('every film of the sample is valid', () => {
  const films = sampleRequests().flat();
  expect(films).toHaveLength(3);
  // The API computes the id of a film that is sent without one.
  const sent = movies.schema.partial({ filmId: true });
  for (const { body } of films) expect(sent.safeParse(body)).toMatchObject({ success: true });
});
