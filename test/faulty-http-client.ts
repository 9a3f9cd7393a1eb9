import { setTimeout as sleep } from 'node:timers/promises';
import { createHttpHeaders, type HttpClient, type PipelineRequest, RestError } from '@azure/core-rest-pipeline';
import { httpClient as shared } from '../local/walk/known-messages.ts';

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

/** A storage call: its number, counted from 1, or the first request that matches. */
export type Point = number | ((request: PipelineRequest) => boolean);

/** Matches the requests to a table, or to its rows, with one of these methods. */
export function requestTo(table: string, ...methods: readonly string[]): (request: PipelineRequest) => boolean {
  const path = new RegExp(`/${table}(\\(|\\?|$)`);
  return ({ method, url }) => methods.includes(method) && path.test(url);
}

export interface FaultyHttpClient extends HttpClient {
  /** The number of calls so far. */
  readonly calls: number;
}

/** Creates a client that counts its calls, and sends each by `send`, which is told whether the call is the point: once. */
function countingClient(
  at: Point,
  send: (request: PipelineRequest, isHere: boolean) => ReturnType<HttpClient['sendRequest']>,
): FaultyHttpClient {
  let calls = 0;
  let isPast = false;
  return {
    get calls() {
      return calls;
    },
    sendRequest(request) {
      calls += 1;
      const isHere = !isPast && (typeof at === 'number' ? calls === at : at(request));
      isPast ||= isHere;
      return send(request, isHere);
    },
  };
}

/** Creates a client that injects a fault at a call. Without a fault the client only counts. */
export function faultyHttpClient(fault?: Fault, at: Point = 0): FaultyHttpClient {
  let crashed = false;
  const crash = () => {
    crashed = true;
    throw new Error('This process is dead.');
  };
  return countingClient(at, async (request, isHere) => {
    if (crashed || (isHere && fault === 'crash before')) crash();
    if (isHere && fault === 'reset') throw new RestError('reset', { code: 'ECONNRESET', request });
    const status = fault && REFUSALS[fault];
    if (isHere && status) return { request, status, headers: createHttpHeaders(), bodyAsText: '' };
    const response = await shared.sendRequest(request);
    if (isHere && fault === 'reply lost') throw new RestError('reply lost', { code: 'ECONNRESET', request });
    if (isHere && fault === 'crash after') crash();
    return response;
  });
}

/**
 * Creates a client that runs `happen` right before or after a call to `next`. A call whose sender has given up meanwhile is not
 * made.
 */
export function interruptedHttpClient(
  at: Point,
  happen: () => Promise<unknown>,
  when: 'before' | 'after' = 'before',
  next: HttpClient = shared,
): FaultyHttpClient {
  return countingClient(at, async (request, isHere) => {
    if (isHere && when === 'before') await happen();
    if (isHere && request.abortSignal?.aborted) throw Object.assign(new Error('Given up.'), { name: 'AbortError' });
    const response = await next.sendRequest(request);
    if (isHere && when === 'after') await happen();
    return response;
  });
}

interface LateHttpClient extends FaultyHttpClient {
  /** Executes the request that was kept back, if there is one. */
  arrive(): Promise<unknown>;
}

/** Creates a client that keeps a call back. Its sender loses the connection and may send the request again, or dies. */
export function lateHttpClient(at: Point, { dies = false }: { readonly dies?: boolean } = {}): LateHttpClient {
  let kept: PipelineRequest | undefined;
  const client = countingClient(at, async (request, isHere) => {
    if (kept && dies) throw new Error('This process is dead.');
    if (!isHere) return shared.sendRequest(request);
    const { abortSignal: _, ...late } = request;
    kept = late;
    throw new RestError('The connection was lost.', { code: 'ECONNRESET', request });
  });
  return Object.assign(client, { arrive: async () => kept && shared.sendRequest(kept) });
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
