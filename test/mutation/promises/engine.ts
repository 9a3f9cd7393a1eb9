import type { Cut } from '../../model/rules.ts';

export const ENGINE: readonly Cut[] = [
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
