import { type Command, InvalidArgumentError } from 'commander';
import { DAY_MS } from '../../lib/base/time.ts';
import { commandLine } from '../../lib/command-line.ts';
import {
  NOT_RESTORED,
  type RestoreProgress,
  type RestoreReport,
  restoreBackup,
} from '../../lib/operations/backup/restore.ts';
import { padTime } from '../../lib/storage/row-journal.ts';
import type { OpenRestore } from './open-restore.ts';
import { INTERRUPTED_EXIT_CODE, startProgress } from './progress.ts';
import { type InPlaceOptions, restoreInPlace } from './restore-in-place.ts';
import { createTargetCommand } from './target.ts';

interface RestoreOptions extends InPlaceOptions {
  readonly to?: readonly string[];
  readonly inPlace?: true;
  readonly backup?: string;
}

type Open = (options: Pick<RestoreOptions, 'data' | 'backup'>) => Promise<OpenRestore>;

export function createRestoreCommand(open: Open): Command {
  return createTargetCommand(
    'Restores an app from its backup, as it was at an instant: to a place where it has no rows, or in place.',
  )
    .requiredOption('--at <instant>', 'the instant, such as 2026-11-29T09:30:00Z', toInstant)
    .option(
      '--to <place...>',
      'a prefix in the storage account of the app, or the connections of other accounts: connection strings, or addresses such as https://name.table.core.windows.net; those after the first with the names of their settings, such as second=https://…',
    )
    .option('--in-place', 'in the app that runs: shows what differs, asks, and restores that')
    .option('--entity <name>', 'only this entity, with its children; to another place, with its archive too')
    .option('--partition <key>', 'only this partition of the tables of the entity')
    .option('--row <key>', 'only the entity with this row key in the partition, and its children')
    .option('--dry-run', 'in place: only show what differs')
    .option('--yes', 'in place: ask nothing')
    .option('--backup <connection>', 'the storage account of the backup; default: the setting BackupStorage')
    .action(async (options: RestoreOptions) => {
      const { data, backup, at, to, entity, partition, row } = options;
      if (Boolean(to) === Boolean(options.inPlace))
        throw new Error('Where to? Name a place with --to, or use --in-place.');
      if (row !== undefined && partition === undefined) throw new Error('--row needs --partition.');
      if (partition !== undefined && entity === undefined) throw new Error('--partition needs --entity.');
      if (!to) return restoreInPlace(options);
      const { model, source, openTarget, erase } = await open({ data, ...(backup === undefined ? {} : { backup }) });
      const engine = await openTarget(to);
      let rows = 0;
      let now: RestoreProgress | undefined;
      const progress = startProgress({
        rows: () => rows,
        describe: () => (now ? `${now.doing} ${now.name}`.trim() : ''),
      });
      const onProgress = (step: RestoreProgress) => {
        if (step.doing !== now?.doing) rows = 0;
        now = step;
        rows += step.rows;
      };
      const { signal } = progress;
      try {
        const report = await restoreBackup(engine, model, {
          source,
          at,
          entity,
          partition,
          row,
          erase,
          signal,
          onProgress,
        });
        progress.stop();
        for (const line of describeRestore(report)) console.log(line);
        if (problemsOf(report).length > 0) process.exitCode = 1;
      } catch (error) {
        progress.stop();
        if (!signal.aborted) throw error;
        console.error(`Stopped. To continue, run the same command again: ${commandLine('restore')}.`);
        process.exitCode = INTERRUPTED_EXIT_CODE;
      }
    });
}

function toInstant(text: string): string {
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,7})?)?Z$/.test(text) || Number.isNaN(Date.parse(text)))
    throw new InvalidArgumentError('An instant in UTC is needed, such as 2026-11-29T09:30:00Z.');
  // The clock of this machine may be behind that of storage.
  if (Date.parse(text) > Date.now() + DAY_MS) throw new InvalidArgumentError('The instant is in the future.');
  return padTime(text.replace(/T(\d\d:\d\d)Z$/, 'T$1:00Z'));
}

const MAX_LINES = 20;

/** What was restored, what is left, and what a restore leaves out. */
function describeRestore(report: RestoreReport): string[] {
  const { at, snapshot, tables, blobs, settled, erased, blocked, findings, wasDone } = report;
  if (wasDone) return [`An earlier run has restored everything to ${at}. Nothing was changed.`];
  const { tombstones, finished, undone, rekeyed } = settled;
  return [
    `Restored to ${at}, from the snapshot ${snapshot.id} and the journal after it.`,
    ...(tables ?? []).map(
      ({ table, rows, sha256, changed, isEqual }) =>
        `${table}: ${rows} rows, ${changed} written; ${isEqual ? 'equal to' : 'DIFFERENT from'} the backup, SHA-256 ${sha256.slice(0, 16)}`,
    ),
    ...(tables ? [] : ['An earlier run has copied the rows and compared them with the backup.']),
    ...(blobs ? [`${blobs.copied} blobs copied, ${blobs.bytes} bytes.`] : []),
    ...(tombstones + finished + undone + rekeyed > 0
      ? [
          `In the middle of something: ${finished} operations finished, ${undone} undone; ${tombstones} deletes completed; ${rekeyed} entities moved to their key.`,
        ]
      : []),
    ...(erased.subjects > 0
      ? [
          `Erased again, as since the instant: ${erased.subjects} persons, ${erased.deleted} rows deleted, ${erased.changed} changed.`,
        ]
      : []),
    ...(blocked > 0 ? [`${blocked} users are blocked, as they are now.`] : []),
    ...describeFindings(findings),
    ...problemsOf(report),
    'Not restored:',
    ...NOT_RESTORED.map((line) => `- ${line}`),
  ];
}

function describeFindings(findings: RestoreReport['findings']): string[] {
  if (findings.length === 0) return ['The consistency check found nothing.'];
  const lines = findings
    .slice(0, MAX_LINES)
    .map(({ kind, of, table, partition, row }) => `- ${kind} ${of}: ${JSON.stringify([table, partition, row])}`);
  return [`The consistency check found ${findings.length} differences:`, ...lines];
}

/** What an operator has to look at. */
function problemsOf({ tables, blobs, undeclared, settled, erased, findings }: RestoreReport): string[] {
  return [
    ...(tables ?? []).flatMap(({ table, isEqual }) => (isEqual ? [] : [`The table ${table} differs from the backup.`])),
    ...(blobs?.missing ?? []).map((name) => `The backup has no copy of the blob ${name}.`),
    ...undeclared.map((table) => `The model has no table ${table}: its rows are restored, and nothing reads them.`),
    ...settled.left,
    ...erased.failed.map((text) => `Not erased: ${text}`),
    ...(erased.isLogRead
      ? []
      : [
          'The audit log of the app cannot be read, and its copies lack the last hours: erase again who was erased then.',
        ]),
    ...(findings.length > 0 ? ['The consistency check has findings.'] : []),
  ];
}
