import type { Cut } from '../../model/rules.ts';

export const ENGINE_RECONCILE: readonly Cut[] = [
  {
    without: 'All work is in the first queue',
    recommendations: ['p-evt-queues', 'd-queue-several', 'c-queue-many'],
    file: 'lib/engine/reconcile/queues.ts',
    edits: [['queueParts === 1 ? 0 :', 'queueParts >= 1 ? 0 :']],
    test: [
      'test/lib/engine/reconcile/queues.test.ts',
      'partitions are spread evenly over the parts, each always to the same one',
    ],
    finds: "expected [ 'index-changes' ] to deeply equal",
  },
  {
    without: 'A hold is not extended',
    recommendations: ['p-evt-hidden', 'c-queue-update', 'p-evt-workers', 'p-partition-workers'],
    file: 'lib/engine/reconcile/hold.ts',
    edits: [['if (now() >= hiddenAt + renewAfterMs) {', 'if (hiddenAt < 0) {']],
    test: [
      'test/lib/engine/reconcile/hold.test.ts',
      'an extended hold excludes other consumers for as long as the work takes',
    ],
    // Its own end comes at about the same time as another consumer.
    finds: ' to be ',
  },
  {
    without: 'Two entities may claim one value',
    recommendations: ['p-inter-unique'],
    file: 'lib/engine/reconcile/unique-claim.ts',
    edits: [["    if (!isOwnedBy(row, owner)) return 'held-by-another';\n", '']],
    test: ['test/protocol/keeping-indexes.test.ts', 'of one email: exactly one succeeds'],
    finds: "expected [ { status: 'fulfilled', …(1) }, …(1) ] to have a length",
  },
  {
    without: 'The second message of work does not say what to do',
    recommendations: ['p-evt-restart'],
    file: 'lib/engine/reconcile/hold.ts',
    edits: [
      ['sendMessage(engine.storage, queue, body, delaySeconds', 'sendMessage(engine.storage, queue, {}, delaySeconds'],
      [
        '  await unlessUnavailable(sendWorkOf(engine, reminder, { delaySeconds }));',
        '  await unlessUnavailable(sendWorkOf(engine, { ...reminder, text: JSON.stringify(body) }, { delaySeconds }));',
      ],
    ],
    test: [
      'test/lib/engine/reconcile/hold.test.ts',
      'is visible again once its reminder is, and the held message is then dropped',
    ],
    finds: "expected {} to match object { version: 1, intent: 'one'",
  },
  {
    without: 'A message is handled without its work',
    recommendations: ['d-eventual', 'i-converge'],
    file: 'lib/engine/reconcile/reconcile.ts',
    edits: [
      [
        '      return item && reconcileEntity(work, { ...item, table }, item.indexEntries);\n    }\n    const tombstones',
        '      return undefined;\n    }\n    const tombstones',
      ],
    ],
    test: ['test/protocol/surviving-faults.test.ts', '%s: the next consumer finishes the work'],
    finds: 'to deeply equal []',
  },
];
