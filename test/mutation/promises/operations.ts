// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the edits are texts of code
import type { Cut } from '../../model/rules.ts';

export const OPERATIONS: readonly Cut[] = [
  {
    without: 'Each record is a block of its own',
    recommendations: ['p-log-buffer', 'c-blob-appends'],
    file: 'lib/operations/append-log.ts',
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
    file: 'lib/operations/append-log.ts',
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
    file: 'lib/operations/append-log.ts',
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
    without: 'A look at a table of another program leaves the index rows of former values',
    file: 'lib/operations/follow.ts',
    edits: [['(owner) => keys.has(keyOf(owner))', '() => keys.size < 0']],
    test: [
      'test/existing/beside.test.ts',
      'after a look, indexes, lists, unique values and totals are those of the changed rows',
    ],
    finds: "expected [ 'orphaned', 'orphaned'",
  },
  {
    without: 'A look at a table of another program begins at any time',
    file: 'lib/operations/follow.ts',
    edits: [['if (before?.isFinished && engine', 'if (before?.isFinished && every < 0 && engine']],
    test: ['test/existing/beside.test.ts', 'a look is repeated after its time, and not before'],
    finds: 'expected 1 to be +0',
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
    without: 'A mover compares no rows after it has copied them',
    recommendations: ['d-offline'],
    file: 'lib/operations/slot-contents.ts',
    edits: [['    if (unknown === 0 && [...changed].every(', '    if (unknown >= 0 || [...changed].every(']],
    test: ['test/lib/operations/move-slots.test.ts', 'moves closed slots without fences'],
    finds: 'expected Set{ 1 } to deeply equal Set{ 1, 2 }',
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
    file: 'lib/operations/add-entries.ts',
    edits: [
      ['refused = await writeDerived(engine, entity, wanted, { isLeft, isInsert: true });', 'refused = new Set();'],
    ],
    test: ['test/protocol/verifying.test.ts', 'is built beside concurrent writers, and misses no entity'],
    finds: 'to deeply equal []',
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
  // The rules of the table *Bulk load* in docs/internals/consistency.md.
  {
    without: 'A bulk load goes on when another run has taken its mark over',
    file: 'lib/operations/bulk-load.ts',
    edits: [
      [
        'signal: signal ? AbortSignal.any([signal, running.lost]) : running.lost,',
        'signal: signal ?? new AbortController().signal,',
      ],
    ],
    test: ['test/lib/operations/bulk-load.test.ts', 'ends the first one, which stood still, when that one looks again'],
    finds: "expected [ 'done', 'done' ] to deeply equal [ 'busy', 'done' ]",
  },
  {
    without: 'A repeated bulk load adds nothing that it finds to the journal',
    file: 'lib/operations/bulk-load.ts',
    edits: [['  if (engine.storage.journal)\n', '  if (!engine.storage.journal)\n']],
    test: [
      'test/lib/operations/bulk-load.test.ts',
      'adds to the journal what the first one had stored when it was killed',
    ],
    finds: 'expected {} to deeply equal',
  },
  {
    without: 'A row that a repeated bulk load finds stored by a late request is rejected',
    file: 'lib/operations/bulk-load.ts',
    edits: [
      [
        'load.isResumed ? await withoutStored(load, [...refusals.keys()], stored) : [...refusals.keys()]',
        '[...refusals.keys()]',
      ],
    ],
    test: [
      'test/lib/operations/bulk-load.test.ts',
      'adds the entries of a row that a late request of the first one has stored meanwhile',
    ],
    finds: 'expected { read: 6, created: +0, …(4) } to match object',
  },
  {
    without: 'A bulk load begins while its entity gets another key',
    file: 'lib/operations/bulk-load.ts',
    edits: [['  await requireRekeyed(engine, entity);\n', '']],
    test: [
      'test/lib/operations/bulk-load.test.ts',
      'refuses an entity that gets another key, before it writes anything',
    ],
    finds: "expected 'done' to be 'busy'",
  },
  {
    without: 'A restore creates the tables again that a stopped one created in some accounts',
    file: 'lib/operations/backup/restore-rows.ts',
    edits: [
      [
        "import { createTable } from '../../storage/provision.ts';",
        "import { createTable, listTables } from '../../storage/provision.ts';",
      ],
      [
        '  const restored: RestoredTable[] = [];\n',
        "  const restored: RestoredTable[] = [];\n  const known = new Set(await listTables(storage, ''));\n",
      ],
      ['    await createTable(storage, table);\n', '    if (!known.has(table)) await createTable(storage, table);\n'],
    ],
    test: [
      'test/lib/operations/backup/restore.test.ts',
      'a restore goes on that was stopped before each account had the table of a period',
    ],
    finds: 'is missing',
  },
];
