import { AsyncLocalStorage } from 'node:async_hooks';
import { type PipelinePolicy, type PipelineResponse, RestError } from '@azure/core-rest-pipeline';
import type { Pace, Report } from '../base/pace.ts';

/**
 * Timers, queue messages, consistency checks and the like slow down when storage says that it is busy, and begin slowly (pace.ts). The policy
 * sees each attempt of an SDK, so a request that is repeated waits for its turn again. Requests of callers only wait if the process has a limit.
 */

const background = new AsyncLocalStorage<true>();

/** Runs work that no caller waits for, or one that can wait: its requests to storage adapt to the load. */
export function inBackground<Result>(work: () => Result): Result {
  return background.run(true, work);
}

/**
 * Lets a request wait for its turn. Outside of the policies that count requests and note their outcomes, because a request that waits is not
 * sent yet.
 */
export function adaptToLoad(pace: Pace): PipelinePolicy {
  return {
    name: 'adaptToLoad',
    async sendRequest(request, next) {
      const isBackground = background.getStore();
      if (!isBackground && !pace.isLimited) {
        const beganAt = performance.now();
        const response = await next(request);
        if (response.status >= LEAST_BUSY) pace.note(beganAt, busyReport(response));
        return response;
      }
      const end = await pace.enter(isBackground ? 'background' : 'caller', request.abortSignal);
      let report: Report;
      try {
        const response = await next(request);
        report = busyReport(response);
        return response;
      } finally {
        end(report);
      }
    },
  };
}

/** So long an account may respond to nobody while requests wait, before others do not wait with them. */
const SILENT_MS = 10_000;
/** After a request without a response, the next one is sent so much later: the SDK's repetitions of the first one come before. */
const ASK_AGAIN_MS = 5_000;

/**
 * Lets requests fail, as if the account refused them, while it responds to none: callers and queue messages that need other accounts as well
 * would wait for each of them. One at a time is sent, to notice when the account responds again.
 */
export function failIfSilent(): PipelinePolicy {
  /** The requests that wait, the oldest first. */
  const waiting = new Set<{ readonly since: number }>();
  let respondedAt = 0;
  let isSilent = false;
  let askAgainAt = 0;
  return {
    name: 'failIfSilent',
    async sendRequest(request, next) {
      const [oldest] = waiting;
      const hasWaited = ({ since }: { readonly since: number }) =>
        performance.now() - Math.max(since, respondedAt) > SILENT_MS;
      isSilent ||= oldest !== undefined && hasWaited(oldest);
      if (isSilent && (oldest || performance.now() < askAgainAt))
        throw new RestError('The account has responded to no request for a while.', { code: 'ECONNREFUSED', request });
      const own = { since: performance.now() };
      waiting.add(own);
      try {
        const response = await next(request);
        respondedAt = performance.now();
        isSilent = false;
        return response;
      } catch (error) {
        isSilent ||= hasWaited(own);
        askAgainAt = performance.now() + ASK_AGAIN_MS;
        throw error;
      } finally {
        waiting.delete(own);
      }
    },
  };
}

/** A wrong header must not stop the work for longer. */
const LONGEST_PAUSE_MS = 60_000;
const THROTTLED = new Set([429, 503]);
const LEAST_BUSY = 429;

/**
 * https://learn.microsoft.com/rest/api/storageservices/common-rest-api-error-codes: `ServerBusy` is a 503, and `OperationTimedOut` a 500,
 * with which tables say the same.
 */
function busyReport({ status, headers }: PipelineResponse): Report {
  if (status < LEAST_BUSY) return undefined;
  const isBusy = THROTTLED.has(status) || (status === 500 && headers.get('x-ms-error-code') === 'OperationTimedOut');
  const demandedMs = isBusy ? retryAfterMs(headers.get('retry-after')) : undefined;
  return isBusy ? { busyForMs: demandedMs && Math.min(demandedMs, LONGEST_PAUSE_MS) } : undefined;
}

/** Seconds, or a date: https://www.rfc-editor.org/rfc/rfc9110#field.retry-after */
export function retryAfterMs(header: string | null | undefined): number | undefined {
  if (!header) return undefined;
  const ms = /^\d+$/.test(header) ? Number(header) * 1_000 : Date.parse(header) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}
