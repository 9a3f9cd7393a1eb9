import type { Cut } from '../../model/rules.ts';

export const LOCAL: readonly Cut[] = [
  {
    without: 'An import sends one file at a time',
    recommendations: ['c-blob-parallel'],
    file: 'local/cli/import-command.ts',
    edits: [['const FILES_CONCURRENCY = 4;', 'const FILES_CONCURRENCY = 1;']],
    test: [
      'test/scenarios/importing-and-exporting.test.ts',
      'uploads the files that a column names, skips those that are stored already, and lists those it rejects',
    ],
    finds: 'expected 1 to be 4',
  },
  {
    without: 'An import sends one batch at a time',
    file: 'local/cli/import-command.ts',
    edits: [['const BATCHES_CONCURRENCY = 4;', 'const BATCHES_CONCURRENCY = 1;']],
    test: [
      'test/scenarios/importing-and-exporting.test.ts',
      'uploads the files that a column names, skips those that are stored already, and lists those it rejects',
    ],
    finds: 'POST: expected 1 to be 4',
  },
  {
    without: 'The costs of entities are not added up',
    recommendations: ['g-cost-capacity'],
    file: 'local/capacity/plan.ts',
    edits: [['costed.reduce((total, one) => total + of(one), 0)', 'costed.reduce((_, one) => of(one), 0)']],
    test: ['test/local/capacity/plan.test.ts', 'adds up the loads of several entities, and what they cost'],
    finds: 'expected { Object (tables, queues, ...) } to deeply equal',
  },
];
