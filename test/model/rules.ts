/**
 * The rules of the tables *The order of the steps* and *Time* in docs/internals/consistency.md: the code without each rule, and the test that then
 * finds a difference. `npm run rules` proves it.
 */

const ORDER = 'test/protocol/keeping-the-order.test.ts';
const TIME = 'test/protocol/keeping-the-time-limits.test.ts';
const FAN_OUT = 'test/protocol/fanning-out-between-processes.test.ts';
const OVERTAKEN = 'test/protocol/overtaken-reconcilers.test.ts';

const WRITE = 'lib/engine/write/eventual-transaction.ts';
const ANNOUNCEMENT = 'lib/engine/write/announcement.ts';
const RECONCILE = 'lib/engine/reconcile/reconcile.ts';
const HOLD = 'lib/engine/reconcile/hold.ts';

export const PAGE = 'docs/internals/consistency.md';
export const [BEGIN, END] = ['<!-- rules: written by `npm run rules` -->\n', '<!-- /rules -->'];

/** Something that the code promises, taken out of the code, and the test that then fails. */
export interface Cut {
  /** What the code does without it. Names the cut. */
  readonly without: string;
  readonly file: string;
  /** Texts of the file, each of which occurs once, and what replaces them. */
  readonly edits: readonly (readonly [text: string, replacement: string])[];
  /** A file and the title of a test in it. */
  readonly test: readonly [file: string, title: string];
  /** A part of the test's error: the difference. */
  readonly finds: string;
  /** The ids of recommendations in docs/internals/checklist.yaml that are the same promise. Each cites the test. */
  readonly recommendations?: readonly string[];
}

export interface Rule extends Cut {
  /** The first cell of a row in *The order of the steps* or *Time*. A row may state several rules. */
  readonly row: string;
}

const COMMIT_LIMIT =
  'A writer sends its claims and its transaction within 15 seconds after it sent its intent, which is hidden for 60';
const HOLD_LIMIT =
  "A process writes index entries within 25 seconds after it began to hide their message, which is hidden for 60. The time counts from before the request that hides it, and for a first delivery from the sender's request";
const CLAIM_LIFE = 'A claim lives for 50 seconds, by the clock of Queue storage';
const UNKNOWN_OUTCOME = 'If an outcome is unknown, the intent stays hidden, or the work waits for at least 30 seconds';
const SENT_ONCE = 'An insert of an index entry or of a claim is sent once';

