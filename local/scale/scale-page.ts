import { readFile } from 'node:fs/promises';
import { costOfEntity } from '../capacity/entity-cost.ts';
import { readPublished } from '../capacity/published.ts';
import { deployedApp } from '../instance/deployed-app.ts';
import { readBench } from './bench.ts';
import { renderChart } from './charts.ts';
import {
  type Report,
  reportAssumptions,
  reportBench,
  reportGain,
  reportLimits,
  reportMoves,
  reportServed,
} from './reports.ts';
import type { Assumptions } from './system.ts';

export const SCALE_PAGE = 'docs/internals/scale.md';
const BENCH_PAGE = 'docs/internals/benchmarks.md';
/** A part of the page that a run writes. */
const PART = /(<!-- scale: (\w+) -->\n)[\s\S]*?(<!-- \/scale -->)/g;
/** The request whose CPU is assumed, and how many callers sent it. */
const ENTITY = 'employees';
const CALLERS = 16;

interface Page {
  readonly text: string;
  /** SVG by file. */
  readonly charts: ReadonlyMap<string, string>;
}

/** Returns the page with its parts as a run finds them now. */
export async function updateScale(page: string): Promise<Page> {
  const bench = readBench(await readFile(BENCH_PAGE, 'utf8'));
  const assumed = await assume(bench);
  const reports: Record<string, () => Report> = {
    assumptions: () => reportAssumptions(assumed),
    limits: () => reportLimits(assumed),
    served: () => reportServed(assumed),
    gain: () => reportGain(assumed),
    moves: () => reportMoves(assumed),
    bench: () => reportBench(bench),
  };
  const charts = new Map<string, string>();
  const text = page.replaceAll(PART, (_, begin: string, name: string, end: string) => {
    const report = reports[name]?.();
    if (!report) throw new Error(`${SCALE_PAGE} names the part "${name}". Parts: ${Object.keys(reports).join(', ')}.`);
    for (const [file, chart] of Object.entries(report.charts ?? {}))
      charts.set(`docs/internals/scale/${file}.svg`, renderChart(chart));
    return `${begin}\n${report.text}\n\n${end}`;
  });
  return { text, charts };
}

async function assume(bench: ReturnType<typeof readBench>): Promise<Assumptions> {
  const entity = deployedApp.model.list.find(({ name }) => name === ENTITY);
  if (!entity) throw new Error(`The model has no entity ${ENTITY}.`);
  const cpuOf = (name: string) => {
    const found = bench.find(({ work, callers }) => work === name && callers === CALLERS);
    if (!found) throw new Error(`${BENCH_PAGE} has no row for ${name} with ${CALLERS} callers.`);
    return found.product.cpu / 1_000;
  };
  const { targets } = await readPublished();
  return {
    cost: costOfEntity(entity),
    targets,
    readCpu: cpuOf('GET by key'),
    writeCpu: cpuOf('POST with indexes'),
    delay: 0.005,
    utilization: 0.7,
  };
}
