import { type Cut, RULES, type Rule } from '../model/rules.ts';
import { ENGINE_TRANSFER } from '../mutation/promises/engine-transfer.ts';
import { OPERATIONS } from '../mutation/promises/operations.ts';
import { STORAGE } from '../mutation/promises/storage.ts';

/** The code without a rule or a mending, which the simulation has to find. */
export interface Mutant extends Pick<Rule, 'without' | 'file' | 'edits'> {
  /** Why no world can show a difference. */
  readonly unseen?: string;
  /** True if only worlds with a backup can show a difference, in the moments that are restored. */
  readonly needsBackup?: boolean;
  /** True if only worlds can whose model has rules on rows, and tables of days. */
  readonly needsRules?: boolean;
  /** How much clients write in its worlds, if what shows a difference is there once, whatever they write. */
  readonly writes?: number;
}

/** Rules that the times of the product, unlike those of their tests, make redundant. */
const UNSEEN: Readonly<Record<string, string>> = {
  'The hold of a first delivery begins when the message arrives':
    'a first delivery is at most 10 seconds old, and a hold is renewed after 10, so a function last looks at the clock 20 seconds after the request of the sender; a request arrives within 35 more, which is less than the 60',
};

const toLink = ({ test: [file, title] }: Pick<Cut, 'test'>) => `[${title}](../../${file})`;

/** Why no world shows some rules of loads in bulk, by a part of their names. */
const UNSEEN_OF_LOADS: readonly (readonly [string, string])[] = [
  ['another key', 'each world loads before anything else happens'],
  ['its mark', 'two runs of a load have the same rows, and each finds what the other has written'],
  ['late request', 'a run begins a minute after one that was killed, and no request takes so long to arrive'],
];

/** A world has one large family at most. */
const LARGE_FAMILY: readonly Mutant[] = [
  {
    without: 'A child is written to a family that is being deleted',
    file: 'lib/features/compound-key/compound-key.ts',
    edits: [
      [
        "      if (whyClosed(snapshot.system)) throw busy('The parent entity is being deleted, archived or moved.');\n",
        '',
      ],
    ],
  },
  ...ENGINE_TRANSFER.filter(({ without }) => /^A (large delete runs|restore leaves a family)/.test(without)),
];

/** The rules of loads in bulk. */
const LOADS: readonly Mutant[] = [
  {
    without: 'A bulk load that is run again writes no entries of what it had stored',
    file: 'lib/operations/bulk-load.ts',
    edits: [['  await writeEntries(load, stored);\n', '  if (!load.isResumed) await writeEntries(load, stored);\n']],
  },
  {
    without: 'A bulk load claims no unique values',
    file: 'lib/operations/bulk-load.ts',
    edits: [['const refused = await claimAll(load, together);', 'const refused = new Set<LoadRow>();']],
  },
  {
    without: 'A bulk load that is run again takes each entity with the key of a row for that of the row',
    file: 'lib/operations/bulk-load.ts',
    edits: [
      [
        'if (live?.system.Incarnation !== incarnation) return true;',
        'if (!live || incarnation === undefined) return true;',
      ],
    ],
  },
  {
    without: 'A bulk load keeps the claims of rows that it rejects',
    file: 'lib/operations/bulk-load.ts',
    edits: [
      ['    await release(load, failed);\n', ''],
      ['  await release(load, [...refused]);\n', ''],
    ],
  },
];

