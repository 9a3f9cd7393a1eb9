import { AsyncLocalStorage } from 'node:async_hooks';
import type { HttpClient } from '@azure/core-rest-pipeline';
import { httpClient } from '../local/walk/known-messages.ts';

/** Counts how queue functions hold their work: those that hid the reminder, and those that needed no call for their hold. */
interface HoldCounts {
  hidden: number;
  immediate: number;
}

const MESSAGE = /\/messages\/[^/?]+/;

/** Creates a client for the engine of a consumer, and `count`, which runs the consumer for one delivery. */
export function countHolds(): {
  readonly counts: HoldCounts;
  readonly client: HttpClient;
  readonly count: <Result>(handle: () => Promise<Result>) => Promise<Result>;
} {
  const counts: HoldCounts = { hidden: 0, immediate: 0 };
  const methods = new AsyncLocalStorage<string[]>();
  return {
    counts,
    client: {
      sendRequest(request) {
        if (MESSAGE.test(request.url)) methods.getStore()?.push(request.method);
        return httpClient.sendRequest(request);
      },
    },
    async count(handle) {
      const own: string[] = [];
      const result = await methods.run(own, handle);
      if (own.includes('PUT')) counts.hidden += 1;
      // Only the holder deletes a reminder.
      else if (own.includes('DELETE')) counts.immediate += 1;
      return result;
    },
  };
}
