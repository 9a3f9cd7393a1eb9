/** Requests on the sample data for each pattern of the guide, with the storage transactions that the guide predicts. */
export const patternExamples = {
  'The three index-table shapes, and composite keys': [
    { path: 'customers/by/cityAndLastName/London/Fenn', cost: '1: full copies' },
    { path: 'customers/by/cityAndLastName/London?prefix=F', cost: '1' },
    { path: 'customers/by/id/HARBR', cost: '2: the reference, the entity' },
    { path: 'orders/by/date/2026-11-20', cost: '8: one per bucket, concurrently' },
  ],
};
