import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Compares sides that do the same work. Their rounds alternate in one run, so that a slow moment of the machine affects
 * all sides. A ratio divides the figures of adjacent rounds. Only ratios can be compared with another run.
 */

/** One round of one side. Times are in milliseconds. */
export interface Round {
  readonly p50: number;
  readonly p99: number;
  readonly perSecond: number;
  /** CPU time for each operation of the processes that do the work, without the emulator; undefined if it cannot be read. */
  readonly cpu: number | undefined;
}
const FIGURES = ['p50', 'p99', 'perSecond', 'cpu'] as const;
export type Figure = (typeof FIGURES)[number];

interface Load {
  readonly callers: number;
  readonly milliseconds: number;
}

/** What is measured: the product, or plain code. */
export interface Side {
  round(load: Load): Promise<Round>;
}

/** A side of plain code with the rows and the storage calls of the product. */
export const SAME_WORK = 'plain, same work';

/** `plain` is the baseline of every other side. */
export type Sides = { readonly plain: Side } & Readonly<Record<string, Side>>;

export interface Comparison {
  readonly name: string;
  /** Prepares the sides, such as the rows that they read. */
  prepare(): Promise<Sides>;
  /** Overrides the numbers of callers of the run. */
  readonly callers?: readonly number[];
  /** For rounds that take long. */
  readonly maxRounds?: number;
}

export interface Effort {
  readonly rounds: number;
  readonly milliseconds: number;
  readonly callers: readonly number[];
}

export interface Result {
  readonly name: string;
  readonly callers: number;
  /** By side, in the order in which they ran. */
  readonly rounds: Readonly<Record<string, readonly Round[]>>;
}

export async function compare(
  name: string,
  sides: Sides,
  { rounds, ...load }: Load & { readonly rounds: number },
): Promise<Result> {
  const names = Object.keys(sides);
  const done: Record<string, Round[]> = Object.fromEntries(names.map((side) => [side, []]));
  // Warms up connections, compiled code and caches.
  for (const side of names) await sides[side]?.round(load);
  for (let round = 0; round < rounds; round += 1) {
    // Reversed in turn, so that no side always follows the same one.
    for (const side of round % 2 === 0 ? names : names.toReversed()) {
      const measured = await sides[side]?.round(load);
      if (measured) done[side]?.push(measured);
    }
  }
  return { name, callers: load.callers, rounds: done };
}

interface Repeated {
  /** Throws if the operation fails. */
  operation(): Promise<unknown>;
  /** The ids of the processes that do the work. Default: this process. */
  readonly processes?: readonly number[];
  /** Resolves when the work that the operations left behind is done. It counts as CPU time, and not as time. */
  settled?(): Promise<void>;
}

/** A side that repeats an operation: each caller starts the next one when the last one is done. */
export function repeat({ operation, processes, settled }: Repeated): Side {
  return {
    async round({ callers, milliseconds }) {
      const latencies: number[] = [];
      const cpuBefore = readCpu(processes);
      const since = performance.now();
      const until = since + milliseconds;
      const call = async () => {
        while (performance.now() < until) {
          const start = performance.now();
          await operation();
          latencies.push(performance.now() - start);
        }
      };
      await Promise.all(Array.from({ length: callers }, call));
      const took = performance.now() - since;
      await settled?.();
      return toRound(latencies, { took, cpu: cpuSince(cpuBefore, processes) });
    },
  };
}

/** A round of a fixed amount of work. `work` returns the number of its operations. */
export async function measureWork(processes: readonly number[], work: () => Promise<number>): Promise<Round> {
  const cpuBefore = readCpu(processes);
  const since = performance.now();
  const operations = await work();
  const took = performance.now() - since;
  return toWork(took, operations, cpuSince(cpuBefore, processes));
}

/** A round of a fixed amount of work, whose operations have no latencies of their own. */
export function toWork(took: number, operations: number, cpu?: number): Round {
  const each = took / operations;
  return { p50: each, p99: Number.NaN, perSecond: 1_000 / each, cpu: cpu && cpu / operations };
}

/** A round of operations with these latencies, in milliseconds. */
export function toRound(latencies: readonly number[], { took, cpu }: { took: number; cpu: number | undefined }): Round {
  const sorted = latencies.toSorted((one, other) => one - other);
  const at = (part: number) => sorted[Math.floor((sorted.length - 1) * part)] ?? Number.NaN;
  const count = latencies.length;
  return { p50: at(0.5), p99: at(0.99), perSecond: (count / took) * 1_000, cpu: cpu && cpu / count };
}

/** Linux counts CPU time in ticks of 10 ms on every architecture that Node runs on. */
const TICK_MS = 10;

/** Milliseconds of CPU time of the processes so far; undefined on a system without /proc. */
function readCpu(processes: readonly number[] = [process.pid]): number | undefined {
  if (processes.length === 1 && processes[0] === process.pid) {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1_000;
  }
  try {
    let ticks = 0;
    for (const id of processes) {
      // The name of the program, in parentheses, may contain spaces.
      const [, fields = ''] = /\) (.*)/s.exec(readFileSync(`/proc/${id}/stat`, 'utf8')) ?? [];
      const [userTicks, systemTicks] = fields.split(' ').slice(11, 13);
      ticks += Number(userTicks) + Number(systemTicks);
    }
    return ticks * TICK_MS;
  } catch {
    return undefined;
  }
}

function cpuSince(before: number | undefined, processes?: readonly number[]): number | undefined {
  const now = readCpu(processes);
  return before === undefined || now === undefined ? undefined : now - before;
}

export interface Ratio {
  readonly median: number;
  readonly least: number;
  readonly most: number;
}

/** One side to another, round by round. Undefined if the figure was not measured. */
export function toRatio(one: readonly Round[], other: readonly Round[], figure: Figure): Ratio | undefined {
  const ratios = one
    .map((round, index) => Number(round[figure]) / Number(other[index]?.[figure]))
    .filter(Number.isFinite)
    .toSorted((left, right) => left - right);
  const [least] = ratios;
  const most = ratios.at(-1);
  return least === undefined || most === undefined ? undefined : { median: middleOf(ratios), least, most };
}

/** The median of a figure over the rounds. */
export function medianOf(rounds: readonly Round[], figure: Figure): number {
  return middleOf(rounds.map((round) => round[figure] ?? Number.NaN).toSorted((one, other) => one - other));
}

function middleOf(sorted: readonly number[]): number {
  const middle = (sorted.length - 1) / 2;
  return ((sorted[Math.floor(middle)] ?? Number.NaN) + (sorted[Math.ceil(middle)] ?? Number.NaN)) / 2;
}

const POLL_MS = 25;

const PATIENCE_MS = 5 * 60_000;

/** Polls until `isTrue` is. Throws after five minutes. */
export async function waitUntil(isTrue: () => Promise<boolean>, what: string): Promise<void> {
  const until = Date.now() + PATIENCE_MS;
  while (!(await isTrue())) {
    if (Date.now() > until) throw new Error(`A benchmark waited for ${what} for five minutes.`);
    await sleep(POLL_MS);
  }
}
