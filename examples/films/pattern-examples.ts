/** Requests on the sample data for each pattern of the guide, with the storage transactions that the guide predicts. */
export const patternExamples = {
  'The three index-table shapes, and composite keys': [
    {
      path: 'movies/by/actor/Charlie%20Chaplin',
      cost: '1: partial copies',
      naive: 'the table is scanned: 1 per 1,000 films',
    },
    {
      path: 'movies/by/actor/Charlie%20Chaplin?from=1930&to=1939',
      cost: '1',
      naive: 'the table is scanned: 1 per 1,000 films',
    },
  ],
};