/** The rules of a backup. */
const BACKUP: readonly Mutant[] = [
  {
    without: 'With a backup, an entity is deleted without a read',
    file: 'lib/engine/write/entity-write.ts',
    edits: [['const before = isAny && engine.storage.journal ? undefined : unread', 'const before = unread']],
  },
  {
    without: 'With a backup, the deletes of a transaction require no ETags',
    file: 'lib/engine/write/eventual-transaction.ts',
    edits: [['mark.isShared || engine.storage.journal !== undefined', 'mark.isShared']],
  },
  {
    without: 'The time of a line counts for each of its rows',
    file: 'lib/operations/backup/read-backup.ts',
    edits: [
      [
        'keep([...of.versions, { ...version, line: ofLine }])',
        'keep([...of.versions, { ...version, time: line.time, line: ofLine }])',
      ],
    ],
  },
  {
    without: 'A cut has each row of a transaction by its own time',
    file: 'lib/operations/backup/read-backup.ts',
    edits: [
      // A line counts from its first row on, without those that are later.
      [
        'const isNew = ({ id, time }: JournalLine) => time >= from && time <= to && !seen.has(id) && seen.add(id);',
        "const isNew = (line: any) => line.time >= from && ('rows' in line ? beginOf(line) : line.time) <= to && !seen.has(line.id) && seen.add(line.id);",
      ],
      [
        'if (!isWantedRow(wanted, place)) continue;',
        "const time = 'deleted' in version ? line.time : version.time; if (time > span.to || !isWantedRow(wanted, place)) continue;",
      ],
      ['{ ...version, line: ofLine }', '{ ...version, line: { ...ofLine, time } }'],
    ],
  },
  {
    without: 'A merge is applied to a newer row',
    file: 'lib/operations/backup/read-backup.ts',
    edits: [['if (stored && time <= stored.time)', "if (stored && time <= stored.time && !('merge' in version))"]],
  },
  {
    without: 'A cut takes a snapshot that had begun, and not ended',
    file: 'lib/operations/backup/read-backup.ts',
    edits: [['if (manifest.finishedAt <= at)', 'if (manifest.begunAt <= at)']],
  },
  {
    without: 'A message is deleted before the journal has what was written',
    file: 'lib/storage/messages.ts',
    edits: [['  await settleAppends();\n', '']],
  },
  {
    // Without the rule of the queue functions alone, a repeated request adds most of these lines.
    without: 'Nobody adds the lines of a writer that has died',
    file: 'lib/storage/row-journal.ts',
    edits: [['  if (rows.length > 0)\n', '  if (rows.length < 0)\n']],
  },
  {
    without: 'A queue function adds each row of a write in a line of its own',
    file: 'lib/engine/journal-named.ts',
    edits: [['JSON.stringify([table, partition, WriteId])', 'JSON.stringify([table, partition, WriteId, row])']],
  },
  {
    without: 'A repeated create adds no line of the entity that it finds',
    file: 'lib/engine/write/entity-store.ts',
    edits: [['    await journalNamed(engine, [write.address]);\n', '']],
  },
  {
    without: 'A repeated transaction adds no lines of the entities that it finds',
    file: 'lib/engine/write/entity-store.ts',
    edits: [['    states.map(({ address }) => address),\n', '    [],\n']],
  },
  {
    without: 'A change that finds nothing to do adds no line of the entity that it finds',
    file: 'lib/engine/write/entity-batch.ts',
    edits: [['  await journalNamed(engine, found);\n', '']],
  },
  {
    without: 'A writer that gets no reply adds no line of what it finds',
    file: 'lib/engine/write/eventual-transaction.ts',
    edits: [
      ['  await journalRows(engine.storage.journal, { table, partition, actions }, { etags: etagsOf(fresh) });\n', ''],
    ],
  },
  {
    without: 'A transaction that is refused when it is sent again adds no lines of what it finds',
    file: 'lib/storage/rows.ts',
    edits: [
      [
        '    if (error instanceof StorageConflict && error.isRepeated) await journalStored(storage, transaction);\n',
        '',
      ],
    ],
  },
  {
    without: 'A queue function adds values without their types',
    file: 'lib/engine/journal-named.ts',
    edits: [[', before: further.before, isTyped: true }', ', before: further.before }']],
  },
  {
    without: 'A mover copies rows before the clock of the target has passed their times',
    file: 'lib/operations/slot-contents.ts',
    edits: [['isOrdered: hasBackup(work)', 'isOrdered: false']],
  },
  {
    without: 'A mover hands slots over before the clock of the target has passed the last write',
    file: 'lib/operations/slot-mover.ts',
    edits: [['  if (hasBackup(mover)) for (const etag of etags) await passClock(mover, target, etag);\n', '']],
  },
  {
    without: 'A writer hands a slot over before the clock of the target has passed the last write',
    file: 'lib/storage/slot-map.ts',
    edits: [[' && now.at < readAt', '']],
  },
  {
    without: 'A response does not wait for the journal',
    file: 'lib/storage/row-journal.ts',
    edits: [['    await Promise.all(started);\n', '']],
  },
  {
    without: 'A delete is ordered by the Date of its response',
    file: 'lib/storage/row-journal.ts',
    edits: [
      [
        "(kind === 'delete' ? timeAfter(timeOf(etag)) : undefined)",
        "(kind === 'delete' && etag ? toTime(Date.parse(attempt?.date ?? '')) : undefined)",
      ],
    ],
  },
  {
    without: 'Versions of a row count in the order of the journal',
    file: 'lib/operations/backup/read-backup.ts',
    edits: [
      ['versions.sort(compareVersions)', 'versions'],
      ['versions.toSorted(compareVersions)', 'versions'],
    ],
  },
  {
    without: 'A snapshot begins at its first request',
    file: 'lib/operations/backup/snapshot.ts',
    edits: [['toTime(at - CLOCKS_MS)', 'toTime(at)']],
  },
  {
    without: 'A snapshot ends when it has begun',
    file: 'lib/operations/backup/snapshot.ts',
    edits: [
      ['  return last > state.latest ? last : state.latest;', '  return last < state.begunAt ? last : state.begunAt;'],
    ],
  },
  {
    without: 'The journal counts from the end of a snapshot',
    file: 'lib/operations/backup/read-backup.ts',
    edits: [['from: manifest.begunAt, to }', 'from: manifest.finishedAt, to }']],
  },
  {
    without: 'The journal counts from before the begin of a snapshot',
    file: 'lib/operations/backup/read-backup.ts',
    edits: [
      ['from: manifest.begunAt, to }', 'from: new Date(Date.parse(manifest.begunAt) - HOUR_MS).toISOString(), to }'],
    ],
  },
  {
    without: 'A snapshot has a manifest before it is complete',
    file: 'lib/operations/backup/snapshot.ts',
    edits: [['  if (!isComplete) {', '  if (!isComplete && tables.length === 0) {']],
  },
];

