import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Chart, renderChart } from '../../local/scale/charts.ts';

/** The points of the charts of the last run, so that a change of their look needs no run. */

const FILE = fileURLToPath(new URL('recorded-charts.json', import.meta.url));
const FOLDER = 'docs/internals/benchmarks';
const DIGITS = 3;

type Charts = Readonly<Record<string, Chart>>;

export async function readCharts(): Promise<Charts> {
  return JSON.parse(await readFile(FILE, 'utf8'));
}

export async function recordCharts(charts: Charts): Promise<void> {
  const round = (_: string, value: unknown) => (typeof value === 'number' ? Number(value.toPrecision(DIGITS)) : value);
  await writeFile(FILE, `${JSON.stringify(charts, round, 2)}\n`);
}

/** Draws the recorded charts. */
export async function drawCharts(): Promise<void> {
  await mkdir(FOLDER, { recursive: true });
  for (const [name, chart] of Object.entries(await readCharts()))
    await writeFile(join(FOLDER, `${name}.svg`), renderChart(chart));
}
