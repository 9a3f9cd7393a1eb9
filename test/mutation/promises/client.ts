import type { Cut } from '../../model/rules.ts';

export const CLIENT: readonly Cut[] = [
  {
    without: 'The client uploads one block at a time',
    recommendations: ['c-blob-parallel-blocks'],
    file: 'lib/client/upload.ts',
    edits: [['const CONCURRENCY = 4;', 'const CONCURRENCY = 1;']],
    test: [
      'test/scenarios/using-the-typed-client.test.ts',
      'goes directly to storage, with its progress, and is checked like any other',
    ],
    finds: 'expected 1 to be 4',
  },
  {
    without: 'A file is sent in blocks of 4 MiB',
    recommendations: ['c-blob-size'],
    file: 'lib/client/files.ts',
    edits: [['const BLOCK_BYTES = 8_388_608;', 'const BLOCK_BYTES = 4_194_304;']],
    test: [
      'test/lib/client/client.test.ts',
      'a file is sent in blocks of more than 4 MiB, with which storage is faster',
    ],
    finds: 'expected [ 4194304, 4194304, 4194304',
  },
];
