import { setTimeout as sleep } from 'node:timers/promises';
import { createHttpHeaders, type HttpClient, RestError } from '@azure/core-rest-pipeline';
import { httpClient as shared } from './known-messages.ts';

/**
 * The faults that can be injected at a storage call. After a crash every further call fails; the other faults affect
 * one call.
 */
export const FAULTS = [
  'refused',
  'server error',
  'throttled',
  'reset',
  'reply lost',
  'crash before',
  'crash after',
] as const;
export type Fault = (typeof FAULTS)[number];
const REFUSALS: Partial<Record<Fault, number>> = { refused: 503, 'server error': 500, throttled: 429 };

export interface FaultyHttpClient extends HttpClient {
  /** The number of calls so far. */
  readonly calls: number;
}

/**
 * Creates a client that injects a fault at its `at`-th call, counted from 1. Without a fault the client only counts.
 */
export function faultyHttpClient(fault?: Fault, at = 0): FaultyHttpClient {
  let calls = 0;
  let crashed = false;
  return {
    get calls() {
      return calls;
    },
    async sendRequest(request) {
      calls += 1;
      const isHere = calls === at;
      if (crashed || (isHere && fault === 'crash before')) {
        crashed = true;
        throw new Error('This process is dead.');
      }
      if (isHere && fault === 'reset') throw new RestError('reset', { code: 'ECONNRESET', request });
      const status = fault && REFUSALS[fault];
      if (isHere && status) return { request, status, headers: createHttpHeaders(), bodyAsText: '' };
      const response = await shared.sendRequest(request);
      if (isHere && fault === 'reply lost') throw new RestError('reply lost', { code: 'ECONNRESET', request });
      if (isHere && fault === 'crash after') {
        crashed = true;
        throw new Error('This process is dead.');
      }
      return response;
    },
  };
}

/** Creates a client that runs `happen` right before or after its `at`-th call to `next`, counted from 1. */
export function interruptedHttpClient(
  at: number,
  happen: () => Promise<unknown>,
  when: 'before' | 'after' = 'before',
  next: HttpClient = shared,
): FaultyHttpClient {
  let calls = 0;
  return {
    get calls() {
      return calls;
    },
    async sendRequest(request) {
      calls += 1;
      const isHere = calls === at;
      if (isHere && when === 'before') await happen();
      const response = await next.sendRequest(request);
      if (isHere && when === 'after') await happen();
      return response;
    },
  };
}

/** Creates a client whose `at`-th call, or first transaction, reaches storage after a delay, even if the caller has timed out. */
export function slowHttpClient(
  at: number | 'transaction',
  milliseconds: number,
): FaultyHttpClient & { readonly isReached: boolean } {
  let calls = 0;
  let isReached = false;
  return {
    get calls() {
      return calls;
    },
    get isReached() {
      return isReached;
    },
    async sendRequest(request) {
      calls += 1;
      const isHere = at === 'transaction' ? !isReached && request.url.includes('$batch') : calls === at;
      if (!isHere) return shared.sendRequest(request);
      isReached = true;
      const { abortSignal } = request;
      // The caller times out, but the request still arrives.
      const arriving = sleep(milliseconds).then(() =>
        shared.sendRequest(Object.assign(request, { abortSignal: undefined })),
      );
      const given = Promise.withResolvers<never>();
      const giveUp = () => given.reject(Object.assign(new Error('Given up.'), { name: 'AbortError' }));
      // An aborted signal dispatches no event.
      if (abortSignal?.aborted) giveUp();
      abortSignal?.addEventListener('abort', giveUp);
      return Promise.race([arriving, given.promise]);
    },
  };
}
