import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pMap from 'p-map';
import { inject } from 'vitest';

/** The trials of a test run and their violations, counted at each check and summed up after the run. */

const FILE = 'tried-faults.ndjson';
const [BEGIN, END] = ['<!-- tried: written by `npm run faults` -->\n', '<!-- /tried -->'];

interface Trial {
  readonly what: string;
  /** 0 for a check of trials that were counted before. */
  readonly times?: number;
}

interface Tried extends Required<Trial> {
  readonly violations: number;
}

/**
 * Runs the check of one trial, or of `times` trials, and counts them. A check that throws also counts as one violation,
 * recorded before the error goes on to the test.
 */
export async function countTried<Result>({ what, times = 1 }: Trial, check: () => Promise<Result>): Promise<Result> {
  const record = (violations: number) => {
    const tried: Tried = { what, times, violations };
    appendFileSync(join(inject('folder'), FILE), `${JSON.stringify(tried)}\n`);
  };
  try {
    const result = await check();
    record(0);
    return result;
  } catch (error) {
    record(1);
    throw error;
  }
}

/** Counts a trial for each item, unless `what` is undefined, and continues after a failed one. Throws an `AggregateError` of the failures. */
export function countEach<Item, Result>(
  items: readonly Item[],
  check: (item: Item) => Promise<Result>,
  {
    what,
    concurrency = 1,
  }: { readonly what: string | ((item: Item) => string) | undefined; readonly concurrency?: number | undefined },
): Promise<Result[]> {
  const trial = (item: Item) => {
    if (what === undefined) return check(item);
    return countTried({ what: typeof what === 'string' ? what : what(item) }, () => check(item));
  };
  return pMap(items, trial, { concurrency, stopOnError: false });
}

/**
 * Prints the sums of a run, and writes them to `page` if the run is green.
 * Call this after vitest has set the exit code: failed tests, failed hooks, unhandled errors and interruptions all
 * set it.
 */
export function reportTried(folder: string, page: string | undefined): void {
  const file = join(folder, FILE);
  if (!existsSync(file)) return;
  const table = tableOf(
    readFileSync(file, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line)),
  );
  console.log(`\n${table}\n`);
  if (!page) return;
  if (process.exitCode) {
    console.error(`${page} is unchanged because the run failed.`);
    return;
  }
  const [before, rest = ''] = readFileSync(page, 'utf8').split(BEGIN);
  writeFileSync(page, `${before}${BEGIN}\n${table}\n\n${END}${rest.split(END)[1] ?? ''}`);
}

function tableOf(all: readonly Tried[]): string {
  const rows = [...Map.groupBy(all, ({ what }) => what)].sort().map(([what, tried]) => {
    const sum = (field: 'times' | 'violations') => tried.reduce((total, one) => total + one[field], 0);
    return `| ${what} | ${sum('times').toLocaleString('en')} | ${sum('violations').toLocaleString('en')} |`;
  });
  return ['| What was tried | Times | Violations |', '|---|---:|---:|', ...rows].join('\n');
}
