import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inject } from 'vitest';

/** What a run has tried to break, counted by those who tried and summed up at its end. */

const FILE = 'tried-faults.ndjson';
const PAGE = 'docs/consistency.md';
const [BEGIN, END] = ['<!-- tried: written by `npm run faults` -->\n', '<!-- /tried -->'];

interface Tried {
  readonly what: string;
  readonly times: number;
}

/** Called once the checks after it have passed. */
export function countTried(what: string, times: number): void {
  appendFileSync(join(inject('folder'), FILE), `${JSON.stringify({ what, times })}\n`);
}

/** Prints the sums of a run, and writes them into the page on consistency where WRITE_FAULTS is set. */
export function reportTried(folder: string): void {
  const file = join(folder, FILE);
  if (!existsSync(file)) return;
  const sums = new Map<string, number>();
  for (const line of readFileSync(file, 'utf8').trim().split('\n')) {
    const { what, times } = JSON.parse(line) as Tried;
    sums.set(what, (sums.get(what) ?? 0) + times);
  }
  const rows = [...sums].sort().map(([what, times]) => `| ${what} | ${times.toLocaleString('en')} | 0 |`);
  const table = ['| What was tried | Times | Violations |', '|---|---:|---:|', ...rows].join('\n');
  console.log(`\n${table}\n`);
  if (!process.env.WRITE_FAULTS) return;
  const page = readFileSync(PAGE, 'utf8');
  const [before, rest = ''] = page.split(BEGIN);
  writeFileSync(PAGE, `${before}${BEGIN}\n${table}\n\n${END}${rest.split(END)[1] ?? ''}`);
}
