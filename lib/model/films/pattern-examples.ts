/** Requests that show a pattern of the guide, by its name, on the sample data, and what the guide lets one expect of each. */
export const patternExamples = {
  'The three index-table shapes, and composite keys': [
    { path: 'movies/by/actor/Charlie%20Chaplin', cost: '1: partial copies' },
  ],
};