export const RULES: readonly Rule[] = [
  {
    row: 'intent before claim',
    without: 'A writer claims before it sends its intent',
    recommendations: ['d-order'],
    file: WRITE,
    edits: [
      ['  const intent = await announce(engine, table, planned.plan, writeId);\n', ''],
      ['deadline, intent, abandoned };', 'deadline, intent: undefined, abandoned };'],
      [
        '  const claimed = await claimAll(write);\n',
        `  const claimed = await claimAll(write);
  const intent = await announce(engine, table, planned.plan, writeId);
  Object.assign(write, { intent });\n`,
      ],
    ],
    test: [ORDER, 'a writer that dies after its claim leaves no claim'],
    finds: 'claim in carsbyplate',
  },
  {
    row: 'claim before transaction',
    without: 'A writer claims after its transaction',
    file: WRITE,
    edits: [
      ['  const claimed = await claimAll(write);\n', ''],
      [
        '    : untilDone());\n',
        `    : untilDone());
  const claimed = await claimAll(write);\n`,
      ],
    ],
    test: [ORDER, 'a writer that stalls before its transaction shares no unique value with another entity'],
    finds: 'missing in ["carsbyplate"',
  },
  {
    row: 'transaction before index entries',
    without: 'A writer settles its index entries before its transaction',
    file: WRITE,
    edits: [
      [
        '  const untilDone = () => submitUntilDone(write);\n',
        `  const etagOf = (before: Change['before']) => ('etag' in before ? (before.etag ?? '') : '');
  const early = changes.map(({ before, after }) => ({ etag: etagOf(before), values: after ?? {} }));
  const hold = holdFor(engine, sentAt + engine.timing.settleWithinMs - engine.now());
  if (intent) await settle(write, intent, { hold, written: { entities: stateOf(changes, early), claimed } });
  const untilDone = () => submitUntilDone(write);\n`,
      ],
      ['  if (intent) {\n    // The index', "  if (intent?.id === '') {\n    // The index"],
    ],
    test: [ORDER, 'a create that another create has overtaken leaves no index entry'],
    finds: 'left over in ["guestsbyname"',
  },
  {
    row: 'index entries before the second read',
    without: 'The reconciler reads the entity again before it writes index entries',
    recommendations: ['p-evt-order'],
    file: RECONCILE,
    edits: [
      [
        '    const known = committed;\n',
        '    const known = committed;\n    const after = await readSnapshot(work, address);\n',
      ],
      [
        '    if (before.values && isJudged) return;\n    const after = await readSnapshot(work, address);\n',
        '    if (before.values && isJudged) return;\n',
      ],
    ],
    test: [ORDER, 'an index entry that a later change has removed is not written again'],
    finds: 'left over in ["guestsbyname"',
  },
  {
    row: 'second read before the end of the intent',
    without: 'A writer deletes its intent before it settles the index entries',
    file: ANNOUNCEMENT,
    edits: [
      [
        '    for (const { entity, inline, queued } of parts) {\n',
        '    if (!left.some(hasWork)) await deleteMessage(engine.storage, intent);\n    for (const { entity, inline, queued } of parts) {\n',
      ],
    ],
    test: [ORDER, 'a writer that dies before its second read leaves no stale index entry'],
    finds: 'left over in ["guestsbyname"',
  },
  {
    row: 'second read before the end of the intent',
    without: 'A function deletes the reminder before it settles the index entries',
    file: 'lib/engine/consume/consume.ts',
    edits: [
      [
        '      held = await holdWork(engine, message);\n',
        '      held = await holdWork(engine, message);\n      await held?.release();\n',
      ],
    ],
    test: [ORDER, 'a function that dies before its second read leaves no stale index entry'],
    finds: 'left over in ["guestsbyname"',
  },
  {
    row: 'entries that the writer settles before the message of the rest',
    without: 'A writer sends the message of the rest before it settles its own entries',
    file: ANNOUNCEMENT,
    edits: [
      [
        '    for (const { entity, inline, queued } of parts) {\n',
        '    if (left.some(hasWork)) await sendWorkOf(engine, withWork(intent, left));\n    for (const { entity, inline, queued } of parts) {\n',
      ],
    ],
    test: [
      ORDER,
      'a writer that leaves entries to the queue, and dies before it has written its own, loses none of them',
    ],
    finds: 'missing in ["ticketsbyowner"',
  },
  {
    row: 'a new intent before a plan that changes other rows',
    without: 'A writer keeps its intent after a conflict, whatever the new plan changes',
    file: ANNOUNCEMENT,
    edits: [['  if (!isSame(outside(write.plan), outside(write.announced))) throw', '  if (false) throw']],
    test: [FAN_OUT, 'a member is created with the new name by a process that remembers the former one'],
    finds: 'missing in ["membersbyunitname"',
  },
  {
    row: "the end of a reminder's time before another hold on its work",
    without: 'A function takes each first delivery without hiding the reminder',
    file: HOLD,
    edits: [
      [
        'if (receipt && passed !== undefined && passed < renewAfterMs) {\n    hiddenAt -= passed;\n',
        'if (receipt && passed !== undefined) {\n',
      ],
    ],
    test: [ORDER, 'a late first delivery does no work that its reminder has begun'],
    finds: 'left over in ["guestsbyname"',
  },
  {
    row: 'confirmation of a claim before the second read',
    without: 'The reconciler does not read the entity again after it has confirmed a claim',
    file: RECONCILE,
    edits: [
      [
        "contested.length === named.length && !settled.includes('claim confirmed');",
        'contested.length === named.length;',
      ],
    ],
    test: [ORDER, 'a claim that is confirmed after a later change leaves no stale row'],
    finds: 'left over in ["carsbyplate"',
  },
  {
    row: 'transaction before the record of the audit log, record before the response',
    without: 'A write is recorded in the audit log before its transaction',
    file: WRITE,
    edits: [
      ['  try {\n    const transaction = {', '  try {\n    noteChanges(write, []);\n    const transaction = {'],
      ['    noteChanges(write, done);\n    return done;\n', '    return done;\n'],
    ],
    test: [ORDER, 'the audit log has no rejected write'],
    finds: '"rejected"',
  },
  {
    row: 'transaction before the record of the audit log, record before the response',
    without: 'A response does not wait for the record of the audit log',
    file: 'lib/engine/note-change.ts',
    edits: [
      [
        '    await Promise.all([collection.early, keepNoted(collection)]);\n',
        '    void Promise.all([collection.early, keepNoted(collection)]).catch(() => undefined);\n',
      ],
    ],
    test: [ORDER, 'the audit log has a write when the write is acknowledged'],
    finds: "to deeply equal [ 'acknowledged' ]",
  },
  {
    row: COMMIT_LIMIT,
    without: 'A writer sends a claim at any time',
    file: ANNOUNCEMENT,
    edits: [['abortIn(deadline - engine.now())', 'AbortSignal.timeout(2 ** 30)']],
    test: [TIME, 'a writer sends no claim after its time limit'],
    finds: 'claim in carsbyplate',
  },
  {
    row: COMMIT_LIMIT,
    without: 'A writer sends its transaction at any time',
    file: WRITE,
    edits: [['const left = write.deadline - engine.now();', 'const left = 2 ** 30;']],
    test: [TIME, 'a writer sends no transaction after its time limit'],
    finds: 'missing in ["guestsbyname"',
  },
  {
    row: CLAIM_LIFE,
    without: 'A claim has expired when it is made',
    file: 'lib/engine/reconcile/unique-claim.ts',
    edits: [['?? now()) + timing.claimForMs)', '?? now()) - timing.claimForMs)']],
    test: [OVERTAKEN, 'leaves a row to the claim of a live writer, although a clock is hours ahead'],
    finds: 'missing in ["employeesbyemail"',
  },
  {
    row: CLAIM_LIFE,
    without: "A claim expires by the reader's own clock",
    file: 'lib/engine/reconcile/unique-claim.ts',
    edits: [['> (storage.clock.earliestTime() ?? now());', '> now();']],
    test: [OVERTAKEN, 'leaves a row to the claim of a live writer, although a clock is hours ahead'],
    finds: 'missing in ["employeesbyemail"',
  },
  {
    row: CLAIM_LIFE,
    without: "A claim is made by the writer's own clock",
    file: 'lib/engine/reconcile/unique-claim.ts',
    edits: [['(storage.clock.latestTime() ?? now()) + timing', 'now() + timing']],
    test: [OVERTAKEN, 'leaves a row to the claim of a live writer, although a clock is hours behind'],
    finds: 'missing in ["employeesbyemail"',
  },
  {
    row: HOLD_LIMIT,
    without: 'A writer settles its index entries at any time',
    file: WRITE,
    edits: [['holdFor(engine, sentAt + engine.timing.settleWithinMs - engine.now())', 'holdFor(engine, 2 ** 30)']],
    test: [TIME, 'a writer writes no index entry after its time limit'],
    finds: 'left over in ["guestsbyname"',
  },
  {
    row: HOLD_LIMIT,
    without: 'A function writes index entries at any time',
    file: HOLD,
    edits: [
      ['if (now() >= hiddenAt + renewAfterMs) {', 'if (false) {'],
      ['abortIn(hiddenAt + timing.settleWithinMs - now())', 'AbortSignal.timeout(2 ** 30)'],
    ],
    test: [TIME, 'a function writes no index entry after its hold'],
    finds: 'left over in ["guestsbyname"',
  },
  {
    row: HOLD_LIMIT,
    without: 'The hold of a function begins with the reply to the request that hides the reminder',
    file: HOLD,
    edits: [['  if (!reminder) return undefined;\n', '  if (!reminder) return undefined;\n  hiddenAt = now();\n']],
    test: [TIME, 'the hold of a function begins before the request that hides the reminder'],
    finds: 'left over in ["guestsbyname"',
  },
  {
    row: HOLD_LIMIT,
    without: 'The hold of a first delivery begins when the message arrives',
    file: HOLD,
    edits: [['    hiddenAt -= passed;\n', '']],
    test: [TIME, 'the hold of a first delivery begins with the request of the sender'],
    finds: 'left over in ["guestsbyname"',
  },
  {
    row: UNKNOWN_OUTCOME,
    without: 'A writer sends its work after an insert with an unknown outcome',
    file: ANNOUNCEMENT,
    edits: [['    if (isOutcomeUnknown(error)) return;\n', '']],
    test: [TIME, 'work whose outcome is unknown waits until its request has been executed'],
    finds: 'left over in ["guestsbyname"',
  },
  {
    row: UNKNOWN_OUTCOME,
    without: 'A writer ends its intent after a transaction with an unknown outcome',
    file: WRITE,
    edits: [
      [
        '    if (done) return done;\n    throw noteUnknownOutcome(write, error);\n',
        '    if (done) return done;\n    throw await endIntent(write, noteUnknownOutcome(write, error));\n',
      ],
    ],
    test: [TIME, 'the intent of a transaction whose outcome is unknown stays'],
    finds: 'missing in ["guestsbyname"',
  },
  {
    row: UNKNOWN_OUTCOME,
    without: 'A writer ends its intent after a claim with an unknown outcome',
    file: ANNOUNCEMENT,
    edits: [['    throw unclaimed.why;\n', '    throw await endIntent(write, unclaimed.why);\n']],
    test: [TIME, 'the intent of a claim whose outcome is unknown stays'],
    finds: 'claim in carsbyplate',
  },
  {
    row: UNKNOWN_OUTCOME,
    without: 'A writer ends its intent after a conflict with what may be its own transaction',
    file: WRITE,
    edits: [
      [
        '      throw noteUnknownOutcome(\n        write,\n        unavailable(',
        '      throw await endIntent(\n        write,\n        unavailable(',
      ],
    ],
    test: [TIME, 'the intent of a transaction that is rejected when it is repeated stays'],
    finds: 'left over in ["guestsbyname"',
  },
  {
    row: UNKNOWN_OUTCOME,
    without: 'A function repeats its work immediately after an unknown outcome',
    file: 'lib/engine/consume/consume.ts',
    edits: [["['storage-unavailable', 30]", "['storage-unavailable', 0]"]],
    test: [TIME, 'a function repeats work whose outcome is unknown after its request has been executed'],
    finds: 'left over in ["guestsbyname"',
  },
  {
    row: SENT_ONCE,
    without: 'An insert of an index entry is repeated after a lost reply',
    file: RECONCILE,
    edits: [
      [
        "tryAction(engine.storage, where, { kind: 'insert'",
        "tryAction(engine.storage, { ...where, isRepeatable: true }, { kind: 'insert'",
      ],
    ],
    test: [TIME, 'an insert of the index entry is sent once'],
    finds: 'left over in ["guestsbyname"',
  },
  {
    row: SENT_ONCE,
    without: 'An insert of a claim is repeated after a lost reply',
    file: 'lib/engine/reconcile/unique-claim.ts',
    edits: [['{ ...where, actions: [insert] }', '{ ...where, actions: [insert], isRepeatable: true }']],
    test: [TIME, 'an insert of the claim is sent once'],
    finds: 'claim in carsbyplate',
  },
  {
    row: 'The reconciler writes an index entry even if the entry is right already',
    without: 'The reconciler leaves an index entry that is right as it is',
    file: RECONCILE,
    edits: [
      [
        '  if (!row) return insert();\n',
        '  if (!row) return insert();\n  if (sameCopy(entity, row, properties)) return true;\n',
      ],
    ],
    test: [TIME, 'a delete that arrives late removes no index entry that a later change needs'],
    finds: 'missing in ["guestsbyname"',
  },
];

/** Returns the source without a rule or promise. Throws if a text does not occur once. */
export function removeRule({ without, file, edits }: Pick<Cut, 'without' | 'file' | 'edits'>, source: string): string {
  return edits.reduce((text, [old, replacement]) => {
    const found = text.split(old).length - 1;
    if (found !== 1)
      throw new Error(
        `"${without}" cannot be applied to ${file}: ${found} places instead of one have this text:\n${old}`,
      );
    return text.replace(old, () => replacement);
  }, source);
}

/** A pattern for a title. `%s` and its like, in the title of a test with several cases, stand for any text. */
export function toPattern(title: string): string {
  return title.replaceAll(/[^\w %]/g, '\\$&').replaceAll(/%[a-z]/g, '.+');
}

/** The table of docs/internals/consistency.md. */
export function tableOfRules(): string {
  const rows = RULES.map(({ without, test: [file, title] }) => `| ${without} | [${title}](../../${file}) |`);
  return ['| Without the rule | Test that fails |', '|---|---|', ...rows].join('\n');
}
