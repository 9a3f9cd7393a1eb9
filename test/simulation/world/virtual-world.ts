import { AsyncLocalStorage } from 'node:async_hooks';
import { type Chance, createChance } from './chance.ts';
import { createTimerQueue } from './virtual-timers.ts';

/**
 * Virtual time and chance of everything in this process. `virtual-globals.ts` lets `Date`, timers, random numbers and the like come from
 * here, and must be loaded before everything else: `node --import ./test/simulation/world/virtual-globals.ts`.
 */

/** A process of the simulated app. Its timers and replies vanish if it is killed. */
export interface VirtualProcess {
  readonly name: string;
  /** How much its clock is ahead, in milliseconds. */
  aheadMs: number;
  isDead: boolean;
  /** Nothing of the process runs before this time. */
  asleepUntil: number;
}

interface Context {
  readonly process: VirtualProcess | undefined;
  readonly chance: Chance;
}

/** The time at which each world begins: 2027-01-15. */
const BEGIN_MS = 1_800_000_000_000;
/** What a process has open without a file, a socket or work in another thread. */
const OWN_RESOURCES = new Set(['TTYWrap', 'PipeWrap', 'Immediate', 'TickObject', 'Timeout']);
/** So long, in passes of the event loop, may an earlier file be open. */
const MOST_PASSES = 1_000_000;

const realImmediate = globalThis.setImmediate;
const [cpuClock, wallClock] = [process.cpuUsage.bind(process), performance.now.bind(performance)];
const contexts = new AsyncLocalStorage<Context>();
const timers = createTimerQueue<VirtualTimer>();
let outside: Context = { process: undefined, chance: createChance('outside') };
let at = 0;
let nth = 0;
let steps = 0;
let outsideWork = 0;
let former: Promise<unknown> = Promise.resolve();
/** Each takes a listener from a signal. */
const listening = new Set<() => void>();

/** Forgets every timer and listener, and begins again at the first instant. */
export function resetWorld(): void {
  timers.clear();
  for (const end of listening) end();
  at = 0;
  nth = 0;
  steps = 0;
  outside = { process: undefined, chance: createChance('outside') };
}

/**
 * Calls a listener if a signal is aborted, until the returned function is called. What a killed process waits for never ends: Node keeps a
 * signal of several others, and with it the whole world, as long as one listens to it.
 */
export function listenToAbort(signal: AbortSignal | undefined, listener: () => void): () => void {
  const end = () => {
    signal?.removeEventListener('abort', listener);
    listening.delete(end);
  };
  signal?.addEventListener('abort', listener);
  listening.add(end);
  return end;
}

/** Milliseconds since the world began. */
export const elapsed = () => at;
/** Milliseconds of processor time that this process has taken, whatever else the machine does. */
export function processorTime(): number {
  const { user, system } = cpuClock();
  return (user + system) / 1_000;
}
/** Milliseconds of the machine. */
export const realTime = () => wallClock();
/** How many timers have run. */
export const countSteps = () => steps;
/** The time of day, without the error of any clock. */
export const trueTime = () => Math.floor(BEGIN_MS + at);
/** The time of day by the clock of the process whose code runs. */
export const timeOfProcess = () => Math.floor(BEGIN_MS + at + (contexts.getStore()?.process?.aheadMs ?? 0));
/** The random numbers of the operation whose code runs. */
export const currentChance = () => (contexts.getStore() ?? outside).chance;
export const currentProcess = () => contexts.getStore()?.process;

export function createProcess(name: string, aheadMs = 0): VirtualProcess {
  return { name, aheadMs, isDead: false, asleepUntil: 0 };
}

/** Runs work as a part of a process, with random numbers of its own. */
export function runIn<Result>(process: VirtualProcess | undefined, chance: Chance, work: () => Result): Result {
  return contexts.run({ process, chance }, work);
}

/** A timer of the process that started it, with what callers of `setTimeout` need. */
export class VirtualTimer {
  at = 0;
  nth = 0;
  isLive = true;
  readonly process = contexts.getStore()?.process;
  readonly #inContext: (work: () => unknown) => unknown;
  readonly #work: () => void;
  readonly #waitMs: number;
  readonly #every: boolean;

  /** A timer without a context is faster: if its work only settles a promise, whose continuations have their own. */
  constructor(work: () => void, waitMs = 0, every = false, hasContext = true) {
    this.#inContext = hasContext ? AsyncLocalStorage.snapshot() : (run) => run();
    this.#work = work;
    this.#waitMs = Math.max(every ? 1 : 0, Number(waitMs) || 0);
    this.#every = every;
    this.arm(at + this.#waitMs);
  }

  arm(time: number): void {
    this.at = time;
    this.nth = nth++;
    timers.push(this);
  }

  run(): void {
    if (this.#every) this.arm(at + this.#waitMs);
    else this.isLive = false;
    this.#inContext(this.#work);
  }

  /** Starts the wait again. What is in the queue is not sorted again, so another timer takes the place of this one. */
  refresh(): VirtualTimer {
    this.close();
    return this.#inContext(() => new VirtualTimer(this.#work, this.#waitMs, this.#every)) as VirtualTimer;
  }

  close(): void {
    this.isLive = false;
  }

  ref(): VirtualTimer {
    return this;
  }

  unref(): VirtualTimer {
    return this;
  }

  hasRef(): boolean {
    return true;
  }

  [Symbol.toPrimitive](): number {
    return this.nth;
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

/** Resolves at a virtual time. */
export function wait(milliseconds: number): Promise<void> {
  return new Promise((resolve) => new VirtualTimer(resolve, milliseconds, false, false));
}

/** Runs work of another thread, one after another, because the order in which threads end is not determined. The world waits for it. */
export function runOutside<Result>(work: () => Promise<Result>): Promise<Result> {
  outsideWork += 1;
  const done = former.then(work, work).finally(() => {
    outsideWork -= 1;
  });
  former = done.catch(() => undefined);
  return done;
}

const passEvents = () => new Promise<void>((resolve) => realImmediate(resolve));

/** Lets everything end that needs no timer. Throws if the process has a file or a socket open. */
async function settle(): Promise<void> {
  await passEvents();
  for (let passes = 0; outsideWork > 0 || process.getActiveResourcesInfo().some(isForeign); passes += 1) {
    if (passes > MOST_PASSES)
      throw new Error(`The simulation waits for ${process.getActiveResourcesInfo().filter(isForeign)}.`);
    await passEvents();
  }
}

const isForeign = (resource: string) => !OWN_RESOURCES.has(resource);

function nextTimer(): VirtualTimer {
  for (;;) {
    const timer = timers.pop();
    if (!timer) throw new Error('Nothing is left to run, and the work has not ended.');
    if (timer.isLive && !timer.process?.isDead) return timer;
  }
}

/** Longer than a world takes, with all that it waits for. */
const MOST_MS = 86_400_000;
export const ENDLESS = 'The world does not end in a day.';

/** Runs timers one after another until the work is done, and returns its result. Throws ENDLESS if something is waited for in vain. */
export async function driveWorld<Result>(work: () => Promise<Result>): Promise<Result> {
  let ended = false;
  const result = work().finally(() => {
    ended = true;
  });
  result.catch(() => undefined);
  for (;;) {
    await settle();
    if (ended) return result;
    const timer = nextTimer();
    at = Math.max(at, timer.at);
    if (at > MOST_MS) throw new Error(ENDLESS);
    const wakesAt = timer.process?.asleepUntil ?? 0;
    if (wakesAt > at) timer.arm(wakesAt);
    else {
      steps += 1;
      timer.run();
    }
  }
}