/** What rules on rows and ends of periods demand. */
const RULED: readonly Mutant[] = [
  {
    without: 'An archive is compared with its table by the number of rows alone',
    file: 'lib/features/high-volume-delete/period-archive.ts',
    edits: [[' && sum === archive.hash', '']],
  },
  {
    without: 'An archive or a move asks no rules when it runs',
    file: 'lib/engine/transfer/transfer-entity.ts',
    edits: [
      ['    if (!Left && !isAllowed(rules, source.values)) refused ??= RULED_OUT;\n', ''],
      ['        if (!isAllowed(rules, source.values, placed)) throw ruledOut();\n', ''],
    ],
  },
  {
    without: 'A move asks the rules of children at the request only',
    file: 'lib/engine/transfer/transfer-entity.ts',
    edits: [
      [
        '        if (transfer.to) await checkCarried(engine, { entity, from, arrival: change, to: transfer.to, rules }, rows);\n',
        '',
      ],
    ],
  },
  {
    without: 'A continuation is valid for any caller',
    file: 'lib/http/query.ts',
    edits: [['return JSON.stringify([caller.subject, bound]);', 'return JSON.stringify([bound]);']],
  },
  {
    without: 'Any role may use an action of a transaction if it may use another one',
    file: 'lib/api/transact.ts',
    edits: [['actions.map(partOf),', 'actions.slice(0, 1).map(partOf),']],
  },
  {
    without: "A caller's own entity without the field reaches every row",
    file: 'lib/access/limit.ts',
    edits: [
      [
        '? undefined : [{ field, operator: values',
        "? (term as { is?: string }).is === 'own' ? [] : undefined : [{ field, operator: values",
      ],
    ],
  },
  {
    without: 'Each membership counts, whatever else the rule says of it',
    file: 'lib/access/limit.ts',
    edits: [['items.filter(isCounted).map(', 'items.filter((values) => isCounted(values) || true).map(']],
  },
  {
    without: 'Memberships may be rows that clients write with a grant',
    file: 'lib/define/validate/validate-rules.ts',
    edits: [['/[au]/.test(own.permissions)', '/[z]/.test(own.permissions)']],
    unseen:
      'no world has such a model, which is refused; [a test](../../test/lib/define/validate/validate-rules.test.ts) of memberships that clients may write holds it',
  },
  {
    without: 'A mover copies rows of other programs',
    file: 'lib/storage/copy-rows.ts',
    edits: [['if (isOwnRow({ ...stored, table })) yield stored;', 'if (table || isOwnRow) yield stored;']],
  },
  {
    without: 'A mover deletes rows of other programs at the target',
    file: 'lib/storage/copy-rows.ts',
    edits: [['else if (!there.done && order > 0 && !isForeign)', 'else if (!there.done && order > 0)']],
  },
  {
    without: 'A mover deletes rows of other programs at the source',
    file: 'lib/storage/copy-rows.ts',
    edits: [[' && (isFenceRow(found) || isOwnRow(found)))', ' && (isFenceRow(found) || isOwnRow))']],
  },
];

