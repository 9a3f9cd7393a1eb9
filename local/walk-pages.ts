import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Presets, SingleBar } from 'cli-progress';
import { z } from 'zod';
import { Findings } from '../lib/patterns/finding.ts';
import type { Target } from './target.ts';

export interface Walk {
  readonly path: string;
  /** Where the next page is kept, so that a run that was cut off goes on. */
  readonly bookmark: string;
  /** Storage transactions a second, on average. */
  readonly rate: number;
}

export interface Walked {
  looked: number;
  found: number;
  repaired: number;
}

const MAX_ATTEMPTS = 6;

const Problem = z.object({ detail: z.string() });

/** Asks for page after page of an operators' route, slowly enough, and says what each has found. */
export async function walkPages(target: Target, { path, bookmark, rate }: Walk): Promise<Walked> {
  const bar = process.stdout.isTTY
    ? new SingleBar({ format: '{bar} {value} rows, {found} found', clearOnComplete: true }, Presets.shades_classic)
    : undefined;
  const walked: Walked = { looked: 0, found: 0, repaired: 0 };
  const kept = await readFile(bookmark, 'utf8').catch(() => undefined);
  bar?.start(0, 0, { found: 0 });
  try {
    for (let next: string | undefined = kept ?? path; next; ) {
      const since = performance.now();
      const { page, link, transactions } = await ask(target, next, { bookmark });
      walked.looked += page.looked;
      walked.found += page.findings.length;
      walked.repaired += page.findings.filter(({ repaired }) => repaired).length;
      // Keys and no values: what a key tells an operator may see.
      for (const { what, of, table, partition, row, repaired } of page.findings)
        process.stderr.write(
          `\r\u001b[K${what}: ${of} of ${table}/${partition}/${row}${repaired ? ', repaired' : ''}\n`,
        );
      bar?.setTotal(walked.looked + page.looked);
      bar?.update(walked.looked, { found: walked.found });
      next = link;
      await mkdir(dirname(bookmark), { recursive: true });
      if (next) await writeFile(bookmark, next);
      await sleep(Math.max(0, (transactions / rate) * 1_000 - (performance.now() - since)));
    }
  } finally {
    bar?.stop();
  }
  await rm(bookmark, { force: true });
  return walked;
}

async function ask({ url, token }: Target, path: string, { bookmark }: Pick<Walk, 'bookmark'>) {
  for (let attempt = 1; ; attempt += 1) {
    const headers = { authorization: `Bearer ${token}` };
    const response = await fetch(`${url}${path}`, { method: 'POST', headers }).catch(() => undefined);
    if (response?.ok) {
      const [, link] = /<([^>]+)>; rel="next"/.exec(response.headers.get('link') ?? '') ?? [];
      const [, transactions = '0'] = /desc="(\d+)/.exec(response.headers.get('server-timing') ?? '') ?? [];
      return { page: Findings.parse(await response.json()), link, transactions: Number(transactions) };
    }
    const [route] = path.split('?');
    if (response && response.status < 500)
      throw new Error(`${route} answered ${response.status}: ${await why(response, bookmark)}`);
    if (attempt === MAX_ATTEMPTS)
      throw new Error(
        `${route} answered ${response?.status ?? 'nothing'}: run this again, it goes on where it stopped.`,
      );
    await sleep(1_000 * attempt);
  }
}

async function why(response: Response, bookmark: string): Promise<string> {
  const problem = Problem.safeParse(await response.json().catch(() => undefined));
  // A continuation is good for the storage that gave it, and no other.
  const hint = response.status === 400 ? ` To begin anew, delete ${bookmark}.` : '';
  if (problem.success) return `${problem.data.detail}${hint}`;
  // Where there is no such route, nothing is said.
  return response.status === 404 ? 'no entity, or no index of it, has that name.' : 'it does not say why.';
}
