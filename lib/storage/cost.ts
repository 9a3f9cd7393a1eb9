import { AsyncLocalStorage } from 'node:async_hooks';
import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { PipelinePolicy } from '@azure/core-rest-pipeline';

/** The cost of a request so far. Each HTTP call to storage is a billed transaction, retries included. */
export interface Cost {
  transactions: number;
  /** Milliseconds during which at least one storage call was in progress; concurrent calls count once. */
  milliseconds: number;
}

/**
 * An idle connection is closed before the load balancer forgets it, which it does after four minutes
 * (https://learn.microsoft.com/azure/load-balancer/load-balancer-tcp-idle-timeout). A request on a forgotten connection gets no reply, and
 * some writes cannot be repeated then.
 */
const IDLE_MS = 60_000;

/** Returns the function that chooses the kept connections of a request, by its URL. */
export function createConnections(idleMs = IDLE_MS): (url: string) => HttpAgent {
  const options = { keepAlive: true, timeout: idleMs };
  const [http, https] = [new HttpAgent(options), new HttpsAgent(options)];
  return (url) => (url.startsWith('https:') ? https : http);
}

const connectionsOf = createConnections();

interface Meter extends Cost {
  underWay: number;
  since: number;
  /** The meter of the work that this work is a part of. */
  readonly whole: Meter | undefined;
}

const meters = new AsyncLocalStorage<Meter>();

/** Storage transactions of the measured work so far; 0 outside `measureCost`. */
export function transactionsSoFar(): number {
  return meters.getStore()?.transactions ?? 0;
}

/** Runs `work` and counts its storage transactions, across awaits. They count for the work around it, too. */
export function measureCost<Result>(work: (cost: Cost) => Promise<Result>): Promise<Result> {
  const meter: Meter = { transactions: 0, milliseconds: 0, underWay: 0, since: 0, whole: meters.getStore() };
  return meters.run(meter, () => work(meter));
}

/**
 * Counts each attempt, so it is below the retries of the SDKs, and keeps the connections open. It rejects plain HTTP unless `insecure`, as
 * for the emulator.
 */
export function countCost(insecure: boolean): PipelinePolicy {
  return {
    name: 'countCost',
    async sendRequest(request, next) {
      request.allowInsecureConnection ||= insecure;
      request.agent ??= connectionsOf(request.url);
      const running: Meter[] = [];
      for (let meter = meters.getStore(); meter; meter = meter.whole) running.push(meter);
      for (const meter of running) {
        meter.transactions += 1;
        if (meter.underWay++ === 0) meter.since = performance.now();
      }
      try {
        return await next(request);
      } finally {
        for (const meter of running) if (--meter.underWay === 0) meter.milliseconds += performance.now() - meter.since;
      }
    },
  };
}
