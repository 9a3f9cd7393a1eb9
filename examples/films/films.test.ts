import { expect, test } from 'vitest';
import { movies } from './movies.ts';
import { sampleRequests } from './sample.ts';

test('every film of the sample is valid', () => {
  const films = sampleRequests().flat();
  expect(films).toHaveLength(3);
  for (const { body } of films) expect(movies.schema.safeParse(body)).toMatchObject({ success: true });
});
