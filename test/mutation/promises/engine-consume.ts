import type { Cut } from '../../model/rules.ts';

export const ENGINE_CONSUME: readonly Cut[] = [
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
    without: 'A message is tried any number of times',
    recommendations: ['p-evt-poison'],
    file: 'lib/engine/consume/consume.ts',
    edits: [['!isPointless && attempts < MAX_ATTEMPTS', '!isPointless']],
    test: [
      'test/lib/engine/consume/poison.test.ts',
      'returns to the queue until its last attempt and is then recorded with the reason',
    ],
    finds: 'A list is lost.',
  },
  {
    without: 'A message that never succeeds is retried',
    recommendations: ['c-no-retry'],
    file: 'lib/engine/consume/consume.ts',
    edits: [['error instanceof NeverSucceeds || POINTLESS.has(code)', 'POINTLESS.has(code)']],
    test: ['test/lib/engine/consume/poison.test.ts', 'is recorded immediately if another attempt is pointless'],
    finds: 'It is nonsense.',
  },
  {
    without: 'A message that storage refuses for its content is retried',
    recommendations: [],
    file: 'lib/engine/consume/consume.ts',
    edits: [["new Set<string>(['too-large', 'invalid-input'])", 'new Set<string>()']],
    test: ['test/lib/engine/consume/poison.test.ts', 'is recorded immediately if another attempt is pointless'],
    finds: 'A value is wrong.',
  },
];
