import { setImmediate } from 'node:timers/promises';
import { defaultRetryPolicy, type PipelinePolicy, retryPolicy } from '@azure/core-rest-pipeline';
import type { TableClient } from '@azure/data-tables';
import { isUnsent } from './errors.ts';

/** When a request may be sent again, and how long storage may work on it. */

/** At most 30, the limit of the service. */
const WRITE_WITHIN_SECONDS = 15;
export const RETRIES = 3;
export const FIRST_RETRY_MS = 200;
export const LAST_RETRY_MS = 2_000;

/** Repeats only requests that were not sent, or that storage rejected with 503 (Server Busy), which has executed nothing. */
export function retryUnlessExecuted(): PipelinePolicy {
  const unlessExecuted: Parameters<typeof retryPolicy>[0][number] = {
    name: 'unlessExecuted',
    retry: ({ retryCount, response, responseError }) =>
      response?.status === 503 || isUnsent(responseError)
        ? { retryAfterInMs: Math.min(FIRST_RETRY_MS * 2 ** retryCount, LAST_RETRY_MS) }
        : { skipStrategy: true },
  };
  return retryPolicy([unlessExecuted], { maxRetries: RETRIES });
}

/** The client with these retries in place of those of its SDK. */
export function withoutRetries(client: TableClient): TableClient {
  client.pipeline.removePolicy({ name: defaultRetryPolicy().name });
  client.pipeline.addPolicy(retryUnlessExecuted(), { phase: 'Retry' });
  return client;
}

/**
 * Limits how long the service works on a write, also after the caller has given up:
 * https://learn.microsoft.com/rest/api/storageservices/setting-timeouts-for-table-service-operations
 */
export const boundWrites: PipelinePolicy = {
  name: 'boundWrites',
  async sendRequest(request, next) {
    // The SDK repeats the same object.
    const isRepeated = /[?&]timeout=/.test(request.url);
    // A process that was paused while it waited runs the timer of the repetition before the timer that aborts the request.
    if (isRepeated) await setImmediate();
    else if (request.method !== 'GET')
      request.url += `${request.url.includes('?') ? '&' : '?'}timeout=${WRITE_WITHIN_SECONDS}`;
    return next(request);
  },
};

/**
 * Presents a 429 to the SDKs as the 503 that storage documents for throttling: they retry every 503, but a 429 only with a
 * `Retry-After` header (tables) or never (queues and blobs). It is outside of the tracing, so metrics keep the 429.
 */
export const throttledAsBusy: PipelinePolicy = {
  name: 'throttledAsBusy',
  async sendRequest(request, next) {
    const response = await next(request);
    return response.status === 429 ? { ...response, status: 503 } : response;
  },
};