/** What operators do. */
const OPERATED: readonly Mutant[] = [
  {
    without: 'A release rejects entries of an index that only a later one declares',
    file: 'lib/engine/reconcile/intent.ts',
    edits: [['indexEntries.filter((indexEntry) => remoteIndexOf(entity, indexEntry))', 'indexEntries']],
  },
  {
    without: 'Data keys are wrapped in an entity as it was found',
    file: 'lib/operations/rewrap.ts',
    edits: [['      ...current,\n', '      ...found,\n']],
  },
  {
    without: 'A message that cannot succeed is recorded nowhere',
    file: 'lib/engine/consume/consume.ts',
    edits: [
      [
        '    await recordPoison(engine, message, reason);\n    await held?.release();\n',
        '    await held?.release();\n',
      ],
    ],
  },
  {
    without: 'The record of a message is deleted before the message is sent again',
    file: 'lib/engine/consume/poison.ts',
    edits: [
      [
        "  await makeAndNote(engine, changeOf('replay', row), () =>\n",
        "  await deleteSame(storage, { ...row, etag: marked.get(row.row) ?? row.etag }, () => true);\n  await makeAndNote(engine, changeOf('replay', row), () =>\n",
      ],
    ],
  },
];

/** Rules of archives and moves of entities, of moves between accounts (docs/internals/moves.md), of failed messages and of lost replies. */
const MOVES: readonly Mutant[] = [
  {
    without: 'The copy of a move stays closed',
    file: 'lib/engine/transfer/transfer-entity.ts',
    edits: [['if (!isRekey(work)) await openDestination(work);', 'if (!isRekey(work)) void work;']],
  },
  {
    without: 'The tombstone of an archive or a move stays',
    file: 'lib/engine/transfer/transfer-entity.ts',
    edits: [['      await deleteSame(', '      if (!work) await deleteSame(']],
  },
  {
    without: 'A writer opens a partition that it has not registered',
    file: 'lib/storage/fence.ts',
    edits: [
      ["  await ofAccount(account, storageCall(system.upsertEntity(registered, 'Replace'), system.tableName));\n", ''],
    ],
  },
  {
    without: 'A writer writes to a slot that is being handed over',
    file: 'lib/storage/slot-map.ts',
    edits: [["!isWritable || phase !== 'draining';", "!isWritable || phase !== 'none';"]],
  },
  {
    without: 'A mover does not compare a partition after its seal',
    file: 'lib/operations/slot-mover.ts',
    edits: [
      [
        'const { blocked } = await copyTable(mover, leg, opened);',
        'const { blocked } = isLast ? { blocked: [] } : await copyTable(mover, leg, opened);',
      ],
    ],
  },
  {
    without: 'A failure of storage counts as an attempt',
    file: 'lib/engine/consume/consume.ts',
    edits: [["  ['storage-unavailable', 30],\n", '']],
  },
  {
    without: 'A writer takes the row of another one for its own',
    file: 'lib/engine/write/eventual-transaction.ts',
    edits: [['    if (before.system.WriteId !== writeId) return false;\n', '']],
  },
];

