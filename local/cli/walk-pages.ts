import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Presets, SingleBar } from 'cli-progress';
import { InvalidArgumentError } from 'commander';
import { z } from 'zod';
import { Findings } from '../../lib/define/finding.ts';
import { Problem } from '../../lib/http/problem.ts';
import { ask, readNextPage, type Target } from './target.ts';

export interface Walk {
  readonly path: string;
  /** Where the next page is kept, and what was found before it, so that a run that was cut off goes on. */
  readonly bookmark: string;
  /** Storage transactions a second, on average. */
  readonly rate: number;
}

const Walked = z.object({ looked: z.int(), found: z.int(), repaired: z.int() });
export type Walked = z.infer<typeof Walked>;

const Bookmark = Walked.extend({ next: z.string() });

/** Asks for page after page of an operators' route, slowly enough, and says what each has found. */
export async function walkPages(target: Target, { path, bookmark, rate }: Walk): Promise<Walked> {
  const bar = process.stdout.isTTY
    ? new SingleBar({ format: '{bar} {value} rows, {found} found', clearOnComplete: true }, Presets.shades_classic)
    : undefined;
  const kept = await readBookmark(bookmark);
  if (kept) process.stderr.write(`Goes on where it was cut off, after ${kept.looked} rows; see ${bookmark}.\n`);
  const walked: Walked = kept ? Walked.parse(kept) : { looked: 0, found: 0, repaired: 0 };
  bar?.start(walked.looked, walked.looked, { found: walked.found });
  try {
    for (let next: string | undefined = kept?.next ?? path; next; ) {
      const since = performance.now();
      const { page, link, transactions } = await readPage(target, next, bookmark);
      walked.looked += page.looked;
      walked.found += page.findings.length;
      walked.repaired += page.findings.filter(({ repaired }) => repaired).length;
      // A key is there only for a token that may read the entity.
      for (const { what, of, table, partition = '…', row = '…', reason, repaired } of page.findings)
        process.stderr.write(
          `\r\u001b[K${what}: ${of} of ${table}/${partition}/${row}${reason ? `: ${reason}` : ''}${repaired ? ', repaired' : ''}\n`,
        );
      bar?.setTotal(walked.looked + page.looked);
      bar?.update(walked.looked, { found: walked.found });
      next = link;
      await mkdir(dirname(bookmark), { recursive: true });
      if (next) await writeBookmark(bookmark, { ...walked, next });
      await sleep(Math.max(0, (transactions / rate) * 1_000 - (performance.now() - since)));
    }
  } finally {
    bar?.stop();
  }
  await rm(bookmark, { force: true });
  return walked;
}

/** Returns undefined for a bookmark that cannot be read: the walk then starts anew. */
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
  throw new InvalidArgumentError('A rate is a number from 1 on.');
}

async function readPage(target: Target, path: string, bookmark: string) {
  const response = await ask(target, path, { method: 'POST' });
  if (!response.ok)
    throw new Error(`${path.split('?')[0]} answered ${response.status}: ${await describeFailure(response, bookmark)}`);
  const [, transactions = '0'] = /desc="(\d+)/.exec(response.headers.get('server-timing') ?? '') ?? [];
  const page = Findings.parse(await response.json());
  return { page, link: readNextPage(response), transactions: Number(transactions) };
}

async function describeFailure(response: Response, bookmark: string): Promise<string> {
  const problem = Problem.safeParse(await response.json().catch(() => undefined));
  // A continuation is good for the storage that gave it, and no other.
  const hint = response.status === 400 ? ` To begin anew, delete ${bookmark}.` : '';
  if (!problem.success) return 'it does not say why.';
  // There is a route for each name that can be given.
  if (response.status === 404 && problem.data.field === 'path')
    return 'no entity of which anything can be compared, or no index of it, has that name.';
  return `${problem.data.detail}${hint}`;
}
