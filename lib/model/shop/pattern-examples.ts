/** Requests that show a pattern of the guide, by its name, on the sample data, and what the guide lets one expect of each. */
export const patternExamples = {
  'The three index-table shapes, and composite keys': [
    { path: 'customers/by/cityAndLastName/London/Fenn', cost: '1: full copies' },
    { path: 'customers/by/id/HARBR', cost: '2: the reference, the entity' },
    { path: 'orders/by/date/2026-11-20', cost: '8: one per bucket, concurrently' },
  ],
};
