import type { Cut } from '../model/rules.ts';

/**
 * Promises of the documents: the code without each one, and the test that then fails. `npm run promises` proves it, with the samples and the
 * storage of `npm test`.
 */

/** A promise that is also that of recommendations in docs/checklist.yaml. */
export interface Promised extends Cut {
  /** The ids of recommendations, each of which cites the test. */
  readonly rows?: readonly string[];
}

export const PROMISES: readonly Promised[] = [
  // Each of these has been out of the code once, and no test noticed.
  {
    without: 'An archive is compared with its table by the number of rows alone',
    file: 'lib/features/high-volume-delete/period-archive.ts',
    edits: [[' && sum === archive.hash', '']],
    test: [
      'test/protocol/archiving-periods.test.ts',
      'that has as many rows with one other value keeps its table from being dropped, and is written again',
    ],
    finds: 'promise resolved "{ created:',
  },
  {
    without: 'A large delete runs without the rules of the caller who requested it',
    file: 'lib/engine/transfer/large-delete.ts',
    edits: [['      if (!isWithin(rules?.before, source.values)) return RULED_OUT;\n', '']],
    test: [
      'test/rules/transferring.test.ts',
      'the delete of a caller whom rules limit > takes nothing that an admin has made final, and changes nothing',
    ],
    finds: '"status": "succeeded"',
  },
  {
    without: 'A large delete with If-Match runs after another change',
    file: 'lib/engine/write/large-delete.ts',
    edits: [["ifMatch.trim() !== '*'", 'false']],
    test: [
      'test/protocol/compound-key.test.ts',
      'does not begin if the project has changed since a conditional request, and else ignores new tasks',
    ],
    finds: '"status": "succeeded"',
  },
  {
    without: "A caller's own entity without the field matches rows without it",
    file: 'lib/access/limit.ts',
    edits: [['return value === undefined ? [] : [value as Scalar];', 'return [value as Scalar];']],
    test: ['test/rules/own-without-a-value.test.ts', 'a caller without a value reaches no row without one'],
    finds: "Cannot read properties of undefined (reading 'map')",
  },
  {
    without: 'A series remembers only its last four writers',
    file: 'lib/features/data-series/series-counts.ts',
    edits: [['const WRITERS_KEPT = 64;', 'const WRITERS_KEPT = 4;']],
    test: ['test/lib/features/data-series/data-series.test.ts', 'remembers its last 64 writers, and no more'],
    finds: 'to have a length of 64 but got 4',
  },
  {
    without: 'Expiry does not count the entities that it could not delete',
    file: 'lib/features/expiry/expiry.ts',
    edits: [['failed: failures.length,', 'failed: 0,']],
    test: [
      'test/lib/features/expiry/expiry.test.ts',
      'is counted as failed while it cannot be deleted, and deleted by a later run',
    ],
    finds: '"failed": 0',
  },
  {
    without: 'The last pass of a fan-out begins immediately',
    file: 'lib/engine/consume/consume.ts',
    edits: [['const delaySeconds = engine.timing.hideIntentForSeconds;', 'const delaySeconds = 0;']],
    test: [
      'test/protocol/fanning-out.test.ts',
      'is read again in a last pass, which waits until no earlier write can commit',
    ],
    finds: 'expected 0 to be greater than 0',
  },
  {
    without: 'Totals have any number of sums',
    file: 'lib/features/totals/totals.ts',
    edits: [['const MAX_FIELDS = 50;', 'const MAX_FIELDS = 250;']],
    test: ['test/protocol/verifying-totals.test.ts', 'a model with totals is rejected for many fields'],
    finds: 'to throw an error',
  },
  {
    without: 'A page goes on for any caller',
    file: 'lib/http/query.ts',
    edits: [['JSON.stringify([caller.subject, bound])', "JSON.stringify(['', bound])"]],
    test: ['test/rules/transacting.test.ts', 'a page goes on for the caller who got it alone'],
    finds: '"status": 200',
  },
  {
    without: 'Any role may use an action of a transaction if it may use another one',
    file: 'lib/api/transact.ts',
    edits: [
      ['parts: ({ actions }) => actions.map(partOf),', 'parts: ({ actions }) => actions.slice(0, 1).map(partOf),'],
    ],
    test: ['test/rules/transacting.test.ts', 'needs the role of each action also where no rule limits rows'],
    finds: '"status": 200',
  },
  {
    without: 'The client uploads one block at a time',
    file: 'lib/client/upload.ts',
    edits: [['const CONCURRENCY = 4;', 'const CONCURRENCY = 1;']],
    test: [
      'test/scenarios/using-the-typed-client.test.ts',
      'goes directly to storage, with its progress, and is checked like any other',
    ],
    finds: 'expected 1 to be 4',
  },
  {
    without: 'An import sends one file at a time',
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
    without: 'The tables of periods are read one after another',
    file: 'lib/engine/read/retrieve.ts',
    edits: [['const PERIODS_CONCURRENCY = 8;', 'const PERIODS_CONCURRENCY = 1;']],
    test: ['test/lib/engine/concurrent-requests.test.ts', 'reads the tables of eight periods at a time'],
    finds: 'expected 1 to be 8',
  },
  {
    without: 'The entities of a keys-only index are read one after another',
    file: 'lib/engine/read/read-through-index.ts',
    edits: [['const POINT_READS_CONCURRENCY = 16;', 'const POINT_READS_CONCURRENCY = 1;']],
    test: ['test/lib/engine/concurrent-requests.test.ts', 'reads the entities of a keys-only index sixteen at a time'],
    finds: 'expected 1 to be 16',
  },
  {
    without: 'A writer settles any number of index entries before it returns',
    file: 'lib/engine/engine.ts',
    edits: [['const SETTLE_INLINE = 16;', 'const SETTLE_INLINE = 100_000;']],
    test: [
      'test/lib/engine/concurrent-requests.test.ts',
      'settles the index entries of up to sixteen entities of a transaction before it returns, and leaves more to the queue',
    ],
    finds: 'expected 17 to be',
  },
];
