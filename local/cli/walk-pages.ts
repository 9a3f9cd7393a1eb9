import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { InvalidArgumentError } from 'commander';
import { z } from 'zod';
import { Findings, type VisibleFinding } from '../../lib/define/declaration/finding.ts';
import { markOf } from '../../lib/engine/read/unreadable-field.ts';
import { INTERRUPTED_EXIT_CODE, startProgress } from './progress.ts';
import { ask, formatProblem, readNextPage, readProblem, type Target } from './target.ts';

interface Walk {
  readonly path: string;
  /** The file that keeps the next page and the counts so far, so that an interrupted run can resume. */
  readonly bookmark: string;
  /** Storage transactions a second, on average. */
  readonly rate: number;
  /** Prints only what is left, of work that has a finding for each entity. */
  readonly printsLeft?: boolean;
  /** What the progress says besides the rows; by default how many do not agree. */
  readonly describe?: (walked: Walked) => string;
}

const Walked = z.object({ checked: z.int(), found: z.int(), repaired: z.int(), foreign: z.int().default(0) });
export type Walked = z.infer<typeof Walked>;

const Bookmark = Walked.extend({ next: z.string() });

/** The sums of a walk that has ended, and what the interrupted runs before it add to them. */
interface Ended extends Walked {
  readonly former: Walked | undefined;
}

/** A sentence for the sums of a walk that continued an interrupted one. Otherwise an empty text. */
export function describeFormer({ former }: Ended): string {
  return former
    ? ` The interrupted run before has ${former.checked} of the rows and ${former.found} of the findings.`
    : '';
}

/**
 * Requests the pages of an operator route one after another, within the rate, and prints their findings. Returns undefined if Ctrl-C
 * ended it; the next run then resumes.
 */
export async function walkPages(
  target: Target,
  { path, bookmark, rate, printsLeft = false, describe = ({ found }) => `${found} found` }: Walk,
): Promise<Ended | undefined> {
  const kept = await readBookmark(bookmark);
  if (kept) process.stderr.write(`Resuming after ${kept.checked} rows; the bookmark is ${bookmark}.\n`);
  const former = kept && Walked.parse(kept);
  const walked: Walked = former ? { ...former } : { checked: 0, found: 0, repaired: 0, foreign: 0 };
  const progress = startProgress({ rows: () => walked.checked, describe: () => describe(walked) });
  const { signal, say } = progress;
  try {
    for (let next: string | undefined = kept?.next ?? path; next && !signal.aborted; ) {
      const since = performance.now();
      const { page, link, transactions } = await readPage(target, next, bookmark);
      walked.checked += page.checked;
      walked.found += page.findings.length;
      walked.foreign += page.foreign ?? 0;
      walked.repaired += page.findings.filter(({ repaired }) => repaired).length;
      // The API returns keys only to a token that may read the entity.
      for (const finding of page.findings) if (!(printsLeft && finding.repaired)) say(formatFinding(finding));
      next = link;
      await mkdir(dirname(bookmark), { recursive: true });
      if (next) await writeBookmark(bookmark, { ...walked, next });
      else await rm(bookmark, { force: true });
      const pause = Math.max(0, (transactions / rate) * 1_000 - (performance.now() - since));
      await sleep(pause, undefined, { signal }).catch(() => undefined);
      if (!next) return { ...walked, former };
    }
  } finally {
    progress.stop();
  }
  console.log(
    `Interrupted after ${walked.checked} rows: run the command again to continue. The bookmark is ${bookmark}.`,
  );
  process.exitCode = INTERRUPTED_EXIT_CODE;
  return undefined;
}

/** The log of the app names a row that it cannot read by its mark. */
const OF_READS = ['invalid', 'unreadable', 'lost-blob'];

function formatFinding({ kind, of, table, partition, row, reason, repaired }: z.infer<typeof VisibleFinding>): string {
  const isKnown = partition !== undefined && row !== undefined;
  const mark = isKnown && OF_READS.includes(kind) ? ` (${markOf({ table, partition, row })})` : '';
  const why = reason ? `: ${reason}` : '';
  return `${kind}: ${of} of ${table}/${partition ?? '…'}/${row ?? '…'}${mark}${why}${repaired ? ', repaired' : ''}`;
}

/** Returns undefined for a bookmark that cannot be read: the walk then starts at the beginning. */
async function readBookmark(file: string): Promise<z.infer<typeof Bookmark> | undefined> {
  const text = await readFile(file, 'utf8').catch(() => '');
  return text.startsWith('{') ? Bookmark.parse(JSON.parse(text)) : undefined;
}

/** Replaces the file as a whole: the process may be killed, or another one may write the same bookmark. */
async function writeBookmark(file: string, bookmark: z.infer<typeof Bookmark>): Promise<void> {
  const beside = `${file}.${process.pid}`;
  await writeFile(beside, JSON.stringify(bookmark));
  await rename(beside, file);
}

/** Parses the rate of a command line. */
export function toRate(text: string): number {
  const rate = Number(text);
  if (rate >= 1 && Number.isFinite(rate)) return rate;
  throw new InvalidArgumentError('A rate must be a number of at least 1.');
}

async function readPage(target: Target, path: string, bookmark: string) {
  const response = await ask(target, path, { method: 'POST' });
  if (!response.ok)
    throw new Error(`${path.split('?')[0]} returned ${response.status}: ${await describeFailure(response, bookmark)}`);
  const [, transactions = '0'] = /desc="(\d+)/.exec(response.headers.get('server-timing') ?? '') ?? [];
  const page = Findings.parse(await response.json());
  return { page, link: readNextPage(response), transactions: Number(transactions) };
}

async function describeFailure(response: Response, bookmark: string): Promise<string> {
  const problem = await readProblem(response);
  // A continuation is valid only for the storage account that issued it.
  const hint = response.status === 400 ? ` To start at the beginning, delete ${bookmark}.` : '';
  // Each entity has routes of its own, so an unknown path means an unknown name.
  if (response.status === 404 && problem?.field === 'path')
    return 'there is no entity of this name to check. Archives are checked with their entities; entities with a period are not checked.';
  return `${formatProblem(problem)}${hint}`;
}