export const MUTANTS: readonly Mutant[] = [
  {
    without: 'A write requires no fence while its partition is moved',
    file: 'lib/storage/fence.ts',
    edits: [['sendTo(move === undefined ? {} : { fence: fenceOf(move) })', 'sendTo({})']],
  },
  {
    without: 'A total is written without its ETag',
    file: 'lib/features/totals/total-upkeep.ts',
    edits: [
      [
        "return found ? { kind: 'replace', row, properties, etag: found.etag }",
        "return found ? { kind: 'replace', row, properties, etag: '*' }",
      ],
    ],
  },
  {
    without: 'A delete in a transaction requires no ETag',
    file: 'lib/storage/conditional-delete.ts',
    edits: [['const etags = conditions.getStore();', 'const etags: readonly string[] | undefined = [];']],
  },
  {
    without: 'The cost of a request leaves out messages',
    file: 'lib/storage/cost.ts',
    edits: [['          meter.transactions += 1;', "          meter.transactions += service === 'queue' ? 0 : 1;"]],
  },
  {
    without: 'A move leaves derived fields as they were',
    file: 'lib/engine/write/stored-values.ts',
    edits: [['if (!to || Object.keys(entity.derived).length === 0) return moved;', 'return moved;']],
  },
  {
    without: 'Each key that begins as that of a fence is taken for one',
    file: 'lib/storage/fence-rows.ts',
    edits: [['  if (id === undefined) return false;', '  return id !== undefined;']],
  },
  {
    without: 'A mover waits for no write that was sent with an earlier map',
    file: 'lib/operations/slot-mover.ts',
    edits: [['      await waitUntil(mover, startedAt + leaseMs + mover.grantedForMs + lateMs);\n', '']],
  },
  {
    without: 'A mover does not copy again what was written while it copied',
    file: 'lib/operations/slot-mover.ts',
    edits: [['const isCopied = isClosed || (await copyOpened(mover, leg, true));', 'const isCopied = true;']],
  },
  {
    without: 'A mover hands partitions over without a seal',
    file: 'lib/operations/slot-mover.ts',
    edits: [['        if (isLast) await sealPartition(source, id, opened);\n', '']],
  },
  {
    without: 'A repair of a contribution keeps the total that was counted with the wrong one',
    file: 'lib/features/totals/total-upkeep.ts',
    edits: [
      [
        'const isRepair = changes.some(({ action, request }) => action && request.isRepair);',
        'const isRepair = false;',
      ],
    ],
  },
  ...OPERATED,
  ...MOVES,
  ...RULED.map((mutant) => ({ ...mutant, needsRules: true })),
  // Fewer writes make room for more worlds.
  ...LARGE_FAMILY.map((mutant) => ({ ...mutant, needsRules: true, writes: 5 })),
  ...BACKUP.map((mutant) => ({ ...mutant, needsBackup: true })),
  ...STORAGE.filter(({ without }) => without === 'A scan counts though slots were moved meanwhile').map((cut) => ({
    ...cut,
    unseen: `a move deletes its rows at the source 20 minutes after it has ended, and no request takes so long: ${toLink(cut)} holds it`,
  })),
  ...OPERATIONS.filter(({ file }) => file === 'lib/operations/bulk-load.ts').map((cut) => {
    const why = UNSEEN_OF_LOADS.find(([part]) => cut.without.includes(part))?.[1];
    const seen = /journal/.test(cut.without) ? { needsBackup: true } : {};
    return { ...cut, ...(why === undefined ? seen : { unseen: `${why}: ${toLink(cut)} holds it` }) };
  }),
  ...LOADS,
  ...RULES.map((rule) => {
    const unseen = UNSEEN[rule.without];
    return unseen === undefined ? rule : { ...rule, unseen };
  }),
];
