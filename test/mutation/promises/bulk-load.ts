import type { Cut } from '../../model/rules.ts';

const FILE = 'lib/operations/bulk-load.ts';
const TESTS = 'test/lib/operations/bulk-load.test.ts';

/** The rules of the table *Bulk load* in docs/internals/consistency.md. */
export const BULK_LOAD: readonly Cut[] = [
  {
    without: 'A bulk load goes on when another run has taken its mark over',
    file: FILE,
    edits: [
      [
        'signal: signal ? AbortSignal.any([signal, running.lost]) : running.lost,',
        'signal: signal ?? new AbortController().signal,',
      ],
    ],
    test: [TESTS, 'ends the first one, which stood still, when that one looks again'],
    finds: "expected [ 'done', 'done' ] to deeply equal [ 'busy', 'done' ]",
  },
  {
    without: 'A repeated bulk load adds nothing that it finds to the journal',
    file: FILE,
    edits: [['  if (engine.storage.journal)\n', '  if (!engine.storage.journal)\n']],
    test: [TESTS, 'adds to the journal what the first one had stored when it was killed'],
    finds: 'expected {} to deeply equal',
  },
  {
    without: 'A row that a repeated bulk load finds stored by a late request is rejected',
    file: FILE,
    edits: [
      [
        'load.isResumed ? await withoutStored(load, [...refusals.keys()], stored) : [...refusals.keys()]',
        '[...refusals.keys()]',
      ],
    ],
    test: [TESTS, 'adds the entries of a row that a late request of the first one has stored meanwhile'],
    finds: 'expected { read: 6, created: +0, …(4) } to match object',
  },
  {
    without: 'A bulk load begins while its entity gets another key',
    file: FILE,
    edits: [['  await requireRekeyed(engine, entity);\n', '']],
    test: [TESTS, 'refuses an entity that gets another key, before it writes anything'],
    finds: "expected 'done' to be 'busy'",
  },
];
