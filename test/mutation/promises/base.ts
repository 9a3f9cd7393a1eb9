import type { Cut } from '../../model/rules.ts';

export const BASE: readonly Cut[] = [
  {
    without: 'Background work begins with any number of requests',
    recommendations: ['g-no-spikes', 'c-ramp-up'],
    file: 'lib/base/pace.ts',
    edits: [['const FIRST = 8;', 'const FIRST = 800;']],
    test: [
      'test/lib/base/pace.test.ts',
      'begins with eight, has one more each second, and begins anew after a minute without work',
    ],
    finds: 'expected 32 to be 8',
  },
  {
    without: 'A process has any number of requests in progress',
    recommendations: ['c-parallelism'],
    file: 'lib/base/pace.ts',
    edits: [['if (running.caller + running.background >= limit) return undefined;\n', '']],
    test: ['test/lib/base/pace.test.ts', 'never has more in progress'],
    finds: 'expected 10 to be 5',
  },
];
