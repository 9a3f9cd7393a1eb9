import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Command } from 'commander';
import { z } from 'zod';
import { isoInstant } from '../../lib/base/time.ts';
import { commandLine } from '../../lib/command-line.ts';
import { carryLines } from '../../lib/operations/backup/blobs.ts';
import { recordVerification } from '../../lib/operations/backup/check-results.ts';
import { type SnapshotReport, takeSnapshot } from '../../lib/operations/backup/snapshot.ts';
import { type BackupStatus, readBackupStatus } from '../../lib/operations/backup/status.ts';
import { verifyBackup } from '../../lib/operations/backup/verify-backup.ts';
import { createCommand } from './command.ts';
import type { OpenBackup } from './open-backup.ts';
import { INTERRUPTED_EXIT_CODE, startProgress } from './progress.ts';

interface Options {
  readonly data: string;
  readonly all?: true;
}

/** In the data folder: what a verification has read, so that the next one reads only what is new. */
const VERIFIED_FILE = 'backup-verified.json';

/** Creates the commands of a backup. */
export function createBackupCommand(open: (folder: string) => Promise<OpenBackup>): Command {
  const program = createCommand('Takes a snapshot for the backup now. The timer takes one each night.').action(
    async ({ data }: Options) => snapshot(await open(data)),
  );
  program
    .command('status')
    .description('Says from when until when the backup has everything, and what the last snapshot took.')
    .action(async (_, command: Command) => {
      const { engine, days } = await open(command.optsWithGlobals<Options>().data);
      for (const line of describeStatus(await readBackupStatus(engine, days))) console.log(line);
    });
  program
    .command('verify')
    .description(
      'Reads the backup and compares it with its checksums: what no earlier verification on this machine has read.',
    )
    .option('--all', 'read everything')
    .action(async (_, command: Command) => {
      const { data, all = false } = command.optsWithGlobals<Options>();
      await verify(await open(data), join(data, VERIFIED_FILE), all);
    });
  return program;
}

async function snapshot({ engine, model, days }: OpenBackup): Promise<void> {
  let now = { rows: 0, table: '' };
  const progress = startProgress({ rows: () => now.rows, describe: () => now.table });
  const onProgress = (next: typeof now) => {
    now = next;
  };
  try {
    await carryLines(engine);
    const report = await takeSnapshot(engine, model.list, { days, onProgress, signal: progress.signal });
    progress.stop();
    for (const line of describeSnapshot(report)) console.log(line);
    if (!progress.signal.aborted) return;
    console.error(`Stopped. To continue, run ${commandLine('backup')}.`);
    process.exitCode = INTERRUPTED_EXIT_CODE;
  } finally {
    progress.stop();
  }
}

function describeSnapshot({ id, isComplete, tables, rows, parts, bytes, copies, took }: SnapshotReport): string[] {
  const transactions = `${format(took.transactions)} storage transactions, ${took.seconds.toFixed(1)} s.`;
  const written = `${format(parts.written)} parts written (${formatBytes(bytes.written)}), ${format(parts.reused)} as they were (of ${formatBytes(bytes.total)} in all).`;
  if (!isComplete) return [`${format(rows)} rows so far.`, written, transactions];
  const copied = copies ? [`${format(copies.copied)} blobs copied (${formatBytes(copies.copiedBytes)}).`] : [];
  return [`Snapshot ${id}: ${format(rows)} rows in ${format(tables)} tables.`, written, ...copied, transactions];
}

function describeStatus({ advice, ...status }: BackupStatus): string[] {
  const { state, restorableFrom, restorableUntil, snapshots, last, away, drill, verification } = status;
  const lines = away.map((name) => `The storage account ${name} does not respond.`);
  if (state === 'begins') lines.push('The backup has no snapshot yet.');
  if (!last) return [...lines, ...advice];
  lines.push(
    `Everything can be restored from ${restorableFrom} until ${restorableUntil}, with ${format(snapshots)} snapshots.`,
    `The last one, ${last.id}, has ${format(last.rows)} rows in ${format(last.tables)} tables: ${format(last.parts)} parts with ${formatBytes(last.bytes)}, and ${format(last.blobs.count)} blobs with ${formatBytes(last.blobs.bytes)}.`,
  );
  if (last.took)
    lines.push(`It took ${format(last.took.transactions)} storage transactions and ${last.took.seconds.toFixed(1)} s.`);
  if (drill)
    lines.push(
      `The last drill, at ${drill.at}, restored ${format(drill.rows)} rows of ${format(drill.partitions)} partitions: ${format(drill.differences)} differences.`,
    );
  if (verification)
    lines.push(`The last verification, at ${verification.at}, found ${format(verification.problems)} problems.`);
  return [...lines, ...advice];
}

async function verify({ engine, backup, days }: OpenBackup, file: string, isWhole: boolean): Promise<void> {
  let lines = 0;
  const progress = startProgress({ rows: () => lines });
  try {
    const onRead = (read: number) => {
      lines += read;
    };
    const known = isWhole ? new Set<string>() : await readKnown(file);
    const found = await verifyBackup(backup, { days, known, signal: progress.signal, onRead });
    progress.stop();
    await writeFile(file, JSON.stringify([...found.known]));
    for (const problem of found.problems) console.error(problem);
    const { parts, journal } = found;
    console.log(
      `${format(found.snapshots)} snapshots: ${format(parts.read)} of ${format(parts.all)} parts and ${format(journal.read)} of ${format(journal.all)} blobs of the journal read, with ${format(found.lines)} lines. ${format(found.problems.length)} problems.`,
    );
    if (progress.signal.aborted) process.exitCode = INTERRUPTED_EXIT_CODE;
    else await recordVerification(engine, { At: isoInstant(engine.now()), Problems: found.problems.length });
    if (found.problems.length > 0) process.exitCode = 1;
  } finally {
    progress.stop();
  }
}

async function readKnown(file: string): Promise<Set<string>> {
  const text = await readFile(file, 'utf8').catch(() => '[]');
  return new Set(z.array(z.string()).catch([]).parse(JSON.parse(text)));
}

const format = (value: number) => value.toLocaleString('en-US');

const UNITS = ['bytes', 'kB', 'MB', 'GB', 'TB'];

function formatBytes(bytes: number): string {
  const unit = bytes < 1_000 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log10(bytes) / 3));
  return `${(bytes / 1_000 ** unit).toFixed(unit === 0 ? 0 : 1)} ${UNITS[unit]}`;
}
