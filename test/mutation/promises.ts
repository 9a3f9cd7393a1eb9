// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the edits are texts of code
import type { Cut } from '../model/rules.ts';

/**
 * Promises of the documents: the code without each one, and the test that then fails. `npm run promises` proves it, with the samples and the
 * storage of `npm test`.
 */

export const PROMISES: readonly Cut[] = [
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
    without: 'An entry of an index that was left behind erases the row of another user',
    file: 'lib/api/user-data.ts',
    edits: [['isOwn = current[field] === subject;', 'isOwn = true;']],
    test: [
      'test/rules/erasing-users.test.ts',
      'an entry of an index that was left behind erases nothing of its present user',
    ],
    finds: '"changed": 2',
  },
  {
    without: 'What is erased of a user may have changed since it was read',
    file: 'lib/api/user-data.ts',
    edits: [['{ delete: key, ifMatch: own.etag }', '{ delete: key }']],
    test: [
      'test/rules/erasing-users.test.ts',
      'a row that changes while it is deleted stays, until the request is repeated',
    ],
    finds: '"failed": 0',
  },
  {
    without: 'A rule may take a field for the subject that no erasure of a user finds',
    file: 'lib/define/validate/validate-user-rows.ts',
    edits: [['if (!Object.hasOwn(ofUser, field))', 'if (ofUser === undefined)']],
    test: [
      'test/lib/define/validate/validate-user-rows.test.ts',
      'once an entity has ofUser, each field that is taken for the subject needs it > a membership',
    ],
    finds: 'to throw an error',
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
    without: 'A change may begin by one pair of before and after, and end by another one',
    file: 'lib/define/codec/limit.ts',
    edits: [
      [
        'isWithin(one.before, before) && (!after || isWithin(one.after, after));',
        'isWithin(one.before, before) && (!after || transitions?.some((other) => isWithin(other.after, after)) === true);',
      ],
    ],
    test: [
      'test/rules/transitions.test.ts',
      'PATCH > lets each caller make the changes of one pair, and mixes no pairs',
    ],
    finds: 'bob: asked to lost',
  },
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
    without: 'A repetition of a change is accepted from every reader',
    file: 'lib/access/limit.ts',
    edits: [
      [
        'limitsOf.get(of)?.update?.some(({ after }) => isWithin(after, values)) ?? true',
        'limitsOf.has(of) || values !== undefined',
      ],
    ],
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
    without: 'An import sends one file at a time',
    recommendations: ['c-blob-parallel'],
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
  {
    without: 'A key may have any length',
    recommendations: ['g-key-size', 'd-table-key-size'],
    file: 'lib/define/keys/key-template.ts',
    edits: [['  return key.length <= MAX_KEY_LENGTH ? key : refuseKey(template);', '  return key;']],
    test: ['test/lib/define/keys/key-template.test.ts', 'rejects %j and names the field'],
    finds: "expected function to throw an error, but it didn't",
  },
  {
    without: 'Numbers in keys are not padded',
    recommendations: ['g-pad-numbers', 'p-intra-pad', 'g-sort-row-key'],
    file: 'lib/define/keys/key-template.ts',
    edits: [["    return text.padStart(part.width, '0');", '    return text;']],
    test: [
      'test/lib/define/keys/key-template.test.ts',
      'keeps the order of zero-padded numbers and parses them as numbers',
    ],
    finds: 'Property failed after',
  },
  {
    without: 'A hash has only the first letter of a text',
    recommendations: ['d-shard-hash', 'g-no-hot-partitions'],
    file: 'lib/define/keys/key-template.ts',
    edits: [[".update(value, 'utf8')", ".update(value.slice(0, 1), 'utf8')"]],
    test: ['test/lib/define/keys/key-template.test.ts', 'spreads keys with one first letter evenly'],
    finds: 'expected 1 to be 256',
  },
  {
    without: 'Every row is in the first bucket',
    recommendations: [
      'p-inter-load',
      'd-scale',
      'd-shard-even',
      'i-sharded',
      'p-append-indexes',
      'd-table-monotonic',
      'c-append',
      'c-high-traffic',
    ],
    file: 'lib/define/keys/key-template.ts',
    edits: [['Number.parseInt(shortHash(text), 16) % part.buckets)', '0)']],
    test: [
      'test/protocol/index-table-shapes.test.ts',
      'spreads one day over several partitions and reads it as one list, in order and by pages',
    ],
    finds: 'expected 1 to be 8',
  },
  {
    without: 'A key that begins with a time has the oldest first',
    recommendations: ['g-newest-first', 'p-tail-key'],
    file: 'lib/define/keys/key-template.ts',
    edits: [['return String(MAX_TICKS - ticks)', 'return String(ticks)']],
    test: ['test/lib/define/keys/log-tail.test.ts', 'of %s equal those of .NET'],
    finds: "expected '0000000000000000000' to be '3155378975999999999'",
  },
  {
    without: 'The time left is not padded',
    recommendations: ['p-tail-pad'],
    file: 'lib/define/keys/key-template.ts',
    edits: [[".padStart(DIGITS, '0')", '']],
    test: ['test/lib/define/keys/log-tail.test.ts', 'of %s equal those of .NET'],
    finds: "expected '0' to be '0000000000000000000'",
  },
  {
    without: 'A key that begins with a time is not read as its instant',
    recommendations: ['p-tail-back'],
    file: 'lib/define/keys/key-template.ts',
    edits: [['const ticks = MAX_TICKS - BigInt(digits);', 'const ticks = BigInt(digits);']],
    test: ['test/lib/define/keys/log-tail.test.ts', 'make a key that parses back, and a range of whole days'],
    finds: 'expected { …(2) } to deeply equal { Object (at, claimId) }',
  },
  {
    without: 'Fields are not escaped in keys',
    recommendations: ['p-compound-separator'],
    file: 'lib/define/keys/key-template.ts',
    edits: [['return first === undefined ? escaped : escaped.replaceAll(first, escapeCharacter);', 'return escaped;']],
    test: ['test/lib/define/keys/key-template.test.ts', 'parses every text that it built a key from'],
    finds: 'Property failed after',
  },
  {
    without: 'A range ends before the keys that begin with its upper bound',
    file: 'lib/define/keys/key-template.ts',
    edits: [["before: afterPrefix(bound('to'))", "before: bound('to')"]],
    test: ['test/lib/define/keys/key-template.test.ts', 'treats both bounds of a range as prefixes'],
    finds: 'expected false to be true',
  },
  {
    without: 'A range is read from the beginning of its partition',
    recommendations: ['c-density', 'g-range-queries', 'p-filter-row', 'c-partition-queries', 'i-contiguous'],
    file: 'lib/storage/rows.ts',
    edits: [
      [
        'conditions.push(after === undefined ? `RowKey ge ${literal(from)}` : `RowKey gt ${literal(after)}`);',
        "conditions.push(`RowKey ge '' and not (RowKey lt ${literal(after ?? from)})`);",
      ],
    ],
    test: ['test/lib/storage/rows.test.ts', 'starts a range of rows at its first row: %o'],
    finds: "expected [ { partition: 'o\\'3', row: '' } ] to deeply equal",
  },
  {
    without: 'A range is read from the first partition of its table',
    recommendations: ['p-filter-partition', 'd-select-partition'],
    file: 'lib/storage/rows.ts',
    edits: [['[`PartitionKey eq ${literal(partition)}`]', '[`PartitionKey le ${literal(partition)}`]']],
    test: ['test/lib/storage/rows.test.ts', 'starts a range of rows at its first row: %o'],
    finds: "expected [ { partition: '', row: 'row\\'2' } ] to deeply equal",
  },
  {
    without: 'A scan begins each page at the first row of the table',
    recommendations: ['g-no-table-scans'],
    file: 'lib/storage/rows.ts',
    edits: [
      [
        '`PartitionKey ge ${partition} and (PartitionKey gt ${partition} or RowKey gt ${row})`',
        '`(PartitionKey gt ${partition} or PartitionKey eq ${partition} and RowKey gt ${row})`',
      ],
    ],
    test: ['test/lib/storage/rows.test.ts', 'scans few rows more than once, with pages of %d'],
    finds: 'expected 1830 to be less than or equal to 660',
  },
  {
    without: 'An entity may have any size',
    recommendations: ['g-entity-size'],
    file: 'lib/define/codec/entity-codec.ts',
    edits: [['  if (rowSize(properties) > MAX_ENTITY_BYTES)', '  if (rowSize(properties) > 9 * MAX_ENTITY_BYTES)']],
    test: ['test/lib/define/codec/entity-codec.test.ts', 'that is larger than storage accepts is rejected'],
    finds: "expected function to throw an error, but it didn't",
  },
  {
    without: 'An entity may have any number of properties',
    recommendations: ['g-entity-properties'],
    file: 'lib/define/codec/entity-codec.ts',
    edits: [['  if (properties.length > MAX_PROPERTIES)', '  if (properties.length > 9 * MAX_PROPERTIES)']],
    test: [
      'test/lib/define/codec/entity-codec.test.ts',
      'whose long texts take more properties than a row can have is rejected',
    ],
    finds: 'expected [Function] to throw an error',
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
    without: 'A continuation is valid for any query',
    file: 'lib/engine/read/continuation.ts',
    edits: [['      audience: digestOf(query),\n', '']],
    test: [
      'test/lib/engine/read/continuation.test.ts',
      'is rejected if it was altered, belongs to another query or was not encrypted',
    ],
    finds: `promise resolved "{ row: 'a', period: '2026-11-20' }" instead of`,
  },
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
  {
    without: 'A hold is not extended',
    recommendations: ['p-evt-hidden', 'c-queue-update', 'p-evt-workers', 'p-partition-workers'],
    file: 'lib/engine/reconcile/hold.ts',
    edits: [['if (now() >= hiddenAt + renewAfterMs) {', 'if (hiddenAt < 0) {']],
    test: [
      'test/lib/engine/reconcile/hold.test.ts',
      'an extended hold excludes other consumers for as long as the work takes',
    ],
    finds: "expected { queue: 'work-1', …(4) } to be undefined",
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
    without: 'No table is dropped',
    recommendations: ['g-drop-table', 'p-drop-table'],
    file: 'lib/features/high-volume-delete/high-volume-delete.ts',
    edits: [['      await unlessBeingDeleted(dropTable(engine.storage, table));\n', '']],
    test: [
      'test/lib/features/high-volume-delete/high-volume-delete.test.ts',
      'creates the tables of today and tomorrow, and drops only the days past retention',
    ],
    finds: "expected [ 'login20200101', 'logins',",
  },
  {
    without: 'Tables are created when their period has begun',
    recommendations: ['p-drop-new-tables'],
    file: 'lib/features/high-volume-delete/high-volume-delete.ts',
    edits: [['return [current, addPeriods(period.per, current, 1)].map', 'return [current].map']],
    test: [
      'test/lib/features/high-volume-delete/high-volume-delete.test.ts',
      'are created before their period begins and dropped after their retention',
    ],
    finds: "expected [ 'lpayments202401' ] to deeply equal [ Array(2) ]",
  },
  {
    without: 'A table may have the name of a period of another entity',
    recommendations: ['p-drop-names'],
    file: 'lib/features/high-volume-delete/high-volume-delete.ts',
    edits: [
      [
        'if (isLikePeriod(entity, table) || (table === other.table && isLikePeriod(entity, withDigits(other))))',
        'if (isLikePeriod(entity, table))',
      ],
    ],
    test: ['test/lib/define/validate/options.test.ts', 'periods of two entities whose tables could have one name'],
    finds: 'expected [Function] to throw an error',
  },
  {
    without: 'A count is set by a read and a write',
    recommendations: ['p-series-merge', 'p-upsert'],
    file: 'lib/features/data-series/series-counts.ts',
    edits: [['if (!isConditional(conditions) && !slots.overflow', 'if (counts.size < 0 && !slots.overflow']],
    test: ['test/lib/features/data-series/data-series.test.ts', 'is set by one merge and read by one get'],
    finds: 'expected 2 to be 1',
  },
  {
    without: 'Each process has a secret of its own',
    recommendations: ['p-continue-stored'],
    file: 'lib/engine/read/continuation.ts',
    edits: [
      [
        "if (await tryAction(storage, where, { kind: 'insert', row: SECRET_ADDRESS.row, properties })) return secret;",
        "if (where) return tryAction(storage, where, { kind: 'insert', row: SECRET_ADDRESS.row, properties }).then(() => secret);",
      ],
    ],
    test: [
      'test/lib/engine/read/continuation.test.ts',
      'is valid in every process, even if all created the secret concurrently',
    ],
    finds: 'The continuation is not valid for this query.',
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
    without: 'Storage is asked once',
    recommendations: ['p-evt-retry', 'c-retry', 'c-backoff-targets'],
    file: 'lib/storage/storage.ts',
    edits: [['const RETRIES = 3;', 'const RETRIES = 0;']],
    test: ['test/lib/storage/storage.test.ts', 'retries a 429 without Retry-After three times like a 503: %s'],
    finds: '429: expected 1 to be 4',
  },
  {
    without: 'Each record is a block of its own',
    recommendations: ['p-log-buffer', 'c-blob-appends'],
    file: 'lib/operations/audit-log.ts',
    edits: [
      ['return waiting.slice(0, end === -1 ? undefined : end);', 'return waiting.slice(0, end === 0 ? undefined : 1);'],
    ],
    test: [
      'test/lib/operations/audit-log.test.ts',
      'stores each of many concurrent appends once, in few blocks of one blob',
    ],
    finds: 'expected 500 to be 2',
  },
  {
    without: 'The names of the blobs of the log begin with the time',
    recommendations: ['c-blob-time', 'd-blob-names', 'c-blob-hash'],
    file: 'lib/operations/audit-log.ts',
    edits: [['return `${slotOf(time.slice(0, DAY))}/${time}`;', 'return time;']],
    test: [
      'test/lib/operations/audit-log.test.ts',
      'stores each of many concurrent appends once, in few blocks of one blob',
    ],
    finds: '.toMatch() expects to receive a string, but got undefined',
  },
  {
    without: 'The blobs of the log are those of a day',
    recommendations: ['p-log-names'],
    file: 'lib/operations/audit-log.ts',
    edits: [
      [
        "return `${at.slice(0, 13).replace(/[-T]/g, '/')}00`;",
        "return `${at.slice(0, 10).replace(/[-T]/g, '/')}/0000`;",
      ],
    ],
    test: [
      'test/lib/operations/audit-log.test.ts',
      'writes each hour to its own blobs, including a late change of a previous hour',
    ],
    finds: 'expected [ +0, +0 ] to deeply equal [ 1, 1 ]',
  },
  {
    without: 'A record of the log is not a line',
    recommendations: ['p-log-lines'],
    file: 'lib/operations/audit-log.ts',
    edits: [['Buffer.from(`${jsonText(change)}\\n`)', 'Buffer.from(`${jsonText(change)} `)']],
    test: [
      'test/lib/operations/audit-log.test.ts',
      'writes each hour to its own blobs, including a late change of a previous hour',
    ],
    finds: 'expected [] to deeply equal [ …(2) ]',
  },
  {
    without: 'A change is acknowledged before it is recorded',
    file: 'lib/operations/audit-log.ts',
    edits: [
      [
        '      await waitUntilStored(received);\n    },\n    async catchUp',
        '      void waitUntilStored(received).catch(() => undefined);\n    },\n    async catchUp',
      ],
    ],
    test: ['test/lib/operations/audit-log.test.ts', 'stores every acknowledged change once'],
    finds: 'no fault: expected [] to deeply equal ArrayContaining{…}',
  },
  {
    without: 'A load near the target is in no metric',
    recommendations: ['p-append-detect', 'd-shard-limits', 'd-monitor'],
    file: 'lib/storage/heat.ts',
    edits: [['PARTITION_TARGET * 0.6', 'PARTITION_TARGET * 600']],
    test: [
      'test/lib/storage/heat.test.ts',
      'names a partition above a hundredth of the target in metrics by its slot, once a minute, and no other',
    ],
    finds: "expected undefined to deeply equal { resource: 'logins', slot: '297' }",
  },
  {
    without: 'No partition is hot',
    recommendations: ['d-resources'],
    file: 'lib/operations/heat.ts',
    edits: [['isHot: one.load - one.error >= HOT || one.throttled >= 1,', 'isHot: one.load - one.error >= 1e9 * HOT,']],
    test: [
      'test/lib/operations/heat.test.ts',
      'is hot at a tenth of the limit, which the error does not reach, or if storage rejects requests',
    ],
    finds: 'expected false to be true',
  },
  {
    without: 'Nothing says what to do with a hot partition',
    recommendations: ['d-new-scheme'],
    file: 'lib/operations/heat.ts',
    edits: [['advice: adviceOn(place, one),', 'advice: adviceOn(place, one).slice(9),']],
    test: ['test/lib/operations/heat.test.ts', 'says what is in the partition and what to do: %s'],
    finds: '.toMatch() expects to receive a string, but got undefined',
  },
  {
    without: 'A signature is valid for hours',
    recommendations: ['p-sas-limited'],
    file: 'lib/access/grant.ts',
    edits: [['export const VALID_FOR_MS = 15 * MINUTE_MS;', 'export const VALID_FOR_MS = 150 * MINUTE_MS;']],
    test: ['test/lib/access/grant.test.ts', 'allows reading for fifteen minutes, with tolerance for slow clocks'],
    finds: "expected { table: 'employees', …(6) } to deeply equal",
  },
  {
    without: 'Encrypted fields are stored as they are',
    recommendations: ['g-encrypt', 'g-encrypt-declare'],
    file: 'lib/features/encrypted-properties/encrypted-properties.ts',
    edits: [['      if (fields.length === 0) return values;', '      if (fields.length >= 0) return values;']],
    test: [
      'test/protocol/encrypting.test.ts',
      'is never stored in plain text, and decrypts through the key and through each copy',
    ],
    finds: "not to contain '295847284'",
  },
  {
    without: 'Encrypted fields are stored as texts',
    recommendations: ['g-encrypt-binary'],
    file: 'lib/features/encrypted-properties/encrypted-properties.ts',
    edits: [['.sealed === sealed.sealed ? bytes : sealed.sealed };', ".sealed === '' ? bytes : sealed.sealed };"]],
    test: [
      'test/lib/features/encrypted-properties/encrypted-properties.test.ts',
      'is binary, and gives the same text again',
    ],
    finds: 'Property failed after',
  },
  {
    without: 'A merge may change an encrypted field',
    recommendations: ['g-encrypt-no-merge'],
    file: 'lib/features/encrypted-properties/encrypted-properties.ts',
    edits: [
      [
        '      const field = encrypted.find((each) => fields.includes(each));',
        '      const field = encrypted.find((each) => fields.includes(`${each} `));',
      ],
    ],
    test: ['test/protocol/encrypting.test.ts', 'is rejected in a PATCH, and kept by a PATCH of other fields'],
    finds: 'promise resolved "{ …(2) }" instead of rejecting',
  },
  {
    without: 'Values keep their former key',
    recommendations: ['g-encrypt-rotate'],
    file: 'lib/features/encrypted-properties/encrypted-properties.ts',
    edits: [
      [
        '  if (toText(wrapping.keyId) === (await keys.currentKeyId())) return sealed;',
        "  if (toText(wrapping.keyId) !== '') return sealed;",
      ],
    ],
    test: [
      'test/protocol/encrypting.test.ts',
      'needs no downtime: old values decrypt, new ones use the new key, and a run rewraps the rest',
    ],
    finds: 'expected 0 to be greater than 0',
  },
  {
    without: 'The current key is asked for each time',
    recommendations: ['c-cache-keys'],
    file: 'lib/storage/key-vault-key-ring.ts',
    edits: [['    if (kept && Date.now() < kept.until) return kept;\n', '']],
    test: [
      'test/lib/storage/key-vault-key-ring.test.ts',
      'requests the current key once, and makes one request for each unwrapping',
    ],
    finds: 'expected [ …(3) ] to deeply equal [ …(2) ]',
  },
  {
    without: 'A large text is not stored in a blob',
    recommendations: ['g-11-large', 'p-large-blob', 'd-fitting-store'],
    file: 'lib/features/large-entities/large-entities.ts',
    edits: [
      [
        "if (typeof text !== 'string' || fitsRow(entity, text)) continue;",
        "if (typeof text !== 'string' || text.length >= 0) continue;",
      ],
    ],
    test: ['test/protocol/large-entities.test.ts', 'is read back unchanged: %s'],
    finds: 'The field comments is longer than it can be',
  },
  {
    without: 'A long list stays in its row',
    recommendations: ['p-list-blob', 'p-list-size'],
    file: 'lib/engine/read/member-list.ts',
    edits: [['const MAX_LIST_LENGTH = 32_768;', 'const MAX_LIST_LENGTH = 32_768_000;']],
    test: [
      'test/protocol/long-lists.test.ts',
      'moves to a blob and back as it grows and shrinks, in the partition and in another',
    ],
    finds: 'expected [ false, false ] to deeply equal [ true, true ]',
  },
  {
    without: 'A page has any number of lookups',
    file: 'lib/engine/read/read-through-index.ts',
    edits: [['const MAX_LOOKUPS = 256;', 'const MAX_LOOKUPS = 2_560;']],
    test: ['test/lib/engine/read/read-through-index.test.ts', 'ends after 256 lookups'],
    finds: 'expected [ 300 ] to deeply equal [ 256, 44 ]',
  },
  {
    without: 'Another value with the same hash is returned',
    file: 'lib/engine/read/read-through-index.ts',
    edits: [['stored === undefined || stored === value;', 'stored === undefined || value !== undefined;']],
    test: [
      'test/lib/engine/read/read-through-index.test.ts',
      'another value with the same hash is not returned from %s',
    ],
    finds: "expected [ { shelf: 'everything', …(2) }, …(1) ] to deeply equal",
  },
  {
    without: 'An index is read one partition after another',
    recommendations: ['p-parallel', 'd-parallel-queries', 'd-parallel-across'],
    file: 'lib/engine/read/read-through-index.ts',
    edits: [['const PARTITIONS_CONCURRENCY = 16;', 'const PARTITIONS_CONCURRENCY = 1;']],
    test: ['test/protocol/index-table-shapes.test.ts', 'reads its partitions concurrently'],
    finds: 'expected 1 to be 8',
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
    without: 'A child is written without its parent',
    recommendations: ['p-compound-egt', 'g-1n-same-partition'],
    file: 'lib/features/compound-key/compound-key.ts',
    edits: [['      touched.set(row, snapshot.etag);\n', '']],
    test: [
      'test/protocol/compound-key.test.ts',
      'none is left over or lost when one is written while the employee is deleted',
    ],
    finds: 'expected [ { …(12) }, { …(12) }, …(22) ] to deeply equal []',
  },
  {
    without: 'A partition may have any number of entities',
    recommendations: ['d-partition-size'],
    file: 'lib/features/maintained-count/maintained-count.ts',
    edits: [['if (change > 0 && countIn', 'if (change > 1e9 && countIn']],
    test: [
      'test/protocol/counting.test.ts',
      'is never exceeded, by concurrent creates of two processes and by a batch, and a delete makes room',
    ],
    finds: 'expected [] to have a length of 5 but got +0',
  },
  {
    without: 'A reference may name no entity',
    recommendations: ['g-11-explicit', 'd-integrity'],
    file: 'lib/features/references/references.ts',
    edits: [
      [
        '            if (!(await hasTarget(engine, reference, key, { together })))\n              throw atAction(change, danglingError(reference));',
        '            if ((await hasTarget(engine, reference, key, { together })) && !change)\n              throw atAction(change, danglingError(reference));',
      ],
    ],
    test: ['test/protocol/referring.test.ts', 'must name an existing entity, and a rejected write changes nothing'],
    finds: 'No error of the engine: undefined',
  },
  {
    without: 'A change of the source reaches no copy',
    recommendations: ['g-1n-denormalized', 'p-denorm-remote', 'd-replicate-reference'],
    file: 'lib/features/denormalization/fan-out.ts',
    edits: [
      [
        'const receiversOf = ({ dependents }: Entity) => dependents.filter((link) => link.fanOut);',
        'const receiversOf = ({ dependents }: Entity) => dependents.filter((link) => link.fanOut && !link.field);',
      ],
    ],
    test: [
      'test/protocol/fanning-out.test.ts',
      'reaches all receivers, in its partition and through an index, and their index entries',
    ],
    finds: "expected [] to deeply equal [ { by: { entity: 'players' }, …(1) } ]",
  },
  {
    without: 'A writer may set a copied field',
    recommendations: ['m-read-only'],
    file: 'lib/features/denormalization/fan-out.ts',
    edits: [['  keptFields: (entity) => linksOf(entity).flatMap(({ copies }) => Object.keys(copies)),\n', '']],
    test: ['test/protocol/fanning-out.test.ts', 'keeps the copies in a replace, and rejects other values of them'],
    finds: "expected 'done' to be 'invalid-input'",
  },
  {
    without: 'Expired entities are deleted one by one',
    recommendations: ['p-drop-batch', 'c-batching-internal'],
    file: 'lib/features/expiry/expiry.ts',
    edits: [
      [
        'Map.groupBy(due, ({ address: { partition } }) => partition).values()',
        'Map.groupBy(due, ({ address }) => address).values()',
      ],
    ],
    test: [
      'test/lib/features/expiry/expiry.test.ts',
      'deletes the entities of a partition together, unless they changed since',
    ],
    finds: 'No message of index-changes has memos in it.',
  },
  {
    without: 'A table is dropped without an archive',
    recommendations: ['p-drop-archive'],
    file: 'lib/features/high-volume-delete/high-volume-delete.ts',
    edits: [
      ['      if (archiveTo && !(await archivePeriod', "      if (archiveTo && table === '' && !(await archivePeriod"],
    ],
    test: ['test/protocol/archiving-periods.test.ts', 'is archived in a blob of the cool tier, verified, and dropped'],
    finds: 'expected [] to match object [ { …(6) } ]',
  },
  {
    without: 'A list is kept for ever',
    file: 'lib/features/lookup/lookup.ts',
    edits: [
      [
        'if (known?.writes === writes && age >= 0 && age < maxAge) return known.list;',
        'if (known?.writes === writes && age >= 0 && maxAge > 0) return known.list;',
      ],
    ],
    test: [
      'test/lib/features/lookup/lookup.test.ts',
      'another process returns a changed list after maxAge at the latest, its own changes at once',
    ],
    finds: "expected [ 'Art' ] to deeply equal [ 'Fine art' ]",
  },
  {
    without: 'An index that nobody reads is not reported',
    recommendations: ['p-intra-only-used', 'i-no-speculation'],
    file: 'lib/operations/index-use.ts',
    edits: [['const UNREAD_AFTER_DAYS = 35;', 'const UNREAD_AFTER_DAYS = 3_500;']],
    test: [
      'test/lib/operations/index-use.test.ts',
      'counts each way to read, remembers the day for all processes, and reports what nobody reads after a month',
    ],
    finds: "expected [] to deeply equal [ 'everywhere', 'name', 'perCity' ]",
  },
  {
    without: 'A check begins anew each time',
    file: 'lib/operations/verify-run.ts',
    edits: [['  if (state && isOver && engine.now() - Date.parse(state.startedAt) < every) return state;\n', '']],
    test: ['test/lib/operations/verify-run.test.ts', 'a check continues after an interruption and runs once a week'],
    finds: 'expected { …(7) } to deeply equal { …(7) }',
  },
  {
    without: 'All slots are in the first account',
    recommendations: ['d-more-accounts', 'd-next-level', 'c-many-accounts', 's-virtual'],
    file: 'lib/storage/slot-row.ts',
    edits: [
      [
        'const [from, before] = [index, index + 1].map((at) => Math.ceil((at * SLOTS) / spread)) as [number, number];',
        'const [from, before] = index === 0 ? [0, SLOTS] : [0, 0];',
      ],
    ],
    test: [
      'test/lib/storage/accounts.test.ts',
      'spreads the slots of empty storage over the accounts, the same for every process',
    ],
    finds: "expected Set{ 'first' } to deeply equal",
  },
  {
    without: 'The map is read for each request',
    recommendations: ['d-map'],
    file: 'lib/storage/slot-map.ts',
    edits: [['export const LEASE_MS = 5_000;', 'export const LEASE_MS = 0;']],
    test: [
      'test/lib/storage/accounts.test.ts',
      'sends each request to the account of its partition, and reads the map once in five seconds',
    ],
    finds: 'takes more than 0 seconds to',
  },
  {
    without: 'Rows of several accounts come one account after another',
    recommendations: ['d-multi-shard'],
    file: 'lib/storage/scan-accounts.ts',
    edits: [
      [
        '  const all = pages.flatMap((page) => page.rows).sort(compareKeys);',
        '  const all = pages.flatMap((page) => page.rows);',
      ],
    ],
    test: ['test/lib/storage/accounts.test.ts', 'merges a scan in the order of keys, with pages of any size'],
    finds: "expected [ 'p0/r0', 'p0/r23', 'p11/r11', …(37) ] to deeply equal",
  },
  {
    without: 'A slot is that of the first letter',
    recommendations: ['d-shard-resize', 's-small'],
    file: 'lib/storage/slots.ts',
    edits: [
      [
        "return hash('sha256', text, 'hex').slice(0, DIGITS);",
        "return hash('sha256', text.slice(0, 1), 'hex').slice(0, DIGITS);",
      ],
    ],
    test: ['test/lib/storage/slots.test.ts', 'spreads texts that are alike, and never changes'],
    finds: "expected [ '8de', 'a9f', 'e3b' ] to deeply equal",
  },
  {
    without: 'A layer has every partition of its tables',
    recommendations: ['d-map-list', 'd-map-range', 's-tenant'],
    file: 'lib/storage/slots.ts',
    edits: [['const hasKeys = keys !== undefined || isRange;', 'const hasKeys = keys !== undefined && isRange;']],
    test: ['test/lib/storage/slots.test.ts', 'has the partitions of a layer: %j'],
    finds: 'acm: expected true to be false',
  },
  {
    without: 'A read counts though its slot was moved meanwhile',
    recommendations: ['s-caches', 'i-failover', 'd-online'],
    file: 'lib/storage/slot-map.ts',
    edits: [
      [
        '    if (await isStillOwner(accounts, owner)) return result;',
        '    if ((await isStillOwner(accounts, owner)) || result !== undefined) return result;',
      ],
    ],
    test: ['test/lib/storage/fence.test.ts', 'reads at the new owner if the slot was moved during the read'],
    finds: 'expected 1 to be 2',
  },
  {
    without: 'A closed slot is open while it moves',
    recommendations: ['d-offline'],
    file: 'lib/operations/slot-mover.ts',
    edits: [["const phase = isClosed ? 'draining' : 'fencing';", "const phase = 'fencing';"]],
    test: ['test/lib/operations/move-slots.test.ts', 'moves closed slots without fences'],
    finds: "expected Set{ 'o', 'f', 'd', 'g', '-' } to deeply equal",
  },
  {
    without: 'Two kinds of rows may have one key',
    recommendations: ['g-unique-keys', 'p-type-prefix'],
    file: 'lib/define/validate/key-overlap.ts',
    edits: [['  yield* sharedKeyErrors(entities);\n', '']],
    test: ['test/lib/define/validate/keys.test.ts', 'two entities with the same key'],
    finds: 'expected [Function] to throw an error',
  },
  {
    without: 'Two indexes may have one key',
    recommendations: ['p-intra-prefix', 'p-inter-prefix'],
    file: 'lib/define/validate/key-overlap.ts',
    edits: [
      ['        if (haveOneKey(one, other))', '        if (one.entity !== other.entity && haveOneKey(one, other))'],
    ],
    test: ['test/lib/define/validate/keys.test.ts', 'two indexes with the same key'],
    finds: 'expected [Function] to throw an error',
  },
  {
    without: 'A query ends at an empty page',
    recommendations: ['p-continue'],
    file: 'lib/storage/row-query.ts',
    edits: [
      [
        '    if (continuationToken === undefined) return { rows, more: false };',
        '    if (continuationToken === undefined || read.length === 0) return { rows, more: false };',
      ],
    ],
    test: ['test/lib/storage/rows.test.ts', 'continues after an empty page'],
    finds: "expected [] to match object [ { partition: 'one', row: '2' } ]",
  },
  {
    without: 'A page may have any length',
    recommendations: ['p-page-size'],
    file: 'lib/storage/row-query.ts',
    edits: [['if (count < limit && (!bound || length < bound.length)) continue;', 'if (count < limit) continue;']],
    test: [
      'test/lib/storage/rows.test.ts',
      'reads %s of long rows in parts and ends with the row that reaches the limit',
    ],
    finds: "expected [ '0', '1', '2', '3', '4', '5', …(3) ] to deeply equal",
  },
  {
    without: 'A change of an entity leaves the row that copies its fields',
    recommendations: ['p-denorm-egt', 'g-types-in-one-table'],
    file: 'lib/features/denormalization/denormalization.ts',
    edits: [
      [
        "          actions.push({ action, part: { of: 'sibling' } });\n          dependents.push(dependent);",
        '          if (!action) dependents.push(dependent);',
      ],
    ],
    test: ['test/lib/engine/write/plan.test.ts', 'of a manager and its department changes each row once'],
    finds: 'Property failed after',
  },
  {
    without: 'A series has one row',
    recommendations: ['p-series-too-long', 'p-wide-series', 'd-vertical-contention'],
    file: 'lib/features/data-series/data-series.ts',
    edits: [['  return Math.floor((slot - first) / perRow);', '  return Math.floor((slot - first) / perRow) * 0;']],
    test: [
      'test/lib/features/data-series/data-series.test.ts',
      'is stored in two rows within the limits, which are read concurrently and changed in one transaction',
    ],
    finds: 'The entity exceeds the limits of Table storage: 1 MiB,',
  },
  {
    without: 'A wide entity has one row',
    recommendations: ['p-wide-general'],
    file: 'lib/features/wide-entities/wide-entities.ts',
    edits: [
      [
        '        for (const each of left)\n          if (![own',
        '        for (const each of left)\n          if (each && ![own',
      ],
      ['put(addRow(further), each);', 'put(own, each);'],
    ],
    test: ['test/protocol/wide-entities.test.ts', 'is written in one transaction, and read by one range query'],
    finds: 'The entity takes 1983 properties; one row holds 240.',
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
    without: 'A reference has all fields of its entity',
    recommendations: ['i-reference'],
    file: 'lib/define/places/index-entries.ts',
    edits: [
      [
        "    copies === 'everything'\n      ? withoutApart",
        "    copies === 'everything' || copies === 'keys'\n      ? withoutApart",
      ],
      ["...(copies === 'keys' ? [] : copies)", '...copies'],
    ],
    test: [
      'test/protocol/index-table-shapes.test.ts',
      'holds only the key, takes two lookups, and never returns stale fields',
    ],
    finds: 'expected { …(15) } to not have property "phone"',
  },
  {
    without: 'A partial copy has the keys alone',
    recommendations: ['i-partial', 'p-intra-partial', 'p-inter-partial'],
    file: 'lib/define/places/index-entries.ts',
    edits: [["...(copies === 'keys' ? [] : copies)", "...(copies === 'keys' ? [] : copies).slice(9)"]],
    test: [
      'test/protocol/index-table-shapes.test.ts',
      'finds a film by each of its actors, with the names of the others, and follows changes of the cast',
    ],
    finds: 'expected [ …(6) ] to deeply equal []',
  },
  {
    without: 'Each copy leads to a second read',
    recommendations: ['p-inter-one-read', 'p-intra-one-read'],
    file: 'lib/engine/read/read-through-index.ts',
    edits: [["const isToFollow = index.copies === 'keys' || ", 'const isToFollow = index.copies.length > 0 || ']],
    test: [
      'test/protocol/index-table-shapes.test.ts',
      'returns all of a city and last name in one transaction, and none with a longer name',
    ],
    finds: 'expected 3 to be 1',
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
    without: 'Tables have no prefix',
    recommendations: ['c-accounts', 'd-functional'],
    file: 'lib/storage/storage.ts',
    edits: [
      [
        'table: onceByName((name) => clients.openTable(prefixTable(prefix, name))),',
        'table: onceByName((name) => clients.openTable(name)),',
      ],
    ],
    test: [
      'test/protocol/sharing-an-account.test.ts',
      'the same entity in each app has its own values, unique index rows and messages',
    ],
    finds: 'Missing in the storage account: table a0employeesbyemail.',
  },
  {
    without: 'A signature needs a request for a key each time',
    recommendations: ['p-sas-overhead'],
    file: 'lib/storage/table-sas.ts',
    edits: [['    if (kept && isValidFor(kept, request)) return kept;\n', '']],
    test: [
      'test/lib/storage/user-delegation-signer.test.ts',
      'requests the key once for concurrent callers and renews it before a signature would outlive it',
    ],
    finds: 'expected 2 to be 1',
  },
  {
    without: 'A data key is stored as it is',
    recommendations: ['g-encrypt-vault'],
    file: 'lib/storage/key-vault-key-ring.ts',
    edits: [
      [
        "wrapped: publicEncrypt({ key: publicKey, padding, oaepHash: 'sha256' }, dataKey) };",
        'wrapped: publicKey && padding ? dataKey : publicEncrypt({ key: publicKey, padding }, dataKey) };',
      ],
    ],
    test: ['test/lib/storage/key-vault-key-ring.test.ts', 'unwraps every data key that it wrapped'],
    finds: 'Property failed after',
  },
  {
    without: 'The costs of entities are not added up',
    recommendations: ['g-cost-capacity'],
    file: 'local/capacity/plan.ts',
    edits: [['costed.reduce((total, one) => total + of(one), 0)', 'costed.reduce((_, one) => of(one), 0)']],
    test: ['test/local/capacity/plan.test.ts', 'adds up the loads of several entities, and what they cost'],
    finds: 'expected { Object (tables, queues, ...) } to deeply equal',
  },
  {
    without: 'Children are read one by one',
    recommendations: ['p-compound-one-query', 'g-partition-by-owner', 's-together', 'd-few-partitions'],
    file: 'lib/engine/read/retrieve.ts',
    edits: [
      ['const beginning = isBeside ? await readRange', "const beginning = isBeside && row === '' ? await readRange"],
    ],
    test: ['test/protocol/compound-key.test.ts', 'are read in one query, and one review by its key'],
    finds: 'expected 2 to be 1',
  },
  {
    without: 'A transaction may have any size',
    recommendations: ['g-egt-4mb'],
    file: 'lib/engine/write/plan.ts',
    edits: [['  if (actions.length > 1 && needed > limit)', '  if (actions.length > 1 && needed > 9 * limit)']],
    test: ['test/lib/engine/write/entity-batch.test.ts', 'takes as few transactions as its bytes fit into'],
    finds: 'to be 4',
  },
  {
    without: 'A message that storage refuses for its content is retried',
    recommendations: [],
    file: 'lib/engine/consume/consume.ts',
    edits: [["new Set<string>(['too-large', 'invalid-input'])", 'new Set<string>()']],
    test: ['test/lib/engine/consume/poison.test.ts', 'is recorded immediately if another attempt is pointless'],
    finds: 'A value is wrong.',
  },
  {
    without: 'Counts are written without their ETag',
    recommendations: ['p-series-etag'],
    file: 'lib/features/data-series/series-counts.ts',
    edits: [
      [
        "return current ? { kind, row, properties, etag: current.etag } : { kind: 'insert', row, properties };",
        "return current ? { kind, row, properties, etag: '*' } : { kind: 'insert', row, properties };",
      ],
    ],
    test: ['test/lib/features/data-series/data-series.test.ts', 'keeps every increment of fifty concurrent callers'],
    finds: 'to deeply equal [ Array(50) ]',
  },
  {
    without: 'An index does not know the partition of its entity',
    recommendations: ['i-hashed'],
    file: 'lib/define/places/index-entries.ts',
    edits: [['    SourcePartition: partition,', '    SourcePartition: row || partition,']],
    test: [
      'test/lib/engine/read/read-through-index.test.ts',
      'entities whose partition key is a hash are listed in the order of another value',
    ],
    finds: "expected [] to deeply equal [ 'a', 'b', 'c' ]",
  },
  {
    without: 'A changed model is accepted',
    recommendations: ['g-change-later'],
    file: 'lib/operations/model-guard.ts',
    edits: [['  if (refused.length > 0 && agreed !== word)', '  if (refused.length > 1e9 && agreed !== word)']],
    test: ['test/lib/operations/model-guard.test.ts', 'rejects %s until an operator agrees to that change'],
    finds: '.toMatch() expects to receive a string, but got object',
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
    without: 'Each search for orphans asks for all blobs',
    recommendations: ['c-daily-scan'],
    file: 'lib/operations/collect-orphans.ts',
    edits: [
      ['return Since === undefined || modifiedAt > Date.parse(Since)', 'return Since === undefined || modifiedAt > 0'],
    ],
    test: [
      'test/lib/operations/collect-orphans.test.ts',
      'asks for each blob once: 1,000 files take 1,180 transactions in 30 days, where full searches take 30,180',
    ],
    finds: 'expected [ 3000, [ …(100) ] ] to deeply equal [ 100, [ …(100) ] ]',
  },
  {
    without: 'A derived field is not computed',
    recommendations: ['m-computed'],
    file: 'lib/define/codec/validation.ts',
    edits: [
      [
        '  return { ...kept, ...Object.fromEntries(derived.filter(([, value]) => value !== undefined)) };',
        '  return kept;',
      ],
    ],
    test: ['test/protocol/index-table-shapes.test.ts', 'cannot be set, follows each change, and updates the index'],
    finds: "expected undefined to be 'Follow'",
  },
  {
    without: 'Each count has a row of its own',
    recommendations: ['p-series-properties', 'c-series', 'p-series-one-read'],
    file: 'lib/features/data-series/data-series.ts',
    edits: [['  return Math.floor((slot - first) / perRow);', '  return perRow > 0 ? slot - first : 0;']],
    test: ['test/lib/features/data-series/data-series.test.ts', 'is set by one merge and read by one get'],
    finds: 'expected [ Array(24) ] to deeply equal [ Array(24) ]',
  },
  {
    without: 'A response says nothing of caches',
    recommendations: ['g-cache-lookups', 'd-vertical-cache'],
    file: 'lib/http/bind.ts',
    edits: [["    ...(maxAge ? { 'cache-control': `${kept}, max-age=${maxAge}` } : {}),\n", '']],
    test: ['test/lib/http/bind.test.ts', 'lets a client cache an entity for as long as the entity declares'],
    finds: 'expected { Object (etag) } to deeply equal { …(2) }',
  },
  {
    without: 'A copy of everything has the keys alone',
    recommendations: ['i-full', 'm-prepare'],
    file: 'lib/define/places/index-entries.ts',
    edits: [['      ? withoutApart(entity, values)', '      ? pick(values, entity.keyFields)']],
    test: [
      'test/protocol/index-table-shapes.test.ts',
      'returns all of a city and last name in one transaction, and none with a longer name',
    ],
    finds: "expected [ { city: 'London', …(1) }, …(1) ] to deeply equal",
  },
  {
    without: 'An account that is away stops the slots of the others',
    recommendations: ['d-available', 'd-map-available'],
    file: 'lib/storage/slot-map.ts',
    edits: [
      [
        '    if (known) await lookAt(accounts, known);',
        '    await Promise.all(accounts.list.map((account) => lookAt(accounts, account)));',
      ],
    ],
    test: [
      'test/lib/storage/accounts.test.ts',
      'serves the slots of the other accounts while one is away, and names it',
    ],
    finds: 'Storage is unavailable: the account second does not respond.',
  },
  {
    without: 'A count is changed without the ETag of its row',
    recommendations: ['g-summaries'],
    file: 'lib/features/maintained-count/maintained-count.ts',
    edits: [
      [
        "  return { kind: 'merge', row, properties, etag: found.etag };",
        "  return { kind: 'merge', row, properties, etag: '*' };",
      ],
    ],
    test: ['test/protocol/counting.test.ts', 'is correct after 32 concurrent creates and deletes'],
    finds: 'to be 16',
  },
  {
    without: 'Expiry reads the entries that are not due',
    recommendations: ['c-table-queries'],
    file: 'lib/features/expiry/expiry.ts',
    edits: [
      [
        "  if (at === undefined) return { beforePartition: addPeriods('day', today, -days) };",
        "  if (at === undefined) return { beforePartition: addPeriods('day', today, days) };",
      ],
    ],
    test: [
      'test/lib/features/expiry/expiry.test.ts',
      'takes one storage transaction if nothing is due, for any number of entities',
    ],
    finds: 'expected 48 to be 1',
  },
  {
    without: 'An account that is added gets slots',
    file: 'lib/storage/slot-row.ts',
    edits: [["  if (index >= spread) return '-'.repeat(SLOTS);", "  if (index >= spread) return 'o'.repeat(SLOTS);"]],
    test: ['test/lib/storage/accounts.test.ts', 'gives no slot to an account that is added to others'],
    finds: "expected [ [ 'first', 2048 ], …(2) ] to deeply equal",
  },
  {
    without: 'A range of an index has no bounds',
    recommendations: ['g-sort-orders', 'p-intra-ranges'],
    file: 'lib/define/places/index-range.ts',
    edits: [
      [
        'return keyRange(index.row, { from: toText(from), to: toText(to) }, given);',
        'return keyRange(index.row, order === undefined ? {} : { to: toText(to) }, given);',
      ],
    ],
    test: [
      'test/lib/store/index-ranges.test.ts',
      'a range of copies in the partition, by date is what a filter and a sort in memory return',
    ],
    finds: 'Property failed after',
  },
  {
    without: 'A range of an index table has no bounds',
    recommendations: ['p-inter-ranges', 'i-composite-order'],
    file: 'lib/define/places/index-range.ts',
    edits: [
      [
        'return keyRange(index.row, { from: toText(from), to: toText(to) }, given);',
        'return keyRange(index.row, order === undefined ? {} : { from: toText(from) }, given);',
      ],
    ],
    test: [
      'test/lib/store/index-ranges.test.ts',
      'a range of copies outside of the partition, by town and then by name is what a filter and a sort in memory return',
    ],
    finds: 'Property failed after',
  },
  {
    without: 'An index entry that is stale leads to its entity',
    recommendations: ['p-evt-isolation', 'd-query-inconsistent', 'p-sas-own'],
    file: 'lib/engine/read/read-through-index.ts',
    edits: [
      ['  return isHere ? found?.values : undefined;', '  return isHere || found ? found?.values : undefined;'],
      [
        'if (!found || Object.entries(given).some(([field, value]) => found[field] !== value)) throw',
        'if (!found) throw',
      ],
    ],
    test: ['test/lib/access/own.test.ts', 'finds nothing by a former email, even while its index entry exists'],
    finds: 'promise resolved',
  },
  {
    without: 'A change needs no ETag',
    recommendations: ['g-etag'],
    file: 'lib/define/declaration/conditions.ts',
    edits: [['  if (ifMatch !== undefined && !isNamed(ifMatch, etag)) throw etagMismatch(etag);\n', '']],
    test: ['test/scenarios/company-directory.test.ts', 'is replaced and patched only with its current ETag'],
    finds: 'expected { status: 200, …(2) } to match object { status: 412',
  },
  {
    without: 'A complex value is stored as its text',
    recommendations: ['g-complex-types'],
    file: 'lib/define/codec/entity-codec.ts',
    edits: [["const text = type === 'Json' ? jsonText(value) : String(value);", 'const text = String(value);']],
    test: ['test/lib/define/codec/entity-codec.test.ts', 'is read back unchanged'],
    finds: 'Counterexample: [{"nested"',
  },
  {
    without: 'A read by key asks for a range',
    recommendations: ['g-point-queries', 'p-point', 'c-point-queries'],
    file: 'lib/engine/read/entity-rows.ts',
    edits: [
      [
        '  const reading = readRow(engine.storage, address);',
        '  const range = { ...address, from: address.row, before: `${address.row} ` };\n  const reading = readRange(engine.storage, range).then(({ rows }) => rows[0]);',
      ],
    ],
    test: ['test/scenarios/projecting.test.ts', 'are read from a blob only if they are selected'],
    finds: "expected [ 'rows', 'blob' ] to deeply equal [ 'row', 'blob' ]",
  },
  {
    without: 'An entity has no copies of the fields of another one',
    recommendations: ['g-denormalize', 'p-denorm-copy', 'd-few-joins'],
    file: 'lib/features/denormalization/denormalization.ts',
    edits: [
      [
        '  return { ...kept, ...copiesOf(link, source) };',
        '  return source ? kept : { ...kept, ...copiesOf(link, source) };',
      ],
    ],
    test: [
      'test/scenarios/company-directory.test.ts',
      'has the name and email of its manager, and follows their changes',
    ],
    finds: '-     "managerName": "May',
  },
  {
    without: 'A key has the first of its fields alone',
    recommendations: ['g-compound-keys', 'd-table-many-keys', 'i-composite'],
    file: 'lib/define/keys/key-template.ts',
    edits: [
      [
        '  for (const part of template.parts) key += encodeField',
        '  for (const part of template.parts.slice(0, 1)) key += encodeField',
      ],
    ],
    test: ['test/lib/define/keys/key-template.test.ts', 'parses every text that it built a key from'],
    finds: 'Property failed after',
  },
  {
    without: 'A range asks for all properties',
    recommendations: ['g-projection', 'p-project', 'c-projection'],
    file: 'lib/engine/read/retrieve.ts',
    edits: [
      [
        'return { wanted, read, select: read && storedNames(entity, read) };',
        'return { wanted, read, select: undefined };',
      ],
    ],
    test: [
      'test/scenarios/explaining.test.ts',
      'a range and included children ask storage for the selected fields only',
    ],
    finds: "expected [ 'everything' ] to deeply equal",
  },
  {
    without: 'Included children come with all properties',
    recommendations: ['p-compound-select'],
    file: 'lib/engine/read/retrieve.ts',
    edits: [
      [
        'const read = isWhole ? undefined : [...new Set(stored)];',
        'const read = isWhole || stored.length > 0 ? undefined : [];',
      ],
    ],
    test: [
      'test/scenarios/explaining.test.ts',
      'a range and included children ask storage for the selected fields only',
    ],
    finds: "expected [ 'everything' ] to include 'year'",
  },
  {
    without: 'A partition is not filtered',
    recommendations: ['g-partition-scans'],
    file: 'lib/engine/read/retrieve.ts',
    edits: [
      ['          ...rowFilterOf(entity, where),\n          ...common', '          ...common'],
      ['matches(where, values) && !hasExpired(entity, values, now())', '!hasExpired(entity, values, now())'],
    ],
    test: ['test/scenarios/retrieving.test.ts', 'compares any property of a partition, of any type'],
    finds: 'expected [ …(2) ] to deeply equal [ { department:',
  },
  {
    without: 'The app alone filters a partition',
    recommendations: ['c-filter'],
    file: 'lib/engine/read/retrieve.ts',
    edits: [['          ...rowFilterOf(entity, where),\n          ...common', '          ...common']],
    test: ['test/scenarios/explaining.test.ts', 'a range sends its filter to storage'],
    finds: '+     "filter": "PartitionKey eq \'Projected\' and RowKey ge',
  },
  {
    without: 'A range combines row keys by "or"',
    recommendations: ['g-no-or'],
    file: 'lib/storage/rows.ts',
    edits: [
      [
        '  if (before !== undefined) conditions.push(`RowKey lt ${literal(before)}`);\n  const filter',
        '  if (before !== undefined)\n    conditions.push(`RowKey lt ${literal(before)}`, `(RowKey eq ${literal(from)} or RowKey gt ${literal(from)})`);\n  const filter',
      ],
    ],
    test: [
      'test/protocol/compound-key.test.ts',
      'are read without the rows between them, and without an "or" of row keys',
    ],
    finds: 'not to match /RowKey le',
  },
  {
    without: 'The key of a parent does not lead to its children',
    recommendations: ['g-11-implicit', 'p-compound-child'],
    file: 'lib/define/keys/key-template.ts',
    edits: [["key.slice(last).replaceAll('_', escapeCharacter)", 'key.slice(last)']],
    test: [
      'test/protocol/compound-key.test.ts',
      'are found whatever characters the project id has, without those of another project',
    ],
    finds: '+   "tasks": [],',
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
    without: 'An entity group transaction is not counted',
    recommendations: ['g-cost-transactions', 'i-storage-cost'],
    file: 'lib/storage/cost.ts',
    edits: [['          meter.transactions += 1;\n', '          if (named !== BATCH) meter.transactions += 1;\n']],
    test: [
      'test/scenarios/costing-what-the-docs-say.test.ts',
      'a create costs the transactions that docs/http.md states',
    ],
    finds: '+   "employees": 9,',
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
    without: 'A kind may have any fields',
    recommendations: ['g-inheritance'],
    file: 'lib/define/inheritance.ts',
    edits: [
      [
        'z.strictObject({ ...schema.shape, ...shape, kind: z.literal(kind) })',
        'z.looseObject({ ...schema.shape, kind: z.literal(kind) })',
      ],
    ],
    test: ['test/scenarios/kinds-and-versions.test.ts', 'are rejected with %s'],
    finds: 'expected { status: 201, …(2) } to match object { status: 400',
  },
  {
    without: 'A row does not name its type',
    recommendations: ['p-type-property'],
    file: 'lib/define/codec/entity-codec.ts',
    edits: [['...system, EntityType: entity.name, EntityVersion', '...system, EntityVersion']],
    test: [
      'test/scenarios/kinds-and-versions.test.ts',
      'are written with their own fields, and read together by one query',
    ],
    finds: "expected [] to deeply equal [ { kind: 'customer'",
  },
  {
    without: 'A row does not have its version',
    recommendations: ['p-type-version'],
    file: 'lib/define/codec/entity-codec.ts',
    edits: [
      [
        'EntityType: entity.name, EntityVersion: entity.version };\n  checkRowSize',
        'EntityType: entity.name };\n  checkRowSize',
      ],
    ],
    test: [
      'test/scenarios/kinds-and-versions.test.ts',
      'is upgraded when read by key, in a range and with a projection, and when written',
    ],
    finds: '-   "EntityVersion": 2,',
  },
  {
    without: 'A copy is read as an entity by its key',
    recommendations: ['p-type-known'],
    file: 'lib/engine/read/entity-rows.ts',
    edits: [
      ['(row.properties.EntityType === entity.name && !isCopy(row))', 'row.properties.EntityType === entity.name'],
    ],
    test: ['test/protocol/index-table-shapes.test.ts', 'is not read, written or deleted by its key'],
    finds: 'promise resolved "{ …(2) }" instead of rejecting',
  },
  {
    without: 'A write replaces a row of any type',
    recommendations: ['p-type-check'],
    file: 'lib/engine/read/entity-rows.ts',
    edits: [['(row.properties.EntityType === entity.name && !isCopy(row))', '!isCopy(row)']],
    test: [
      'test/lib/engine/write/entity-batch.test.ts',
      'rejects an item that would replace another kind of entity under the same key',
    ],
    finds: "expected { outcome: 'stored', …(1) } to match object { code: 'duplicate-key' }",
  },
  {
    without: 'A query returns rows of one type',
    recommendations: ['p-type-several'],
    file: 'lib/engine/read/retrieve.ts',
    edits: [['      type: [...filters, ...further],', '      type: [...filters.slice(0, 1), ...further],']],
    test: ['test/protocol/compound-key.test.ts', 'are read in one query, and one review by its key'],
    finds: '+   "reviews": [],',
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
    without: 'A list in another partition does not change',
    recommendations: ['p-list-remote'],
    file: 'lib/features/index-entities/index-entities.ts',
    edits: [['  if (!changed) return true;', '  if (!changed || Boolean(changed)) return true;']],
    test: ['test/protocol/keeping-indexes.test.ts', 'of one last name are all in its lists'],
    finds: 'expected [] to have a length of 12',
  },
  {
    without: 'A page of a list reads any number of entities',
    recommendations: ['p-list-two-queries'],
    file: 'lib/engine/read/read-through-index.ts',
    edits: [['const MAX_LOOKUPS = 256;', 'const MAX_LOOKUPS = 25_600;']],
    test: ['test/lib/engine/read/read-through-index.test.ts', 'ends after 256 lookups'],
    finds: 'expected [ 300 ] to deeply equal [ 256, 44 ]',
  },
  {
    without: 'A list may hold less than the keys of its members',
    recommendations: ['p-list-holds'],
    file: 'lib/features/index-entities/index-entities.ts',
    edits: [['      if (missing.length > 0)', '      if (missing.length > 9)']],
    test: ['test/lib/define/define-entity.test.ts', 'an inter-partition list without the partition of its members'],
    finds: 'expected [Function] to throw an error',
  },
  {
    without: 'The rows of a series change one after another',
    recommendations: ['p-wide-egt'],
    file: 'lib/features/data-series/series-counts.ts',
    edits: [
      [
        '  const write = () => submit(engine.storage, { table, partition, actions });',
        '  const write = async () => {\n    const etags = new Map<string, string>();\n    for (const action of actions)\n      for (const [row, etag] of await submit(engine.storage, { table, partition, actions: [action] })) etags.set(row, etag);\n    return etags;\n  };',
      ],
    ],
    test: [
      'test/lib/features/data-series/data-series.test.ts',
      'is stored in two rows within the limits, which are read concurrently and changed in one transaction',
    ],
    finds: 'expected 2 to be 1',
  },
  {
    without: 'The rows of a series are deleted one after another',
    recommendations: ['p-wide-delete'],
    file: 'lib/features/data-series/series-counts.ts',
    edits: [
      [
        '  const write = () => submit(engine.storage, { table, partition, actions });',
        '  const write = async () => {\n    const etags = new Map<string, string>();\n    for (const action of actions)\n      for (const [row, etag] of await submit(engine.storage, { table, partition, actions: [action] })) etags.set(row, etag);\n    return etags;\n  };',
      ],
    ],
    test: [
      'test/lib/features/data-series/data-series.test.ts',
      'of several rows is deleted in one transaction or not at all',
    ],
    finds: 'expected 4 to be 3',
  },
  {
    without: 'Only the first row of a series is read',
    recommendations: ['p-wide-reads'],
    file: 'lib/features/data-series/series-counts.ts',
    edits: [
      [
        'Promise.all(addresses.map((address) => readEntityRow',
        'Promise.all(addresses.slice(0, 1).map((address) => readEntityRow',
      ],
    ],
    test: [
      'test/lib/features/data-series/data-series.test.ts',
      'is stored in two rows within the limits, which are read concurrently and changed in one transaction',
    ],
    finds: 'expected 1 to be 2',
  },
  {
    without: 'The fields of a group are in the row of their entity',
    recommendations: ['d-vertical', 'd-table-split'],
    file: 'lib/features/vertical-split/vertical-split.ts',
    edits: [
      [
        'return { own: omit(values, apartFields(entity)), further: new Map(stored) };',
        'return { own: values, further: new Map(stored.slice(stored.length)) };',
      ],
    ],
    test: [
      'test/protocol/vertical-split.test.ts',
      'leaves the groups out, and returns one that is asked for, in one transaction each',
    ],
    finds: 'to not have property "description"',
  },
  {
    without: 'A range has no first row',
    recommendations: ['p-append-spread'],
    file: 'lib/define/keys/key-template.ts',
    edits: [['    const value = bounds[name];', "    const value = name === 'from' ? undefined : bounds[name];"]],
    test: ['test/scenarios/retrieving.test.ts', 'are read by the hour within the partition of one employee'],
    finds: "expected [ '2026112007', '2026112008'",
  },
  {
    without: 'A page has more entities than were asked for',
    recommendations: ['p-tail-top'],
    file: 'lib/engine/read/retrieve.ts',
    edits: [
      ['const common = { partition, select, limit: top,', 'const common = { partition, select, limit: 1_000 + top,'],
    ],
    test: [
      'test/scenarios/retrieving.test.ts',
      'returns the newest first, in one transaction, and continues where it stopped',
    ],
    finds: "expected [ '2026-11-25T08:00:00.000Z', …(25) ] to deeply equal",
  },
  {
    without: 'A page has no link to the next one',
    recommendations: ['p-continue-pages'],
    file: 'lib/engine/read/retrieve.ts',
    edits: [
      [
        'return { rows: page, next: last && toPosition(entity, last) };',
        'return { rows: page, next: last && undefined };',
      ],
    ],
    test: ['test/scenarios/company-directory.test.ts', 'is bounded, projected and paged'],
    finds: "expected [ '000001', '000002', '000003' ] to deeply equal",
  },
  {
    without: 'A page of an index has more entities than were asked for',
    recommendations: ['p-large-test'],
    file: 'lib/engine/read/read-through-index.ts',
    edits: [
      [
        'const limit = hasLookups ? Math.min(top, MAX_LOOKUPS) : top;',
        'const limit = hasLookups ? MAX_LOOKUPS : 100 * top;',
      ],
    ],
    test: [
      'test/lib/engine/read/read-through-index.test.ts',
      'a page takes as many transactions with 5,000 entities as with 100',
    ],
    finds: 'to deeply equal { copies: [ 1, 1, 1, 1 ]',
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
    without: 'A replace keeps the properties that it does not send',
    recommendations: ['p-replace'],
    file: 'lib/storage/rows.ts',
    edits: [
      [
        "  return ['update', entity, action.kind === 'merge' ? 'Merge' : 'Replace', { etag: action.etag }];",
        "  return ['update', entity, 'Merge', { etag: action.etag }];",
      ],
    ],
    test: ['test/scenarios/company-directory.test.ts', 'is replaced and patched only with its current ETag'],
    finds: '+   "phone": "1",',
  },
  {
    without: 'A signature is not that of the delegated key',
    recommendations: ['p-sas-no-key', 'p-sas-server'],
    file: 'lib/storage/table-sas.ts',
    edits: [["Buffer.from(key.Value, 'base64')", "Buffer.from(key.Value, 'utf8')"]],
    test: ['test/lib/storage/user-delegation-signer.test.ts', 'the signature equals the documented one'],
    finds: "expected { sp: 'r', …(16) } to deeply equal { sp: 'r', …(16) }",
  },
  {
    without: 'A signature allows no client to add rows',
    recommendations: ['p-sas-offload', 'c-sas'],
    file: 'lib/storage/table-sas.ts',
    edits: [["          add: permissions.includes('a'),", '          add: false,']],
    test: [
      'test/scenarios/writing-straight-to-storage.test.ts',
      'are added and read directly in storage, and the API lists the valid ones',
    ],
    finds: 'expected 403 to be 201',
  },
  {
    without: 'A reference is returned in place of its entity',
    recommendations: ['i-two-lookups', 'm-consistent'],
    file: 'lib/engine/read/read-through-index.ts',
    edits: [["      : index.copies === 'everything';", '      : index.copies.length > 0;']],
    test: [
      'test/protocol/index-table-shapes.test.ts',
      'holds only the key, takes two lookups, and never returns stale fields',
    ],
    finds: "expected { city: 'London', customerId: 'C1' } to deeply equal",
  },
  {
    without: 'A list is indexed by its first element alone',
    recommendations: ['i-film-actors'],
    file: 'lib/define/places/index-entries.ts',
    edits: [['const all = [...new Set(list)].map(', 'const all = [...new Set(list)].slice(0, 1).map(']],
    test: [
      'test/protocol/index-table-shapes.test.ts',
      'finds a film by each of its actors, with the names of the others, and follows changes of the cast',
    ],
    finds: "expected [ [ 'Oliver Twist', …(1) ] ] to deeply equal",
  },
  {
    without: 'An index has entities that do not meet its condition',
    recommendations: ['i-skewed'],
    file: 'lib/define/places/index-entries.ts',
    edits: [['() => index.when?.(values) ?? true)', '() => index.when === undefined || values !== undefined)']],
    test: ['test/scenarios/retrieving.test.ts', 'lists only entities that meet its condition, as they change'],
    finds: "expected [ Array(3) ] to deeply equal [ { department: 'Sparse'",
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
    without: 'A blob stays when its row refers to another one',
    recommendations: ['p-evt-blobs', 'p-large-eventual'],
    file: 'lib/storage/blobs.ts',
    edits: [
      [
        '    await deleteBlob(storage, blob);\n  } catch',
        "    if (blob.name === '') await deleteBlob(storage, blob);\n  } catch",
      ],
    ],
    test: [
      'test/protocol/large-entities.test.ts',
      'moves from the row to a blob and back as it grows and shrinks, and leaves no blob behind',
    ],
    finds: 'to deeply equal []',
  },
  {
    without: 'A blob is written again under its name',
    recommendations: ['d-blob-atomic'],
    file: 'lib/engine/read/text-blobs.ts',
    edits: [
      [
        '${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}',
        '${time.slice(0, 0)}${randomUUID().slice(99)}',
      ],
    ],
    test: [
      'test/protocol/large-entities.test.ts',
      'is written, replaced, read and deleted; the entity and the blob agree',
    ],
    finds: 'to not match object { Object (blob) }',
  },
  {
    without: 'A file is an append blob',
    recommendations: ['d-blob-block', 'c-blob-type'],
    file: 'lib/storage/blobs.ts',
    edits: [
      [
        '    const client = to.container(container).getBlockBlobClient(name);\n    return storageCall(client.upload(bytes, bytes.byteLength, options), container);',
        '    const client = to.container(container).getAppendBlobClient(name);\n    const { blobHTTPHeaders, metadata: ofBlob } = options;\n    const created = client.create({ blobHTTPHeaders, metadata: ofBlob });\n    return storageCall(created.then(() => client.appendBlock(bytes, bytes.byteLength)), container);',
      ],
    ],
    test: [
      'test/protocol/large-entities.test.ts',
      'is written, replaced, read and deleted; the entity and the blob agree',
    ],
    finds: "expected 'AppendBlob' to be 'BlockBlob'",
  },
  {
    without: 'A read of a large text also asks for its length',
    recommendations: ['p-large-reads'],
    file: 'lib/engine/read/text-blobs.ts',
    edits: [
      [
        '  const bytes = range ? (await',
        "  if ((await blobLength(storage, address)) === undefined) throw new BlobGone('The blob is missing.');\n  const bytes = range ? (await",
      ],
    ],
    test: ['test/protocol/large-entities.test.ts', 'is read back unchanged: %s'],
    finds: 'expected 3 to be 2',
  },
  {
    without: 'A signature is valid for each blob of a container',
    recommendations: ['d-blob-containers'],
    file: 'lib/storage/blobs.ts',
    edits: [['    containerName,\n    blobName: name,', '    containerName,']],
    test: [
      'test/protocol/large-entities.test.ts',
      'can be written once and not read, and its signature is valid for no other blob',
    ],
    finds: 'expected 201 to be 403',
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
    without: 'A large text is stored as it is',
    recommendations: ['c-compress'],
    file: 'lib/engine/read/text-blobs.ts',
    edits: [
      [
        'const bytes = isCompressed ? await deflate(plain) : plain;',
        'const bytes = isCompressed && plain.length === 0 ? await deflate(plain) : plain;',
      ],
    ],
    test: [
      'test/lib/features/large-entities/compressed-texts.test.ts',
      'is a blob with Content-Encoding, is read back unchanged, and stays so when its entity is moved',
    ],
    finds: '-   "encoding": "br",',
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
  {
    without: 'A file that is stored already is written again',
    recommendations: ['c-blob-conditional'],
    file: 'lib/features/large-entities/attachment.ts',
    edits: [
      [
        'if (there && isSame(there) && (await hasBlob(there.blob))) return current;',
        'if (there && isSame(there) && !(await hasBlob(there.blob))) return current;',
      ],
    ],
    test: [
      'test/protocol/large-entities.test.ts',
      'takes one blob write, one read and one write of its entity, and is not written twice',
    ],
    finds: 'expected 10 to be 2',
  },
  {
    without: 'The bytes of a blob that is copied pass through the app',
    recommendations: ['c-blob-copy'],
    file: 'lib/storage/blobs.ts',
    edits: [
      [
        '  const copied = await readInAccount(storage, from, async (account) => {\n',
        '  const copied = await readInAccount(storage, from, async (account) => {\n    await account.container(from.container).getBlobClient(from.name).downloadToBuffer();\n',
      ],
    ],
    test: [
      'test/protocol/large-entities.test.ts',
      'lets storage copy files and texts; no byte of them passes through the app',
    ],
    finds: 'to be +0',
  },
  {
    without: 'The health route asks the first account alone',
    recommendations: ['s-manage'],
    file: 'lib/http/routes/health-route.ts',
    edits: [['Promise.all(accountsOf(all).map(probe)),', 'Promise.all(accountsOf(all).slice(0, 1).map(probe)),']],
    test: [
      'test/lib/http/routes/health-route.test.ts',
      'names the storage account that is away, while the others respond',
    ],
    finds: 'to match object { status: 200, body: { …(2) } }',
  },
  {
    without: 'A reference leads to its target by a second read',
    recommendations: ['s-reference'],
    file: 'lib/features/references/references.ts',
    edits: [['  if (isConfirmed(entry) && !isCheck && !fields && instant.length === 0) return true;\n', '']],
    test: ['test/protocol/referring.test.ts', 'costs one read when it is written, and none when another field changes'],
    finds: "expected { create: 3, 'another field': 2",
  },
  {
    without: 'The consistency check repairs nothing',
    recommendations: ['d-operate', 'd-find-damage'],
    file: 'lib/operations/verify.ts',
    edits: [
      [
        "const isToRepair = repair === 'safe' ? !losesValues : repair;",
        "const isToRepair = repair === 'safe' && !losesValues;",
      ],
    ],
    test: ['test/protocol/verifying.test.ts', 'finds, reports and repairs %s'],
    finds: "expected [ { kind: 'missing', …(5) } ] to deeply equal [ ObjectContaining{…} ]",
  },
  {
    without: 'An index that is built has only what is written meanwhile',
    recommendations: ['m-rebuild', 'd-online-index'],
    file: 'lib/operations/verify.ts',
    edits: [
      [
        "const isToRepair = repair === 'safe' ? !losesValues : repair;",
        "const isToRepair = repair === 'safe' && !losesValues;",
      ],
    ],
    test: ['test/protocol/verifying.test.ts', 'is built beside concurrent writers, and misses no entity'],
    finds: 'to deeply equal []',
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
    without: 'A write looks for its row in a range',
    recommendations: ['g-modify-by-key'],
    file: 'lib/engine/read/entity-rows.ts',
    edits: [
      [
        '  const reading = readRow(engine.storage, address);',
        '  const range = { ...address, from: address.row, before: `${address.row} ` };\n  const reading = readRange(engine.storage, range).then(({ rows }) => rows[0]);',
      ],
    ],
    test: ['test/scenarios/splitting-products.test.ts', 'change their price and stock without their texts'],
    finds: '+       "read": "rows",',
  },
  {
    without: 'The encrypted fields of a group are stored as they are',
    recommendations: ['d-vertical-sensitive'],
    file: 'lib/features/encrypted-properties/encrypted-properties.ts',
    edits: [['      if (fields.length === 0) return values;', '      if (fields.length >= 0) return values;']],
    test: ['test/protocol/vertical-split.test.ts', 'encrypts, rewraps and keeps texts in blobs for a group'],
    finds: 'to match object { secret: Any<Uint8Array> }',
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
    without: 'A grant of a row opens its groups',
    recommendations: ['g-11-access', 'd-security'],
    file: 'lib/features/vertical-split/vertical-split.ts',
    edits: [
      [
        'return { own: omit(values, apartFields(entity)), further: new Map(stored) };',
        'return { own: values, further: new Map(stored.slice(stored.length)) };',
      ],
    ],
    test: [
      'test/rules/granting.test.ts',
      'opens a field that a rule shows to its owner, no group of split, and an encrypted field as it is stored',
    ],
    finds: 'to not have property "health"',
  },
  {
    without: 'Children are read with each entity',
    recommendations: ['p-compound-frequency'],
    file: 'lib/api/get.ts',
    edits: [
      [
        'include ? includedOf(entity, include) : NOTHING_INCLUDED;',
        'include ? includedOf(entity, include) : { ...NOTHING_INCLUDED, kinds: entity.children };',
      ],
    ],
    test: ['test/scenarios/retrieving.test.ts', 'are included in an employee for callers who may read them'],
    finds: '+   "reviews": [',
  },
  {
    without: 'The signature of a file does not let a client read',
    recommendations: ['c-sas-download'],
    file: 'lib/storage/blobs.ts',
    edits: [
      [
        'permissions: BlobSASPermissions.parse(permissions),',
        "permissions: BlobSASPermissions.parse(permissions === READ_PERMISSIONS ? 'c' : permissions),",
      ],
    ],
    test: [
      'test/scenarios/files-and-secrets.test.ts',
      'opens the file directly in storage for the roles that read it, with two transactions and none for the file',
    ],
    finds: 'to deeply equal Buffer[ 137, 80, 78, 71',
  },
  {
    without: 'A range of a file is the whole file',
    recommendations: ['c-blob-tuning'],
    file: 'lib/http/byte-range.ts',
    edits: [['  if (!isRange) return undefined;', "  if (!isRange || etag !== '') return undefined;"]],
    test: ['test/scenarios/files-and-secrets.test.ts', 'is read in ranges, for as long as it is the same file'],
    finds: "to deeply equal [ 206, 'bytes 8-15/70'",
  },
  {
    without: 'A connection error is not retried',
    recommendations: ['c-retry-connection'],
    file: 'lib/storage/storage.ts',
    edits: [['const RETRIES = 3;', 'const RETRIES = 0;']],
    test: ['test/lib/storage/storage.test.ts', 'sends an insert again if the connection ends before its handshake'],
    finds: 'expected 1 to be 4',
  },
  {
    without: 'A list is written without its ETag',
    recommendations: ['p-list-again'],
    file: 'lib/engine/read/member-list.ts',
    edits: [
      [
        "return { kind: 'replace', row: rowKey, properties, etag: row.etag };",
        "return { kind: 'replace', row: rowKey, properties, etag: '*' };",
      ],
    ],
    test: [
      'test/lib/engine/write/plan.test.ts',
      'of several changes in a partition updates copies and lists in one transaction',
    ],
    finds: 'Property failed after',
  },
  {
    without: 'A list returns its members without a read of them',
    recommendations: ['p-list-read'],
    file: 'lib/engine/read/read-through-index.ts',
    edits: [
      [
        'const found = address && (await readWanted(engine, entity, index, address, { select, where, given }));',
        'const found = address && { values: { ...given, ...inList } };',
      ],
    ],
    test: [
      'test/lib/engine/read/read-through-index.test.ts',
      'of lists are omitted, at most 256 on a page, and a page continues within a list',
    ],
    finds: 'expected [ …(601) ] to deeply equal [ Array(4) ]',
  },
  {
    without: 'The command moves no slot',
    recommendations: ['d-split-merge'],
    file: 'lib/operations/move-slots.ts',
    edits: [
      [
        '    await startMoves(mover, plans, isClosed);\n    await finishMoves',
        '    if (plans.length === 0) await startMoves(mover, plans, isClosed);\n    await finishMoves',
      ],
    ],
    test: ['test/local/cli/accounts-command.test.ts', 'moves slots, spreads them, returns them and cleans up'],
    finds: "expected '0 slots moved",
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
    without: 'Requests are not counted by their pattern',
    recommendations: ['g-count-operations'],
    file: 'lib/storage/cost.ts',
    edits: [
      [
        '      count.transaction({ pattern: currentPattern(), operation });',
        '      count.transaction({ pattern: currentPattern().slice(0, 0), operation });',
      ],
    ],
    test: ['test/lib/storage/cost.test.ts', 'counts each attempt of a request by its pattern and its operation'],
    finds: 'to deep equally contain',
  },
  {
    without: 'The first action is named for every conflict',
    recommendations: ['p-batch-index'],
    file: 'lib/storage/errors.ts',
    edits: [['    this.action = action;', '    this.action = action * 0;']],
    test: ['test/protocol/copies-in-the-partition.test.ts', 'is given to exactly one of many concurrent writers'],
    finds: 'Other requests keep changing',
  },
];
