import type { Cut } from '../../model/rules.ts';

export const ENGINE_WRITE: readonly Cut[] = [
  {
    without: 'A repetition of a change is refused because the row is no longer as before',
    file: 'lib/engine/write/checks.ts',
    edits: [['if (!(await isRepeat(checked))) throw error;', 'if (error || !(await isRepeat(checked))) throw error;']],
    test: ['test/rules/transitions.test.ts', 'PATCH > accepts a repetition that changes nothing, and only that'],
    finds: 'expected false to be true',
  },
  {
    without: 'A change of another value counts as a repetition',
    file: 'lib/engine/write/checks.ts',
    edits: [['isSame(await toText(after), await toText(current.values))', '(await toText(after)) !== undefined']],
    test: ['test/rules/transitions.test.ts', 'PATCH > accepts a repetition that changes nothing, and only that'],
    finds: 'expected 200 to be 403',
  },
  {
    without: 'A move that runs later is asked for the first pair of before and after only',
    file: 'lib/engine/write/recorded-rules.ts',
    edits: [['[rules, ...(rules.others ?? [])]', '[rules]']],
    test: [
      'test/rules/transitions.test.ts',
      'a move > of a loan that is asked to b is asked again when it runs, and has succeeded',
    ],
    finds: "expected 'failed' to be 'succeeded'",
  },
  {
    without: 'A write is stored without the checks of its declaration',
    file: 'lib/engine/write/checks.ts',
    edits: [
      [
        'if (after && !isUpkeep && !isTransfer) checkTogether(entity, after);',
        'if (after && isUpkeep && !isTransfer) checkTogether(entity, after);',
      ],
    ],
    test: [
      'test/lib/engine/write/declared-checks.test.ts',
      'PATCH > of stays is refused with the message of the check, and changes nothing',
    ],
    finds: 'invalid-input',
  },
  {
    without: 'A put without a read is stored without the checks of its declaration',
    file: 'lib/engine/write/entity-write.ts',
    edits: [
      [
        '!unread?.after || failedChecks(entity, unread.after).length === 0',
        '!unread?.after || failedChecks(entity, unread.after).length >= 0',
      ],
    ],
    test: [
      'test/lib/engine/write/declared-checks.test.ts',
      'PUT > of bookings is refused with the message of the check, and changes nothing',
    ],
    finds: 'invalid-input',
  },
  {
    without: 'A patch without a read passes the checks of its declaration by its own fields',
    file: 'lib/engine/write/entity-write.ts',
    edits: [['[derived, checks].some(', '[derived, derived ?? checks].some(']],
    test: [
      'test/lib/engine/write/declared-checks.test.ts',
      'a patch that returns nothing of some fields is checked with the stored ones',
    ],
    finds: 'isEarly',
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
    without: 'A transaction may have any number of rows',
    recommendations: ['g-egt-100'],
    file: 'lib/engine/write/plan.ts',
    edits: [['  if (actions.length > limit) {', '  if (actions.length > 9 * limit) {']],
    test: ['test/lib/engine/write/plan.test.ts', 'that needs more than 100 rows is rejected'],
    finds: 'expected error to match asymmetric matcher',
  },
  {
    without: 'A transaction may change a row twice',
    recommendations: ['g-egt-once'],
    file: 'lib/engine/write/plan.ts',
    edits: [['  if (new Set(actions.map(({ action }) => action.row)).size < actions.length) throw sameRow();\n', '']],
    test: [
      'test/lib/engine/write/plan.test.ts',
      'of two entities that swap a value is rejected before storage would reject it',
    ],
    finds: "expected [Function] to throw error including 'same row'",
  },
  {
    without: 'A transaction changes neither copies nor lists',
    recommendations: [
      'g-egt',
      'p-intra-egt',
      'p-list-egt',
      'p-list-change',
      'i-transaction',
      'g-partition-scope',
      'd-table-egt',
    ],
    file: 'lib/engine/write/plan.ts',
    edits: [['    planProjections(projections, changes, draft);\n', '']],
    test: [
      'test/lib/engine/write/plan.test.ts',
      'of several changes in a partition updates copies and lists in one transaction',
    ],
    finds: 'Property failed after',
  },
  {
    without: 'A writer names no index entries',
    recommendations: ['g-consistency', 'p-evt-queue', 'd-no-cross-transactions'],
    file: 'lib/engine/write/follow-up.ts',
    edits: [
      [
        'const indexEntries = isUpgraded ? unionOfEntries(entries.former, entries.next) : changedEntries(entity, entries);',
        'const indexEntries = isUpgraded ? unionOfEntries(entries.former, entries.next) : [];',
      ],
    ],
    test: [
      'test/lib/engine/write/plan.test.ts',
      'lists every index entry outside the partition that changes, and claims the new unique ones',
    ],
    finds: 'Property failed after',
  },
  {
    without: 'A writer names the index entries that stay, too',
    recommendations: ['c-message-size'],
    file: 'lib/engine/write/follow-up.ts',
    edits: [
      [
        '(entry) => !isIn(former, entry) || !isIn(next, entry) || changed.some(({ name }) => name === entry.index),',
        '(entry) => isIn(former, entry) || isIn(next, entry) || changed.some(({ name }) => name === entry.index),',
      ],
    ],
    test: [
      'test/lib/engine/write/plan.test.ts',
      'lists every index entry outside the partition that changes, and claims the new unique ones',
    ],
    finds: 'Property failed after',
  },
  {
    without: 'A put reads the row first',
    recommendations: ['c-upsert'],
    file: 'lib/engine/write/entity-write.ts',
    edits: [
      [
        '  if (engine.guard?.isLimited(entity.name) || !isOneRow(entity) || ifNoneMatch !== undefined) return undefined;',
        "  if (entity.name !== '' || ifNoneMatch !== undefined) return undefined;",
      ],
    ],
    test: [
      'test/lib/engine/write/entity-batch.test.ts',
      'takes one transaction for 100 entities that are one row each, without a read',
    ],
    finds: 'expected 101 to be 1',
  },
  {
    without: 'A writer leaves the index tables as they are',
    recommendations: [
      'p-inter-copies',
      'g-second-keys',
      'i-emulate',
      'd-indexes',
      'm-place',
      'g-cost-duplicate',
      'd-locate',
      'c-denormalize',
      'd-table-index',
    ],
    file: 'lib/engine/write/follow-up.ts',
    edits: [
      [
        'const indexEntries = isUpgraded ? unionOfEntries(entries.former, entries.next) : changedEntries(entity, entries);',
        'const indexEntries = isUpgraded ? unionOfEntries(entries.former, entries.next) : [];',
      ],
    ],
    test: [
      'test/protocol/keeping-indexes.test.ts',
      'is in every index after a create of ten transactions, and read with one',
    ],
    finds: 'expected 3 to be 10',
  },
  {
    without: 'A writer makes no copies in the partition',
    recommendations: ['p-intra-copies', 'g-duplicate-copies'],
    file: 'lib/engine/write/plan.ts',
    edits: [['    planProjections(projections, changes, draft);\n', '']],
    test: [
      'test/protocol/copies-in-the-partition.test.ts',
      'is rejected for a new entity (%s) with a 409, and nothing changes',
    ],
    finds: "expected undefined to match object { code: 'duplicate-value' }",
  },
  {
    without: 'A copy replaces that of another entity',
    recommendations: ['p-intra-unique'],
    file: 'lib/engine/write/plan.ts',
    edits: [
      [
        "  if (after) for (const entry of joined) put('insert', entry, after);",
        "  if (after) for (const entry of joined) put('upsert', entry, after);",
      ],
    ],
    test: ['test/protocol/copies-in-the-partition.test.ts', 'is given to exactly one of many concurrent writers'],
    finds: "expected [ { status: 'fulfilled', …(1) }, …(5) ] to have a length",
  },
  {
    without: 'A transaction may have any size',
    recommendations: ['g-egt-4mb'],
    file: 'lib/engine/write/plan.ts',
    edits: [['  if (actions.length <= 1 || needed <= limit)', '  if (actions.length <= 1 || needed <= 9 * limit)']],
    test: ['test/lib/engine/write/entity-batch.test.ts', 'takes as few transactions as its bytes fit into'],
    finds: 'to be 4',
  },
  {
    without: 'A merge reads the row first',
    recommendations: ['p-merge'],
    file: 'lib/engine/write/entity-write.ts',
    edits: [
      [
        '  if (engine.guard?.isLimited(entity.name) || !isOneRow(entity) || ifNoneMatch !== undefined) return undefined;',
        "  if (entity.name !== '' || ifNoneMatch !== undefined) return undefined;",
      ],
    ],
    test: ['test/lib/engine/write/entity-write.test.ts', 'is merged without a read, with the fields that it names'],
    finds: 'expected undefined to deeply equal { …(3) }',
  },
  {
    without: 'An entity is replaced without its ETag',
    recommendations: ['p-concurrency'],
    file: 'lib/engine/write/plan.ts',
    edits: [
      [
        "    : { kind: 'replace', row, properties, etag: before.etag };\n}\n\n/** The write of a row",
        "    : { kind: 'replace', row, properties, etag: '*' };\n}\n\n/** The write of a row",
      ],
    ],
    test: [
      'test/lib/engine/write/plan.test.ts',
      'of several changes in a partition updates copies and lists in one transaction',
    ],
    finds: 'Property failed after',
  },
  {
    without: 'An atomic batch writes the actions that succeed',
    recommendations: ['p-batch-deletes'],
    file: 'lib/engine/write/entity-batch.ts',
    edits: [['      else if (isAtomic) throw atAction(write, plan);\n', '']],
    test: ['test/lib/engine/write/entity-batch.test.ts', 'changes nothing if one action fails, and says which'],
    finds: 'promise resolved "[ { outcome:',
  },
  {
    without: 'A write may change a key',
    recommendations: ['s-stable'],
    file: 'lib/engine/write/entity-write.ts',
    edits: [['if (value === undefined || value === key[field] || normalize', 'if (value !== null || normalize']],
    test: ['test/lib/engine/write/checks.test.ts', '%s cannot change a key'],
    finds: "expected [ '200', …(1) ] to deeply equal [ 'invalid-input'",
  },
  {
    without: 'The writer leaves no index entries to the queue',
    recommendations: ['p-inter-eventual', 'i-eventual'],
    file: 'lib/engine/write/announcement.ts',
    edits: [["?.settle === 'queue' ? 'queued' : 'inline',", "?.settle === undefined ? 'queued' : 'inline',"]],
    test: [
      'test/protocol/settling-by-the-queue.test.ts',
      'the writer leaves the entries of the declared indexes to the queue',
    ],
    finds: 'expected 10 to be 7',
  },
  {
    without: 'A change leaves the index tables as they are',
    recommendations: ['m-when'],
    file: 'lib/engine/write/follow-up.ts',
    edits: [
      [
        'const indexEntries = isUpgraded ? unionOfEntries(entries.former, entries.next) : changedEntries(entity, entries);',
        'const indexEntries = isUpgraded ? unionOfEntries(entries.former, entries.next) : [];',
      ],
    ],
    test: [
      'test/protocol/keeping-indexes.test.ts',
      'updates its index entries when it changes, and removes them when it is deleted',
    ],
    finds: 'to deeply equal []',
  },
  {
    without: 'An intent may be larger than a message',
    recommendations: ['d-queue-64k'],
    file: 'lib/engine/write/announcement.ts',
    edits: [['  if (Buffer.byteLength(text) > limit)', '  if (Buffer.byteLength(text) > 99 * limit)']],
    test: [
      'test/protocol/index-table-shapes.test.ts',
      'is refused for a list with more elements than one message can name, and nothing is written',
    ],
    finds: '-   "message": "The change affects more index entries than one message can list."',
  },
  {
    without: 'A change of some fields reads the groups of the others',
    recommendations: ['d-vertical-slow'],
    file: 'lib/engine/write/entity-write.ts',
    edits: [
      [
        'read: { fields: withDefaultFields(entity, Object.keys(Object(patch))), isWhole: true },',
        'read: { fields: Object.keys(entity.columns), isWhole: true },',
      ],
    ],
    test: ['test/scenarios/splitting-products.test.ts', 'change their price and stock without their texts'],
    finds: '+       "read": "rows",',
  },
  {
    without: 'Each action of a batch is a transaction',
    recommendations: ['p-batch', 'c-batch', 'c-batching'],
    file: 'lib/engine/write/entity-batch.ts',
    edits: [['if (isClosed || isAlone || rows', 'if (rows.size >= 0 || isClosed || isAlone || rows']],
    test: [
      'test/lib/engine/write/entity-batch.test.ts',
      'takes as few transactions as the rows of its entities fit into',
    ],
    finds: 'expected 100 to be 2',
  },
  {
    without: 'A batch sends the actions of several partitions together',
    recommendations: ['d-load'],
    file: 'lib/engine/write/entity-batch.ts',
    edits: [
      [
        'Map.groupBy(writes, ({ address: { table, partition } }) => JSON.stringify([table, partition]))',
        'Map.groupBy(writes, ({ address: { table } }) => table)',
      ],
    ],
    test: [
      'test/lib/engine/write/entity-batch.test.ts',
      'takes as few transactions as the rows of its entities fit into',
    ],
    finds: 'to have a length of 50',
  },
  {
    without: 'An archive or a move is sent to the queue of index changes',
    recommendations: ['d-queue-by-function'],
    file: 'lib/engine/write/operation.ts',
    edits: [
      ['import { TRANSFERS_QUEUE, type Transfer }', 'import { INDEX_CHANGES_QUEUE, type Transfer }'],
      ['partFor(engine, TRANSFERS_QUEUE, change.address)', 'partFor(engine, INDEX_CHANGES_QUEUE, change.address)'],
    ],
    test: ['test/lib/engine/transfer/requesting.test.ts', 'the request of an %s that is repeated is one operation'],
    finds: 'No message of transfers has',
  },
  {
    without: 'A writer takes a row into which another program has merged for its own write',
    file: 'lib/engine/write/eventual-transaction.ts',
    edits: [['!entity.existing || isSame(before.values, written[index]?.values)', 'written.length > index']],
    test: ['test/existing/beside.test.ts', 'update with an interrupting merge: no write is lost or done twice'],
    finds: 'to deeply equal { memberId:',
  },
];
