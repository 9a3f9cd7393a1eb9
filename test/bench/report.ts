import { cpus, loadavg, totalmem } from 'node:os';
import { type Figure, medianOf, type Result, type Round, toRatio } from './measure.ts';

/** Tables of ratios, each with both absolute figures. */

const HEADER = `| Work | Callers | p50, ms | p99, ms | A second | CPU, ms |
|---|---:|---|---|---|---|`;
const DIGITS: Readonly<Record<Figure, number>> = { p50: 2, p99: 2, perSecond: 0, cpu: 2 };

/** A table of one side to another. Comparisons without one of them are left out. */
export function formatTable(results: readonly Result[], [one, other]: readonly [string, string]): string {
  const rows = results.flatMap(({ name, callers, rounds }) => {
    const [left, right] = [rounds[one], rounds[other]];
    if (!left || !right) return [];
    const cells = (Object.keys(DIGITS) as Figure[]).map((figure) => formatRatio(left, right, figure));
    return [`| ${[name, callers, ...cells].join(' | ')} |`];
  });
  return [HEADER, ...rows].join('\n');
}

export function formatRatio(one: readonly Round[], other: readonly Round[], figure: Figure): string {
  const ratio = toRatio(one, other, figure);
  if (!ratio) return '';
  const [left, right] = [medianOf(one, figure), medianOf(other, figure)].map((value) =>
    value.toFixed(value < 0.1 ? 4 : DIGITS[figure]),
  );
  return `**${ratio.median.toFixed(2)}** (${ratio.least.toFixed(2)}–${ratio.most.toFixed(2)}; ${left} : ${right})`;
}

/** One line for the console: every side to the plain code. */
export function formatLine({ name, callers, rounds }: Result): string {
  const { plain = [], ...others } = rounds;
  const sides = Object.entries(others).map(
    ([side, its]) =>
      `${side}: p50 ${formatRatio(its, plain, 'p50')}, a second ${formatRatio(its, plain, 'perSecond')}, CPU ${formatRatio(its, plain, 'cpu')}`,
  );
  return `${name}, ${callers} callers\n  ${sides.join('\n  ')}`.replaceAll('**', '');
}

export function formatEnvironment(): string {
  const [cpu] = cpus();
  const load = loadavg()[0]?.toFixed(1);
  const memory = Math.round(totalmem() / 2 ** 30);
  const day = new Date().toISOString().slice(0, 10);
  return `${cpus().length} × ${cpu?.model.trim()}, ${memory} GiB, ${process.platform}, Node ${process.version}, ${day}. Load average when the run began: ${load}`;
}
