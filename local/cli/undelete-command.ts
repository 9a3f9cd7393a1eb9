import { isDeepStrictEqual } from 'node:util';
import type { Command } from 'commander';
import { z } from 'zod';
import { commandLine } from '../../lib/command-line.ts';
import { Problem } from '../../lib/http/problem.ts';
import { pathTo } from '../../lib/http/route.ts';
import { INTERRUPTED_EXIT_CODE, startProgress } from './progress.ts';
import {
  ask,
  createTargetCommand,
  formatProblem,
  readNextPage,
  readProblem,
  resolveTarget,
  type TargetOptions,
} from './target.ts';

/** The commands that read the past of an app with a backup through its API, and restore deleted entities. */

interface UndeleteOptions extends TargetOptions {
  readonly from: string;
  readonly to: string;
  readonly by?: string;
  readonly dryRun?: true;
}

const Values = z.record(z.string(), z.unknown());
const Undeleted = z.object({
  items: z.array(
    z.object({
      entity: z.string(),
      key: Values.optional(),
      outcome: z.enum(['restored', 'exists', 'failed']),
      problem: Problem.optional(),
      lost: z.array(z.string()).default([]),
    }),
  ),
});

export function createUndeleteCommand(): Command {
  return createTargetCommand(
    'Creates the entities of a kind again that were deleted in a span of time, with their children.',
  )
    .argument('<entity>', 'the name of the entity')
    .requiredOption('--from <instant>', 'those that were deleted from this instant, such as 2026-11-29T12:00:00Z')
    .requiredOption('--to <instant>', 'to this one')
    .option('--by <subject>', 'those that this subject deleted, as the audit log has it; default: those of everybody')
    .option('--dry-run', 'change nothing, and list what would be restored')
    .action(undelete);
}

async function undelete(entity: string, options: UndeleteOptions): Promise<void> {
  const { from, to, by, dryRun = false } = options;
  const target = await resolveTarget(options);
  const body = JSON.stringify({ from, to, dryRun, ...(by === undefined ? {} : { by }) });
  const request = { method: 'POST', headers: { 'content-type': 'application/json' }, body };
  const counts = { restored: 0, exists: 0, failed: 0 };
  const lost: string[] = [];
  const progress = startProgress({ rows: () => counts.restored + counts.exists + counts.failed });
  const { signal, say } = progress;
  try {
    let next: string | undefined = `${pathTo(target.root, 'operations', 'undelete', entity)}?top=100`;
    for (; next && !signal.aborted; ) {
      const response = await ask(target, next, request);
      for (const item of Undeleted.parse(await readJson(response)).items) {
        counts[item.outcome] += 1;
        const name = `${item.entity} ${item.key ? Object.values(item.key).join('/') : ''}`.trim();
        if (dryRun && item.outcome === 'restored') console.log(name);
        if (item.outcome === 'failed') say(`${name}: ${formatProblem(item.problem)}`);
        lost.push(...item.lost.map((field) => `${name}: "${field}"`));
      }
      next = readNextPage(response);
    }
  } finally {
    progress.stop();
  }
  for (const each of lost) console.error(`${each} is lost.`);
  const { restored, exists, failed } = counts;
  console.log(
    `${restored} ${dryRun ? 'would be restored' : 'restored'}, ${exists} exist and stay as they are, ${failed} failed.`,
  );
  if (signal.aborted) console.error(`Interrupted. Run ${commandLine('undelete', entity)} again for the rest.`);
  if (signal.aborted) process.exitCode = INTERRUPTED_EXIT_CODE;
  else if (failed > 0 || lost.length > 0) process.exitCode = 1;
}

interface HistoryOptions extends TargetOptions {
  readonly from?: string;
  readonly to?: string;
}

const Versions = z.object({
  items: z.array(z.object({ at: z.string(), isDeleted: z.boolean(), values: Values.optional() })),
});

export function createHistoryCommand(): Command {
  return createTargetCommand('Lists what an entity was, with what changed between its versions.')
    .argument('<entity>', 'the name of the entity')
    .argument('<key...>', 'the values of its key, in the order of its path')
    .option('--from <instant>', 'from this instant; default: a day before the end')
    .option('--to <instant>', 'to this one; default: now')
    .action(history);
}

async function history(entity: string, key: readonly string[], options: HistoryOptions): Promise<void> {
  const target = await resolveTarget(options);
  const { from, to = new Date().toISOString() } = options;
  const query = new URLSearchParams({ to, ...(from === undefined ? {} : { from }) });
  let before: z.infer<typeof Values> | undefined;
  let count = 0;
  let next: string | undefined = `${pathTo(target.root, 'operations', 'history', entity, ...key)}?${query}`;
  for (; next; ) {
    const response = await ask(target, next);
    for (const { at, values } of Versions.parse(await readJson(response)).items) {
      const lines = describeChange(before, values);
      // A transaction may have changed a row beside that of the entity alone.
      if (count > 0 && lines.length === 0) continue;
      console.log([at, ...(lines.length === 0 ? ['absent'] : lines)].join('\n  '));
      before = values;
      count += 1;
    }
    next = readNextPage(response);
  }
}

function describeChange(
  before: z.infer<typeof Values> | undefined,
  after: z.infer<typeof Values> | undefined,
): string[] {
  if (!after) return before ? ['deleted'] : [];
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after)])];
  const changed = names.filter((name) => !isDeepStrictEqual(before?.[name], after[name]));
  return changed.map((name) => `${name}: ${name in after ? JSON.stringify(after[name]) : 'removed'}`);
}

async function readJson(response: Response): Promise<unknown> {
  if (response.ok) return response.json();
  const path = new URL(response.url).pathname;
  throw new Error(`${path} returned ${response.status}: ${formatProblem(await readProblem(response))}`);
}
