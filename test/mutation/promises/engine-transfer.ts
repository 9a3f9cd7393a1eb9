import type { Cut } from '../../model/rules.ts';

export const ENGINE_TRANSFER: readonly Cut[] = [
  {
    without: 'A large delete runs without the rules of the caller who requested it',
    file: 'lib/engine/transfer/large-delete.ts',
    edits: [['      if (!isAllowed(rules, source.values)) return RULED_OUT;\n', '']],
    test: [
      'test/rules/transferring.test.ts',
      'the delete of a caller whom rules limit > takes nothing that an admin has made final, and changes nothing',
    ],
    finds: '"status": "succeeded"',
  },
  {
    without: 'A move leaves the entity where it was',
    recommendations: ['g-1n-move'],
    file: 'lib/engine/transfer/transfer-entity.ts',
    edits: [['      if (!Leaving) await tryCommit(engine, [leave(source)]);', '      if (!Leaving) return undefined;']],
    test: [
      'test/protocol/archiving-and-moving.test.ts',
      'is done once, however the two deliveries interleave, and keeps later writes',
    ],
    finds: '"department": "Here"',
  },
];
