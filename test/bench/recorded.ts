import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { type Figure, type Ratio, type Result, toRatio } from './measure.ts';

/** The ratios that were recorded last, and the check that a run is not worse. */

const FILE = fileURLToPath(new URL('recorded.json', import.meta.url));
/** The slowest hundredth of a short round is a few requests, so `p99` is reported and not checked. */
const CHECKED: readonly Figure[] = ['p50', 'perSecond', 'cpu'];
/** Runs on the same quiet machine differ by as much. */
const LEAST_SPREAD = 0.1;

/** By comparison, number of callers, side and figure. */
type Recorded = Record<string, Ratio>;

function nameOf({ name, callers }: Result, side: string, figure: Figure): string {
  return `${name} | ${callers} | ${side} | ${figure}`;
}

/** Every ratio of a side to the plain code. */
function* ratiosOf(result: Result, figures: readonly Figure[]) {
  const { plain = [], ...others } = result.rounds;
  for (const [side, rounds] of Object.entries(others))
    for (const figure of figures) {
      const ratio = toRatio(rounds, plain, figure);
      if (ratio) yield { name: nameOf(result, side, figure), side, figure, ratio };
    }
}

export async function readRecorded(): Promise<Recorded> {
  return JSON.parse(await readFile(FILE, 'utf8'));
}

/** Records the ratios of these results, and keeps those of others. */
export async function record(results: readonly Result[]): Promise<void> {
  await writeFile(FILE, `${JSON.stringify(withRatios(await readRecorded(), results), null, 2)}\n`);
}

export function withRatios(recorded: Recorded, results: readonly Result[]): Recorded {
  const round = (value: number) => Number(value.toPrecision(3));
  const all = results
    .flatMap((result) => [...ratiosOf(result, CHECKED)])
    .map(({ name, ratio: { median, least, most } }) => [
      name,
      { median: round(median), least: round(least), most: round(most) },
    ]);
  return { ...recorded, ...Object.fromEntries(all) };
}

/** The ratios of the product that are worse than the recorded ones by more than their spread, or that were not recorded. */
export function findWorse(result: Result, recorded: Recorded): string[] {
  return [...ratiosOf(result, CHECKED)].flatMap(({ name, side, figure, ratio: { median } }) => {
    const before = recorded[name];
    if (!side.startsWith('product')) return [];
    // A comparison with a new name would not be checked at all.
    if (!before) return [`${name}: not recorded; npm run bench -- --record records it`];
    const spread = Math.max(before.most - before.least, before.median * LEAST_SPREAD);
    const worseBy = figure === 'perSecond' ? before.median - median : median - before.median;
    if (worseBy <= spread) return [];
    return [
      `${name}: ${median.toFixed(2)}, recorded ${before.median.toFixed(2)} with a spread of ${spread.toFixed(2)}`,
    ];
  });
}
