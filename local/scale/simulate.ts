import { exponential, type Random } from './random.ts';
import { TimeQueue } from './time-queue.ts';

/**
 * A discrete-event simulation of requests that use stations one step after another. A station is whatever serves at a limited rate: a
 * processor, an account, a partition, a queue. A step that uses several stations counts against the limit of each, and ends when the
 * last of them has served it.
 */

export interface Station {
  readonly name: string;
  /** Seconds for a unit of work. */
  readonly seconds: number;
  /** True if the time varies (exponential); else each unit takes the same time. */
  readonly isRandom: boolean;
  /** Rejects a step that would wait for longer, in seconds. */
  readonly patience: number;
  /** When each of its servers is free again. */
  readonly free: number[];
  /** The units of work that it has served, and the steps that it has rejected. */
  served: number;
  rejected: number;
  /** Seconds for which its servers have worked, and for which steps have waited for it. */
  busy: number;
  waited: number;
}

export interface Step {
  /** The stations that it uses, with the units of work at each. */
  readonly uses: readonly { readonly station: Station; readonly work: number }[];
  /** Seconds for which the step waits for nothing that is limited, such as the network. */
  readonly delay: number;
}

interface Simulation {
  readonly random: Random;
  /** Requests that arrive at random, so many a second; or callers, each of which sends its next request when it has a response. */
  readonly arrivals: { readonly rate: number } | { readonly callers: number };
  /** Requests that begin before are not counted, in seconds. */
  readonly warmUp?: number;
  /** Requests that begin later are not counted. */
  readonly seconds: number;
  /**
   * A response that takes longer comes too late. Until none is due any more, requests go on to begin. If there is no such time, requests
   * end to begin, and all are completed.
   */
  readonly within?: number;
  /** The steps of the next request. */
  readonly request: () => readonly Step[];
  /** Seconds before each further attempt of a step that a station has rejected. */
  readonly retries?: readonly number[];
}

export interface Outcome {
  /** The requests that are counted. Each is served, has failed because a step was rejected in every attempt, or is late. */
  readonly begun: number;
  readonly served: number;
  readonly failed: number;
  readonly late: number;
  /** Seconds that served requests took, in ascending order. */
  readonly times: Float64Array;
}

export function createStation(
  name: string,
  {
    seconds,
    servers = 1,
    isRandom = false,
    patience = Number.POSITIVE_INFINITY,
  }: Pick<Station, 'seconds'> & Partial<Pick<Station, 'isRandom' | 'patience'>> & { readonly servers?: number },
): Station {
  const free = new Array<number>(servers).fill(0);
  return { name, seconds, isRandom, patience, free, served: 0, rejected: 0, busy: 0, waited: 0 };
}

interface Running {
  readonly began: number;
  /** When its next step begins. */
  at: number;
  readonly steps: readonly Step[];
  next: number;
  attempts: number;
}

export function simulate({ random, arrivals, seconds, request, ...options }: Simulation): Outcome {
  const { warmUp = 0, within = Number.POSITIVE_INFINITY, retries = [] } = options;
  const isClosed = 'callers' in arrivals;
  const rate = isClosed ? 0 : arrivals.rate;
  const end = seconds + within;
  const lastArrival = Number.isFinite(end) ? end : seconds;
  const queue = new TimeQueue<Running>();
  const times: number[] = [];
  let [begun, failed] = [0, 0];
  const isCounted = (began: number) => began >= warmUp && began < seconds;
  const begin = (at: number) => {
    if (isCounted(at)) begun += 1;
    queue.push({ began: at, at, steps: request(), next: 0, attempts: 0 });
  };
  let arrival = isClosed ? Number.POSITIVE_INFINITY : exponential(random, 1 / rate);
  for (let caller = 0; isClosed && caller < arrivals.callers; caller += 1) begin(0);

  for (;;) {
    if (arrival < lastArrival && arrival <= queue.nextTime) {
      begin(arrival);
      arrival += exponential(random, 1 / rate);
      continue;
    }
    const now = queue.nextTime;
    const running = queue.pop();
    if (!running || now > end) break;
    const { began, steps, next } = running;
    const step = steps[next];
    if (step) {
      const until = serve(step, now, random);
      if (until !== undefined) {
        running.next += 1;
        running.attempts = 0;
        running.at = until + step.delay;
        queue.push(running);
        continue;
      }
      const pause = retries[running.attempts];
      running.attempts += 1;
      if (pause !== undefined) {
        // Between half of the pause and the whole of it, as the SDKs do.
        running.at = now + pause * (0.5 + random() / 2);
        queue.push(running);
        continue;
      }
    }
    if (isCounted(began) && now - began <= within) {
      if (step) failed += 1;
      else times.push(now - began);
    }
    if (isClosed && now < lastArrival) begin(now);
  }
  const late = begun - times.length - failed;
  return { begun, served: times.length, failed, late, times: Float64Array.from(times).sort() };
}

/** Returns when the last station has served the step; undefined if a station rejects it. */
function serve({ uses }: Step, now: number, random: Random): number | undefined {
  for (const { station } of uses)
    if ((station.free[firstFree(station)] ?? 0) - now > station.patience) {
      station.rejected += 1;
      return undefined;
    }
  let until = now;
  for (const { station, work } of uses) {
    const server = firstFree(station);
    const from = Math.max(now, station.free[server] ?? 0);
    const time = work * (station.isRandom ? exponential(random, station.seconds) : station.seconds);
    station.free[server] = from + time;
    station.served += work;
    station.busy += time;
    station.waited += from - now;
    until = Math.max(until, from + time);
  }
  return until;
}

function firstFree({ free }: Station): number {
  let first = 0;
  for (let server = 1; server < free.length; server += 1) if ((free[server] ?? 0) < (free[first] ?? 0)) first = server;
  return first;
}

/** The value that a part of the sorted values does not exceed. */
export function quantile(sorted: Float64Array, part: number): number {
  return sorted[Math.min(sorted.length - 1, Math.ceil(part * sorted.length) - 1)] ?? Number.NaN;
}
