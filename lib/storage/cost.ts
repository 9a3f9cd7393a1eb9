import { AsyncLocalStorage } from 'node:async_hooks';
import { createDefaultHttpClient, type HttpClient } from '@azure/core-rest-pipeline';

/** What one request has cost so far: each HTTP call to storage is one billed transaction, retries included. */
export interface Cost {
  transactions: number;
  /** Milliseconds during which at least one storage call was under way; parallel calls are not added up. */
  milliseconds: number;
}

interface Meter extends Cost {
  underWay: number;
  since: number;
}

const meters = new AsyncLocalStorage<Meter>();

/** The storage transactions so far of the work that is measured; 0 where none is. */
export function transactionsSoFar(): number {
  return meters.getStore()?.transactions ?? 0;
}

/** Runs `work` and counts the storage transactions it causes, across awaits. */
export function measureCost<Result>(work: (cost: Cost) => Promise<Result>): Promise<Result> {
  const meter: Meter = { transactions: 0, milliseconds: 0, underWay: 0, since: 0 };
  return meters.run(meter, () => work(meter));
}

/**
 * The one HTTP client of all storage SDKs: below their retries, so that each attempt is seen. Plain HTTP is refused
 * unless `insecure`, as for the emulator.
 */
export function countingHttpClient(inner: HttpClient = createDefaultHttpClient(), insecure = false): HttpClient {
  return {
    async sendRequest(request) {
      request.allowInsecureConnection ||= insecure;
      const meter = meters.getStore();
      if (!meter) return inner.sendRequest(request);
      meter.transactions += 1;
      if (meter.underWay++ === 0) meter.since = performance.now();
      try {
        return await inner.sendRequest(request);
      } finally {
        if (--meter.underWay === 0) meter.milliseconds += performance.now() - meter.since;
      }
    },
  };
}
