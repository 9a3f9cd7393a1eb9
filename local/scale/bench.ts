import type { Random } from './random.ts';
import { createStation, quantile, type Step, simulate } from './simulate.ts';

/** The model beside the measurements of docs/internals/benchmarks.md. */

/** A row of its first table: the product, and the bare handler with the same storage calls. */
export interface Measured {
  readonly work: string;
  readonly callers: number;
  readonly product: Figures;
  readonly plain: Figures;
}

interface Figures {
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
  readonly perSecond: number;
  /** Milliseconds of a request, of the serving process. */
  readonly cpu: number;
}

const CELL = String.raw`\*\*[\d.]+\*\* \([^;]*; ([\d.]+) : ([\d.]+)\)`;
const ROW = new RegExp(String.raw`^\| (.+?) \| (\d+) \| ${[CELL, CELL, CELL, CELL].join(String.raw` \| `)} \|$`, 'gm');

/** Reads the comparisons with the bare handler. */
export function readBench(page: string): Measured[] {
  const [, section = ''] = page.split('\n## The product to a bare handler\n');
  const [table = ''] = section.split('\n## ');
  return [...table.matchAll(ROW)].map(([, work = '', callers, ...figures]) => {
    const side = (offset: number): Figures => {
      const [p50 = 0, p99 = 0, perSecond = 0, cpu = 0] = [0, 2, 4, 6].map((index) => Number(figures[index + offset]));
      return { p50, p99, perSecond, cpu };
    };
    return { work, callers: Number(callers), product: side(0), plain: side(1) };
  });
}

interface Compared {
  readonly measured: Measured;
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
}

const SECONDS = 30;
/** The request whose bare handler tells how long the emulator takes for one call. */
const PROBE = 'GET by key';
/** Storage calls of the requests that are compared; docs/internals/benchmarks.md says so. A create appends to the audit log as well. */
const CALLS: Readonly<Record<string, number>> = { 'GET by key': 1, 'GET by full copy': 1, 'POST with indexes': 11 };

/**
 * Predicts the product from two figures: its CPU, and the time of one call to the emulator, which follows from the bare handler of a GET
 * with as many callers. The product and the emulator have a processor each, and callers wait for their responses.
 */
export function compareWithBench(bench: readonly Measured[], random: Random): Compared[] {
  return bench.flatMap((measured) => {
    const calls = CALLS[measured.work];
    const probe = bench.find(({ work, callers }) => work === PROBE && callers === measured.callers);
    return calls === undefined || !probe ? [] : [predict(measured, { calls, emulator: emulatorTime(probe) }, random)];
  });
}

/** Milliseconds. With one caller nothing overlaps; with more, the emulator is the slower one of the two. */
function emulatorTime({ callers, plain }: Measured): number {
  return 1_000 / plain.perSecond - (callers === 1 ? plain.cpu : 0);
}

function predict(
  measured: Measured,
  { calls, emulator }: { readonly calls: number; readonly emulator: number },
  random: Random,
): Compared {
  const { callers, product } = measured;
  const stations = [product.cpu / calls, emulator].map((milliseconds, index) =>
    createStation(`${index}`, { seconds: milliseconds / 1_000, isRandom: true }),
  );
  const call: Step[] = stations.map((station) => ({ uses: [{ station, work: 1 }], delay: 0 }));
  const steps = new Array<Step[]>(calls).fill(call).flat();
  const { served, times } = simulate({ random, arrivals: { callers }, seconds: SECONDS, request: () => steps });
  const milliseconds = (part: number) => 1_000 * quantile(times, part);
  return { measured, perSecond: served / SECONDS, p50: milliseconds(0.5), p99: milliseconds(0.99) };
}
