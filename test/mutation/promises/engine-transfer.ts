import type { Cut } from '../../model/rules.ts';

export const ENGINE_TRANSFER: readonly Cut[] = [
  {
    without: 'A restore takes an entity that left soon after the moment for a later one',
    file: 'lib/engine/transfer/end-transfer.ts',
    edits: [['if (isClosed || (isLive && (await leavesLater(from, operationId)))) {', 'if (isClosed) {']],
    test: [
      'test/lib/operations/backup/settle-restored.test.ts',
      'finishes or undoes the move of 2 children, wherever it was cut, if the clock of the source is ahead',
    ],
    finds: '"kind": "conflict"',
  },
  {
    without: 'A restore leaves a family closed that has arrived',
    file: 'lib/engine/transfer/end-transfer.ts',
    edits: [
      [
        'if (isClosed || (isLive && (await leavesLater(from, operationId)))) {',
        'if (isLive && !isClosed && (await leavesLater(from, operationId))) {',
      ],
    ],
    test: [
      'test/lib/operations/backup/settle-restored.test.ts',
      'finishes or undoes the move of 120 children, wherever it was cut, if the clock of the source is ahead',
    ],
    finds: '"kind": "unfinished"',
  },
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
  {
    without: 'An entity leaves with what has changed since it was copied',
    recommendations: ['d-online-one'],
    file: 'lib/engine/transfer/transfer-entity.ts',
    edits: [
      [
        '      if (!Leaving) await tryCommit(engine, [leave(source)]);',
        `      const [latest] = await readSource(work);
      if (!Leaving) await tryCommit(engine, [leave(latest.state === 'live' ? latest : source)]);`,
      ],
    ],
    test: [
      'test/lib/engine/transfer/beside-others.test.ts',
      'the %s of an entity > takes along what a caller changes before it leaves',
    ],
    finds: '-     "note": "changed"',
  },
  {
    without: 'A message that is handled again undoes what has been done',
    recommendations: ['p-evt-idempotent'],
    file: 'lib/engine/transfer/transfer-entity.ts',
    edits: [['if (ours && !ours.system.MovingFrom) {', 'if (false) {']],
    test: [
      'test/lib/engine/transfer/beside-others.test.ts',
      'the %s of an entity > is done once if another process handles its message meanwhile',
    ],
    finds: "expected [] to deeply equal [ { shelf: 'a', cupId: '3'",
  },
  {
    without: 'A repeated message of a move adds to the journal that the destination is open',
    file: 'lib/engine/transfer/transfer-entity.ts',
    edits: [['await journalNamed(engine, [from, to]);', 'await journalNamed(engine, [from]);']],
    test: [
      'test/lib/engine/journal-named.test.ts',
      'a cut has a move as it is whose process died while its last lines were on their way',
    ],
    finds: 'to match object',
  },
  {
    without: 'A repeated message adds the end of its operation to the journal',
    file: 'lib/engine/transfer/transfer.ts',
    edits: [
      [
        "if (status === 'succeeded') return journalRecord(engine, transfer.operationId);",
        "if (status === 'succeeded') return;",
      ],
    ],
    test: [
      'test/lib/engine/journal-named.test.ts',
      'a cut has the end of a move whose process died when it had recorded that, once its message is handled again',
    ],
    finds: 'to match object',
  },
  {
    without: 'A repeated request adds the end of its operation to the journal',
    file: 'lib/engine/transfer/transfer.ts',
    edits: [['  if (earlier) await journalRecord(engine, operationId);\n', '']],
    test: [
      'test/lib/engine/journal-named.test.ts',
      'a cut has the end of a move whose process died when it had recorded that, once its request is repeated',
    ],
    finds: 'to match object',
  },
];
