/** Requests that show a pattern of the guide, by its name, on the sample data, and what the guide lets one expect of each. */
export const patternExamples = {
  'The three index-table shapes, and composite keys': [
    { path: 'customers/by/cityAndLastName/London/Fenn', cost: '1: a full copy' },
    { path: 'customers/by/id/HARBR', cost: '2: a reference' },
    { path: 'orders/by/date/2026-11-20', cost: '8 buckets, at once' },
  ],
};
